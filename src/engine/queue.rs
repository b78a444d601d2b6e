//! The sequencer's inbox: many senders, one taker, no timer. Bounds are the senders' affair (see
//! [`super::Engine`]).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::seeded;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, thread};

/// How often an idle taker looks again before it parks: a lone caller's next command comes within
/// microseconds.
const SPINS: u32 = if cfg!(sharestate_shuttle) { 1 } else { 64 };

/// A queue that is taken as a whole.
#[derive(Debug)]
pub struct Queue<T> {
    items: Mutex<Items<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
pub(super) struct Items<T> {
    waiting: VecDeque<T>,
    closed: bool,
    parked: bool,
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        let items = Items { waiting: VecDeque::new(), closed: false, parked: false };
        Self { items: Mutex::new(items), arrived: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Items<T>> {
        // Nothing panics while it holds the lock; were that wrong, the items are still whole.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item; gives it back when the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.lock();
        if items.closed {
            return Err(item);
        }
        items.waiting.push_back(item);
        let wake = items.parked && !seeded::bug("fjall-257");
        drop(items);
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Moves everything that waits into `into`; waits for something until `deadline`, if there is
    /// one.
    pub fn take(&self, into: &mut VecDeque<T>, deadline: Option<Instant>) {
        for _ in 0..SPINS {
            let mut items = self.lock();
            if !items.waiting.is_empty() {
                std::mem::swap(&mut items.waiting, into);
                return;
            }
            drop(items);
            thread::yield_now();
        }
        let mut items = self.lock();
        while items.waiting.is_empty() {
            let now = Instant::now();
            let wait = match deadline {
                Some(deadline) if deadline <= now => break,
                Some(deadline) => deadline - now,
                None => Duration::from_secs(3_600),
            };
            items.parked = true;
            items =
                self.arrived.wait_timeout(items, wait).unwrap_or_else(PoisonError::into_inner).0;
            items.parked = false;
        }
        std::mem::swap(&mut items.waiting, into);
    }

    /// Moves what waits now into `into` without waiting. Answers whether there was anything.
    pub fn try_take(&self, into: &mut VecDeque<T>) -> bool {
        let mut items = self.lock();
        std::mem::swap(&mut items.waiting, into);
        !into.is_empty()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Refuses items from now on and answers those that still wait.
    pub fn close(&self) -> VecDeque<T> {
        let mut items = self.lock();
        items.closed = true;
        std::mem::take(&mut items.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn everything_that_waits_is_taken_at_once_and_in_order() {
        let queue = Queue::new();
        for item in 0..5 {
            queue.push(item).expect("open");
        }
        assert!(!queue.is_empty());
        let mut taken = VecDeque::new();
        queue.take(&mut taken, None);
        assert_eq!(taken, [0, 1, 2, 3, 4]);
        assert!(queue.is_empty());
        assert!(!queue.try_take(&mut VecDeque::new()));
        queue.push(5).expect("open");
        let mut taken = VecDeque::new();
        assert!(queue.try_take(&mut taken));
        assert_eq!(taken, [5]);
    }

    #[test]
    fn a_taker_waits_until_something_comes_and_no_longer() {
        for deadline in [None, Instant::now().checked_add(Duration::from_secs(3_600))] {
            let queue = Arc::new(Queue::new());
            let sender = Arc::clone(&queue);
            let late = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                sender.push(1).expect("open");
            });
            let mut taken = VecDeque::new();
            queue.take(&mut taken, deadline);
            assert_eq!(taken, [1], "it came back with nothing");
            late.join().expect("sender");
        }
    }

    #[test]
    fn no_wake_up_is_lost_between_senders_and_a_parked_taker() {
        let queue = Arc::new(Queue::new());
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    for item in 0..2_000 {
                        queue.push(item).expect("open");
                        if item % 50 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (mut seen, mut taken) = (0, VecDeque::new());
        while seen < 8_000 {
            queue.take(&mut taken, None);
            seen += taken.drain(..).count();
        }
        for sender in senders {
            sender.join().expect("sender");
        }
        assert_eq!(seen, 8_000);
    }

    #[test]
    fn a_closed_queue_gives_items_back() {
        let queue = Queue::new();
        queue.push(1).expect("open");
        assert_eq!(queue.close(), [1]);
        assert_eq!(queue.push(2), Err(2));
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let queue = Queue::<u8>::new();
        let mut taken = VecDeque::new();
        let deadline = Instant::now() + Duration::from_millis(5);
        queue.take(&mut taken, Some(deadline));
        assert!(taken.is_empty());
        assert!(Instant::now() >= deadline, "it did not wait");
    }
}
