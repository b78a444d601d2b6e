//! Damage to RocksDB's own files. The snapshot falls back to an older state of itself and the log is
//! replayed over it where the log reaches back; else the error is typed. Never an empty store, never
//! a deletion of what could still be needed.
//!
//! Every run takes a sample of the cases; `SHARESTATE_DAMAGE=all` takes all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::effort::all_cases;
use crate::real::{Answer, Kept, assert_agree, scratch, verified};
use crate::support::tree;

/// What becomes of one file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Delete,
    Zero,
    Truncate(usize),
    Flip { byte: usize, bit: usize },
}

#[derive(Debug, Clone)]
struct Case {
    file: PathBuf,
    kind: &'static str,
    damage: Damage,
}

impl Damage {
    fn apply(self, path: &Path) {
        let mut bytes = fs::read(path).expect("read");
        match self {
            Self::Delete => return fs::remove_file(path).expect("remove"),
            Self::Zero => bytes.fill(0),
            Self::Truncate(length) => bytes.truncate(length),
            Self::Flip { byte, bit } => bytes[byte] ^= 1 << bit,
        }
        fs::write(path, bytes).expect("write");
    }
}

fn kind_of(name: &str) -> &'static str {
    let kinds = ["sst", "log", "MANIFEST", "OPTIONS", "CURRENT", "IDENTITY", "LOCK"];
    let kind = kinds.into_iter().find(|kind| name.ends_with(kind) || name.starts_with(kind));
    kind.unwrap_or_else(|| panic!("RocksDB has a kind of file unknown to this test: {name}"))
}

/// Every file deleted and zeroed, cut every KiB, and one bit flipped every 64 bytes; the small ones
/// at every byte.
fn cases(kept: &Kept) -> Vec<Case> {
    let mut cases = Vec::new();
    for (path, bytes) in tree(&kept.image.join("snapshot")) {
        let file = path.strip_prefix(&kept.image).expect("below").to_owned();
        let kind = kind_of(file.file_name().and_then(|name| name.to_str()).expect("a name"));
        let (cut_every, flip_every) = match kind {
            "CURRENT" | "IDENTITY" => (1, 1),
            "MANIFEST" => (1, 4),
            _ => (1_024, 64),
        };
        let mut damages = vec![Damage::Delete];
        if !bytes.is_empty() {
            damages.push(Damage::Zero);
        }
        damages.extend((0..bytes.len()).step_by(cut_every).map(Damage::Truncate));
        let flips = (0..bytes.len()).step_by(flip_every).enumerate();
        damages.extend(flips.map(|(n, start)| {
            // Not always the same byte of the 64, nor the same bit.
            let byte = (start + n * 7 % flip_every).min(bytes.len() - 1);
            Damage::Flip { byte, bit: n % 8 }
        }));
        cases.extend(damages.into_iter().map(|damage| Case { file: file.clone(), kind, damage }));
    }
    cases
}

/// The files that hold something which could still be needed.
fn needed(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let notes = ["LOG", "OPTIONS", "LOCK", "IDENTITY"];
    let is_note = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.starts_with(root.join("snapshot")) && notes.iter().any(|note| name.starts_with(note))
    };
    tree(root).into_iter().filter(|(path, _)| !is_note(path)).collect()
}

#[derive(Debug, Default)]
struct Counts {
    cases: u64,
    whole: u64,
    healed: u64,
    refused: u64,
    unreadable: u64,
    mended: u64,
}

fn run(kept: &Kept, copy: &Path, case: &Case, counts: &mut Counts) {
    let what = || format!("{} {:?}", case.file.display(), case.damage);
    kept.copy(copy);
    let damaged = copy.join(&case.file);
    case.damage.apply(&damaged);
    let before = needed(copy);
    let said = verified(copy);
    assert!(needed(copy) == before, "{}: verify changed something", what());
    let answer = kept.open(copy, &what);
    answer.assert_typed(copy, &what);
    assert_agree(copy, &answer, &said, &what);
    counts.cases += 1;
    match &answer {
        Answer::Whole { healed, .. } => {
            assert!(answer.is_whole(), "{}: {answer:?}", what());
            counts.whole += 1;
            counts.healed += u64::from(*healed);
            return;
        }
        Answer::Refused(_) => counts.refused += 1,
        Answer::Unreadable(_) => counts.unreadable += 1,
    }
    let changed = needed(copy) != before;
    if changed && matches!(answer, Answer::Refused(_)) {
        // All was judged well, and RocksDB's compaction, at work since, came upon a rotten block.
        assert_eq!(case.kind, "sst", "{}: refused, yet something changed", what());
    }
    // Nothing that could still be needed is gone: with the file as it was, all is well.
    if changed || counts.cases.is_multiple_of(4) {
        fs::copy(kept.image.join(&case.file), &damaged).expect("mended");
        let mended = kept.open(copy, &what);
        assert!(mended.is_whole(), "{}: {answer:?}; mended: {mended:?}", what());
        counts.mended += 1;
    }
}

fn run_all(name: &str, kept: &Kept, sample: usize) {
    let all = cases(kept);
    let dir = scratch();
    let copy = dir.path().join("copy");
    let mut counts = Counts::default();
    let mut kinds = BTreeMap::new();
    for (n, case) in all.iter().enumerate() {
        // Of each file the first cases (deleted, zeroed, empty), and one in `sample` of the rest.
        let few = matches!(case.damage, Damage::Delete | Damage::Zero | Damage::Truncate(0));
        if few || all_cases() || n.is_multiple_of(sample) {
            run(kept, &copy, case, &mut counts);
            *kinds.entry(case.kind).or_insert(0) += 1;
        }
    }
    println!("{name}: of {} cases {kinds:?}", all.len());
    let Counts { cases, whole, healed, refused, unreadable, mended } = counts;
    println!(
        "rocksdb-damages={cases} of={} unharmed={whole} healed={healed} refused={refused} \
         refused-at-read={unreadable} mended={mended} empty=0 wrong=0 deleted=0",
        all.len()
    );
    assert!(all.len() >= 5_000, "{}", all.len());
}

#[test]
fn damage_to_any_file_of_rocksdb_is_healed_by_the_log_or_refused() {
    run_all("the log reaches back one checkpoint", &Kept::new(false), 16);
}
