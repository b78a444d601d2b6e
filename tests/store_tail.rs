//! A torn tail is cut and kept as evidence; rot is refused.
#![cfg(feature = "rocksdb")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::fsio::RealFs;
use sharestate::log::{Entry, Scope, TailVerdict, scan};
use sharestate::{ErrorClass, ShareStore};
use support::{batch, contents, copy_dir, crash_image, fill, key, log_only, open, segments, write};

/// The bytes in use of a segment.
fn used(segment: &Path) -> usize {
    let bytes = fs::read(segment).expect("read");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Whether something in the log of this image vouches for its last entry.
fn is_vouched(image: &Path, uuid: uuid::Uuid) -> bool {
    let no_visit = &mut |_: Entry<'_>| Ok::<(), std::convert::Infallible>(());
    let wal = image.join("wal");
    let scanned = scan(Arc::new(RealFs), &wal, uuid, 0, Scope::Tail, no_visit).expect("intact");
    scanned.report().vouched_lsn == scanned.report().last_lsn
}

/// A store killed right after its last write: no mark vouches for the last frame yet. Answers the
/// image, the state without the last write, and the state with it.
fn killed_after_a_write(dir: &Path) -> (PathBuf, Vec<String>, Vec<String>) {
    let (live, image) = (dir.join("live"), dir.join("image"));
    let store = open(&live, &log_only());
    fill(&store, "g", 2, 20);
    for attempt in 0..1_000 {
        let without = contents(&store);
        let offset = 500 + attempt * 2;
        let batches = [batch(offset, offset, 2, 1)];
        store.blocking().write(&key("g", 0), write(&batches)).expect("write");
        crash_image(&live, &image);
        // The mark of an idle store comes 20 ms later: not in this image, unless we were slow.
        if !is_vouched(&image, store.uuid()) {
            return (image, without, contents(&store));
        }
        fs::remove_dir_all(&image).expect("remove");
    }
    panic!("no image without a mark");
}

#[test]
fn a_torn_last_frame_is_cut_with_the_evidence_kept() {
    let dir = tempfile::tempdir().expect("directory");
    let (image, without, with) = killed_after_a_write(dir.path());
    let whole = dir.path().join("whole");
    copy_dir(&image, &whole);
    assert_eq!(contents(&open(&whole, &log_only())), with);

    let segment = segments(&image).pop().expect("segment");
    let mut bytes = fs::read(&segment).expect("read");
    let end = used(&segment);
    bytes[end - 3..end].fill(0); // the last bytes never reached the disk
    fs::write(&segment, &bytes).expect("write");
    let torn = dir.path().join("torn");
    copy_dir(&image, &torn);
    let store = open(&torn, &log_only());
    assert_eq!(contents(&store), without);
    let report = store.recovery();
    let verdict = &report.tail.as_ref().expect("tail").verdict;
    assert!(matches!(verdict, TailVerdict::Torn(_)), "{verdict:?}");
    let repair = report.repair.as_ref().expect("repair");
    let cut = repair.cut.as_ref().expect("cut");
    let evidence = fs::read(repair.evidence.as_ref().expect("evidence")).expect("read");
    let offset = cut.offset as usize;
    assert!(
        bytes[offset..end].windows(16).any(|window| evidence.windows(16).any(|e| e == window)),
        "the evidence holds the torn bytes"
    );
    // The store goes on behind the cut.
    fill(&store, "h", 1, 5);
    let after = contents(&store);
    drop(store);
    assert_eq!(contents(&open(&torn, &log_only())), after);
}

#[test]
fn rot_in_what_a_mark_vouches_for_is_refused_and_untouched() {
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &log_only());
    fill(&store, "g", 2, 20);
    let image = dir.path().join("image");
    crash_image(&live, &image);
    while !is_vouched(&image, store.uuid()) {
        fs::remove_dir_all(&image).expect("remove"); // not idle for long enough yet
        crash_image(&live, &image);
    }
    let segment = segments(&image).pop().expect("segment");
    let good = fs::read(&segment).expect("read");
    let end = used(&segment);
    let mark = 56; // the mark frame itself may be torn: nothing but itself is lost with it
    let mut refused = 0;
    for at in (64..end - mark).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&segment, &bytes).expect("write");
        let error = ShareStore::open(&image, &log_only()).map(drop).expect_err("refused");
        assert_eq!(error.class(), ErrorClass::Corrupt, "byte {at}: {error}");
        assert!(error.to_string().contains(".wal"), "the file is named: {error}");
        assert_eq!(fs::read(&segment).expect("read"), bytes, "untouched");
        refused += 1;
    }
    println!("flipped-bytes={refused} refused={refused}");
    assert!(refused > 20);
}
