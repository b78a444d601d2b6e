//! What a salvage keeps is the longest prefix that is provable, and it says what it loses.

use std::path::Path;
use std::sync::Arc;

use sharestate::codec;
use sharestate::engine::directory::SalvageNote;
use sharestate::fsio::sim::{ENOSPC, Fault, Repeat, When};
use sharestate::fsio::{Fs, FsOp};
use sharestate::log::{Batch, LogOptions, Prepare, Scope, scan};
use sharestate::model::{Transition, WriteTransition};
use sharestate::{Condition, ErrorClass, OpenError, RepairError, Salvaged, ShareStore};

use crate::sim::{Disk, Killed, OPEN_PRODUCER, RawFrame, frames, killed, marker, works_on};
use crate::support::{batch, contents, key};

/// Salvages and answers what was promised before: the LSN that is kept, and whether it loses.
fn salvage(disk: &Disk, context: &str) -> (u64, bool) {
    let before = disk.wal();
    let plan = disk.plan().unwrap_or_else(|error| panic!("{context}: {error}"));
    let Condition::Damaged(damage) = plan.condition().clone() else {
        panic!("{context}: {:?}", plan.condition())
    };
    assert!(damage.cause.contains(".wal") || damage.snapshot_lsn.is_none(), "{}", damage.cause);
    let done = plan.salvage(false).unwrap_or_else(|error| panic!("{context}: {error}"));
    let Salvaged::Kept { evidence, next_lsn, .. } = done else { panic!("{context}: {done:?}") };
    assert_eq!(next_lsn, damage.next_lsn(), "{context}");
    assert!(next_lsn > damage.log.highest_lsn && next_lsn.is_multiple_of(1 << 40), "{context}");
    let copies = disk.files(&format!("{}/wal", evidence.display()));
    assert_eq!(copies, before, "{context}: every file of the log is kept as it was");
    // A second one finds nothing to do.
    let again = disk.plan().expect("plan");
    assert_eq!((again.condition(), again.is_needed()), (&Condition::Whole, false), "{context}");
    assert_eq!(again.salvage(false).expect("salvage"), Salvaged::NotNeeded(None), "{context}");
    (damage.log.last_lsn, damage.loses())
}

#[test]
fn rot_in_any_frame_costs_exactly_what_rests_on_it() {
    let (mut kept_all, mut lost) = (0, 0);
    for checkpoint in [true, false] {
        let Killed { disk, states, applied, last } = killed(checkpoint);
        assert!(disk.wal().len() >= 3, "several segments: {:?}", disk.wal().keys());
        let frames = frames(&disk.wal());
        for (index, frame) in frames.iter().enumerate() {
            for within in [5, 30, 50] {
                let context = format!("checkpoint {checkpoint}, {frame:?} + {within}");
                let disk = disk.same();
                disk.change(&frame.file, |bytes| bytes[frame.offset + within] ^= 0x10);
                if matches!(disk.plan().expect("plan").condition(), Condition::Torn(_)) {
                    let behind = frames[index + 1..].iter().all(|frame| frame.entries == 0);
                    assert!(behind, "{context}: only the last one can be torn");
                    continue;
                }
                let (kept, loses) = salvage(&disk, &context);
                let needed = frame.entries > 0 && frame.first_lsn > applied;
                let expected = if needed { frame.first_lsn - 1 } else { last };
                assert_eq!((kept, loses), (expected, needed), "{context}");
                works_on(&disk, &states[kept as usize], &context);
                if loses { lost += 1 } else { kept_all += 1 }
            }
        }
    }
    println!("rotten-frames kept-all={kept_all} lost-a-tail={lost}");
    assert!(kept_all > 50 && lost > 100);
}

