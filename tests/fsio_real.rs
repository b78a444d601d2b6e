//! The operating system's files behave as the store relies on.

use std::io::ErrorKind;
use std::path::Path;

use sharestate::fsio::{
    Fs, FsFile, FsOp, LockError, OpenMode, RealFs, read_exact_at, read_file, read_up_to,
    write_all_at, write_durably, write_zeros_at,
};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn create(path: &Path) -> Box<dyn FsFile> {
    RealFs.open(path, OpenMode::CreateNew).expect("created")
}

#[test]
fn what_is_written_at_an_offset_is_read_back_there() {
    let temp = directory();
    let file = create(&temp.path().join("file"));
    write_all_at(&*file, b"hello", 10).expect("written");
    assert_eq!(file.len().expect("a length"), 15);
    let mut bytes = [1; 15];
    read_exact_at(&*file, &mut bytes, 0).expect("read");
    assert_eq!(&bytes, b"\0\0\0\0\0\0\0\0\0\0hello");
    let mut more = [0; 10];
    assert_eq!(read_up_to(&*file, &mut more, 12).expect("read"), 3);
    let error = read_exact_at(&*file, &mut more, 12).expect_err("too short");
    assert_eq!((error.kind(), error.offset), (ErrorKind::UnexpectedEof, Some(15)));
    file.allocate(8192).expect("allocated");
    assert_eq!(file.len().expect("a length"), 8192);
    file.set_len(12).expect("cut");
    write_zeros_at(&*file, 5, 600_000).expect("written");
    assert_eq!(file.len().expect("a length"), 600_000);
    assert!(!file.is_empty().expect("a length"));
    file.sync_data().expect("synced");
    file.sync_all().expect("synced");
}

#[test]
fn errors_name_the_call_and_the_path() {
    let temp = directory();
    let path = temp.path().join("absent");
    let error = RealFs.open(&path, OpenMode::Read).expect_err("absent");
    assert_eq!((error.op, error.kind()), (FsOp::Open, ErrorKind::NotFound));
    assert_eq!(error.path, path);
    assert!(error.to_string().contains("absent"), "{error}");
    assert_eq!(error.raw_os_error(), Some(2));
    drop(create(&path));
    let error = RealFs.open(&path, OpenMode::CreateNew).expect_err("taken");
    assert_eq!((error.op, error.kind()), (FsOp::Create, ErrorKind::AlreadyExists));
    let file = RealFs.open(&path, OpenMode::Read).expect("open");
    let error = write_all_at(&*file, b"x", 3).expect_err("opened for reading");
    assert_eq!((error.op, error.offset), (FsOp::Write, Some(3)));
}

#[test]
fn a_listing_is_sorted_and_tells_directories_and_lengths() {
    let temp = directory();
    for name in ["b", "a", "d"] {
        write_all_at(&*create(&temp.path().join(name)), name.repeat(3).as_bytes(), 0).expect("ok");
    }
    RealFs.create_dir(&temp.path().join("c")).expect("created");
    let entries = RealFs.list(temp.path()).expect("listed");
    let names: Vec<_> = entries.iter().map(|entry| entry.name.to_string_lossy()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(entries.iter().map(|entry| entry.is_dir).collect::<Vec<_>>()[1..3], [false, true]);
    assert_eq!(entries[0].len, 3);
    RealFs.rename(&temp.path().join("a"), &temp.path().join("b")).expect("renamed");
    RealFs.remove_file(&temp.path().join("d")).expect("removed");
    RealFs.sync_dir(temp.path()).expect("synced");
    assert!(RealFs.exists(&temp.path().join("b")).expect("an answer"));
    assert!(!RealFs.exists(&temp.path().join("a")).expect("an answer"));
    assert_eq!(RealFs.list(temp.path()).expect("listed").len(), 2);
}

#[test]
fn a_lock_is_held_once_and_ends_with_its_guard() {
    let temp = directory();
    let path = temp.path().join("LOCK");
    let guard = RealFs.lock(&path).expect("free");
    let held = RealFs.lock(&path).expect_err("held");
    assert!(matches!(&held, LockError::Held { path: held } if *held == path), "{held}");
    drop(guard);
    drop(RealFs.lock(&path).expect("free again"));
    let error = RealFs.lock(&temp.path().join("absent/LOCK")).expect_err("no directory");
    assert!(matches!(error, LockError::Fs(_)), "{error}");
}

#[test]
fn a_durable_replace_leaves_the_new_content_and_no_leftovers() {
    let temp = directory();
    std::fs::write(temp.path().join("STORE.tmp"), b"left over from a crash").expect("written");
    for content in [&b"first"[..], b"second, longer", b""] {
        write_durably(&RealFs, temp.path(), "STORE", content).expect("replaced");
        let path = temp.path().join("STORE");
        assert_eq!(read_file(&RealFs, &path, 100).expect("read"), content);
    }
    assert_eq!(RealFs.list(temp.path()).expect("listed").len(), 1);
    std::fs::write(temp.path().join("STORE"), [0; 101]).expect("written");
    let error = read_file(&RealFs, &temp.path().join("STORE"), 100).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
}

#[test]
fn a_map_shows_the_file() {
    let temp = directory();
    let path = temp.path().join("file");
    write_all_at(&*create(&path), b"mapped", 0).expect("written");
    let map = RealFs.map(&path).expect("mapped").expect("a map");
    assert_eq!(&map[..], b"mapped");
}
