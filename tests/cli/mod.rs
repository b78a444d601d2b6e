//! Runs the command, and looks at what it leaves behind.
#![allow(dead_code)] // every test file uses a part of it

pub mod store;
pub mod transactions;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What the command said and how it ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command line for the binary under test.
pub fn command(args: &[&dyn AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sharestate"));
    command.args(args.iter().map(|arg| arg.as_ref()));
    command
}

/// Runs the binary.
pub fn run(args: &[&dyn AsRef<OsStr>]) -> Run {
    run_with_input(args, b"")
}

/// Runs the binary with something on its standard input.
pub fn run_with_input(args: &[&dyn AsRef<OsStr>], input: &[u8]) -> Run {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("the input is taken");
    let output = child.wait_with_output().expect("the binary ends");
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Run {
    /// Requires an exit code; answers the standard output.
    #[track_caller]
    pub fn expect(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        self.out
    }

    /// Requires an exit code and one line on the standard error, nothing on the standard output.
    #[track_caller]
    pub fn expect_error(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        assert_eq!((self.out.as_str(), self.err.lines().count()), ("", 1), "err: {}", self.err);
        assert!(self.err.starts_with("sharestate: "), "{}", self.err);
        self.err
    }
}

/// JSON lines.
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object per line")).collect()
}

/// A JSON object on one line.
#[track_caller]
pub fn json(text: &str) -> Value {
    let mut lines = json_lines(text);
    assert_eq!(lines.len(), 1, "one line: {text}");
    lines.remove(0)
}

/// Every file below a directory and its content.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file");
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Requires that nothing has changed since `before`.
#[track_caller]
pub fn assert_untouched(dir: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    let after = tree(dir);
    let names = |tree: &BTreeMap<PathBuf, Vec<u8>>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(before));
    for (path, bytes) in before {
        assert!(after[path] == *bytes, "{} has changed", path.display());
    }
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    for (path, bytes) in tree(from) {
        let target = to.join(path.strip_prefix(from).expect("below it"));
        std::fs::create_dir_all(target.parent().expect("a parent")).expect("a directory");
        std::fs::write(target, bytes).expect("a file");
    }
}

/// Flips one bit of a file.
pub fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[offset] ^= 0x10;
    std::fs::write(path, bytes).expect("a file");
}

/// A fixture of a real Kafka.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.4").join(name)
}

/// The segments of all state partitions.
pub fn segments() -> Vec<PathBuf> {
    (0..3).map(|partition| fixture(&format!("state-{partition}.log"))).collect()
}

/// Imports all fixtures into a new store.
pub fn import_fixtures(store: &Path) -> String {
    let segments = segments();
    let mut args: Vec<&dyn AsRef<OsStr>> = vec![&"import", &"--create", &store];
    args.extend(segments.iter().map(|segment| segment as &dyn AsRef<OsStr>));
    run(&args).expect(0)
}
