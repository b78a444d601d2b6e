//! Starts this test program again with a job for one of its tests, and takes down what it says.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

/// Carries the job to the child.
const JOB: &str = "SHARESTATE_TEST_JOB";

/// Between the parts of a job.
const SEPARATOR: &str = "\u{1f}";

/// What this process is to do, if it is a child. Called first thing by a test with a child's part.
pub fn job() -> Option<Vec<String>> {
    let job = std::env::var(JOB).ok()?;
    // Also a child that is stopped must not outlive its parent.
    set_parent_process_death_signal(Some(Signal::KILL)).expect("prctl");
    Some(job.split(SEPARATOR).map(str::to_owned).collect())
}

/// A line for the parent. Unbuffered, and on a line of its own whatever the test harness prints.
pub fn say(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{text}\n").as_bytes()).and_then(|()| out.flush()).expect("stdout");
}

/// This program, for the child's part of `test`.
pub fn respawn(test: &str, job: &[&str]) -> Command {
    wrapped(&[], &program(), test, job)
}

/// The same, run by a wrapper such as `unshare` or `env`.
pub fn wrapped(wrapper: &[&str], program: &dyn AsRef<OsStr>, test: &str, job: &[&str]) -> Command {
    let own =
        [program.as_ref(), OsStr::new(test), OsStr::new("--exact"), OsStr::new("--nocapture")];
    let mut words: Vec<OsString> = wrapper.iter().map(OsString::from).collect();
    words.extend(own.map(OsStr::to_owned));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(JOB, job.join(SEPARATOR))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a child in a mount namespace of its own, in which it may mount.
pub fn in_namespace(test: &str, job: &[&str]) -> Command {
    wrapped(&["unshare", "--user", "--map-root-user", "--mount"], &program(), test, job)
}

pub fn program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

/// Waits for a child, which is killed should the test end before. Names the program if it is not
/// there.
pub fn finish(mut command: Command) -> Output {
    let name = command.get_program().to_owned();
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("this test needs the program {}: {error}", name.display()),
    }
}

/// Runs a child that must end well. Answers what it said.
#[track_caller]
pub fn succeed(command: Command) -> Vec<String> {
    let output = finish(command);
    let lines = said(&output);
    assert!(output.status.success(), "{}: {}", output.status, told(&output));
    lines
}

/// The lines that a child said.
pub fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix('@')).map(str::to_owned).collect()
}

/// All output of a child, for the report of a failure.
pub fn told(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

/// A child that is killed when the test ends, however it ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        let _ = self.0.wait();
    }
}

/// How often something is repeated: more at night.
pub fn knob(name: &str, normally: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => normally,
    }
}

/// A directory in memory where there is such a place: for tests in which only processes die, and
/// which sync very often.
pub fn memory_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("directory")
}
