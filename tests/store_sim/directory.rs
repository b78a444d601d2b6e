//! The store's directory: what is taken for a store, what a full or failing disk does to its small
//! files, and the space that is kept back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::OpenError;
use sharestate::engine::directory::{Contents, Directory, Identity};
use sharestate::fsio::sim::{EACCES, EIO, ENOSPC, Fault, Repeat, SimFs, When};
use sharestate::fsio::{Fs, FsOp};
use uuid::Uuid;

use super::ROOT;

fn path(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn identity(incarnation: u64) -> Identity {
    Identity { uuid: Uuid::from_u128(5), incarnation, segment_bytes: 4_096 }
}

fn lock(fs: &SimFs, create: bool) -> Result<Directory, OpenError> {
    Directory::lock(Arc::new(fs.clone()), Path::new(ROOT), create)
}

/// A store's directory, locked.
fn made() -> (SimFs, Directory) {
    let fs = SimFs::new(1);
    let directory = lock(&fs, true).expect("locked");
    assert_eq!(directory.contents().expect("readable"), Contents::Empty);
    directory.begin_creation().expect("begun");
    assert_eq!(directory.contents().expect("readable"), Contents::HalfMade);
    directory.finish_creation(&identity(1)).expect("made");
    assert_eq!(directory.contents().expect("readable"), Contents::Store(identity(1)));
    assert_eq!(directory.root(), Path::new(ROOT));
    let parts = [directory.wal(), directory.snapshot(), directory.quarantine()];
    assert_eq!(parts, ["wal", "snapshot", "quarantine"].map(path));
    (fs, directory)
}

fn fail(fs: &SimFs, op: FsOp, errno: i32, repeat: Repeat) {
    fs.fail(Fault { when: When::Op(op), errno, repeat });
}

#[test]
fn the_reserve_is_given_up_for_the_identity_on_a_full_disk_and_for_nothing_else() {
    for (reserve, errno, repeat, written, left) in [
        (true, ENOSPC, Repeat::Once, true, false),
        (true, ENOSPC, Repeat::Sticky, false, false),
        (true, EIO, Repeat::Once, false, true),
        (false, ENOSPC, Repeat::Once, false, false),
    ] {
        let (fs, directory) = made();
        if reserve {
            directory.keep_reserve(4_096);
            assert!(fs.exists(&path("RESERVE")).expect("answer"));
        }
        fail(&fs, FsOp::Write, errno, repeat);
        let answer = directory.write_identity(&identity(2));
        let what = format!("{reserve} {errno} {repeat:?}: {answer:?}");
        assert_eq!(answer.is_ok(), written, "{what}");
        let found = directory.contents().expect("readable");
        assert_eq!(found, Contents::Store(identity(if written { 2 } else { 1 })), "{what}");
        assert_eq!(fs.exists(&path("RESERVE")).expect("answer"), left, "{what}");
    }
}

#[test]
fn a_reserve_is_whole_or_not_there() {
    let (fs, directory) = made();
    directory.keep_reserve(0);
    assert!(!fs.exists(&path("RESERVE")).expect("answer"), "none was wanted");
    fail(&fs, FsOp::Allocate, ENOSPC, Repeat::Once);
    directory.keep_reserve(4_096);
    assert!(!fs.exists(&path("RESERVE")).expect("answer"), "half a reserve is none");
    directory.keep_reserve(4_096);
    assert_eq!(fs.content(&path("RESERVE")).map(|bytes| bytes.len()), Some(4_096));
    directory.keep_reserve(8_192);
    assert_eq!(fs.content(&path("RESERVE")).map(|bytes| bytes.len()), Some(4_096), "it is kept");
    assert!(directory.release_reserve().expect("released"));
    assert!(!directory.release_reserve().expect("nothing to release"));
}

/// Whoever may not write the directory above the store's can still make a store.
#[test]
fn a_creation_goes_on_without_the_parent_only_where_it_may_not_be_synced() {
    for (errno, works) in [(EACCES, true), (EIO, false)] {
        let fs = SimFs::new(1);
        fs.create_dir(Path::new(ROOT)).expect("made by somebody else");
        let directory = lock(&fs, true).expect("locked");
        fail(&fs, FsOp::SyncDir, errno, Repeat::Once);
        assert_eq!(directory.begin_creation().is_ok(), works, "{errno}");
    }
}

#[test]
fn what_stands_in_a_directory_without_a_store_is_named() {
    let other = "the directory holds other files and no STORE";
    let data = "STORE is missing beside the data of a store";
    let copy = "a backup or restore into it was not finished: remove it and begin again";
    for (name, is_dir, expected) in [
        ("notes.txt", false, other),
        ("quarantine", true, other),
        ("wal", true, data),
        ("snapshot", true, data),
        ("COPYING", false, copy),
    ] {
        let fs = SimFs::new(1);
        fs.create_dir(Path::new(ROOT)).expect("made");
        match is_dir {
            true => fs.create_dir(&path(name)).expect("made"),
            false => fs.set_content(&path(name), b"something"),
        }
        for create in [true, false] {
            match lock(&fs, create).expect_err("no store") {
                OpenError::NotAStore { reason, .. } => assert_eq!(reason, expected, "{name}"),
                other => panic!("{name}: {other}"),
            }
        }
        assert!(!fs.exists(&path("LOCK")).expect("answer"), "{name}: it is left untouched");
    }
    // What a killed first step leaves is no hindrance.
    let fs = SimFs::new(1);
    fs.create_dir(Path::new(ROOT)).expect("made");
    fs.set_content(&path("LOCK"), b"");
    fs.set_content(&path("CREATING.tmp"), b"");
    let directory = lock(&fs, true).expect("locked");
    assert_eq!(directory.contents().expect("readable"), Contents::Empty);
    // A missing one is not made unless that is asked for.
    let fs = SimFs::new(1);
    assert!(matches!(lock(&fs, false), Err(OpenError::NotAStore { .. })));
    assert!(!fs.exists(Path::new(ROOT)).expect("answer"));
}

#[test]
fn a_creation_begun_anew_clears_the_log_of_the_one_before() {
    let fs = SimFs::new(1);
    let directory = lock(&fs, true).expect("locked");
    directory.begin_creation().expect("begun");
    fs.set_content(&path("wal/00000000000000000001.wal"), b"of the first try");
    directory.begin_creation().expect("begun again");
    assert_eq!(fs.list(&path("wal")).expect("listed"), []);
    assert_eq!(directory.leftovers().expect("listed"), [path("CREATING")]);
    directory.finish_creation(&identity(1)).expect("made");
    assert_eq!(directory.leftovers().expect("listed"), [] as [PathBuf; 0]);
    fs.set_content(&path("CREATING"), b"the removal was lost");
    directory.clear_creating().expect("cleared");
    assert!(!fs.exists(&path("CREATING")).expect("answer"));
    directory.clear_creating().expect("nothing to clear");
}
