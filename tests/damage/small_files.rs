//! The files beside log and snapshot: the store's identity, marks of a creation, leftovers of
//! interrupted work, and what somebody else left in the directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::engine::directory::Identity;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::{Create, OpenError, ShareStore};

use crate::history::{HISTORY, options, state_of};
use crate::image::{End, Image, Opened};

fn image() -> Image {
    Image::new(1, End::Marked)
}

fn refused_for_identity(image: &Image, bytes: &[u8], what: &dyn Fn() -> String) {
    match image.open_with(&image.root.join("STORE"), bytes, what) {
        Opened::Refused(OpenError::BadIdentity { path }) => {
            assert_eq!(path, image.root.join("STORE"), "{}", what());
        }
        other => panic!("{}: {other:?}", what()),
    }
}

#[test]
fn every_cut_every_flipped_bit_and_every_replaced_byte_of_the_identity_is_refused() {
    let image = image();
    let good = image.bytes(&image.root.join("STORE")).to_vec();
    let mut cases = 0;
    for length in 0..good.len() {
        refused_for_identity(&image, &good[..length], &|| format!("STORE cut to {length}"));
        cases += 1;
    }
    for more in [1, 64, 4_032] {
        let longer = [&good[..], &vec![0; more]].concat();
        refused_for_identity(&image, &longer, &|| format!("STORE with {more} more bytes"));
        cases += 1;
    }
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        refused_for_identity(&image, &bytes, &|| format!("STORE, bit {bit}"));
        cases += 1;
    }
    for at in 0..good.len() {
        for value in [0, 0xff, good[at].wrapping_add(1)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            if value != good[at] {
                refused_for_identity(&image, &bytes, &|| format!("STORE, byte {at} = {value}"));
                cases += 1;
            }
        }
    }
    println!("store-file-damages={cases} undetected=0");
}

#[test]
fn a_newer_format_is_not_taken_for_damage() {
    // A newer release may lay out everything behind magic and version as it likes.
    let image = image();
    let path = image.root.join("STORE");
    let mut newer = image.bytes(&path).to_vec();
    newer[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let crc = crc32fast::hash(&newer[..60]).to_le_bytes();
    newer[60..].copy_from_slice(&crc);
    let longer = [&newer[..], b"whatever comes then"].concat();
    for bytes in [newer, longer] {
        match image.open_with(&path, &bytes, &|| "newer".to_owned()) {
            Opened::Refused(OpenError::NewerFormat { found: 2, supported: 1, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_store_restored_from_an_older_copy_of_its_identity_does_not_reuse_an_incarnation() {
    let image = image();
    let mut disk = image.disk();
    for opening in 2..5 {
        let store = open(&image, &disk);
        assert_eq!(store.recovery().incarnation, opening);
        store.blocking().write(&crate::history::key(1), crate::history::write(900)).expect("write");
        drop(store);
        disk = disk.restart();
    }
    let old = image.bytes(&image.root.join("STORE")).to_vec();
    disk.set_content(&image.root.join("STORE"), &old);
    assert_eq!(open(&image, &disk).recovery().incarnation, 5);
}

fn open(image: &Image, disk: &SimFs) -> ShareStore {
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    ShareStore::open_with(fs, &image.rows.fork(), &image.root, &options()).expect("opens")
}

#[test]
fn the_mark_of_a_creation_changes_nothing_beside_an_identity_whatever_is_in_it() {
    let image = image();
    let path = image.root.join("CREATING");
    let text = b"creation of this store is not finished\n";
    let mut cases = 0;
    for length in 0..=text.len() {
        let disk = image.disk();
        disk.set_content(&path, &text[..length]);
        let opened = image.open(&disk, &|| format!("CREATING of {length} bytes"));
        assert!(matches!(opened, Opened::Whole(lsn) if lsn == image.last_lsn), "{opened:?}");
        assert_eq!(disk.content(&path), None, "it is removed");
        cases += 1;
    }
    println!("creating-file-truncations={cases} undetected=0");
}

#[test]
fn without_an_identity_nothing_is_made_or_thrown_away_unless_a_creation_was_under_way() {
    let image = image();
    for create in [Create::IfMissing, Create::Never, Create::New] {
        for without in [&["STORE"][..], &["STORE", "LOCK"]] {
            let mut image = image.clone();
            for name in without {
                image.files.remove(&image.root.join(name));
            }
            let disk = image.disk();
            let mut options = options();
            options.create = create;
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            let opened = ShareStore::open_with(fs, &image.rows.fork(), &image.root, &options);
            let error = opened.map(drop).expect_err("refused");
            assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
            assert!(disk.trace().iter().all(|call| !call.mutates()), "{create:?}: untouched");
        }
    }
}

/// Opens with one more file; answers the disk afterwards.
fn with_stray(image: &Image, path: &Path, bytes: &[u8]) -> SimFs {
    let disk = image.disk();
    disk.set_content(path, bytes);
    let opened = image.open(&disk, &|| format!("beside {}", path.display()));
    assert!(matches!(opened, Opened::Whole(lsn) if lsn == image.last_lsn), "{opened:?}");
    disk
}

#[test]
fn leftovers_of_interrupted_work_are_never_read_and_go_away() {
    let image = image();
    let segment = image.bytes(&image.last_segment()).to_vec();
    let identity = Identity { uuid: HISTORY.uuid, incarnation: 99, segment_bytes: 4_096 };
    let leftovers = [
        ("wal/prepared.tmp", &[][..]),
        ("wal/prepared.tmp", b"half a segment"),
        ("wal/prepared.tmp", &segment),
        ("STORE.tmp", b"half an ident"),
        ("STORE.tmp", &identity.encode()),
    ];
    for (name, bytes) in leftovers {
        let path = image.root.join(name);
        let disk = with_stray(&image, &path, bytes);
        assert_eq!(disk.content(&path), None, "{name} is gone");
    }
    println!("leftovers={} read=0", leftovers.len());
}

#[test]
fn stray_files_are_left_alone_and_reported() {
    let image = image();
    let segment = image.bytes(&image.last_segment()).to_vec();
    let last = image.last_segment();
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", last.display()));
    let strays = [
        beside(".tmp"),
        beside(".bak"),
        beside("~"),
        image.root.join("wal/1.wal"),
        image.root.join("wal/00000000000000000000.wal"),
        image.root.join("wal/99999999999999999999.wal"),
        image.root.join("wal/0000000000000000000x.wal"),
        image.root.join("wal/+0000000000000000999.wal"),
        image.root.join("wal/core"),
        image.root.join("quarantine/old.torn"),
        image.root.join("RESERVE"),
        image.root.join("notes.txt"),
    ];
    for path in &strays {
        let disk = with_stray(&image, path, &segment);
        assert_eq!(disk.content(path).as_ref(), Some(&segment), "{} is kept", path.display());
    }
    let disk = image.disk();
    for path in &strays {
        disk.set_content(path, b"");
    }
    let store = open(&image, &disk);
    let mut unknown = store.recovery().tail.as_ref().expect("a log").unknown_files.clone();
    let mut expected: Vec<_> =
        strays.iter().filter(|path| path.starts_with(image.root.join("wal"))).cloned().collect();
    unknown.sort();
    expected.sort();
    assert_eq!(unknown, expected);
    assert_eq!(state_of(&store), HISTORY.states[usize::try_from(image.last_lsn).expect("small")]);
    println!("stray-files={} read=0 deleted=0", strays.len());
}
