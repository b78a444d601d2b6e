//! One open store and the calls that are under way.
//!
//! A call's future is polled first on the thread that calls, which is what keeps calls of one thread
//! in order; later it runs on the thread that stands in [`Session::wait`], where its answer goes
//! anyway. So each call costs one hand-over on the way back, and answers that become durable
//! together are fetched together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

use async_task::Runnable;
use sharestate::{CheckpointError, ShareStore};

use crate::answer::{self, Failure, Success};
use crate::call::Call;

/// Answers fetched at once, at most.
const BATCH: usize = 1_024;

/// What the waiting thread is told.
enum Event {
    /// A call can go on.
    Woken(i64, Runnable),
    /// A call has ended.
    Answered(i64, Vec<u8>),
    /// The store is closed: nothing follows that matters.
    Closed,
}

/// An open store.
pub struct Session {
    store: ShareStore,
    events: Sender<Event>,
    inbox: Mutex<Receiver<Event>>,
    closing: AtomicBool,
}

impl Session {
    pub fn new(store: ShareStore) -> Self {
        let (events, inbox) = mpsc::channel();
        Self { store, events, inbox: Mutex::new(inbox), closing: AtomicBool::new(false) }
    }

    /// Starts a call; its answer comes out of [`wait`](Self::wait) under this id.
    pub fn submit(&self, id: i64, call: Call) {
        let (store, answers) = (self.store.clone(), self.events.clone());
        let future = async move {
            let answer = answer::encode(&call.run(&store).await);
            // A receiver that has gone is a store that was closed.
            let _ = answers.send(Event::Answered(id, answer));
        };
        let wakes = self.events.clone();
        let schedule = move |runnable| drop(wakes.send(Event::Woken(id, runnable)));
        let (runnable, task) = async_task::spawn(future, schedule);
        task.detach();
        self.run(id, runnable);
    }

    /// Polls a call. A panic is that call's answer.
    fn run(&self, id: i64, runnable: Runnable) {
        if catch_unwind(AssertUnwindSafe(|| runnable.run())).is_err() {
            let failure =
                Failure::internal("a native call panicked; this is a defect of sharestate");
            drop(self.events.send(Event::Answered(id, answer::encode(&Err(failure)))));
        }
    }

    /// Waits for answers: pairs of a call's id and its answer. None when the store is closed.
    pub fn wait(&self) -> Option<Vec<(i64, Vec<u8>)>> {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = Vec::new();
        let mut closed = false;
        let mut event = inbox.recv().unwrap_or(Event::Closed);
        loop {
            match event {
                Event::Woken(id, runnable) => self.run(id, runnable),
                Event::Answered(id, answer) => answers.push((id, answer)),
                // Wakes before it may have put their answers behind it.
                Event::Closed => closed = true,
            }
            if answers.len() >= BATCH {
                break;
            }
            event = match inbox.try_recv() {
                Ok(event) => event,
                Err(_) if answers.is_empty() && !closed => inbox.recv().unwrap_or(Event::Closed),
                Err(_) => break,
            };
        }
        if closed && !answers.is_empty() {
            // Once more, for the next call of this method.
            drop(self.events.send(Event::Closed));
        }
        (!answers.is_empty()).then_some(answers)
    }

    /// Whether calls may still be started.
    pub fn is_open(&self) -> bool {
        !self.closing.load(Ordering::Acquire)
    }

    /// Closes the store, which blocks until its last checkpoint is taken. Every call that the store
    /// accepted is answered before [`wait`](Self::wait) tells of the end.
    pub fn close(&self) -> Result<Success, Failure> {
        if self.closing.swap(true, Ordering::AcqRel) {
            return Err(Failure::closed());
        }
        let closed: Result<(), CheckpointError> = self.store.blocking().close();
        drop(self.events.send(Event::Closed));
        closed?;
        Ok(Success::Nothing)
    }
}