#[test]
fn a_missing_and_an_exchanged_segment_end_what_is_kept() {
    let Killed { disk, states, applied, last } = killed(true);
    let wal = disk.wal();
    let firsts: Vec<u64> = frames(&wal).iter().map(|frame| frame.first_lsn).collect();
    let mut checked = 0;
    for (index, file) in wal.keys().enumerate() {
        let first: u64 = file.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let next = wal
            .keys()
            .nth(index + 1)
            .map_or(last + 1, |next| next.file_stem().unwrap().to_str().unwrap().parse().unwrap());
        let context = format!("{}", file.display());
        let gone = disk.same();
        gone.fs.remove_file(&Path::new("/store/wal").join(file)).expect("remove");
        if matches!(gone.plan().expect("plan").condition(), Condition::Whole) {
            assert!(next <= applied + 1, "{context}: only what the snapshot covers may be missing");
            continue;
        }
        let (kept, loses) = salvage(&gone, &context);
        let needed = next > applied + 1;
        assert_eq!(kept, if needed { applied.max(first - 1) } else { last }, "{context}");
        assert!(loses || !needed, "{context}");
        works_on(&gone, &states[kept as usize], &context);

        // Another segment under its name: its frames do not belong there.
        let other = wal.keys().nth((index + 1) % wal.len()).unwrap();
        let exchanged = disk.same();
        exchanged.change(file, |bytes| bytes.clone_from(&wal[other]));
        let (kept, _) = salvage(&exchanged, &context);
        assert_eq!(kept, if needed { applied.max(first - 1) } else { last }, "{context}");
        works_on(&exchanged, &states[kept as usize], &context);
        checked += 2;
    }
    assert!(checked >= 6 && !firsts.is_empty(), "{checked}");
}

#[test]
fn a_damaged_snapshot_is_made_anew_from_a_log_that_reaches_back() {
    let Killed { disk, states, last, .. } = killed(false);
    disk.rows.clear();
    let (kept, loses) = salvage(&disk, "no rows");
    assert_eq!((kept, loses), (last, false));
    works_on(&disk, &states[last as usize], "no rows");
    // And with rot in the log as well.
    let Killed { disk, states, .. } = killed(false);
    disk.rows.clear();
    let frame = frames(&disk.wal()).into_iter().find(|frame| frame.first_lsn == 30).unwrap();
    disk.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    assert_eq!(salvage(&disk, "both"), (29, true));
    works_on(&disk, &states[29], "both");
}

#[test]
fn without_snapshot_and_beginning_of_the_log_nothing_is_touched() {
    let Killed { disk, .. } = killed(true);
    disk.rows.clear();
    let first = disk.wal().into_keys().next().unwrap();
    disk.fs.remove_file(&Path::new("/store/wal").join(first)).expect("remove");
    let before = disk.wal();
    let error = disk.plan().expect("plan").salvage(true).expect_err("hopeless");
    assert!(matches!(error, RepairError::Hopeless { .. }), "{error}");
    assert!(error.to_string().contains("use a backup"), "{error}");
    assert_eq!(disk.wal(), before);
}

#[test]
fn what_is_lost_is_named() {
    let Killed { disk, last, .. } = killed(true);
    let frame = frames(&disk.wal()).into_iter().find(|frame| frame.first_lsn == 40).unwrap();
    disk.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    let plan = disk.plan().expect("plan");
    let Condition::Damaged(damage) = plan.condition() else { panic!("damaged") };
    let place = format!("{} at byte {}", frame.file.display(), frame.offset);
    assert!(damage.cause.contains(&place), "{}", damage.cause);
    assert_eq!((damage.log.last_lsn, damage.log.lost), (39, last - 40));
    assert_eq!(damage.log.lost_lsns, Some((41, last)));
    assert_eq!(damage.partitions.len(), 3);
    // 45 was staged and committed behind the rot, 55 staged.
    assert_eq!(damage.producers.iter().copied().collect::<Vec<_>>(), [45, OPEN_PRODUCER]);
    assert!(damage.open.is_empty(), "{:?}", damage.open);
    let at: Vec<_> = damage.log.damage.iter().map(|place| place.offset as usize).collect();
    assert_eq!(at, [frame.offset]);
    let error = plan.cut().expect_err("no torn tail");
    assert!(matches!(&error, RepairError::NeedsSalvage(_)), "{error}");
    assert!(error.to_string().contains(&place), "{error}");
}

#[test]
fn prepared_acks_survive_a_salvage_and_their_marker_resolves_them() {
    let Killed { disk, states, last, applied } = killed(true);
    let frame = frames(&disk.wal()).into_iter().find(|f| f.first_lsn == applied - 1).unwrap();
    disk.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    let plan = disk.plan().expect("plan");
    let Condition::Damaged(damage) = plan.condition() else { panic!("damaged") };
    assert_eq!(
        damage.open.iter().map(|open| open.producer_id).collect::<Vec<_>>(),
        [OPEN_PRODUCER]
    );
    plan.salvage(false).expect("salvage");
    let store: ShareStore = disk.open().expect("open");
    assert_eq!(contents(&store), states[last as usize]);
    let resolved = store.blocking().marker(marker(OPEN_PRODUCER)).expect("marker");
    assert_eq!(resolved.partitions[0].1, [(550, 553)]);
}

