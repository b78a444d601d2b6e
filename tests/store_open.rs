//! What is not an intact store of this release is refused with a typed error that names the path,
//! and left as it was.
#![cfg(feature = "rocksdb")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sharestate::{Create, ErrorClass, OpenError, Options, ShareStore};
use support::{contents, copy_dir, fill, key, log_only, open, segments, small, tree};

fn open_error(path: &Path, options: &Options) -> OpenError {
    ShareStore::open(path, options).map(drop).expect_err("refused")
}

/// Opens, expects a refusal, and checks that the directory is as before, to the byte.
fn refused_untouched(path: &Path, options: &Options) -> OpenError {
    let before = tree(path);
    let error = open_error(path, options);
    assert_eq!(tree(path), before, "something was touched: {error}");
    error
}

/// As above, where RocksDB had to be opened before the log could be judged: it writes files of its
/// own then.
fn refused_log_untouched(path: &Path, options: &Options) -> OpenError {
    let before = tree(&path.join("wal"));
    let store = fs::read(path.join("STORE")).expect("read");
    let error = open_error(path, options);
    assert_eq!(tree(&path.join("wal")), before, "the log was touched: {error}");
    assert_eq!(fs::read(path.join("STORE")).expect("read"), store, "STORE was touched: {error}");
    error
}

fn never() -> Options {
    let mut options = small();
    options.create = Create::Never;
    options
}

/// A closed store with several segments.
fn closed_store(path: &Path) {
    let store = open(path, &log_only());
    fill(&store, "g", 3, 3_000);
    store.blocking().close().expect("close");
}

#[test]
fn a_directory_that_is_no_store_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let missing = dir.path().join("missing");
    let error = open_error(&missing, &never());
    assert!(matches!(&error, OpenError::NotAStore { path, .. } if *path == missing), "{error}");
    assert!(!missing.exists());

    let error = refused_untouched(dir.path(), &never());
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");

    fs::write(dir.path().join("notes.txt"), "mine").expect("write");
    for options in [never(), small()] {
        let error = refused_untouched(dir.path(), &options);
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Rejected);
    }
    let file = dir.path().join("notes.txt");
    assert!(matches!(open_error(&file, &small()), OpenError::Io(_)), "a file is no directory");
}

#[test]
fn a_store_without_its_identity_is_never_taken_for_a_new_one() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    fs::remove_file(dir.path().join("STORE")).expect("remove");
    for options in [never(), small()] {
        let error = refused_untouched(dir.path(), &options);
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
    }
    // Also when the lock file is gone too.
    fs::remove_file(dir.path().join("LOCK")).expect("remove");
    let error = refused_untouched(dir.path(), &small());
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
}

#[test]
fn a_new_store_is_refused_where_one_exists() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    let mut options = small();
    options.create = Create::New;
    let error = refused_untouched(dir.path(), &options);
    assert!(matches!(error, OpenError::Exists { .. }), "{error}");
}

#[test]
fn a_creation_that_never_finished_is_made_good() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    // As after a crash before STORE was written: its marker stands, STORE does not.
    fs::write(dir.path().join("CREATING"), "").expect("write");
    fs::remove_file(dir.path().join("STORE")).expect("remove");
    let error = open_error(dir.path(), &never());
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
    let store = open(dir.path(), &small());
    assert!(store.recovery().created);
    assert!(contents(&store).is_empty());
    assert!(!dir.path().join("CREATING").exists());
    drop(store);
    // And after a crash between STORE and the removal of the marker: the store counts.
    fs::write(dir.path().join("CREATING"), "").expect("write");
    let store = open(dir.path(), &small());
    assert!(!store.recovery().created);
    assert!(!dir.path().join("CREATING").exists());
}

#[test]
fn a_newer_format_is_refused_untouched_naming_both_versions() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    let mut bytes = fs::read(dir.path().join("STORE")).expect("read");
    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..].copy_from_slice(&crc);
    fs::write(dir.path().join("STORE"), &bytes).expect("write");
    let error = refused_untouched(dir.path(), &small());
    assert!(matches!(error, OpenError::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Rejected);
}

#[test]
fn a_damaged_identity_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    let good = fs::read(dir.path().join("STORE")).expect("read");
    for damage in [&good[..40], &[][..], &[0_u8; 64][..]] {
        fs::write(dir.path().join("STORE"), damage).expect("write");
        let error = refused_untouched(dir.path(), &small());
        assert!(matches!(error, OpenError::BadIdentity { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Corrupt);
    }
}

#[test]
fn a_store_is_open_once_at_a_time_in_this_process() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    let error = open_error(dir.path(), &small());
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Retriable);
    drop(store);
    open(dir.path(), &small());
}

