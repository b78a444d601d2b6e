//! Power cuts at any call of a salvage, and at any call of the salvage that goes on: the same end,
//! and no evidence is ever lost.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sharestate::fsio::sim::PageModel;
use sharestate::{Condition, ErrorClass, OpenError, RepairError, Salvaged};

use crate::sim::{Disk, Killed, frames, killed, works_on};

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn salvage(disk: &Disk) {
    let _ = disk.plan().map(|plan| plan.salvage(false));
}

/// Every file of the old log is where it was, or whole in the quarantine.
fn evidence_is_there(disk: &Disk, before: &Files, context: &str) {
    let wal = disk.wal();
    // The same salvage always uses the same name.
    let copies = disk.files("/store/quarantine/salvage-2/wal");
    for (name, bytes) in before {
        let there = [&wal, &copies].iter().any(|files| files.get(name) == Some(bytes));
        assert!(there, "{context}: {} is lost", name.display());
    }
}

fn explore(disk: &Disk, state: &[String], what: &str) -> u64 {
    let before = disk.wal();
    let probe = disk.same();
    salvage(&probe);
    let calls = probe.fs.calls();
    works_on(&probe.same(), state, what);
    let end = (probe.wal(), probe.files("/store"));
    let mut crashes = 0;
    for call in 1..=calls {
        let first = disk.same();
        if call % 2 == 0 {
            first.fs.crash_after(call)
        } else {
            first.fs.crash_before(call)
        }
        salvage(&first);
        for (index, model) in [
            PageModel::UnsyncedLost,
            PageModel::AllKept,
            PageModel::Random { seed: call, granularity: 512 },
            PageModel::Random { seed: call + 1_000, granularity: 4_096 },
        ]
        .into_iter()
        .enumerate()
        {
            let image = first.cut(model);
            let context = format!("{what}: call {call} of {calls}, {model:?}");
            evidence_is_there(&image, &before, &context);
            // A begun salvage keeps everybody else out.
            let untouched = image.same();
            match untouched.open() {
                Ok(_) => {
                    let plan = image.plan().expect("plan");
                    assert_eq!(plan.condition(), &Condition::Whole, "{context}");
                }
                Err(OpenError::Unfinished { .. } | OpenError::Log(_) | OpenError::Snapshot(_)) => {}
                Err(error) => panic!("{context}: {error}"),
            }
            // Once more, with a crash in it.
            let second = image.same();
            second.fs.crash_after(1 + (call * 7 + index as u64 * 11) % calls);
            salvage(&second);
            let second = second.cut(PageModel::Random { seed: call * 31, granularity: 512 });
            evidence_is_there(&second, &before, &format!("{context}, twice"));
            for image in [image, second] {
                let plan = image.plan().unwrap_or_else(|error| panic!("{context}: {error}"));
                plan.salvage(false).unwrap_or_else(|error| panic!("{context}: {error}"));
                evidence_is_there(&image, &before, &context);
                assert_eq!((image.wal(), image.files("/store")), end, "{context}: the same end");
                works_on(&image, state, &context);
                crashes += 1;
            }
        }
    }
    crashes
}

#[test]
fn a_crash_at_any_call_of_a_salvage_twice_gives_the_same_end() {
    let mut crashes = 0;
    for (lsn, checkpoint, clear) in [(40, true, false), (20, true, false), (30, false, true)] {
        let Killed { disk, states, last, applied } = killed(checkpoint);
        let frame = frames(&disk.wal()).into_iter().find(|frame| frame.first_lsn == lsn).unwrap();
        disk.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
        if clear {
            disk.rows.clear();
        }
        let kept = if lsn <= applied { last } else { lsn - 1 };
        crashes += explore(&disk, &states[kept as usize], &format!("rot at {lsn}"));
    }
    println!("salvage-crash-states={crashes} lost=0");
    assert!(crashes > 1_000);
}

#[test]
fn rot_that_comes_before_a_salvage_goes_on_is_told_and_the_copies_make_it_good() {
    let mut told = 0;
    for (lsn, checkpoint, clear) in [(40, true, false), (30, false, true)] {
        let Killed { disk, states, applied, .. } = killed(checkpoint);
        let frames = frames(&disk.wal());
        disk.rot(lsn);
        if clear {
            disk.rows.clear();
        }
        let begun = until_noted(&disk);
        let kept = frames.iter().filter(|frame| frame.entries > 0 && frame.first_lsn < lsn);
        for frame in kept.filter(|frame| clear || frame.first_lsn > applied) {
            let context = format!("rot at {lsn}, then at {}", frame.first_lsn);
            let worse = begun.same();
            worse.rot(frame.first_lsn);
            let before = worse.wal();
            let error = worse.plan().expect("plan").salvage(false).expect_err(&context);
            let RepairError::Open(OpenError::LessThanPromised { kept_lsn, found_lsn, ref copy }) =
                error
            else {
                panic!("{context}: {error}")
            };
            assert_eq!((kept_lsn, found_lsn), (lsn - 1, frame.first_lsn - 1), "{context}");
            assert_eq!(error.class(), ErrorClass::Corrupt);
            assert_eq!(worse.wal(), before, "{context}: nothing is changed");
            // Put back, the copies are as good as the log was.
            for (file, bytes) in worse.files(&format!("{}/wal", copy.display())) {
                worse.change(&PathBuf::from("/store/wal").join(file), |now| *now = bytes);
            }
            let done = worse.plan().expect("plan").salvage(false).expect(&context);
            assert!(matches!(done, Salvaged::Kept { .. }), "{context}: {done:?}");
            works_on(&worse, &states[kept_lsn as usize], &context);
            told += 1;
        }
    }
    println!("second-rots={told}");
    assert!(told > 30);
}

/// The store at a crash right after the salvage's note has become durable.
fn until_noted(disk: &Disk) -> Disk {
    for call in 1.. {
        let first = disk.same();
        first.fs.crash_after(call);
        salvage(&first);
        let image = first.cut(PageModel::UnsyncedLost);
        if matches!(image.plan().expect("plan").condition(), Condition::Interrupted) {
            return image;
        }
    }
    unreachable!("a salvage writes its note")
}
