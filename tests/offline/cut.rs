//! A torn tail is cut, with a copy of it, and nothing else is.

use std::path::Path;

use sharestate::fsio::Fs;
use sharestate::fsio::sim::PageModel;
use sharestate::log::{SegmentHeader, SegmentId, segment_file_name};
use sharestate::{Condition, OpenError, RepairError, Salvaged};

use crate::sim::{Disk, Killed, frames, killed, works_on};

/// A store whose last frame with entries is torn, and the LSN before it.
pub fn torn() -> (Disk, Vec<Vec<String>>, u64, Vec<u8>) {
    let Killed { disk, states, last, .. } = killed(true);
    let frames = frames(&disk.wal());
    let frame = frames.iter().find(|frame| frame.entries > 0 && frame.first_lsn == last).unwrap();
    // Marks behind it would vouch for it.
    let mut tail = Vec::new();
    disk.change(&frame.file, |bytes| {
        bytes[frame.offset + 120..].fill(0);
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        tail = bytes[frame.offset..used].to_vec();
    });
    (disk, states, last - 1, tail)
}

#[test]
fn a_torn_tail_is_cut_after_it_was_copied() {
    let (disk, states, last, tail) = torn();
    let plan = disk.plan().expect("plan");
    let Condition::Torn(torn) = plan.condition().clone() else { panic!("{:?}", plan.condition()) };
    assert_eq!(torn.lsn, last + 1);
    let before = disk.wal();
    drop(plan);
    assert_eq!(disk.wal(), before, "a plan changes nothing");
    let done = disk.plan().expect("plan").cut().expect("cut").expect("something to do");
    assert_eq!(done.log.cut, Some(torn));
    let evidence = done.log.evidence.expect("a copy");
    assert_eq!(disk.fs.content(&evidence), Some(tail));
    let again = disk.plan().expect("plan");
    assert_eq!((again.condition(), again.is_needed()), (&Condition::Whole, false));
    assert_eq!((again.identity().incarnation, done.incarnation), (2, 2), "as an opening");
    assert_eq!(again.cut().expect("cut"), None);
    works_on(&disk, &states[last as usize], "after the cut");
}

#[test]
fn a_salvage_of_a_torn_store_is_a_plain_repair() {
    let (disk, states, last, _) = torn();
    let done = disk.plan().expect("plan").salvage(false).expect("salvage");
    assert!(matches!(done, Salvaged::NotNeeded(Some(_))), "{done:?}");
    works_on(&disk, &states[last as usize], "after the cut");
}

#[test]
fn a_whole_store_is_left_alone() {
    let Killed { disk, .. } = killed(true);
    let _ = disk.open().expect("open");
    let before = disk.files("/store");
    let plan = disk.plan().expect("plan");
    assert_eq!((plan.condition(), plan.is_needed()), (&Condition::Whole, false));
    assert_eq!(plan.cut().expect("nothing"), None);
    assert_eq!(disk.files("/store"), before);
}

#[test]
fn leftovers_of_a_crash_go_as_far_as_an_opening_clears_them() {
    let Killed { disk, states, last, .. } = killed(true);
    disk.fs.set_content(Path::new("/store/CREATING"), b"left");
    disk.fs.set_content(Path::new("/store/wal/prepared.tmp"), &[0; 512]);
    disk.fs.set_content(Path::new("/store/wal/notes.txt"), b"somebody's");
    let plan = disk.plan().expect("plan");
    assert_eq!(
        (plan.condition(), plan.is_needed(), plan.leftovers().len()),
        (&Condition::Whole, true, 2)
    );
    let done = plan.cut().expect("repair").expect("something to do");
    assert_eq!(done.log.unlinked, [Path::new("/store/wal/prepared.tmp")]);
    assert_eq!(done.removed, [Path::new("/store/CREATING")], "besides");
    for (name, there) in [("CREATING", false), ("wal/prepared.tmp", false), ("wal/notes.txt", true)]
    {
        let path = Path::new("/store").join(name);
        assert_eq!(disk.fs.exists(&path).expect("exists"), there, "{name}");
    }
    works_on(&disk, &states[last as usize], "after the repair");
}

