//! Calls that fail, transfer less, or are interrupted.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::sim::{EIO, ENOSPC, Fault, PageModel, Repeat, SimFs, Transfer, When};
use sharestate::fsio::{Fs, FsOp};
use sharestate::log::{LogError, Lsn, Scope, Stage, create, purge};

/// Writes a few segments; tells what was synced, and the error if there was one.
fn workload(fs: &Arc<dyn Fs>) -> (Lsn, Lsn, Result<(), LogError>) {
    let mut log = match create(fs.clone(), &dir(), identity(1), options(false)) {
        Ok(log) => log,
        Err(error) => return (0, 0, Err(error)),
    };
    let mut synced = 0;
    for round in 0..16u64 {
        let answer = append(&mut log, 1 + round * 5 % 8).and_then(|()| log.sync());
        match answer {
            Ok(lsn) => synced = lsn,
            Err(error) => {
                for refused in [append(&mut log, 1), log.sync().map(drop), log.mark()] {
                    assert!(matches!(refused, Err(LogError::Poisoned { .. })), "{refused:?}");
                }
                return (synced, log.written_lsn() + 8, Err(error));
            }
        }
        if round % 4 == 3
            && let Err(error) = log.mark()
        {
            return (synced, synced, Err(error));
        }
    }
    (synced, synced, Ok(()))
}

fn segments(sim: &SimFs) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let names = sim.list(&dir()).expect("the directory");
    let paths = names.into_iter().map(|entry| dir().join(entry.name));
    paths.map(|path| (path.clone(), sim.content(&path).expect("a file"))).collect()
}

#[test]
fn short_and_interrupted_transfers_change_nothing() {
    let plain = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(plain.clone());
    let (expected, _, answer) = workload(&fs);
    answer.expect("no fault");
    let mut runs = 0;
    for length in (1..200).chain([512, 1000, 4095]) {
        for random in [false, true] {
            let transfer = if random { Transfer::UpTo(length) } else { Transfer::AtMost(length) };
            let sim = SimFs::new(length as u64);
            sim.set_writes(transfer);
            sim.set_reads(transfer);
            sim.interrupt_every(1 + length as u64 % 3 + 1);
            let fs: Arc<dyn Fs> = Arc::new(sim.clone());
            let (synced, _, answer) = workload(&fs);
            answer.expect("only slower");
            assert_eq!(synced, expected);
            assert_eq!(segments(&sim), segments(&plain), "transfers of {length}");
            assert_eq!(read(&fs, 0, Scope::All).expect("readable").0.len() as u64, expected);
            runs += 1;
        }
    }
    println!("{runs} runs");
}

#[test]
fn every_failing_call_poisons_the_log_loses_nothing_synced_and_deletes_nothing() {
    let dry = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(dry.clone());
    workload(&fs).2.expect("no fault");
    let mut cases = 0;
    for call in dry.trace() {
        for repeat in [Repeat::Once, Repeat::Sticky] {
            for errno in [EIO, ENOSPC] {
                let what = format!("{call:?}, {repeat:?}, {errno}");
                let sim = SimFs::new(0);
                sim.fail(Fault { when: When::Call(call.number), errno, repeat });
                let fs: Arc<dyn Fs> = Arc::new(sim.clone());
                let (synced, issued, answer) = workload(&fs);
                let error = answer.expect_err(&what);
                let source = error.fs_error().expect(&what);
                assert_eq!(source.raw_os_error(), Some(errno), "{what}");
                assert_eq!(source.op, call.op, "{what}");
                cases += 1;
                if synced == 0 {
                    continue;
                }
                // Started again, with the page cache as it is, and after a power cut.
                for after in [
                    sim.restart(),
                    sim.power_cut(PageModel::UnsyncedLost),
                    sim.power_cut(PageModel::Random { seed: call.number, granularity: 512 }),
                ] {
                    let fs: Arc<dyn Fs> = Arc::new(after.clone());
                    let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect(&what);
                    let last = lsns.len() as u64;
                    assert!(synced <= last && last <= issued, "{what}: {last}");
                    let repaired = scanned.repair(&quarantine(), 2, options(false)).expect(&what);
                    append_synced(&mut { repaired.0 }, 2).expect(&what);
                    let fs: Arc<dyn Fs> = Arc::new(after.power_cut(PageModel::UnsyncedLost));
                    let (lsns, _) = read(&fs, 0, Scope::All).expect(&what);
                    assert_eq!(lsns.len() as u64, last + 2, "{what}");
                }
            }
        }
    }
    println!("{cases} failing calls");
}

#[test]
fn a_read_error_never_shortens_the_log() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    workload(&fs).2.expect("no fault");
    let mut cases = 0;
    let start = sim.restart();
    let fs: Arc<dyn Fs> = Arc::new(start.clone());
    read(&fs, 0, Scope::All).expect("readable");
    for call in start.trace() {
        let sim = sim.restart();
        sim.fail(Fault { when: When::Call(call.number), errno: EIO, repeat: Repeat::Sticky });
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        let error = read(&fs, 0, Scope::All).expect_err("unreadable");
        assert!(matches!(error, LogError::Io(_)), "{call:?}: {error}");
        assert!(sim.trace().iter().all(|call| !call.mutates()), "a scan writes nothing");
        cases += 1;
    }
    println!("{cases} failing reads");
}

