//! Row 8: file systems of 256 sizes, filled until nothing goes any more.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use sharestate::ShareStore;

use super::child::{in_namespace, job, knob, say, succeed};
use super::work::{Record, assert_io, assert_poisoned, options};

const TEST: &str = "full_disk::a_disk_of_any_size_fills_up_without_harm";

/// Enough for everything.
const LARGE: &str = "size=64m";

/// Threads that write at once.
const WRITERS: i32 = 3;

/// What became of the sizes.
#[derive(Debug, Default)]
struct Counts {
    sizes: u32,
    /// No store could be made.
    too_small: u32,
    /// The full disk could be opened again as it was.
    opened_full: u32,
    acked: usize,
    unknown: usize,
    not_logged: usize,
}

#[test]
fn a_disk_of_any_size_fills_up_without_harm() {
    if let Some(job) = job() {
        return fill_all(Path::new(&job[0]), job[1].parse().expect("a number"));
    }
    let dir = tempfile::tempdir().expect("directory");
    let step = 256 / knob("SHARESTATE_TMPFS_SIZES", 256).clamp(1, 256);
    let path = dir.path().to_str().expect("UTF-8");
    let said = succeed(in_namespace(TEST, &[path, &step.to_string()]));
    println!("{}", said.last().expect("counts"));
}

fn fill_all(mount: &Path, step: usize) {
    let mut counts = Counts::default();
    for pages in (1..=256).step_by(step) {
        fill(mount, pages * 4, &mut counts);
    }
    let Counts { sizes, too_small, opened_full, acked, unknown, not_logged } = counts;
    assert!(too_small < sizes / 2 && opened_full > sizes / 4, "{counts:?}");
    say(&format!(
        "tmpfs-sizes={sizes} too-small={too_small} opened-full={opened_full} acknowledged={acked} \
         unknown={unknown} not-logged={not_logged} lost=0 invented=0"
    ));
}

fn fill(mount: &Path, kib: usize, counts: &mut Counts) {
    mount_tmpfs(mount, &format!("size={kib}k"));
    counts.sizes += 1;
    let path = mount.join("store");
    // A quarter is kept back, as an operator of a small disk would.
    let options = options(kib as u64 * 1024 / 4);
    let mut records: Vec<Record> = (0..WRITERS).map(Record::new).collect();
    let mut is_too_small = true;
    match ShareStore::open(&path, &options) {
        Ok(store) => {
            is_too_small = false;
            fill_up(mount, &store, &mut records);
        }
        Err(error) => assert_io(&error, "No space left"),
    }
    counts.too_small += u32::from(is_too_small);
    for record in &records {
        counts.acked += record.acked.len();
        counts.unknown += record.unknown.len();
        counts.not_logged += record.not_logged.len();
    }
    // The disk is still full.
    match ShareStore::open(&path, &options) {
        Ok(store) => {
            records.iter_mut().for_each(|record| record.check(&store));
            counts.opened_full += 1;
        }
        Err(error) => assert_io(&error, "No space left"),
    }
    run("mount", &["-o", &format!("remount,{LARGE}"), mount.to_str().expect("UTF-8")]);
    let store = ShareStore::open(&path, &options).expect("there is room now");
    for record in &mut records {
        record.check(&store);
        record.start(&store).expect("initialize");
        assert!(record.work(&store, 50).is_none(), "{kib} KiB: it works as before");
        record.check(&store);
    }
    store.blocking().close().expect("close");
    run("umount", &[mount.to_str().expect("UTF-8")]);
}

/// Works a little, takes the rest of the disk away, and works until the store fails. Each thread
/// must be told so for itself.
fn fill_up(mount: &Path, store: &ShareStore, records: &mut [Record]) {
    let started = records
        .iter_mut()
        .all(|record| record.start(store).is_ok() && record.work(store, 10).is_none());
    if started {
        take_the_rest(&mount.join("ballast"));
    }
    std::thread::scope(|scope| {
        for record in records {
            scope.spawn(move || {
                for _ in 0..3 {
                    let error = record.work(store, 2_000).expect("a full disk is noticed");
                    assert_poisoned(&error, "No space left");
                }
            });
        }
    });
    assert!(store.poison().is_some());
    store.blocking().close().expect_err("a failed store does not close as if nothing were wrong");
}

fn take_the_rest(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a name is there for nothing");
    while file.write_all(&[0x55; 4096]).is_ok() {}
}

pub fn mount_tmpfs(at: &Path, size: &str) {
    run("mount", &["-t", "tmpfs", "-o", size, "none", at.to_str().expect("UTF-8")]);
}

/// Runs a program that must succeed.
pub fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("this test needs {program}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?} is not allowed here: {told}");
}
