//! `verify` and opening a store do not disagree about any kind of damage, and `verify` names the
//! file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sharestate::inspect::{Finding, Verdict};
use sharestate::snapshot::{Family, RocksMode, RocksRows, RowOp, RowStore};

use crate::image::frames;
use crate::real::{Answer, Kept, assert_agree, scratch, verified};
use crate::support::{copy_dir, segments, tree};

/// One damage: its kind, the file that is to be named, and how it is done to a copy.
struct Case {
    kind: &'static str,
    file: PathBuf,
    damage: Box<dyn Fn(&Path)>,
}

fn case(kind: &'static str, file: &Path, damage: impl Fn(&Path) + 'static) -> Case {
    Case { kind, file: file.to_owned(), damage: Box::new(damage) }
}

/// Changes the bytes of a file.
fn change(kind: &'static str, file: &Path, change: impl Fn(&mut Vec<u8>) + 'static) -> Case {
    case(kind, file, move |path| {
        let mut bytes = fs::read(path).expect("read");
        change(&mut bytes);
        fs::write(path, bytes).expect("write");
    })
}

/// Damage to one segment.
fn log_cases(file: &Path, good: &[u8], other: Vec<u8>, cases: &mut Vec<Case>) {
    let frames = frames(good);
    let end = frames.last().map_or(64, |(_, end)| *end);
    let places = [0, 9, 33, 62, 64, 68, 80, end / 3, end / 2, end - 30, end - 57, end + 8];
    for at in places {
        cases.push(change("flip", file, move |bytes| bytes[at] ^= 0x10));
        cases.push(change("overwrite", file, move |bytes| bytes[at] = !bytes[at]));
    }
    for length in [0, 8, 63, 64, 65, end / 2, end - 1, end, good.len() - 1] {
        cases.push(change("truncate", file, move |bytes| bytes.truncate(length)));
    }
    for more in [1, 4_096] {
        cases.push(change("longer", file, move |bytes| bytes.resize(bytes.len() + more, 0)));
    }
    for from in [0, 64, end / 2 / 8 * 8, end - 8] {
        cases.push(change("zeros", file, move |bytes| bytes[from..].fill(0)));
        cases.push(change("lost sector", file, move |bytes| {
            let end = (from + 512).min(bytes.len());
            bytes[from..end].fill(0);
        }));
    }
    let (first, second) = (frames[0], frames[frames.len() / 2]);
    cases.push(change("copied frame", file, move |bytes| {
        bytes.copy_within(first.0..first.1, second.0);
    }));
    cases.push(change("odd length", file, move |bytes| bytes[second.0 + 15] = 0x7f));
    cases.push(case("deleted", file, |path| fs::remove_file(path).expect("remove")));
    cases.push(case("another segment", file, move |path| fs::write(path, &other).expect("write")));
}