#[test]
fn every_failing_call_of_a_repair_leaves_the_log_as_good_as_before() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    for _ in 0..5 {
        append_synced(&mut log, 3).expect("written");
    }
    let path = log.segments().list()[0].path.clone();
    append(&mut log, 6).expect("written");
    let mut bytes = sim.content(&path).expect("the segment");
    let (from, to) = *frames(&bytes).last().expect("frames");
    bytes[from + 100..to].fill(0);
    sim.set_content(&path, &bytes);
    sim.set_content(&dir().join("prepared.tmp"), b"left over");

    let dry = sim.restart();
    let fs: Arc<dyn Fs> = Arc::new(dry.clone());
    let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
    let start = dry.calls();
    let (_, done) = scanned.repair(&quarantine(), 2, options(false)).expect("repaired");
    assert!(done.cut.is_some() && done.evidence.is_some() && done.unlinked.len() == 1);
    let mut cases = 0;
    for call in dry.trace().into_iter().filter(|call| call.number > start) {
        for repeat in [Repeat::Once, Repeat::Sticky] {
            for errno in [EIO, ENOSPC] {
                let what = format!("{call:?}, {repeat:?}, {errno}");
                let sim = sim.restart();
                sim.fail(Fault { when: When::Call(call.number), errno, repeat });
                let fs: Arc<dyn Fs> = Arc::new(sim.clone());
                let (_, scanned) = read(&fs, 0, Scope::Tail).expect(&what);
                let failed = scanned.repair(&quarantine(), 2, options(false));
                cases += 1;
                if errno == EIO {
                    let error = failed.expect_err(&what);
                    assert!(error.fs_error().is_some(), "{what}: {error}");
                }
                let fs: Arc<dyn Fs> = Arc::new(sim.restart());
                let (lsns, scanned) = read(&fs, 0, Scope::Tail).expect(&what);
                assert_eq!(lsns.len(), 15, "{what}");
                scanned.repair(&quarantine(), 3, options(false)).expect(&what);
            }
        }
    }
    println!("{cases} failing calls of a repair");
}

#[test]
fn a_full_disk_stops_the_log_and_a_restart_on_it_needs_no_space() {
    let mut stages = std::collections::BTreeSet::new();
    for pages in 1..24u64 {
        let sim = SimFs::new(0);
        sim.set_capacity(Some(pages * 1024));
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        let (synced, _, answer) = workload(&fs);
        let Err(error) = answer else { continue };
        assert!(error.fs_error().is_some_and(|source| source.is_full()), "{error}");
        if let LogError::Failed { stage, .. } = &error {
            stages.insert(stage.to_string());
        }
        if synced == 0 {
            continue;
        }
        // Still full, and the last frame torn: there is no space for evidence.
        let sim = sim.restart();
        let used = sim.used();
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        let last = scanned.report().segments.last().expect("a segment").clone();
        let mut bytes = sim.content(&last.path).expect("the segment");
        let end = frames(&bytes).last().map_or(64, |(_, end)| *end);
        bytes[end] = b'S';
        sim.set_content(&last.path, &bytes);
        sim.set_capacity(Some(used));
        let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        let (log, done) =
            scanned.repair(&quarantine(), 2, options(false)).expect("no space needed");
        assert!(done.cut.is_some() && done.evidence.is_none());
        assert_eq!(sim.list(&quarantine()).expect("listed"), [], "no half a copy");
        assert_eq!(log.durable_lsn(), synced);
        drop(log);
        // Freed by a purge, it goes on.
        let (_, scanned) = read(&fs, synced, Scope::Tail).expect("readable");
        let (mut log, _) = scanned.repair(&quarantine(), 3, options(false)).expect("open");
        purge(&*fs, &log.segments(), synced).expect("purged");
        sim.set_capacity(Some(used + 2 * SEGMENT_BYTES));
        append_synced(&mut log, 8).expect("written");
    }
    println!("full while: {stages:?}");
    assert!(stages.contains(&Stage::Rollover.to_string()));
}

#[test]
fn the_path_of_a_write_is_one_write_and_one_sync() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    append_synced(&mut log, 3).expect("written");
    let start = sim.calls() as usize;
    for _ in 0..5 {
        append_synced(&mut log, 2).expect("written");
    }
    let ops: Vec<FsOp> = sim.trace()[start..].iter().map(|call| call.op).collect();
    assert_eq!(ops, [FsOp::Write, FsOp::SyncData].repeat(5));
}

#[test]
fn a_name_is_synced_before_anything_depends_on_it() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    workload(&fs).2.expect("no fault");
    let mut unsynced = 0;
    let mut names = 0;
    for call in sim.trace() {
        match call.op {
            FsOp::Create | FsOp::Rename | FsOp::Remove | FsOp::CreateDir => {
                unsynced += 1;
                names += 1;
            }
            FsOp::SyncDir => unsynced = 0,
            // Frames, by their size; zeros and headers go to files without a lasting name.
            FsOp::Write if call.path.extension().is_some_and(|e| e == "wal") => {
                assert_eq!(unsynced, 0, "{call:?}");
            }
            _ => {}
        }
    }
    println!("{names} changes of names");
    assert!(names > 4);
}

#[test]
fn the_next_segment_is_written_and_not_only_allocated() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    workload(&fs).2.expect("no fault");
    let trace = sim.trace();
    let prepared = trace.iter().filter(|call| call.path.ends_with("prepared.tmp"));
    let written: usize =
        prepared.filter(|call| call.op == FsOp::Write).map(|call| call.bytes).sum();
    let segments = trace.iter().filter(|call| call.op == FsOp::Rename).count();
    assert_eq!(written, segments * (SEGMENT_BYTES as usize + 64), "zeros, and a header");
}

#[test]
fn what_a_purge_unlinked_stays_away_after_a_power_cut() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    while log.segments().list().len() < 4 {
        append_synced(&mut log, 3).expect("written");
    }
    let unlinked = purge(&*fs, &log.segments(), log.durable_lsn()).expect("purged");
    assert_eq!(unlinked.len(), 3);
    let after = sim.power_cut(PageModel::UnsyncedLost);
    assert_eq!(after.list(&dir()).expect("listed").len(), 1);
}
