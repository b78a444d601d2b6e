//! What was written is read back, from the operating system's files.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::{Fs, RealFs};
use sharestate::log::{
    Batch, LogError, LogIdentity, LogOptions, Prepare, Scope, TailVerdict, create, purge, scan,
};
use tempfile::TempDir;

fn real() -> (TempDir, Arc<dyn Fs>) {
    (tempfile::tempdir().expect("a directory"), Arc::new(RealFs))
}

#[test]
fn entries_come_back_as_written_over_several_openings_and_segments() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut written = 0;
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    for incarnation in 2..=6 {
        for entries in [1, 3, 2, 1, 7, 4] {
            append_synced(&mut log, entries).expect("written");
            written += entries;
        }
        assert_eq!((log.written_lsn(), log.durable_lsn()), (written, written));
        drop(log);
        let (lsns, scanned) = read_in(&fs, &dir, 0, Scope::All).expect("readable");
        assert_eq!(lsns, (1..=written).collect::<Vec<_>>());
        assert_eq!(scanned.report().verdict, TailVerdict::End);
        assert_eq!(scanned.report().incarnation, incarnation - 1);
        let quarantine = temp.path().join("quarantine");
        let (next, done) = scanned.repair(&quarantine, incarnation, options(false)).expect("open");
        assert_eq!(done.cut, None);
        assert!(done.rewritten_bytes > 0, "the last frame is never taken for granted");
        log = next;
        assert_eq!(log.next_lsn(), written + 1);
    }
    let segments = log.segments().list().len();
    println!("{written} entries in {segments} segments");
    assert!(segments >= 3);
}

#[test]
fn a_tail_scan_from_any_applied_lsn_delivers_exactly_the_rest() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    for _ in 0..60 {
        append_synced(&mut log, 2).expect("written");
    }
    for applied in 0..=120 {
        let (lsns, _) = read_in(&fs, &dir, applied, Scope::Tail).expect("readable");
        assert_eq!(lsns, (applied + 1..=120).collect::<Vec<_>>());
    }
    let error = read_in(&fs, &dir, 121, Scope::Tail).expect_err("behind the snapshot");
    assert!(
        matches!(error, LogError::BehindSnapshot { last_lsn: 120, applied_lsn: 121, .. }),
        "{error}"
    );
}

#[test]
fn a_segment_prepared_in_the_background_is_taken_at_rollover() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let background = LogOptions { prepare: Prepare::Background, ..options(false) };
    let mut log = create(fs.clone(), &dir, identity(1), background).expect("a new log");
    for _ in 0..200 {
        append_synced(&mut log, 2).expect("written");
    }
    drop(log);
    let (lsns, scanned) = read_in(&fs, &dir, 0, Scope::All).expect("readable");
    assert_eq!(lsns.len(), 400);
    let (log, _) = scanned.repair(&temp.path().join("q"), 2, background).expect("open");
    assert!(!dir.join("prepared.tmp").exists(), "what a crash leaves is removed");
    assert!(log.segments().list().len() > 5);
}

#[test]
fn a_segment_is_prepared_in_the_background_and_not_on_after_the_log_is_dropped() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let segment_bytes = 16 << 20;
    let background = LogOptions { prepare: Prepare::Background, segment_bytes, ..options(false) };
    let mut log = create(fs.clone(), &dir, identity(1), background).expect("a new log");
    let body = vec![7; 1 << 20];
    // Half a segment: then the next one is begun.
    for _ in 0..8 {
        let mut batch = Batch::new(log.next_lsn());
        batch.push(1, 1, &body);
        log.append(&batch).expect("written");
    }
    let begun = std::time::Instant::now();
    while !dir.join("prepared.tmp").exists() {
        assert!(begun.elapsed().as_secs() < 60, "nobody prepares a segment");
        std::thread::yield_now();
    }
    drop(log);
    assert_eq!(Arc::strong_count(&fs), 1, "nobody uses the files any more");
}

#[test]
fn the_largest_entry_fits_and_a_larger_batch_is_refused_without_harm() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    let largest = log.max_entry_bytes();
    assert_eq!(largest as u64, SEGMENT_BYTES - 64 - 56 - 56);
    let mut body = vec![7; largest - Batch::entry_bytes(0)];
    for lsn in 1..=3 {
        let mut batch = Batch::new(lsn);
        batch.push(1, 1, &body);
        assert_eq!(batch.bytes(), largest);
        log.append(&batch).expect("fits");
        log.sync().expect("synced");
    }
    body.push(7);
    let mut batch = Batch::new(4);
    batch.push(1, 1, &body);
    let refused = log.append(&batch).expect_err("too large");
    assert!(matches!(refused, LogError::TooLarge { .. }), "{refused}");
    assert!(matches!(log.append(&Batch::new(4)), Err(LogError::OutOfOrder { .. })));
    batch.clear(6);
    batch.push(1, 1, b"early");
    assert!(matches!(log.append(&batch), Err(LogError::OutOfOrder { expected: 4, .. })));
    batch.clear(4);
    batch.push(1, 1, b"next");
    log.append(&batch).expect("the writer goes on");
    log.sync().expect("synced");
    let mut sizes = Vec::new();
    scan(fs, &dir, store(), 0, Scope::All, &mut |entry| {
        sizes.push(entry.body.len());
        Ok::<(), std::convert::Infallible>(())
    })
    .expect("readable");
    assert_eq!(sizes, [largest - 8, largest - 8, largest - 8, 4]);
}

