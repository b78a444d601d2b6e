//! Frames and segments that continue each other, and those that do not.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{LogError, Scope};
use uuid::Uuid;

#[test]
fn frames_of_another_store_another_timeline_or_an_older_opening_are_refused() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 2).expect("written");
    let common = sim.restart();
    append_synced(&mut log, 2).expect("written");
    let ours = sim.content(&segment(1)).expect("the segment");

    // A copy of the store that went another way from there on, in frames of the same sizes.
    append_synced(&mut log, 1).expect("written");
    let ours_longer = sim.content(&segment(1)).expect("the segment");
    let fork: Arc<dyn Fs> = Arc::new(common.clone());
    let mut other = reopen(&fork, 2, false).expect("open");
    append_synced(&mut other, 2).expect("written");
    append_synced(&mut other, 1).expect("written");
    let theirs = common.content(&segment(1)).expect("the segment");

    // Their third frame behind our second: it verifies, and continues another one.
    assert_eq!(frames(&ours_longer), frames(&theirs));
    let (from, to) = frames(&theirs)[2];
    let mut mixed = ours.clone();
    mixed[from..to].copy_from_slice(&theirs[from..to]);
    sim.set_content(&segment(1), &mixed);
    assert_corrupt(&fs, "@link");

    // An older opening's frame after a newer one's.
    sim.set_content(&segment(1), &theirs);
    let stale = reopen(&fs, 1, false).expect_err("an older opening");
    assert!(matches!(stale, LogError::StaleIncarnation { .. }), "{stale}");

    // Another store's segment under our name.
    let foreign = SimFs::new(0);
    let uuid = Uuid::from_u128(77);
    let foreign_fs: Arc<dyn Fs> = Arc::new(foreign.clone());
    let identity = sharestate::log::LogIdentity { uuid, incarnation: 1 };
    let mut log =
        sharestate::log::create(foreign_fs, &dir(), identity, options(false)).expect("a new log");
    append_synced(&mut log, 2).expect("written");
    let foreign = foreign.content(&segment(1)).expect("the segment");
    sim.set_content(&segment(1), &foreign);
    let error = read(&fs, 0, Scope::Tail).expect_err("foreign");
    assert!(matches!(error, LogError::Foreign { found, .. } if found == uuid), "{error}");
    // Only its frames, under our header.
    let mut mixed = ours[..64].to_vec();
    mixed.extend_from_slice(&foreign[64..]);
    sim.set_content(&segment(1), &mixed);
    let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect("a tail without a frame of ours");
    assert!(lsns.is_empty());
    assert_eq!(torn(scanned.report()).row, "@head");
}

#[test]
fn a_crash_between_rename_and_seal_is_finished_and_the_seal_may_be_torn() {
    let (sim, fs, mut log) = start(false);
    while log.segments().list().len() == 1 {
        append_synced(&mut log, 2).expect("written");
    }
    let second = log.segments().list()[1].first_lsn;
    let mut fresh = sim.content(&segment(second)).expect("the segment");
    fresh[64..].fill(0);
    sim.set_content(&segment(second), &fresh);
    let sealed = sim.content(&segment(1)).expect("the segment");
    let (from, to) = *frames(&sealed).last().expect("the seal");
    for kept in from..=to {
        let mut bytes = sealed.clone();
        bytes[kept..].fill(0);
        let whole = bytes == sealed;
        sim.set_content(&segment(1), &bytes);
        let copy = sim.restart();
        let fs: Arc<dyn Fs> = Arc::new(copy.clone());
        let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        assert_eq!(lsns.len() as u64, second - 1);
        assert_eq!(scanned.report().unfinished_rollover, !whole);
        assert_eq!(scanned.report().vouched_lsn, second - 1);
        let (mut log, done) = scanned.repair(&quarantine(), 2, options(false)).expect("finished");
        assert_eq!((done.sealed, done.cut.is_some()), (!whole, kept > from && !whole));
        append_synced(&mut log, 1).expect("written");
        let (lsns, scanned) = read(&fs, 0, Scope::All).expect("readable");
        assert_eq!(lsns.len() as u64, second);
        assert_eq!(scanned.report().segments.len(), 2);
    }
    // Once the successor holds a frame, the seal must be there.
    let mut bytes = sealed.clone();
    bytes[from..].fill(0);
    sim.set_content(&segment(1), &bytes);
    fresh[100] = 1;
    sim.set_content(&segment(second), &fresh);
    assert_corrupt(&fs, "@seal");
    // And the successor vouches for every frame before it.
    fresh[100] = 0;
    sim.set_content(&segment(second), &fresh);
    let (from, _) = frames(&sealed)[2];
    bytes[from..].fill(0);
    sim.set_content(&segment(1), &bytes);
    assert_corrupt(&fs, "@gone");
}

