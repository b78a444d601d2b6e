//! A directory that somebody copied file by file beside running writers (rocksdb 12467). Such a copy
//! is no backup: it may be refused. What it must not do is open as something that never was.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use sharestate::ShareStore;

use crate::support::{batch, key, open, small, write};

const WRITERS: i32 = 4;

/// Copies without regard to what changes meanwhile; what has vanished is left out.
fn copy_carelessly(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_carelessly(&entry.path(), &target);
        } else {
            let _ = std::fs::copy(entry.path(), target); // purged meanwhile
        }
    }
}

/// Acknowledges every second offset, one after the other, until told to stop.
fn acknowledge(store: &ShareStore, writer: i32, issued: &AtomicI64, stop: &AtomicBool) {
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        issued.store(n, Ordering::SeqCst);
        // A gap at every offset, so that each write stays visible; the start follows, to bound it.
        let mut change = write(&[batch(n * 2, n * 2, 2, 1)]);
        change.start_offset = (n * 2 - 400).max(0);
        store.blocking().write(&key("g", writer), change).expect("write");
    }
}

/// The writes that are there are the first ones, without a hole.
fn check(store: &ShareStore, writer: i32, issued: i64) {
    let Ok(answer) = store.blocking().read(&key("g", writer), 0) else { return };
    let row = answer.partition;
    let last = row.batches.last().map_or(-2, |batch| batch.first_offset);
    let kept: Vec<_> = row.batches.iter().map(|batch| batch.first_offset).collect();
    let first = row.start_offset.max(0);
    let whole: Vec<_> = (first..=last).filter(|offset| offset % 2 == 0).collect();
    assert_eq!(kept, whole, "writer {writer}: a hole");
    assert!(last <= issued * 2, "writer {writer}: {last} was never written");
}

#[test]
fn a_careless_copy_opens_as_something_that_was_or_is_refused() {
    const COPIES: usize = 100;
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &small());
    for writer in 0..WRITERS {
        store.blocking().initialize(&key("g", writer), 1, 0).expect("initialize");
    }
    let stop = AtomicBool::new(false);
    let issued: Vec<AtomicI64> = (0..WRITERS).map(|_| AtomicI64::new(0)).collect();
    let (mut opened, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        for (writer, issued) in (0..WRITERS).zip(&issued) {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || acknowledge(store, writer, issued, stop));
        }
        let stops = StopOnDrop(&stop);
        for n in 0..COPIES {
            let copy = dir.path().join(format!("copy-{n}"));
            copy_carelessly(&live, &copy);
            match ShareStore::open(&copy, &small()) {
                Ok(store) => {
                    opened += 1;
                    for (writer, issued) in (0..WRITERS).zip(&issued) {
                        check(&store, writer, issued.load(Ordering::SeqCst));
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
            std::fs::remove_dir_all(&copy).expect("removed");
        }
        drop(stops);
    });
    println!("careless-copies={COPIES} opened={opened} refused={refused} invented=0");
}

/// Ends the writers also when an assertion fails, so that the test ends.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