#[test]
fn a_store_is_open_once_at_a_time_across_processes() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    // flock(1) holds the lock as another broker would.
    let mut holder = Command::new("flock")
        .arg(dir.path().join("LOCK"))
        .args(["-c", "echo locked; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock");
    let mut line = String::new();
    let stdout = holder.stdout.take().expect("stdout");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("line");
    assert_eq!(line, "locked\n");
    let error = refused_untouched(dir.path(), &small());
    assert!(matches!(&error, OpenError::Locked { path } if path.ends_with("LOCK")), "{error}");
    holder.kill().expect("kill");
    holder.wait().expect("wait");
}

#[test]
fn a_missing_segment_is_refused_wherever_it_was() {
    let dir = tempfile::tempdir().expect("directory");
    let origin = dir.path().join("origin");
    let store = open(&origin, &log_only());
    fill(&store, "g", 3, 3_000);
    support::crash_image(&origin, &dir.path().join("image"));
    drop(store);
    let names = segments(&dir.path().join("image"));
    assert!(names.len() >= 4, "several segments");
    for (at, segment) in names.iter().enumerate() {
        let copy = dir.path().join(format!("without-{at}"));
        copy_dir(&dir.path().join("image"), &copy);
        fs::remove_file(copy.join("wal").join(segment.file_name().expect("name"))).expect("rm");
        let error = refused_log_untouched(&copy, &small());
        assert!(matches!(error, OpenError::Log(_)), "segment {at}: {error}");
        assert_eq!(error.class(), ErrorClass::Corrupt, "segment {at}: {error}");
        // An empty file in its place is no better.
        fs::write(copy.join("wal").join(segment.file_name().expect("name")), "").expect("write");
        let error = refused_log_untouched(&copy, &small());
        assert_eq!(error.class(), ErrorClass::Corrupt, "empty segment {at}: {error}");
    }
}

#[test]
fn a_foreign_segment_or_snapshot_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let (ours, other) = (dir.path().join("ours"), dir.path().join("other"));
    closed_store(&ours);
    closed_store(&other);
    let copy = dir.path().join("segment");
    copy_dir(&ours, &copy);
    let last = segments(&other).pop().expect("segment");
    fs::copy(&last, segments(&copy).pop().expect("segment")).expect("copy");
    let error = refused_log_untouched(&copy, &small());
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
    assert!(error.to_string().contains("belongs to store"), "{error}");

    let copy = dir.path().join("snapshot");
    copy_dir(&ours, &copy);
    fs::remove_dir_all(copy.join("snapshot")).expect("remove");
    copy_dir(&other.join("snapshot"), &copy.join("snapshot"));
    let error = refused_log_untouched(&copy, &small());
    assert!(matches!(error, OpenError::Snapshot(_)), "{error}");
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
}

#[test]
fn a_missing_snapshot_is_never_an_empty_store() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    let gone = dir.path().join("snapshot");
    fs::remove_dir_all(&gone).expect("remove");
    let error = open_error(dir.path(), &small());
    assert!(matches!(error, OpenError::Snapshot(_)), "{error}");
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
    assert!(!gone.join("CURRENT").exists(), "no new database was made");
}

#[test]
fn a_log_behind_its_snapshot_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let store = open(&new, &log_only());
    fill(&store, "g", 2, 100);
    support::crash_image(&new, &old);
    fill(&store, "h", 2, 100);
    store.blocking().close().expect("close");
    drop(store);
    fs::remove_dir_all(new.join("wal")).expect("remove");
    copy_dir(&old.join("wal"), &new.join("wal"));
    let error = refused_log_untouched(&new, &small());
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = small();
    options.segment_bytes = 5_000;
    let error = open_error(dir.path(), &options);
    assert_eq!(error.class(), ErrorClass::Rejected, "{error}");
    assert!(tree(dir.path()).iter().all(|(path, _)| path.ends_with("LOCK")));
}

#[test]
fn unknown_files_are_left_alone_and_reported() {
    let dir = tempfile::tempdir().expect("directory");
    closed_store(dir.path());
    let stray = dir.path().join("wal").join("core.dump");
    fs::write(&stray, "mine").expect("write");
    let store = open(dir.path(), &small());
    let tail = store.recovery().tail.as_ref().expect("a log was read");
    assert_eq!(tail.unknown_files.as_slice(), std::slice::from_ref(&stray));
    drop(store);
    assert_eq!(fs::read(stray).expect("read"), b"mine");
}

#[test]
fn a_store_keeps_its_own_segment_size() {
    let dir = tempfile::tempdir().expect("directory");
    drop(open(dir.path(), &small()));
    let mut options = small();
    options.segment_bytes = 1 << 20;
    let store = open(dir.path(), &options);
    fill(&store, "g", 1, 10);
    assert!(
        segments(dir.path()).iter().all(|path| path.metadata().expect("len").len() == 16 << 10)
    );
    store.blocking().delete(&key("g", 0)).expect("delete");
}