#[test]
fn a_whole_store_is_salvaged_only_by_force_and_loses_nothing() {
    let Killed { disk, states, last, .. } = killed(true);
    let _ = disk.open().expect("open");
    let before = disk.wal();
    let done = disk.plan().expect("plan").salvage(false).expect("nothing to do");
    assert_eq!((done, disk.wal()), (Salvaged::NotNeeded(None), before.clone()));
    let done = disk.plan().expect("plan").salvage(true).expect("salvage");
    let Salvaged::Kept { evidence, next_lsn, incarnation } = done else { panic!("{done:?}") };
    assert_eq!((next_lsn, incarnation), (1 << 40, 3));
    assert_eq!(disk.files(&format!("{}/wal", evidence.display())), before);
    works_on(&disk, &states[last as usize], "by force");
}

#[test]
fn an_interrupted_salvage_is_gone_on_with_and_not_cut() {
    let Killed { disk, .. } = killed(true);
    let note = SalvageNote { kept_lsn: 1, next_lsn: 1 << 40, incarnation: 2, rebuild: false };
    disk.fs.set_content(Path::new("/store/SALVAGE"), &note.encode());
    let plan = disk.plan().expect("plan");
    assert_eq!((plan.condition(), plan.is_needed()), (&Condition::Interrupted, true));
    let error = plan.cut().expect_err("a salvage is under way");
    assert!(matches!(&error, RepairError::Open(OpenError::Unfinished { .. })), "{error}");
    let done = disk.plan().expect("plan").salvage(false).expect("salvage");
    assert!(matches!(done, Salvaged::Kept { next_lsn, .. } if next_lsn == 1 << 40), "{done:?}");
    disk.open().expect("open");
}

#[test]
fn a_snapshot_that_is_distrusted_is_made_anew() {
    let Killed { disk, states, last, .. } = killed(false);
    let mut plan = disk.plan().expect("plan");
    assert_eq!(plan.condition(), &Condition::Whole);
    plan.distrust_snapshot("its rows contradict each other".to_owned()).expect("assessed");
    let Condition::Damaged(damage) = plan.condition() else { panic!("{:?}", plan.condition()) };
    assert_eq!((&*damage.cause, damage.snapshot_lsn), ("its rows contradict each other", None));
    assert_eq!((damage.log.last_lsn, damage.loses()), (last, false));
    assert!(matches!(plan.salvage(false).expect("salvage"), Salvaged::Kept { .. }));
    works_on(&disk, &states[last as usize], "made anew");
}

#[test]
fn a_full_or_failing_disk_stops_a_salvage_before_anything_is_changed() {
    let Killed { disk, .. } = killed(true);
    let frame = frames(&disk.wal()).into_iter().find(|frame| frame.first_lsn == 40).unwrap();
    disk.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    let before = (disk.wal(), disk.rows.fork());
    for spare in [0, 100, 5_000] {
        let disk = disk.same();
        disk.fs.set_capacity(Some(disk.fs.used() + spare));
        let error = disk.plan().expect("plan").salvage(false).expect_err("no space");
        assert!(matches!(&error, RepairError::Open(OpenError::Io(e)) if e.is_full()), "{error}");
        assert_eq!(disk.wal(), before.0, "nothing was cut");
        disk.fs.set_capacity(None);
        disk.plan().expect("plan").salvage(false).expect("there is space now");
    }
    // A disk that does not answer is no reason to give anything up.
    disk.fs.fail(Fault { when: When::Op(FsOp::Read), errno: 5, repeat: Repeat::Sticky });
    let error = disk.plan().map(|plan| plan.condition().clone()).expect_err("unreadable");
    assert!(error.to_string().contains("os error 5"), "{error}");
    disk.fs.clear_faults();
    disk.fs.fail(Fault { when: When::Op(FsOp::SyncDir), errno: ENOSPC, repeat: Repeat::Sticky });
    disk.plan().expect("plan").salvage(false).expect_err("no directory sync");
    assert_eq!(disk.wal(), before.0, "nothing was cut");
}

/// Kind, version and body of an entry.
type RawEntry = (u16, u8, Vec<u8>);

