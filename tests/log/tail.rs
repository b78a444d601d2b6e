//! Where the log ends: what is cut, what is refused, and what a repair finishes.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::PageModel;
use sharestate::log::{LogError, Scope, TailVerdict};

#[test]
fn a_last_frame_torn_at_any_byte_is_cut_and_the_log_goes_on() {
    let (sim, fs, mut log) = start(false);
    for entries in [3, 2, 4] {
        append_synced(&mut log, entries).expect("written");
    }
    let before = sim.content(&segment(1)).expect("the segment");
    append(&mut log, 5).expect("written");
    let after = sim.content(&segment(1)).expect("the segment");
    let (from, to) = *frames(&after).last().expect("frames");
    // Its last bytes may be zeros, without which it is still whole.
    let used = after.iter().rposition(|byte| *byte != 0).expect("bytes") + 1;
    let mut cases = 0;
    for kept in from + 1..used {
        for prefix in [true, false] {
            // The frame's bytes up to here, or from here on.
            let mut bytes = before.clone();
            let range = if prefix { from..kept } else { kept..to };
            bytes[range.clone()].copy_from_slice(&after[range]);
            sim.set_content(&segment(1), &bytes);
            let copy = sim.restart();
            let fs: Arc<dyn Fs> = Arc::new(copy.clone());
            let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
            assert_eq!(lsns.len(), 9, "kept {kept}");
            let found = torn(scanned.report());
            assert_eq!((found.offset, found.lsn), (from as u64, 10));
            let (mut log, done) = scanned.repair(&quarantine(), 2, options(false)).expect("cut");
            let evidence = done.evidence.expect("a copy of the torn bytes");
            let evidence = copy.content(&evidence).expect("the copy");
            assert_eq!(evidence, bytes[from..from + evidence.len()]);
            assert!(bytes[from + evidence.len()..].iter().all(|byte| *byte == 0));
            let cut = copy.content(&segment(1)).expect("the segment");
            assert_eq!(cut, before, "zeros from the cut on, and nothing else changed");
            append_synced(&mut log, 2).expect("written");
            let (lsns, scanned) = read(&fs, 0, Scope::All).expect("readable");
            assert_eq!(lsns.len(), 11);
            assert_eq!(scanned.report().verdict, TailVerdict::End);
            cases += 1;
        }
    }
    println!("{cases} torn frames");
    drop(fs);
}

#[test]
fn rot_in_a_frame_under_a_mark_is_refused_and_without_one_looks_torn() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 3).expect("written");
    append_synced(&mut log, 2).expect("written");
    let unmarked = sim.content(&segment(1)).expect("the segment");
    log.mark().expect("marked");
    log.mark().expect("nothing to do");
    let marked = sim.content(&segment(1)).expect("the segment");
    assert_eq!(frames(&marked).len(), 3, "one mark");
    let (from, to) = frames(&marked)[1];
    for at in from..to {
        let mut bytes = marked.clone();
        bytes[at] ^= 0x10;
        sim.set_content(&segment(1), &bytes);
        let error = read(&fs, 0, Scope::Tail).expect_err("vouched for");
        assert!(matches!(error, LogError::Corrupt { offset, .. } if offset == from as u64));
        let mut bytes = unmarked.clone();
        bytes[at] ^= 0x10;
        sim.set_content(&segment(1), &bytes);
        match read(&fs, 0, Scope::Tail) {
            Ok((lsns, scanned)) => {
                assert_eq!((lsns.len(), torn(scanned.report()).lsn), (3, 4));
            }
            // Padding is neither torn nor covered by a checksum.
            Err(LogError::Corrupt { row: "@odd", .. }) => assert!(at >= to - 7),
            Err(other) => panic!("{other}"),
        }
        // The snapshot vouches as well as a mark.
        let error = read(&fs, 5, Scope::Tail).expect_err("vouched for");
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn zeros_in_the_place_of_a_durable_frame_are_refused() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 3).expect("written");
    append_synced(&mut log, 2).expect("written");
    log.mark().expect("marked");
    let good = sim.content(&segment(1)).expect("the segment");
    let frames = frames(&good);
    for (lost, row) in [(0..1, "@bad2"), (1..2, "@bad2")] {
        let mut bytes = good.clone();
        bytes[frames[lost.start].0..frames[lost.end - 1].1].fill(0);
        sim.set_content(&segment(1), &bytes);
        assert_corrupt(&fs, row);
    }
    // With the mark gone as well, only the snapshot knows.
    let mut bytes = good;
    bytes[frames[1].0..].fill(0);
    sim.set_content(&segment(1), &bytes);
    assert_eq!(read(&fs, 3, Scope::Tail).expect("unknown loss").0.len(), 0);
    let error = read(&fs, 4, Scope::Tail).expect_err("the snapshot is ahead");
    assert!(matches!(error, LogError::BehindSnapshot { last_lsn: 3, .. }), "{error}");
}

