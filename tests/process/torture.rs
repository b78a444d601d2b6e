//! Rows 13 and 9: `sharestate torture`, with and without faults below the store.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::child::{Running, finish, knob};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sharestate");

fn torture(args: &[&str]) -> Command {
    torture_by(Path::new(PROGRAM), args)
}

fn torture_by(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("torture").args(args).env_remove("SHARESTATE_FAULTSHIM").stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it; nothing must be wrong. Answers the JSON object.
#[track_caller]
fn fine(args: &[&str]) -> Value {
    let output = finish(torture(args));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let totals: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    for name in ["lost", "invented", "wrong", "wrong_answers"] {
        assert_eq!(totals[name], 0, "{name}: {totals}");
    }
    assert_eq!(totals["verdict"], "clean", "{totals}");
    totals
}

fn count(totals: &Value, name: &str) -> u64 {
    totals[name].as_u64().unwrap_or_else(|| panic!("{name}: {totals}"))
}

/// Builds the shim anew: what is tested is this source.
fn shim(dir: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/faultshim/faultshim.c");
    let shim = dir.join("faultshim.so");
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-o"]).arg(&shim).arg(source).arg("-ldl");
    let output = finish(cc);
    assert!(output.status.success(), "{}", stderr(&output));
    shim
}

#[test]
fn fifty_kills_lose_nothing() {
    let rounds = knob("SHARESTATE_KILLS", 50).to_string();
    let totals = fine(&["--rounds", &rounds, "--seed", "13", "--longest", "600ms", "--json"]);
    assert_eq!(totals["kills"], totals["rounds"], "{totals}");
    assert_eq!(totals["pauses"], totals["refused_openers"], "{totals}");
    for name in ["acknowledged", "staged", "resolved", "left_open", "torn_tails", "pauses"] {
        assert!(count(&totals, name) > 0, "{name}: {totals}");
    }
    println!(
        "acknowledged={} kills={} lost=0 invented=0 wrong=0 staged={} resolved={} pauses={} \
         expired={} torn-tails={}",
        totals["acknowledged"],
        totals["kills"],
        totals["staged"],
        totals["resolved"],
        totals["pauses"],
        totals["expired"],
        totals["torn_tails"]
    );
}

#[test]
fn faults_below_the_store_lose_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let shim = shim(dir.path());
    let shim = shim.to_str().expect("UTF-8");
    let rounds = knob("SHARESTATE_FAULT_ROUNDS", 20).to_string();
    let totals = fine(&[
        "--rounds",
        &rounds,
        "--seed",
        "5",
        "--longest",
        "500ms",
        "--json",
        "--faults",
        "--shim",
        shim,
    ]);
    // Whether a store is poisoned before its kill is a matter of time; the next test sees to it.
    assert!(count(&totals, "faults") > 0 && count(&totals, "kills") > 0, "{totals}");
    println!(
        "fault-rounds={rounds} acknowledged={} faults={} poisoned={} unopened={} lost=0 invented=0 \
         wrong=0",
        totals["acknowledged"], totals["faults"], totals["poisoned"], totals["unopened"]
    );
}

#[test]
fn any_single_call_may_fail_below_the_store() {
    let dir = tempfile::tempdir().expect("directory");
    let shim = shim(dir.path());
    let cases = knob("SHARESTATE_FAULT_SITES", 60).to_string();
    let totals = fine(&[
        "--sweep",
        &cases,
        "--seed",
        "6",
        "--json",
        "--faults",
        "--shim",
        shim.to_str().expect("UTF-8"),
    ]);
    assert_eq!(count(&totals, "cases").to_string(), cases, "{totals}");
    for name in ["faults", "failed", "poisoned", "unopened"] {
        assert!(count(&totals, name) > 0, "{name}: {totals}");
    }
    println!(
        "fault-cases={cases} of={} acknowledged={} poisoned={} unopened={} lost=0 invented=0 wrong=0",
        totals["sites"], totals["acknowledged"], totals["poisoned"], totals["unopened"]
    );
}

#[test]
fn a_violation_is_told_with_seed_and_round_and_the_directory_is_kept() {
    let dir = tempfile::tempdir().expect("directory");
    let place = dir.path().join("place");
    let output = finish(torture(&[
        "--rounds",
        "3",
        "--seed",
        "9",
        "--shortest",
        "900ms",
        "--longest",
        "1s",
        "--json",
        "--tamper",
        "lost",
        "--dir",
        place.to_str().expect("UTF-8"),
    ]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let totals: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert!(count(&totals, "lost") > 0, "{totals}");
    assert!(stderr(&output).contains("violation in round 3 of seed 9"), "{}", stderr(&output));
    for part in ["store/STORE", "before/STORE"] {
        assert!(place.join(part).exists(), "{part}");
    }
}

#[test]
fn without_a_shim_faults_says_how_to_get_one() {
    let dir = tempfile::tempdir().expect("directory");
    // Beside the program itself one may have been built.
    let alone = dir.path().join("sharestate");
    std::fs::copy(PROGRAM, &alone).expect("copy");
    let output = finish(torture_by(&alone, &["--faults", "--rounds", "1"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("make faultshim"), "{}", stderr(&output));
    let output = finish(torture(&["--faults", "--rounds", "1", "--shim", "/no/shim.so"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/no/shim.so"), "{}", stderr(&output));
    // The dynamic linker only warns about a file that it cannot load.
    let text = dir.path().join("text.so");
    std::fs::write(&text, "no library").expect("write");
    let (text, place) = (text.to_str().expect("UTF-8"), dir.path().join("place"));
    let place = place.to_str().expect("UTF-8");
    let output = finish(torture(&["--faults", "--sweep", "1", "--shim", text, "--dir", place]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("was not loaded"), "{}", stderr(&output));
}

#[test]
fn a_child_dies_with_its_parent_even_when_it_is_stopped() {
    let mut command = torture(&["--rounds", "1", "--shortest", "60s", "--longest", "60s"]);
    let dir = tempfile::tempdir().expect("directory");
    command.arg("--dir").arg(dir.path().join("place")).stdout(Stdio::null());
    let mut parent = Running(command.spawn().expect("the program starts"));
    let child = wait_for(|| only_child(parent.0.id()));
    // From its first entry on it has asked to die with its parent.
    wait_for(|| dir.path().join("place/store/STORE").exists().then_some(()));
    kill_process(child, Signal::STOP).expect("kill");
    parent.0.kill().expect("kill");
    parent.0.wait().expect("wait");
    wait_for(|| is_gone(child).then_some(()));
}

fn only_child(parent: u32) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    Pid::from_raw(text.split_whitespace().next()?.parse().ok()?)
}

/// A zombie that nobody has waited for yet is gone as well.
fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing has happened for a minute");
}
