//! Makes the next segment ahead of need: a file of zeros, written and synced, under a temporary
//! name, so that the path of a write never changes a file's metadata.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::directory::PREPARED;
use super::{LogOptions, Prepare};
use crate::fsio::{Fs, FsError, OpenMode, write_zeros_at};

/// Zeros are synced in steps, so that the log's own syncs never wait for a whole segment.
const SYNC_EVERY: u64 = 8 << 20;

/// Makes segments, one at a time.
#[derive(Debug)]
pub(super) struct Preparer {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    segment_bytes: u64,
    background: bool,
    job: Option<Job>,
}

#[derive(Debug)]
struct Job {
    thread: JoinHandle<Result<(), FsError>>,
    stop: Arc<AtomicBool>,
}

impl Preparer {
    pub(super) fn new(fs: Arc<dyn Fs>, dir: &Path, options: &LogOptions) -> Preparer {
        Preparer {
            fs,
            path: dir.join(PREPARED),
            segment_bytes: options.segment_bytes,
            background: options.prepare == Prepare::Background,
            job: None,
        }
    }

    /// Starts to make a segment in the background, unless that is under way or not wanted.
    pub(super) fn start(&mut self) {
        if !self.background || self.job.is_some() {
            return;
        }
        let (fs, path, bytes) = (self.fs.clone(), self.path.clone(), self.segment_bytes);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("sharestate-segment".into())
            .spawn(move || make(&*fs, &path, bytes, &stopped));
        match thread {
            Ok(thread) => self.job = Some(Job { thread, stop }),
            // No thread: `take` will do the work itself.
            Err(error) => tracing::warn!(%error, "cannot start a thread to prepare a segment"),
        }
    }

    /// The path of a whole, synced file of zeros; waits for it or makes it.
    pub(super) fn take(&mut self) -> Result<&Path, FsError> {
        let made = match self.job.take().map(|job| job.thread.join()) {
            Some(Ok(Ok(()))) => true,
            Some(Ok(Err(error))) => {
                // Usually a disk that was full at that time. The file is made anew, so nothing
                // rests on what the failed call left behind.
                tracing::warn!(%error, "cannot prepare a segment ahead of need");
                false
            }
            Some(Err(_)) | None => false,
        };
        if !made {
            make(&*self.fs, &self.path, self.segment_bytes, &AtomicBool::new(false))?;
        }
        Ok(&self.path)
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.stop.store(true, Ordering::Relaxed);
            // Its outcome no longer matters: an unfinished file is removed at the next opening.
            let _ = job.thread.join();
        }
    }
}

fn make(fs: &dyn Fs, path: &Path, bytes: u64, stop: &AtomicBool) -> Result<(), FsError> {
    if fs.exists(path)? {
        fs.remove_file(path)?;
    }
    let file = fs.open(path, OpenMode::CreateNew)?;
    file.allocate(bytes)?;
    let mut at = 0;
    while at < bytes && !stop.load(Ordering::Relaxed) {
        let end = bytes.min(at.saturating_add(SYNC_EVERY));
        write_zeros_at(&*file, at, end)?;
        file.sync_all()?;
        at = end;
    }
    Ok(())
}