/// A write of this state.
fn plain(group: &str, offset: i64, state: i8) -> RawEntry {
    let write = Transition::Write(WriteTransition {
        key: key(group, 0),
        start_offset: 0,
        delivery_complete_count: 0,
        batches: vec![batch(offset, offset, state, 1)],
        time_ms: 1,
    });
    let mut body = Vec::new();
    let (kind, version) = codec::encode_transition(&write, &mut body).expect("encode");
    (kind as u16, version, body)
}

/// Appends a frame for each entry, as some opening of the store would.
fn append(disk: &Disk, last: u64, entries: &[RawEntry]) -> Vec<RawFrame> {
    let uuid = disk.plan().expect("plan").identity().uuid;
    let fs = Arc::new(disk.fs.clone());
    let wal = Path::new("/store/wal");
    let log = scan::<()>(fs, wal, uuid, 0, Scope::All, &mut |_| Ok(())).expect("scan");
    let options = LogOptions { segment_bytes: 4 << 10, relaxed: false, prepare: Prepare::Inline };
    let (mut log, _) = log.repair(Path::new("/store/quarantine"), 9, options).expect("repair");
    for (kind, version, body) in entries {
        let mut batch = Batch::new(log.next_lsn());
        batch.push(*kind, *version, body);
        log.append(&batch).expect("append");
        log.sync().expect("sync");
    }
    drop(log);
    let found = frames(&disk.wal()).into_iter();
    found.filter(|frame| frame.entries > 0 && frame.first_lsn > last).collect()
}

#[test]
fn a_frame_of_another_history_of_the_same_store_is_not_kept() {
    // Two histories go on from one image, with entries of the same sizes at the same places.
    let Killed { disk, last, .. } = killed(true);
    let (ours, theirs) = (disk.same(), disk.same());
    let two = |state| [plain("g", 7_000, state), plain("g", 7_001, state)];
    let frame = append(&ours, last, &two(2))[1].clone();
    let other = append(&theirs, last, &two(4))[1].clone();
    assert_eq!((&frame.file, frame.offset), (&other.file, other.offset), "the same place");
    assert_eq!(ours.plan().expect("plan").condition(), &Condition::Whole);
    let bytes = theirs.wal()[&other.file].clone();
    ours.change(&frame.file, |ours| {
        ours[frame.offset..].copy_from_slice(&bytes[frame.offset..]);
    });
    let (kept, loses) = salvage(&ours, "another history");
    assert_eq!((kept, loses), (last + 1, true));
}

#[test]
fn an_entry_of_a_newer_release_is_no_damage_wherever_it_stands() {
    let (kind, version, body) = plain("g", 7_000, 2);
    let newer = [(kind, version + 1, body), plain("g", 7_001, 2)];
    let Killed { disk, applied, last, .. } = killed(true);
    append(&disk, last, &newer);
    // None; before the snapshot, so that the newer entry would be kept; behind it, then not.
    for rotten in [None, Some(applied - 5), Some(applied + 5)] {
        let disk = disk.same();
        rotten.into_iter().for_each(|lsn| disk.rot(lsn));
        let before = disk.wal();
        let error = disk.plan().expect_err("another release has written it");
        let OpenError::Entry { lsn, .. } = error else { panic!("{rotten:?}: {error}") };
        assert_eq!((lsn, error.class()), (last + 1, ErrorClass::Rejected), "{rotten:?}: {error}");
        assert_eq!(disk.wal(), before);
    }
}

#[test]
fn a_verified_entry_that_makes_no_sense_ends_what_is_kept() {
    let (kind, version, mut cut) = plain("g", 7_000, 2);
    cut.pop();
    let senseless =
        [("it does not decode", (kind, version, cut)), ("no such row", plain("no", 1, 2))];
    for (what, entry) in senseless {
        let Killed { disk, states, applied, last } = killed(true);
        append(&disk, last, &[plain("g", 7_000, 2), entry, plain("g", 7_001, 2)]);
        let later = disk.same();
        let (kept, loses) = salvage(&disk, what);
        assert_eq!((kept, loses), (last + 1, true), "{what}");
        // Behind other damage it is one of those that are lost.
        later.rot(applied + 5);
        let Condition::Damaged(damage) = later.plan().expect("plan").condition().clone() else {
            panic!("{what}: not damaged")
        };
        assert_eq!(damage.log.lost_lsns, Some((applied + 6, last + 3)), "{what}");
        salvage(&later, what);
        works_on(&later, &states[applied as usize + 4], what);
    }
}