#[test]
fn sealed_without_successor_overlap_and_two_empty_segments_are_refused() {
    let (sim, fs, mut log) = start(false);
    while log.segments().list().len() < 3 {
        append_synced(&mut log, 2).expect("written");
    }
    let segments = log.segments().list();
    let copy = sim.restart();
    copy.remove_file(&segments[2].path).expect("removed");
    let error = read(&shared(&copy), 0, Scope::Tail).expect_err("no successor");
    let lost = segments[2].first_lsn;
    assert!(
        matches!(error, LogError::MissingSuccessor { next_lsn, .. } if next_lsn == lost),
        "{error}"
    );

    // Two segments without frames at the end, the one before sealed or not.
    for sealed in [true, false] {
        let copy = sim.restart();
        for (index, segment) in segments.iter().enumerate() {
            let mut bytes = copy.content(&segment.path).expect("the segment");
            let (seal, _) = *frames(&bytes).last().expect("frames");
            match index {
                0 if sealed => {}
                0 => bytes[seal..].fill(0),
                _ => bytes[64..].fill(0),
            }
            copy.set_content(&segment.path, &bytes);
        }
        let error = read(&shared(&copy), 0, Scope::Tail).expect_err("two empty segments");
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }
    drop(fs);

    // A segment of a shorter timeline beside a longer one.
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 2).expect("written");
    let short = sim.restart();
    append_synced(&mut log, 2).expect("written");
    let short: Arc<dyn Fs> = Arc::new(short);
    let mut other = reopen(&short, 2, false).expect("open");
    while other.segments().list().len() < 2 {
        append_synced(&mut other, 1).expect("written");
    }
    let next = other.segments().list()[1].first_lsn;
    let next_bytes = {
        let file = short.open(&segment(next), sharestate::fsio::OpenMode::Read).expect("open");
        let mut bytes = vec![0; SEGMENT_BYTES as usize];
        sharestate::fsio::read_exact_at(&*file, &mut bytes, 0).expect("read");
        bytes
    };
    while log.written_lsn() < next + 4 {
        append_synced(&mut log, 4).expect("written");
    }
    sim.set_content(&segment(next), &next_bytes);
    let error = read(&fs, 0, Scope::Tail).expect_err("overlap");
    assert!(matches!(error, LogError::Overlap { first, .. } if first == next), "{error}");
}

#[test]
fn a_frame_that_verifies_and_does_not_continue_the_one_before_is_refused() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 2).expect("written");
    drop(log);
    let mut log = reopen(&fs, 5, false).expect("open");
    append_synced(&mut log, 2).expect("written");
    append_synced(&mut log, 2).expect("written");
    let good = sim.content(&segment(1)).expect("the segment");
    let (at, _) = frames(&good)[2];
    let cases =
        [("first LSN", 16, 6), ("previous checksum", 28, good[at + 28] ^ 1), ("opening", 40, 4)];
    for (what, offset, value) in cases {
        let mut bytes = good.clone();
        bytes[at + offset] = value;
        reseal(&mut bytes, 1, at);
        sim.set_content(&segment(1), &bytes);
        match read(&fs, 0, Scope::Tail) {
            Err(LogError::Corrupt { row: "@link", offset, .. }) => assert_eq!(offset, at as u64),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn whole_frames_of_an_older_timeline_behind_a_torn_one_prove_nothing() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 3).expect("written");
    drop(log);
    let mut log = reopen(&fs, 5, false).expect("open");
    append_synced(&mut log, 2).expect("written");
    append(&mut log, 2).expect("written");
    let before = sim.content(&segment(1)).expect("the segment");
    append(&mut log, 2).expect("written");
    let good = sim.content(&segment(1)).expect("the segment");
    let (torn_at, _) = frames(&before)[2];
    let (later, _) = frames(&good)[3];
    for (what, offset, value, torn) in [
        ("as it is: relaxed", 10, 1, true),
        ("strict", 10, 0, false),
        ("strict, of an older opening", 40, 4, true),
        ("strict, of older entries", 16, 5, true),
    ] {
        let mut bytes = good.clone();
        bytes[torn_at + 70] ^= 1;
        if offset != 10 {
            bytes[later + 10] = 0;
        }
        bytes[later + offset] = value;
        bytes[later + 32] = 3;
        reseal(&mut bytes, 1, later);
        sim.set_content(&segment(1), &bytes);
        match read(&fs, 0, Scope::Tail) {
            Ok((lsns, scanned)) => {
                assert!(torn, "{what}");
                assert_eq!((lsns.len(), self::torn(scanned.report()).lsn), (5, 6));
            }
            Err(LogError::Corrupt { row: "@pay2", .. }) => assert!(!torn, "{what}"),
            Err(other) => panic!("{what}: {other}"),
        }
    }
}

#[test]
fn a_last_segment_without_a_whole_frame_continues_the_seal_before_it() {
    for torn in [false, true] {
        let (sim, fs, mut log) = start(false);
        while log.segments().list().len() == 1 {
            append_synced(&mut log, 2).expect("written");
        }
        let second = log.segments().list()[1].first_lsn;
        let mut fresh = sim.content(&segment(second)).expect("the segment");
        fresh[if torn { 100 } else { 64 }..].fill(0);
        sim.set_content(&segment(second), &fresh);
        // The snapshot has everything, so the tail starts in that segment.
        let (lsns, scanned) = read(&fs, second - 1, Scope::Tail).expect("readable");
        assert!(lsns.is_empty());
        let (mut log, done) = scanned.repair(&quarantine(), 2, options(false)).expect("open");
        assert_eq!(done.cut.is_some(), torn);
        append_synced(&mut log, 1).expect("written");
        let (lsns, _) = read(&fs, 0, Scope::All).expect("one chain");
        assert_eq!(lsns.len() as u64, second);
    }
}
