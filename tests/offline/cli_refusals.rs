//! What `repair`, `backup` and `restore` refuse, and that nothing is touched then.

use std::path::Path;
use std::process::{Command, Output};

use crate::cli::store::{made, make, segments};
use crate::cli::{assert_untouched, run, tree};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sharestate");

/// Runs a shell script as root of a new user and mount namespace.
fn in_namespace(script: &str) -> Output {
    Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", script])
        .output()
        .expect("unshare(1) of util-linux")
}

fn tear(store: &Path) {
    let path = segments(store).pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 8 * 8 + 64;
    bytes.copy_within(64..64 + 90, end);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_store_that_is_open_elsewhere_is_left_to_whoever_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let open = make(&store);
    let target = dir.path().join("target");
    for args in [vec!["repair"], vec!["repair", "--salvage", "--yes-lose-data"]] {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&store];
        all.splice(0..0, args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        let error = run(&all).expect_error(2);
        assert!(error.contains("the store is in use") && error.contains("LOCK"), "{error}");
    }
    let error = run(&[&"backup", &store, &target]).expect_error(2);
    assert!(error.contains("ShareStore::backup") && error.contains("LOCK"), "{error}");
    assert!(!target.exists());
    open.blocking().close().unwrap();
    run(&[&"backup", &store, &target]).expect(0);
}

#[test]
fn what_a_newer_release_wrote_and_what_is_no_store_is_not_touched() {
    let (dir, store) = made();
    let target = dir.path().join("target");
    let mut bytes = std::fs::read(store.join("STORE")).unwrap();
    bytes[8] = 2;
    // As a later release writes it, not as rot does.
    let checksum = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..].copy_from_slice(&checksum);
    std::fs::write(store.join("STORE"), bytes).unwrap();
    let files = tree(&store);
    for answer in [
        run(&[&"repair", &store]),
        run(&[&"repair", &store, &"--salvage", &"--yes-lose-data"]),
        run(&[&"backup", &store, &target]),
    ] {
        let error = answer.expect_error(2);
        assert!(error.contains("format version 2, this release reads up to 1"), "{error}");
    }
    assert_untouched(&store, &files);
    assert!(!target.exists());
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    run(&[&"repair", &empty]).expect_error(2);
    run(&[&"backup", &empty, &target]).expect_error(2);
    run(&[&"restore", &empty, &target]).expect_error(2);
    run(&[&"repair", &dir.path().join("nowhere")]).expect_error(2);
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    assert!(!target.exists());
}

#[test]
fn a_read_only_and_a_full_disk_are_named_and_nothing_is_cut() {
    let (dir, store) = made();
    tear(&store);
    let files = tree(&store);
    let path = store.display();
    let output = in_namespace(&format!(
        "mount --bind {path} {path}; mount -o remount,bind,ro {path}
         if {PROGRAM} repair {path}; then exit 9; else exit $?; fi"
    ));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.to_lowercase().contains("read-only") && error.contains("LOCK"), "{error}");
    assert_untouched(&store, &files);

    let mount = dir.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let mount = mount.display();
    // STORE is replaced before the copy is made: leave room for that and not for more.
    let output = in_namespace(&format!(
        "mount -t tmpfs -o size=32m none {mount}
         cp -r {path} {mount}/store; rm -rf {mount}/store/quarantine
         cat {mount}/store/wal/*.wal >{mount}/before
         cat /dev/zero >{mount}/fill 2>/dev/null || true
         code=0; {PROGRAM} repair {mount}/store || code=$?
         cat {mount}/store/wal/*.wal | cmp - {mount}/before
         rm {mount}/fill
         {PROGRAM} repair {mount}/store >&2
         {PROGRAM} verify {mount}/store >&2
         exit $code"
    ));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("No space left"), "{error}");
    assert!(error.contains("done      cut") && error.contains("verdict   clean"), "{error}");
}

#[test]
fn the_help_tells_the_exit_codes() {
    let help = run(&[&"repair", &"--help"]).expect(0);
    let help: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["0 nothing to do, or done", "1 damage that this call", "2 could not run"] {
        assert!(help.contains(told), "{help}");
    }
    let usage = run(&[&"repair", &"x", &"--yes-lose-data"]);
    assert_eq!(usage.code, Some(2), "{usage:?}");
}
