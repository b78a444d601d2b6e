//! How much a run explores, and on how many threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A number from the environment, for nightly and release runs.
pub fn knob(name: &str, normal: usize) -> usize {
    let Ok(text) = std::env::var(name) else { return normal };
    text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
}

/// Carries out every job on as many threads as there are processors. A panic of one ends the run
/// with its message.
pub fn in_parallel<T: Sync>(jobs: &[T], run: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(job);
                }
            });
        }
    });
}

/// Tells at times how far a long run is.
pub struct Progress {
    name: &'static str,
    wanted: usize,
    done: AtomicUsize,
    started: Instant,
}

impl Progress {
    /// Below this nothing is told.
    const EVERY: usize = 20_000;

    pub fn new(name: &'static str, wanted: usize) -> Self {
        Self { name, wanted, done: AtomicUsize::new(0), started: Instant::now() }
    }

    pub fn count(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(Self::EVERY) {
            let rate = done as f64 / self.started.elapsed().as_secs_f64();
            eprintln!("{}: {done} of {}, {rate:.0}/s", self.name, self.wanted);
        }
    }
}
