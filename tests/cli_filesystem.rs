//! Read-only and full file systems: a typed error that names the path, and nothing touched.
//! Real mounts, in a mount namespace of the test's own.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{contents, fill, log_only, open, tree};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sharestate");

/// Runs a shell script as root of a new user and mount namespace.
fn in_namespace(script: &str) -> Output {
    Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", script])
        .output()
        .expect("unshare(1) of util-linux")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn store(path: &Path) {
    let store = open(path, &log_only());
    fill(&store, "g", 3, 100);
    store.blocking().close().expect("close");
}

#[test]
fn a_read_only_store_is_read_by_the_tools_and_refused_for_writing() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    store(&path);
    let input = dir.path().join("lines.json");
    let exported = Command::new(PROGRAM).arg("export").arg(&path).output().expect("export");
    assert!(exported.status.success(), "{}", stderr(&exported));
    std::fs::write(&input, &exported.stdout).expect("write");
    let before = tree(&path);
    let (store_dir, lines) = (path.display(), input.display());

    let output = in_namespace(&format!(
        "mount --bind {store_dir} {store_dir}; mount -o remount,bind,ro {store_dir}
         {PROGRAM} verify {store_dir} >&2; {PROGRAM} export {store_dir} >/dev/null
         if {PROGRAM} import --replace --json {store_dir} {lines}; then exit 9; else exit $?; fi"
    ));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("{store_dir}/LOCK")), "{}", stderr(&output));
    assert!(stderr(&output).to_lowercase().contains("read-only"), "{}", stderr(&output));
    assert_eq!(tree(&path), before);
    assert_eq!(contents(&open(&path, &log_only())).len(), 3);
}

#[test]
fn a_store_that_does_not_fit_is_refused_naming_the_path_and_can_be_made_later() {
    let dir = tempfile::tempdir().expect("directory");
    let mount = dir.path().join("mount");
    std::fs::create_dir(&mount).expect("directory");
    let lines = dir.path().join("empty.json");
    std::fs::write(&lines, "").expect("write");
    let (mount, lines) = (mount.display(), lines.display());
    let output = in_namespace(&format!(
        "mount -t tmpfs -o size=2m none {mount}
         code=0; {PROGRAM} import --create --json {mount}/store {lines} || code=$?
         mount -o remount,size=400m {mount}
         {PROGRAM} import --create --json {mount}/store {lines}
         {PROGRAM} verify {mount}/store >/dev/null
         exit $code"
    ));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("/store/wal/"), "{}", stderr(&output));
    assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));
}

#[test]
fn a_store_on_a_full_disk_opens_by_its_reserve() {
    let dir = tempfile::tempdir().expect("directory");
    let (mount, path) = (dir.path().join("mount"), dir.path().join("store"));
    std::fs::create_dir(&mount).expect("directory");
    let mut options = log_only();
    options.reserve_bytes = 4 << 20;
    let made = open(&path, &options);
    fill(&made, "g", 3, 100);
    drop(made);
    let lines = dir.path().join("lines.json");
    let exported = Command::new(PROGRAM).arg("export").arg(&path).output().expect("export");
    std::fs::write(&lines, &exported.stdout).expect("write");
    let (mount, path, lines) = (mount.display(), path.display(), lines.display());
    let output = in_namespace(&format!(
        "mount -t tmpfs -o size=16m none {mount}
         cp -r --sparse=never {path} {mount}/store; test -s {mount}/store/RESERVE
         cat /dev/zero >{mount}/fill 2>/dev/null || true
         {PROGRAM} import --replace --json {mount}/store {lines}
         {PROGRAM} verify {mount}/store >/dev/null"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
