//! The store of format version 1 that is kept for ever, damaged as those of today are; and what is of
//! a newer version is refused untouched.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sharestate::engine::directory::Identity;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{Entry, LogError, ScanError, Scope, TailVerdict, scan};
use sharestate::{OpenError, ShareStore};

use crate::real::{Answer, Kept, assert_agree, scratch, verified};
use crate::support::{segments, tree};

/// The log of the golden store on a simulated disk.
fn simulated(kept: &Kept) -> SimFs {
    let sim = SimFs::new(0);
    sim.create_dir(Path::new("/wal")).expect("a directory");
    for path in segments(&kept.image) {
        let target = Path::new("/wal").join(path.file_name().expect("a name"));
        sim.set_content(&target, &fs::read(&path).expect("read"));
    }
    sim.restart()
}

#[test]
fn every_bit_and_every_cut_of_the_golden_log_is_detected() {
    let kept = Kept::golden();
    let bytes = fs::read(kept.image.join("STORE")).expect("read");
    let uuid = Identity::decode(&bytes).expect("whole").uuid;
    let base = simulated(&kept);
    let names = segments(&kept.image);
    let (mut flips, mut cuts, mut torn) = (0, 0, 0);
    // Whether it was refused; a prefix is torn, and never silently shorter.
    let mut check = |disk: SimFs, is_last: bool, what: &dyn Fn() -> String| {
        let fs: Arc<dyn Fs> = Arc::new(disk);
        let mut last = 0;
        let mut visit = |entry: Entry<'_>| {
            last = entry.lsn;
            Ok::<(), std::convert::Infallible>(())
        };
        match scan(fs, Path::new("/wal"), uuid, 0, Scope::Tail, &mut visit) {
            Err(ScanError::Log(LogError::Corrupt { path, .. })) => {
                assert!(path.starts_with("/wal"), "{}", what());
            }
            Err(error) => panic!("{}: {error}", what()),
            Ok(scanned) => {
                let said = matches!(scanned.report().verdict, TailVerdict::Torn(_));
                assert!(is_last && said, "{}: not detected", what());
                assert!(last + 1 >= kept.last_lsn, "{}: lost down to {last}", what());
                torn += 1;
            }
        }
    };
    for (index, name) in names.iter().enumerate() {
        let is_last = index + 1 == names.len();
        let path = Path::new("/wal").join(name.file_name().expect("a name"));
        let good = base.content(&path).expect("a segment");
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let disk = base.restart();
            disk.set_content(&path, &bytes);
            check(disk, is_last, &|| format!("{}, bit {bit}", path.display()));
            flips += 1;
        }
        let end = good.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let least = if is_last { end } else { 0 };
        for length in least..good.len() {
            let disk = base.restart();
            disk.set_content(&path, &good[..length]);
            check(disk, is_last, &|| format!("{}, cut to {length}", path.display()));
            cuts += 1;
        }
    }
    println!("golden-bit-flips={flips} golden-truncations={cuts} torn={torn} undetected=0");
}

#[test]
fn the_golden_store_is_refused_or_whole_after_damage_to_any_of_its_files() {
    let kept = Kept::golden();
    let dir = scratch();
    let copy = dir.path().join("copy");
    let (mut cases, mut refused) = (0, 0);
    for (path, good) in tree(&kept.image) {
        let below = path.strip_prefix(&kept.image).expect("below");
        let step = good.len() / 5 + 1;
        for at in (0..good.len()).step_by(step) {
            for cut in [false, true] {
                let mut bytes = good.clone();
                match cut {
                    true => bytes.truncate(at),
                    false => bytes[at] ^= 4,
                }
                kept.copy(&copy);
                fs::write(copy.join(below), bytes).expect("write");
                let what = || format!("{} at {at}, cut {cut}", below.display());
                let said = verified(&copy);
                let answer = kept.open(&copy, &what);
                answer.assert_typed(&copy, &what);
                assert_agree(&copy, &answer, &said, &what);
                refused += u64::from(!matches!(answer, Answer::Whole { .. }));
                cases += 1;
            }
        }
    }
    println!("golden-store-damages={cases} refused={refused} wrong=0 disagreements-of-verify=0");
}

/// A newer version in `STORE`, and in the header of a segment, each under a right checksum.
#[test]
fn a_store_of_a_newer_format_version_is_refused_untouched() {
    let kept = Kept::golden();
    let dir = scratch();
    let copy = dir.path().join("copy");
    let last = segments(&kept.image).pop().expect("a segment");
    let last = last.strip_prefix(&kept.image).expect("below").to_owned();
    for file in [Path::new("STORE"), &last] {
        kept.copy(&copy);
        let mut bytes = fs::read(copy.join(file)).expect("read");
        bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&crc);
        fs::write(copy.join(file), bytes).expect("write");
        let before = tree(&copy);
        let error = ShareStore::open(&copy, &kept.options).map(drop).expect_err("refused");
        let newer = matches!(
            error,
            OpenError::NewerFormat { found: 2, supported: 1, .. }
                | OpenError::Log(LogError::Newer { found: 2, supported: 1, .. })
        );
        assert!(newer, "{error}");
        let error = verified(&copy).expect_err("newer");
        assert!(error.to_string().contains("version"), "{error}");
        assert!(tree(&copy) == before, "{}: something was touched", file.display());
    }
}