#[test]
fn purge_unlinks_whole_segments_below_the_floor_and_never_the_newest() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    for _ in 0..60 {
        append_synced(&mut log, 2).expect("written");
    }
    let segments = log.segments();
    let before = segments.list();
    let floor = before[2].first_lsn - 1;
    assert!(purge(&*fs, &segments, before[1].first_lsn - 2).expect("nothing").is_empty());
    let unlinked = purge(&*fs, &segments, floor).expect("purged");
    assert_eq!(unlinked, [before[0].path.clone(), before[1].path.clone()]);
    assert_eq!(segments.list(), &before[2..]);
    assert_eq!(segments.first_lsn(), floor + 1);
    let (lsns, _) = read_in(&fs, &dir, floor, Scope::All).expect("readable");
    assert_eq!(lsns, (floor + 1..=120).collect::<Vec<_>>());
    let error = read_in(&fs, &dir, floor - 1, Scope::Tail).expect_err("a gap");
    assert!(
        matches!(error, LogError::Missing { first, last, .. } if first == floor && last == floor),
        "{error}"
    );
    append_synced(&mut log, 1).expect("the writer goes on");
    assert_eq!(purge(&*fs, &segments, u64::MAX).expect("purged").len(), before.len() - 3);
    assert_eq!(segments.list().len(), 1);
    let (lsns, scanned) = read_in(&fs, &dir, 121, Scope::Tail).expect("readable");
    assert!(lsns.is_empty());
    let (log, _) = scanned.repair(&temp.path().join("q"), 2, options(false)).expect("open");
    assert_eq!(log.next_lsn(), 122);
}

#[test]
fn a_purge_right_after_a_rollover_leaves_an_appendable_log() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    while log.segments().list().len() == 1 {
        append_synced(&mut log, 1).expect("written");
    }
    let first = log.segments().list()[1].first_lsn;
    drop(log);
    // The crash came before the first frame of the second segment: take it away again.
    let path = dir.join(format!("{first:020}.wal"));
    let mut bytes = std::fs::read(&path).expect("readable");
    bytes[64..].fill(0);
    std::fs::write(&path, bytes).expect("writable");
    let (_, scanned) = read_in(&fs, &dir, first - 1, Scope::Tail).expect("readable");
    let (log, _) = scanned.repair(&temp.path().join("q"), 2, options(false)).expect("open");
    assert_eq!(purge(&*fs, &log.segments(), first - 1).expect("purged").len(), 1);
    drop(log);
    let (_, scanned) = read_in(&fs, &dir, first - 1, Scope::Tail).expect("no frame at all");
    let (mut log, _) = scanned.repair(&temp.path().join("q"), 3, options(false)).expect("open");
    append_synced(&mut log, 2).expect("written");
    drop(log);
    let (lsns, _) = read_in(&fs, &dir, first - 1, Scope::All).expect("readable");
    assert_eq!(lsns, [first, first + 1]);
}

#[test]
fn segments_of_another_size_are_kept_and_followed_by_the_size_asked_for() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    drop(create(fs.clone(), &dir, identity(1), options(false)).expect("a new log"));
    let larger = LogOptions { segment_bytes: 4 * SEGMENT_BYTES, ..options(false) };
    let (_, scanned) = read_in(&fs, &dir, 0, Scope::Tail).expect("readable");
    let (mut log, _) = scanned.repair(&temp.path().join("q"), 2, larger).expect("open");
    // An empty segment cannot be rolled over, so its size still counts.
    assert_eq!(log.max_frame_payload() as u64, SEGMENT_BYTES - 64 - 56 - 56);
    for _ in 0..40 {
        append_synced(&mut log, 2).expect("written");
    }
    assert_eq!(log.max_frame_payload() as u64, 4 * SEGMENT_BYTES - 64 - 56 - 56);
    let sizes: Vec<u64> = log.segments().list().iter().map(|segment| segment.bytes).collect();
    assert_eq!(sizes[..2], [SEGMENT_BYTES, 4 * SEGMENT_BYTES]);
    assert_eq!(read_in(&fs, &dir, 0, Scope::All).expect("readable").0.len(), 80);
}

#[test]
fn a_second_log_is_not_made_and_an_older_incarnation_does_not_write() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    drop(create(fs.clone(), &dir, identity(5), options(false)).expect("a new log"));
    let exists = create(fs.clone(), &dir, identity(6), options(false)).expect_err("exists");
    assert!(matches!(exists, LogError::Exists { .. }), "{exists}");
    let (_, scanned) = read_in(&fs, &dir, 0, Scope::Tail).expect("readable");
    let stale = scanned.repair(&temp.path().join("q"), 5, options(false)).expect_err("stale");
    assert!(matches!(stale, LogError::StaleIncarnation { given: 5, found: 5 }), "{stale}");
    let odd = LogOptions { segment_bytes: 5000, ..options(false) };
    let identity = LogIdentity { incarnation: 6, ..identity(6) };
    let odd = create(fs, &temp.path().join("other"), identity, odd).expect_err("odd size");
    assert!(matches!(odd, LogError::SegmentBytes { bytes: 5000 }), "{odd}");
}

#[test]
fn unknown_files_are_reported_and_left_alone() {
    let (temp, fs) = real();
    let dir = temp.path().join("wal");
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    append_synced(&mut log, 2).expect("written");
    drop(log);
    for name in ["notes.txt", "1.wal", "00000000000000000000.wal", "99999999999999999999.wal"] {
        std::fs::write(dir.join(name), b"not ours").expect("writable");
    }
    std::fs::create_dir(dir.join("00000000000000000009.wal")).expect("writable");
    let (lsns, scanned) = read_in(&fs, &dir, 0, Scope::All).expect("readable");
    assert_eq!(lsns, [1, 2]);
    assert_eq!(scanned.report().unknown_files.len(), 5);
    scanned.repair(&temp.path().join("q"), 2, options(false)).expect("open");
    assert_eq!(std::fs::read_dir(&dir).expect("readable").count(), 6);
}
