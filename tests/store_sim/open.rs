//! What opening a directory takes for a store, and what it does to it.

use std::path::Path;

use sharestate::OpenError;

use super::support::key;
use super::{Disk, ROOT, everything, put};

#[test]
fn a_store_is_open_once_at_a_time() {
    let disk = Disk::empty();
    let store = disk.open();
    let error = disk.try_open().expect_err("it is open");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(store);
    disk.open();
}

#[test]
fn a_damaged_identity_is_refused_and_nothing_is_made_anew() {
    let disk = Disk::empty();
    let store = disk.open();
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    put(&store, 0, 1);
    let held = everything(&store);
    drop(store);
    let path = Path::new(ROOT).join("STORE");
    let whole = disk.fs.content(&path).expect("STORE");
    let segments = disk.segments();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        disk.fs.set_content(&path, &damaged);
        let error = disk.try_open().expect_err("damaged");
        let told = matches!(error, OpenError::BadIdentity { .. } | OpenError::NewerFormat { .. });
        assert!(told, "bit {bit}: {error}");
        assert_eq!(disk.segments(), segments, "bit {bit}");
    }
    for cut in 0..whole.len() {
        disk.fs.set_content(&path, &whole[..cut]);
        let error = disk.try_open().expect_err("cut short");
        assert!(matches!(error, OpenError::BadIdentity { .. }), "cut {cut}: {error}");
    }
    disk.fs.set_content(&path, &whole);
    assert_eq!(everything(&disk.open()), held);
}

#[test]
fn every_opening_raises_the_incarnation_durably_also_when_it_writes_nothing() {
    let mut disk = Disk::empty();
    disk.open();
    for expected in 2..6 {
        let store = disk.open();
        assert_eq!(store.recovery().incarnation, expected);
        drop(store);
        disk = disk.power_cut(sharestate::fsio::sim::PageModel::UnsyncedLost);
    }
}
