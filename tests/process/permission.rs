//! Row 17: paths that may not be read, written or searched. Root may do everything, so a child that
//! is nobody tries it.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use sharestate::{ErrorClass, ShareStore};

use super::child::{job, memory_dir, program, say, succeed, wrapped};
use super::support::contents;
use super::work::{made, options};

const TEST: &str = "permission::a_path_without_permission_is_named_and_nothing_is_lost";

/// Who has no rights but its own.
const NOBODY: u32 = 65_534;

#[test]
fn a_path_without_permission_is_named_and_nothing_is_lost() {
    if let Some(job) = job() {
        return take_all(Path::new(&job[0]));
    }
    let (dir, home) = (memory_dir(), tempfile::tempdir().expect("directory"));
    let path = dir.path().join("store");
    // This program may lie where nobody else can reach it.
    let program = copy_program(home.path(), &program());
    let job = [path.to_str().expect("UTF-8")];
    let nobody = format!("--reuid={NOBODY}");
    let group = format!("--regid={NOBODY}");
    let wrapper = ["setpriv", &nobody, &group, "--clear-groups"];
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for dir in [&dir, &home] {
            std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("chown");
        }
    }
    let wrapper = if is_root { &wrapper[..] } else { &[] };
    println!("{}", succeed(wrapped(wrapper, &program, TEST, &job)).last().expect("counts"));
}

fn copy_program(dir: &Path, program: &Path) -> PathBuf {
    let copy = dir.join("program");
    std::fs::copy(program, &copy).expect("copy");
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).expect("chmod");
    copy
}

fn take_all(path: &Path) {
    drop(made(path, &options(64 << 10)));
    let expected = contents(&ShareStore::open(path, &options(64 << 10)).expect("open"));
    let (mut cases, mut refused) = (0, 0);
    for bit in [0o400, 0o200, 0o100, 0o700] {
        // Every opening makes and removes files of RocksDB's.
        for target in paths(path) {
            if !target.exists() {
                continue;
            }
            cases += 1;
            refused += u32::from(take(path, &target, bit));
            let store = ShareStore::open(path, &options(64 << 10)).expect("everything is allowed");
            assert_eq!(contents(&store), expected, "{} without {bit:o}", target.display());
        }
    }
    assert!(cases >= 60 && refused >= 10, "{refused} of {cases} refused");
    say(&format!("permission-cases={cases} refused={refused} lost=0"));
}

/// Tries to open the store while `target` lacks a permission. Answers whether that was refused.
fn take(path: &Path, target: &Path, bit: u32) -> bool {
    let before = std::fs::metadata(target).expect("metadata").mode();
    std::fs::set_permissions(target, PermissionsExt::from_mode(before & !bit)).expect("chmod");
    let opened = ShareStore::open(path, &options(64 << 10));
    if target.exists() {
        std::fs::set_permissions(target, PermissionsExt::from_mode(before)).expect("chmod");
    }
    let Err(error) = opened else { return false };
    let text = error.to_string();
    assert_eq!(error.class(), ErrorClass::Io, "{} without {bit:o}: {text}", target.display());
    assert!(text.contains("Permission denied"), "{} without {bit:o}: {text}", target.display());
    // A directory that may not be searched makes whatever is inside fail.
    let named = target.to_str().expect("UTF-8");
    let beside = target.parent().and_then(Path::to_str).unwrap_or_default();
    assert!(text.contains(named) || text.contains(beside), "{named} without {bit:o}: {text}");
    true
}

/// The directory and everything in it.
fn paths(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    for entry in std::fs::read_dir(dir).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(paths(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}
