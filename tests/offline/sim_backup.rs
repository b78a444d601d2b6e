//! Backup and restore on the simulated disk: the source is never touched, and a copy that is not
//! finished is accepted by nobody. (The rows of a simulated store are in no files, so that both
//! stores share them here; the real ones are in `live` and in the tests of the command.)

use std::path::Path;
use std::sync::Arc;

use sharestate::engine::backup::{backup_with, restore_with};
use sharestate::fsio::sim::PageModel;
use sharestate::fsio::{Fs, FsOp};
use sharestate::{BackupError, OpenError};

use crate::cut::torn;
use crate::sim::{Disk, Killed, frames, killed};
use crate::support::contents;

const COPY: &str = "/copy";
const BACK: &str = "/back";

fn backup(disk: &Disk) -> Result<u64, BackupError> {
    let fs: Arc<dyn Fs> = Arc::new(disk.fs.clone());
    backup_with(&fs, &disk.rows, Path::new("/store"), Path::new(COPY)).map(|done| done.last_lsn)
}

fn restore(disk: &Disk) -> Result<u64, BackupError> {
    let fs: Arc<dyn Fs> = Arc::new(disk.fs.clone());
    restore_with(&fs, &disk.rows, Path::new(COPY), Path::new(BACK)).map(|done| done.next_lsn)
}

#[test]
fn a_backup_is_restored_to_the_same_state_at_lsns_never_given_out() {
    for (disk, states, last) in [
        {
            let Killed { disk, states, last, .. } = killed(true);
            (disk, states, last)
        },
        {
            let (disk, states, last, _) = torn();
            (disk, states, last)
        },
    ] {
        let source = (disk.wal(), disk.files("/store"));
        assert_eq!(backup(&disk).expect("backup"), last);
        assert_eq!((disk.wal(), disk.files("/store")), source, "the source is untouched");
        let error = disk.open_at(COPY).map(drop).expect_err("a backup is not opened");
        assert!(matches!(&error, OpenError::Backup { .. }), "{error}");
        let backup = (disk.files("/copy/wal"), disk.files(COPY));
        assert_eq!(restore(&disk).expect("restore"), 1 << 40);
        assert_eq!((disk.files("/copy/wal"), disk.files(COPY)), backup, "so is the backup");
        let store = disk.open_at(BACK).expect("open");
        assert_eq!(contents(&store), states[last as usize]);
        let progress = store.progress();
        assert_eq!(progress.durable_lsn, (1 << 40) - 1, "the next LSN is a new one");
        assert_eq!(store.recovery().incarnation, 3, "one for the restore, one for the opening");
    }
}

#[test]
fn a_damaged_store_is_not_backed_up_and_a_damaged_backup_not_restored() {
    let Killed { disk, .. } = killed(true);
    let frame = frames(&disk.wal()).into_iter().find(|frame| frame.first_lsn == 40).unwrap();
    let damaged = disk.same();
    damaged.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    let error = backup(&damaged).expect_err("damaged");
    assert!(matches!(&error, BackupError::Damaged { .. }), "{error}");
    assert!(!damaged.fs.exists(Path::new(COPY)).unwrap(), "the target is not begun");

    backup(&disk).expect("backup");
    let path = Path::new("/copy/wal").join(&frame.file);
    let mut bytes = disk.fs.content(&path).unwrap();
    bytes[frame.offset + 30] ^= 1;
    disk.fs.set_content(&path, &bytes);
    let error = restore(&disk).expect_err("damaged");
    assert!(matches!(&error, BackupError::Damaged { .. }), "{error}");
    assert!(!disk.fs.exists(Path::new(BACK)).unwrap(), "the target is not begun");
}

