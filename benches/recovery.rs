//! Opening a store: with a 256 MiB log to replay, and with 1,000,000 share partitions in the
//! snapshot and nothing to replay.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{batch, fill_snapshot, key};
use criterion::Criterion;
use sharestate::{Options, ShareStore, SyncPolicy, Write};

const LOG_BYTES: u64 = 256 << 20;
const PARTITIONS: u32 = 1_000_000;
const CHILD: &str = "SHARESTATE_BENCH_LOG_DIR";

/// Never checkpoints by itself, so that the log keeps everything.
fn no_checkpoints() -> Options {
    let mut options = Options::default();
    options.sync = SyncPolicy::Never;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.memory_bytes = 4 << 30;
    options
}

/// Runs in a process of its own, which then dies without closing the store.
fn write_log(dir: &Path) -> ! {
    let store = ShareStore::open(dir, &no_checkpoints()).expect("open");
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("runtime");
    runtime.block_on(async {
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let store = store.clone();
                tokio::spawn(async move {
                    let keys: Vec<_> = (0..16).map(|n| key(task * 16 + n)).collect();
                    for key in &keys {
                        store.initialize(key, 1, 0).await.expect("initialize");
                    }
                    // About 1 kB an entry: 48 batches of 19 bytes.
                    for n in 0..(LOG_BYTES / 1_024 / 64) as i64 {
                        let batches = (0..48).map(|b| batch((n * 48 + b) * 20)).collect();
                        let write = Write {
                            state_epoch: 1,
                            leader_epoch: 0,
                            start_offset: (n - 16).max(0) * 48 * 20,
                            delivery_complete_count: 0,
                            batches,
                        };
                        store.write(&keys[(n % 16) as usize], write).await.expect("write");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("task");
        }
    });
    std::process::abort();
}

fn copy_dir(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status().expect("cp");
    assert!(status.success());
}

fn recovery_of_a_log(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("directory");
    let origin = dir.path().join("origin");
    let program = std::env::current_exe().expect("program");
    let status = Command::new(program).env(CHILD, &origin).status().expect("child");
    assert!(!status.success(), "the child aborts");
    let mut group = criterion.benchmark_group("recovery");
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    let mut replayed = 0;
    group.bench_function("256 MiB log", |bencher| {
        bencher.iter_custom(|iters| {
            let mut total = Duration::ZERO;
            for n in 0..iters {
                let copy = dir.path().join(format!("copy-{n}"));
                copy_dir(&origin, &copy);
                let store = ShareStore::open(&copy, &no_checkpoints()).expect("open");
                total += store.recovery().elapsed;
                replayed = store.recovery().replayed;
                drop(store);
                let _ = std::fs::remove_dir_all(&copy);
            }
            total
        });
    });
    group.finish();
    println!("recovery: {replayed} entries replayed");
}

fn opening_a_large_store(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("directory");
    fill_snapshot(dir.path(), PARTITIONS);
    let mut group = criterion.benchmark_group("open");
    group.sample_size(20);
    group.bench_function("1,000,000 share partitions, empty log tail", |bencher| {
        bencher.iter_custom(|iters| {
            let mut total = Duration::ZERO;
            for _ in 0..iters {
                let started = std::time::Instant::now();
                let store = ShareStore::open(dir.path(), &Options::default()).expect("open");
                total += started.elapsed();
                assert_eq!(store.recovery().replayed, 0);
                let answer = store.blocking().read(&key(999_999), 0).expect("read");
                assert_eq!(answer.partition.batches.len(), 4);
            }
            total
        });
    });
    group.finish();
}

fn main() {
    if let Some(dir) = std::env::var_os(CHILD) {
        write_log(Path::new(&dir));
    }
    let mut criterion = Criterion::default().configure_from_args();
    recovery_of_a_log(&mut criterion);
    opening_a_large_store(&mut criterion);
    criterion.final_summary();
}