/// A crash between the name of the next segment and the seal of the last one.
#[test]
fn an_unfinished_rollover_is_finished() {
    let Killed { disk, states, last, .. } = killed(true);
    let uuid = disk.plan().expect("plan").identity().uuid;
    let id = SegmentId { uuid, first_lsn: last + 1 };
    let header = SegmentHeader { id, segment_bytes: 4 << 10, incarnation: 1 };
    let mut bytes = header.encode().to_vec();
    bytes.resize(4 << 10, 0);
    let path = Path::new("/store/wal").join(segment_file_name(last + 1));
    disk.fs.set_content(&path, &bytes);
    let plan = disk.plan().expect("plan");
    assert_eq!((plan.condition(), plan.is_needed()), (&Condition::Whole, true));
    assert_eq!(plan.leftovers(), [] as [std::path::PathBuf; 0]);
    let done = plan.cut().expect("repair").expect("something to do");
    assert!(done.log.sealed && done.removed.is_empty(), "{done:?}");
    let again = disk.plan().expect("plan");
    assert_eq!((again.condition(), again.is_needed()), (&Condition::Whole, false));
    drop(again);
    works_on(&disk, &states[last as usize], "after the repair");
}

#[test]
fn on_a_full_disk_nothing_is_cut() {
    let (disk, states, last, _) = torn();
    let before = disk.wal();
    disk.fs.set_capacity(Some(disk.fs.used() + 64));
    let error = disk.plan().expect("plan").cut().expect_err("no space for the copy");
    assert!(error.to_string().contains("copying a torn tail to the quarantine"), "{error}");
    assert_eq!(disk.wal(), before, "nothing was cut");
    disk.fs.set_capacity(None);
    disk.plan().expect("plan").cut().expect("cut").expect("something to do");
    works_on(&disk, &states[last as usize], "after the cut");
}

#[test]
fn a_store_in_use_and_a_directory_that_is_none_are_refused() {
    let Killed { disk, .. } = killed(true);
    let store = disk.open().expect("open");
    assert!(matches!(disk.plan(), Err(OpenError::Locked { .. })));
    drop(store);
    let plan = disk.plan().expect("plan");
    assert!(matches!(disk.open(), Err(OpenError::Locked { .. })), "a plan holds the lock");
    drop(plan);
    disk.fs.remove_file(Path::new("/store/STORE")).expect("remove");
    let error = disk.plan().map(drop).expect_err("no store");
    assert!(matches!(&error, OpenError::NotAStore { .. }), "{error}");
    let error = RepairError::from(error);
    assert_eq!(error.class(), sharestate::ErrorClass::Rejected);
}

#[test]
fn a_crash_at_any_call_of_a_repair_and_at_any_of_the_next_loses_no_evidence() {
    let (disk, states, last, tail) = torn();
    let probe = disk.same();
    probe.plan().expect("plan").cut().expect("cut");
    let calls = probe.fs.calls();
    let mut crashes = 0;
    for call in 1..=calls {
        let model = PageModel::Random { seed: call, granularity: 512 };
        let first = disk.same();
        first.fs.crash_after(call);
        let _ = first.plan().map(|plan| plan.cut());
        for image in [first.cut(model), first.cut(PageModel::UnsyncedLost)] {
            for second in (1..=calls).step_by(3) {
                let context = format!("calls {call} and {second}");
                let image = image.same();
                image.fs.crash_before(second);
                let _ = image.plan().map(|plan| plan.cut());
                let image = image.cut(PageModel::Random { seed: second, granularity: 4_096 });
                image.plan().expect("plan").cut().unwrap_or_else(|e| panic!("{context}: {e}"));
                let kept = image.files("/store/quarantine");
                assert!(
                    kept.values().any(|bytes| bytes.starts_with(&tail)),
                    "{context}: the evidence is lost: {:?}",
                    kept.keys()
                );
                works_on(&image, &states[last as usize], &context);
                crashes += 1;
            }
        }
    }
    println!("repair-crash-states={crashes} calls={calls} lost=0");
    assert!(crashes > 500);
}