#[test]
fn relaxed_frames_that_landed_out_of_order_are_cut_but_not_once_vouched_for() {
    let (sim, fs, mut log) = start(true);
    append_synced(&mut log, 2).expect("written");
    for _ in 0..4 {
        append(&mut log, 2).expect("written");
    }
    let unsynced = sim.content(&segment(1)).expect("the segment");
    log.sync().expect("synced");
    append(&mut log, 1).expect("written");
    let vouching = sim.content(&segment(1)).expect("the segment");
    let frames = frames(&vouching);
    for (lost, (from, to)) in frames.into_iter().enumerate().take(5).skip(1) {
        let mut bytes = unsynced.clone();
        bytes[from..to].fill(0);
        sim.set_content(&segment(1), &bytes);
        let copy = sim.restart();
        let fs: Arc<dyn Fs> = Arc::new(copy.clone());
        let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect("a crash can leave this");
        assert_eq!(lsns.len(), 2 * lost);
        if lost < 4 {
            assert_eq!(torn(scanned.report()).row, "@hole");
        }
        let (mut log, _) = scanned.repair(&quarantine(), 2, options(true)).expect("cut");
        append_synced(&mut log, 1).expect("written");
        assert_eq!(read(&fs, 0, Scope::All).expect("readable").0.len(), 2 * lost + 1);

        let mut bytes = vouching.clone();
        bytes[from + 60] ^= 1;
        sim.set_content(&segment(1), &bytes);
        assert_corrupt(&shared(&sim), "@pay2");
    }
    drop(fs);
}

#[test]
fn a_strict_frame_behind_a_bad_mark_is_refused_although_it_does_not_vouch() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 2).expect("written");
    log.mark().expect("marked");
    append_synced(&mut log, 2).expect("written");
    let mut bytes = sim.content(&segment(1)).expect("the segment");
    let (mark, _) = frames(&bytes)[1];
    bytes[mark + 20] ^= 1;
    sim.set_content(&segment(1), &bytes);
    assert_corrupt(&fs, "@bad2");
}

#[test]
fn two_frames_before_one_sync_are_relaxed_under_any_policy() {
    let (sim, _, mut log) = start(false);
    for _ in 0..3 {
        append(&mut log, 1).expect("written");
    }
    log.sync().expect("synced");
    append(&mut log, 1).expect("written");
    let bytes = sim.content(&segment(1)).expect("the segment");
    let flags: Vec<u8> = frames(&bytes).iter().map(|(at, _)| bytes[at + 10]).collect();
    assert_eq!(flags, [0, 1, 1, 0]);
}

#[test]
fn what_was_only_in_the_page_cache_is_written_again_before_it_is_believed() {
    let (sim, fs, mut log) = start(false);
    append_synced(&mut log, 2).expect("written");
    // The kernel could not write the pages, told so once, and calls them clean from now on.
    sim.fail(sharestate::fsio::sim::Fault {
        when: sharestate::fsio::sim::When::Op(sharestate::fsio::FsOp::SyncData),
        errno: sharestate::fsio::sim::EIO,
        repeat: sharestate::fsio::sim::Repeat::Once,
    });
    let error = append_synced(&mut log, 3).expect_err("the sync failed");
    assert!(matches!(error, LogError::Failed { .. }), "{error}");
    for error in [log.sync().map(drop), log.mark(), append(&mut log, 1)] {
        assert!(matches!(error, Err(LogError::Poisoned { errno: Some(5), .. })), "{error:?}");
    }
    drop((log, fs));
    // Only the process is started again.
    let sim = sim.restart();
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
    assert_eq!(lsns.len(), 5, "the page cache still has it");
    scanned.repair(&quarantine(), 2, options(false)).expect("rewritten");
    let fs: Arc<dyn Fs> = Arc::new(sim.power_cut(PageModel::UnsyncedLost));
    assert_eq!(read(&fs, 0, Scope::Tail).expect("readable").0.len(), 5, "now the disk has it too");
}

#[test]
fn only_what_nothing_vouches_for_is_written_again() {
    for relaxed in [false, true] {
        let (sim, fs, mut log) = start(relaxed);
        for _ in 0..6 {
            append_synced(&mut log, 2).expect("written");
        }
        append(&mut log, 1).expect("written");
        append(&mut log, 1).expect("written");
        let bytes = sim.content(&segment(1)).expect("the segment");
        let frames = frames(&bytes);
        let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        assert_eq!(scanned.report().vouched_lsn, 12);
        let start = sim.calls();
        let (mut log, done) = scanned.repair(&quarantine(), 2, options(relaxed)).expect("open");
        assert_eq!(done.rewritten_bytes as usize, frames[7].1 - frames[6].0);
        let trace = sim.trace().into_iter().filter(|call| call.number > start);
        let writes: Vec<u64> = trace
            .filter(|call| call.op == sharestate::fsio::FsOp::Write)
            .map(|call| call.offset)
            .collect();
        assert_eq!(writes, [frames[6].0 as u64]);
        assert_eq!(sim.content(&segment(1)).expect("the segment"), bytes, "identical bytes");

        // A mark vouches for the entries, and nothing for the mark.
        log.mark().expect("marked");
        drop(log);
        let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        assert_eq!(scanned.report().vouched_lsn, 14);
        let (mut log, done) = scanned.repair(&quarantine(), 3, options(relaxed)).expect("open");
        assert_eq!(done.rewritten_bytes, 56);
        let end = sim.calls();
        log.mark().expect("nothing to do");
        assert_eq!(sim.calls(), end);
    }
}