#[test]
fn a_target_that_is_taken_or_inside_and_a_source_in_use_are_refused() {
    let Killed { disk, .. } = killed(true);
    let fs: Arc<dyn Fs> = Arc::new(disk.fs.clone());
    let to = |target: &str| {
        backup_with(&fs, &disk.rows, Path::new("/store"), Path::new(target)).map(drop)
    };
    assert!(matches!(to("/store/inside"), Err(BackupError::Inside { .. })));
    let error = to("/store/wal/..").expect_err("inside or taken");
    assert!(matches!(error, BackupError::Inside { .. }), "{error}");
    disk.fs.create_dir(Path::new("/taken")).unwrap();
    disk.fs.set_content(Path::new("/taken/file"), b"somebody's");
    let error = to("/taken").expect_err("taken");
    assert!(error.to_string().contains("not empty"), "{error}");
    let store = disk.open().expect("open");
    assert!(matches!(to(COPY), Err(BackupError::Open(OpenError::Locked { .. }))));
    drop(store);
    assert!(matches!(restore(&disk), Err(BackupError::NotABackup { .. })));
    let fs: Arc<dyn Fs> = Arc::new(disk.fs.clone());
    let error = restore_with(&fs, &disk.rows, Path::new("/store"), Path::new(BACK)).unwrap_err();
    assert!(matches!(error, BackupError::NotABackup { .. }), "a store is not restored: {error}");
}

/// Runs `act` with a crash at every call that changes something; answers how many crashes left an
/// unfinished target and how many a finished one.
fn crash(disk: &Disk, act: &dyn Fn(&Disk), check: &dyn Fn(&Disk, &str) -> bool) -> (u64, u64) {
    let probe = disk.same();
    act(&probe);
    let calls = probe.fs.calls();
    let trace = probe.fs.trace();
    let (mut unfinished, mut finished) = (0, 0);
    for call in trace.iter().filter(|call| call.mutates() || call.op == FsOp::Lock) {
        let run = disk.same();
        run.fs.crash_after(call.number);
        act(&run);
        for model in [
            PageModel::UnsyncedLost,
            PageModel::AllKept,
            PageModel::Random { seed: call.number, granularity: 512 },
        ] {
            let context = format!("call {} of {calls}, {model:?}", call.number);
            if check(&run.cut(model), &context) { finished += 1 } else { unfinished += 1 }
        }
    }
    (unfinished, finished)
}

#[test]
fn a_crash_within_a_backup_leaves_the_source_and_nothing_that_passes_for_a_backup() {
    let Killed { disk, states, last, .. } = killed(true);
    let source = (disk.wal(), disk.files("/store"));
    let check = |image: &Disk, context: &str| {
        let now = (image.wal(), image.files("/store"));
        assert!(now == source, "{context}: the source is untouched");
        // Finished or not, it is never opened as a store.
        match image.same().open_at(COPY) {
            Ok(store) => assert!(store.recovery().created, "{context}: nothing was there yet"),
            Err(
                OpenError::Unfinished { .. }
                | OpenError::NotAStore { .. }
                | OpenError::Backup { .. },
            ) => {}
            Err(error) => panic!("{context}: {error}"),
        }
        match restore(image) {
            Ok(_) => {
                let store = image.open_at(BACK).expect("open");
                assert_eq!(contents(&store), states[last as usize], "{context}");
                true
            }
            Err(
                BackupError::NotABackup { .. } | BackupError::Open(OpenError::Unfinished { .. }),
            ) => false,
            Err(error) => panic!("{context}: {error}"),
        }
    };
    let (unfinished, finished) = crash(&disk, &|disk| drop(backup(disk)), &check);
    println!("backup-crash-states={} unfinished={unfinished}", unfinished + finished);
    assert!(unfinished > 50 && finished > 0);
}

#[test]
fn a_crash_within_a_restore_leaves_the_backup_and_nothing_that_opens() {
    let Killed { disk, states, last, .. } = killed(true);
    backup(&disk).expect("backup");
    let backup = (disk.files("/copy/wal"), disk.files(COPY));
    let check = |image: &Disk, context: &str| {
        assert!((image.files("/copy/wal"), image.files(COPY)) == backup, "{context}");
        match image.open_at(BACK) {
            Ok(store) => {
                let found = contents(&store);
                let is_new = store.recovery().created;
                assert!(is_new || found == states[last as usize], "{context}");
                !is_new
            }
            Err(OpenError::Unfinished { .. } | OpenError::NotAStore { .. }) => false,
            Err(error) => panic!("{context}: {error}"),
        }
    };
    let (unfinished, finished) = crash(&disk, &|disk| drop(restore(disk)), &check);
    println!("restore-crash-states={} unfinished={unfinished}", unfinished + finished);
    assert!(unfinished > 50 && finished > 0);
}
