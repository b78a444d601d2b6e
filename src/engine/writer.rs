//! One write to the log: run by the sequencer itself when nothing else waits, else by a thread of
//! its own while the sequencer fills the next frame. The log writer travels with the job, so that
//! one frame is in flight at a time.

use std::sync::Arc;
use std::time::Instant;

use super::Event;
use super::queue::Queue;
use crate::error::OpenError;
use crate::log::{Batch, LogError, LogWriter};
use crate::sync::mpsc::{SyncSender, sync_channel};
use crate::sync::thread::{self, JoinHandle};

/// What to write.
#[derive(Debug)]
pub(super) struct Job {
    pub log: LogWriter,
    /// The frame, if there is one.
    pub batch: Option<Batch>,
    /// Whether to sync behind it.
    pub sync: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Written {
    pub log: LogWriter,
    pub batch: Option<Batch>,
    pub result: Result<(), LogError>,
}

impl Job {
    /// Writes, syncs, and says how it went.
    pub fn run(mut self) -> Written {
        let result = self.write();
        Written { log: self.log, batch: self.batch, result }
    }

    fn write(&mut self) -> Result<(), LogError> {
        if let Some(batch) = &self.batch {
            self.log.append(batch)?;
            metrics::histogram!("sharestate_frame_entries").record(batch.len() as f64);
            metrics::counter!("sharestate_log_bytes_total").increment(batch.bytes() as u64);
        }
        if self.sync {
            let started = Instant::now();
            self.log.sync()?;
            metrics::histogram!("sharestate_sync_seconds").record(started.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// The writing thread.
#[derive(Debug)]
pub(super) struct WriterThread {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    /// Starts it; results arrive in `inbox`.
    pub fn start(inbox: Arc<Queue<Event>>) -> Result<Self, OpenError> {
        let (jobs, received) = sync_channel::<Job>(1);
        let thread = thread::Builder::new()
            .name("sharestate-wal".to_owned())
            .spawn(move || {
                let _guard = PanicGuard(Arc::clone(&inbox));
                for job in received {
                    if inbox.push(Event::Written(Box::new(job.run()))).is_err() {
                        return;
                    }
                }
            })
            .map_err(OpenError::Thread)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands a job over. Answers whether the thread is there to take it.
    pub fn submit(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.jobs = None; // ends the thread's loop
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was reported through the inbox
        }
    }
}

/// Tells the sequencer when the thread that holds it panics.
pub(super) struct PanicGuard(pub Arc<Queue<Event>>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.push(Event::Panicked); // closed: nobody waits any more
        }
    }
}
