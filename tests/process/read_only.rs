//! Row 16: a file system that is read-only, or becomes so under a running store.

use std::path::Path;

use sharestate::ShareStore;
use sharestate::inspect::Reader;

use super::child::{in_namespace, job, say, succeed};
use super::full_disk::run;
use super::support::tree;
use super::work::{Record, assert_io, assert_poisoned, options};

const BEFORE: &str = "read_only::a_read_only_store_is_refused_for_writing_and_can_be_read";
const RUNNING: &str = "read_only::a_store_whose_disk_becomes_read_only_fails_and_loses_nothing";

const POINTS: usize = 20;

/// Operations between two points.
const STEP: usize = 7;

const ERROR: &str = "Read-only file system";

#[test]
fn a_read_only_store_is_refused_for_writing_and_can_be_read() {
    if let Some(job) = job() {
        return before_open(Path::new(&job[0]));
    }
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let said = succeed(in_namespace(BEFORE, &[path.to_str().expect("UTF-8")]));
    println!("{}", said.last().expect("counts"));
}

fn before_open(path: &Path) {
    let mut record = Record::new(0);
    for _ in 0..POINTS {
        let store = ShareStore::open(path, &options(0)).expect("open");
        record.start(&store).expect("initialize");
        assert!(record.work(&store, STEP).is_none());
        drop(store);
        let before = tree(path);
        protect(path);
        let error = ShareStore::open(path, &options(0)).expect_err("read-only");
        assert_io(&error, ERROR);
        assert!(error.to_string().contains(path.to_str().expect("UTF-8")), "{error}");
        let mut rows = 0;
        let mut reader = Reader::open(path).expect("it can be read");
        reader
            .for_each_partition::<sharestate::OpenError>(&mut |_, _| {
                rows += 1;
                Ok(())
            })
            .expect("read");
        assert_eq!(rows, 1);
        drop(reader);
        run("umount", &[path.to_str().expect("UTF-8")]);
        assert!(tree(path) == before, "something was touched");
        record.check(&ShareStore::open(path, &options(0)).expect("open"));
    }
    say(&format!("read-only-opens={POINTS} acknowledged={} lost=0", record.acked.len()));
}

#[test]
fn a_store_whose_disk_becomes_read_only_fails_and_loses_nothing() {
    if let Some(job) = job() {
        return while_running(Path::new(&job[0]));
    }
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let said = succeed(in_namespace(RUNNING, &[path.to_str().expect("UTF-8")]));
    println!("{}", said.last().expect("counts"));
}

/// The kernel refuses to make a mount read-only on which files are open for writing. What is
/// mounted over it takes effect at the next name that the store looks up, which is what a disk
/// looks like that the kernel has remounted after an error.
fn while_running(path: &Path) {
    let mut record = Record::new(0);
    for point in 0..POINTS {
        let store = ShareStore::open(path, &options(0)).expect("open");
        record.start(&store).expect("initialize");
        assert!(record.work(&store, point * STEP).is_none());
        protect(path);
        let error = record.work(&store, 1_000).expect("the next segment cannot be made");
        assert_poisoned(&error, ERROR);
        assert!(record.step(&store).is_err(), "only a fresh open decides");
        drop(store);
        assert_io(&ShareStore::open(path, &options(0)).expect_err("read-only"), ERROR);
        run("umount", &[path.to_str().expect("UTF-8")]);
        record.check(&ShareStore::open(path, &options(0)).expect("open"));
    }
    say(&format!("read-only-points={POINTS} acknowledged={} lost=0", record.acked.len()));
}

/// Made read-only elsewhere and then moved: mounted right there, a file that the store opens in
/// between would keep the kernel from it.
fn protect(path: &Path) {
    let aside = path.with_extension("read-only");
    std::fs::create_dir_all(&aside).expect("directory");
    let (path, aside) = (path.to_str().expect("UTF-8"), aside.to_str().expect("UTF-8"));
    run("mount", &["--bind", path, aside]);
    run("mount", &["-o", "remount,bind,ro", aside]);
    run("mount", &["--move", aside, path]);
}