fn all_cases(kept: &Kept, foreign: &Kept) -> Vec<Case> {
    let mut cases = Vec::new();
    let paths = segments(&kept.image);
    let below = |path: &Path| path.strip_prefix(&kept.image).expect("below").to_owned();
    for index in [0, paths.len() / 2, paths.len() - 1] {
        let other = fs::read(&paths[(index + 1) % paths.len()]).expect("read");
        let good = fs::read(&paths[index]).expect("read");
        log_cases(&below(&paths[index]), &good, other, &mut cases);
    }
    let last = paths.last().expect("segments");
    let theirs = fs::read(segments(&foreign.image).pop().expect("segments")).expect("read");
    cases.push(case("foreign segment", &below(last), move |path| {
        fs::write(path, &theirs).expect("write");
    }));
    let store = Path::new("STORE");
    for at in [0, 7, 8, 11, 12, 20, 33, 41, 50, 60, 63] {
        cases.push(change("identity", store, move |bytes| bytes[at] ^= 2));
        cases.push(change("identity", store, move |bytes| bytes.truncate(at)));
    }
    let snapshot = Path::new("snapshot");
    for file in ["CURRENT", "IDENTITY"] {
        let file = snapshot.join(file);
        cases.push(change("snapshot file", &file, |bytes| bytes[4] ^= 1));
        cases.push(case("snapshot file", &file, |path| fs::remove_file(path).expect("remove")));
    }
    for name in ["uuid", "applied_lsn"] {
        cases.push(case("snapshot row", snapshot, move |path| {
            let rows = RocksRows::open(path, &RocksMode::ReadWrite, 1 << 20).expect("open");
            let broken = RowOp::put(Family::Meta, name.as_bytes().to_vec(), vec![7; 9]);
            rows.write(vec![broken]).expect("write");
        }));
    }
    let snapshot_of = foreign.image.join("snapshot");
    cases.push(case("foreign snapshot", snapshot, move |path| {
        fs::remove_dir_all(path).expect("remove");
        copy_dir(&snapshot_of, path);
    }));
    cases.push(case("no snapshot", snapshot, |path| fs::remove_dir_all(path).expect("remove")));
    for (file, bytes) in [
        ("CREATING", &b""[..]),
        ("STORE.tmp", b"half"),
        ("RESERVE", b"some"),
        ("wal/prepared.tmp", b"half"),
        ("wal/stray", b"mine"),
        ("snapshot/stray", b"mine"),
        ("quarantine/stray", b"mine"),
    ] {
        cases.push(case("stray", Path::new(file), move |path| {
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, bytes).expect("write");
        }));
    }
    cases
}

/// Whether a finding is about this file: by name, or, of one that is missing, by a neighbour.
fn names(finding: &Finding, file: &Path) -> bool {
    finding.file == file || (!file.is_file() && finding.file.parent() == file.parent())
}

#[test]
fn verify_and_opening_agree_about_every_kind_of_damage() {
    let (kept, foreign) = (Kept::new(false), Kept::new(false));
    let dir = scratch();
    let copy = dir.path().join("copy");
    let cases = all_cases(&kept, &foreign);
    let (mut refused, mut whole, mut found, mut ran) = (0, 0, 0, 0);
    for (n, Case { kind, file, damage }) in cases.iter().enumerate() {
        kept.copy(&copy);
        let damaged = copy.join(file);
        damage(&damaged);
        let before = tree(&copy);
        let what = || format!("{kind} {}, case {n}", file.display());
        let said = verified(&copy);
        assert!(tree(&copy) == before, "{}: verify changed something", what());
        let expected = match said.as_ref().map(|said| &said.verdict) {
            Ok(Verdict::Damage) => 1,
            Ok(_) => 0,
            Err(_) => 2,
        };
        if n.is_multiple_of(7) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sharestate"));
            let output = command.arg("verify").arg(&copy).output().expect("it runs");
            assert_eq!(output.status.code(), Some(expected), "{}", what());
            ran += 1;
        }
        let answer = kept.open(&copy, &what);
        answer.assert_typed(&copy, &what);
        assert_agree(&copy, &answer, &said, &what);
        let said = said.expect("it ran");
        if said.verdict == Verdict::Damage {
            let named = said.findings.iter().any(|finding| {
                names(finding, &damaged) || (damaged.is_dir() && finding.file.starts_with(&damaged))
            });
            assert!(named, "{}: {:?}", what(), said.findings);
            found += 1;
        }
        match answer {
            Answer::Whole { .. } => whole += 1,
            _ => refused += 1,
        }
        if matches!(answer, Answer::Refused(_)) {
            assert!(tree(&copy) == before, "{}: refused, yet something changed", what());
        }
    }
    assert!(refused > 80 && whole > 10, "{refused} {whole}");
    println!(
        "damages={} refused={refused} opened={whole} found-by-verify={found} exit-codes={ran} \
         disagreements=0",
        cases.len()
    );
}
