//! Replays every committed fuzz input through the very code of its target, so that what fuzzing
//! has found once stays found without a fuzzer.
#![cfg(feature = "testing")]

#[path = "../fuzz/src/bodies/mod.rs"]
mod bodies;
#[path = "support/fuzz_seeds.rs"]
mod fuzz_seeds;
#[path = "txn_support/history.rs"]
mod history;
#[path = "support/oracle.rs"]
mod oracle;
#[path = "txn_support/twin.rs"]
mod twin;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{dir:?}: {error}"));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_committed_fuzz_input_still_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut counts = Vec::new();
    let mut failed = Vec::new();
    for (target, body) in bodies::all() {
        let files = files(&corpus.join(target));
        assert!(files.len() >= 10, "{target} has {} inputs", files.len());
        for file in &files {
            let input = std::fs::read(file).expect("readable");
            if catch_unwind(AssertUnwindSafe(|| body(&input))).is_err() {
                failed.push(file.clone());
            }
        }
        counts.push(format!("{target}={}", files.len()));
    }
    println!("fuzz-corpus {} failed={}", counts.join(" "), failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// `SHARESTATE_FUZZ_SEEDS` names a directory to write them to, one below it per target: what a
/// corpus is minimised from.
#[test]
fn every_fuzz_seed_passes() {
    let out = std::env::var_os("SHARESTATE_FUZZ_SEEDS").map(PathBuf::from);
    let seeds = fuzz_seeds::all();
    for (number, (target, input)) in seeds.iter().enumerate() {
        if let Some(out) = &out {
            std::fs::create_dir_all(out.join(target)).expect("directory");
            std::fs::write(out.join(target).join(format!("seed-{number}")), input).expect("write");
        }
        let targets = bodies::all();
        let body = targets.iter().find(|(name, _)| name == target).expect("a target").1;
        let passed = catch_unwind(AssertUnwindSafe(|| body(input)));
        assert!(passed.is_ok(), "seed {number} of {target}");
    }
    println!("fuzz-seeds={}", seeds.len());
}

/// A corpus of a target that no longer exists is replayed by nobody.
#[cfg(feature = "kafka")]
#[test]
fn every_corpus_has_its_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let stems = |dir: &str| -> Vec<String> {
        let name =
            |file: PathBuf| file.file_stem().expect("a name").to_str().expect("UTF-8").into();
        files(&root.join(dir)).into_iter().map(name).collect()
    };
    let mut targets: Vec<_> = bodies::all().iter().map(|(name, _)| name.to_string()).collect();
    targets.sort();
    assert_eq!(stems("corpus"), targets);
    assert_eq!(stems("fuzz_targets"), targets);
}
