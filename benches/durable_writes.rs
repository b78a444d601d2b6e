//! Durable writes at 1, 16, 256 and 1024 concurrent callers: sharestate beside a straightforward
//! RocksDB store that reads, merges and rewrites a row per call with `sync = true`. Both run in the
//! same process, in turn, on the same disk; the closing table gives their ratio.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use sharestate::codec;
use sharestate::model::{Partition, combine};
use sharestate::{DeliveryState, Options, SharePartitionKey, ShareStore, StateBatch, Write};
use tokio::runtime::Runtime;
use uuid::Uuid;

const CALLERS: [usize; 4] = [1, 16, 256, 1024];

fn key(caller: usize) -> SharePartitionKey {
    let partition = i32::try_from(caller).expect("few callers");
    SharePartitionKey::new("bench", Uuid::from_u128(1), partition).expect("valid key")
}

/// The n-th write of a caller: acknowledges one more record of a window of 64 and lets the start
/// offset follow.
fn batch(n: u64) -> (i64, StateBatch) {
    let offset = i64::try_from(n).expect("small");
    let batch = StateBatch {
        first_offset: offset,
        last_offset: offset,
        delivery_state: if n.is_multiple_of(3) {
            DeliveryState::AVAILABLE
        } else {
            DeliveryState::ACKNOWLEDGED
        },
        delivery_count: 1,
    };
    ((offset - 64).max(0), batch)
}

/// What is compared.
trait Subject: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    /// Runs `rounds` writes for each of `callers` callers at once; answers how long all of them
    /// took.
    fn run(&self, runtime: &Runtime, callers: usize, from: u64, rounds: u64) -> Duration;
}

struct Sharestate(ShareStore);

impl Sharestate {
    fn open(dir: &Path) -> Self {
        let store = ShareStore::open(dir, &Options::default()).expect("open");
        for caller in 0..CALLERS[3] {
            store.blocking().initialize(&key(caller), 1, 0).expect("initialize");
        }
        Self(store)
    }
}

impl Subject for Sharestate {
    fn name(&self) -> &'static str {
        "sharestate"
    }

    fn run(&self, runtime: &Runtime, callers: usize, from: u64, rounds: u64) -> Duration {
        let started = Instant::now();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..callers)
                .map(|caller| {
                    let (store, key) = (self.0.clone(), key(caller));
                    tokio::spawn(async move {
                        for n in from..from + rounds {
                            let (start_offset, batch) = batch(n);
                            let write = Write {
                                state_epoch: 1,
                                leader_epoch: 0,
                                start_offset,
                                delivery_complete_count: 0,
                                batches: vec![batch],
                            };
                            store.write(&key, write).await.expect("write");
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("task");
            }
        });
        started.elapsed()
    }
}

/// One row per share partition, rewritten by every call under a lock of its own; RocksDB's own
/// group commit joins the syncs of concurrent callers.
struct PlainRocks {
    db: rocksdb::DB,
    locks: Vec<Mutex<()>>,
}

impl PlainRocks {
    fn open(dir: &Path) -> Self {
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        let db = rocksdb::DB::open(&options, dir).expect("open");
        for caller in 0..CALLERS[3] {
            let row = codec::encode_partition(&empty()).expect("row");
            db.put(codec::encode_partition_key(&key(caller)), row).expect("put");
        }
        Self { db, locks: (0..CALLERS[3]).map(|_| Mutex::new(())).collect() }
    }

    fn write(&self, caller: usize, n: u64) {
        let row_key = codec::encode_partition_key(&key(caller));
        let _row = self.locks[caller].lock().expect("lock");
        let row = self.db.get(&row_key).expect("get").expect("row");
        let mut partition = codec::decode_partition(&row).expect("decode");
        let (start_offset, batch) = batch(n);
        partition.start_offset = partition.start_offset.max(start_offset);
        partition.batches = combine(&partition.batches, &[batch], partition.start_offset);
        let row = codec::encode_partition(&partition).expect("encode");
        let mut options = rocksdb::WriteOptions::default();
        options.set_sync(true);
        self.db.put_opt(row_key, row, &options).expect("put");
    }
}

impl Subject for Arc<PlainRocks> {
    fn name(&self) -> &'static str {
        "plain-rocksdb"
    }

    fn run(&self, _runtime: &Runtime, callers: usize, from: u64, rounds: u64) -> Duration {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for caller in 0..callers {
                scope.spawn(move || (from..from + rounds).for_each(|n| self.write(caller, n)));
            }
        });
        started.elapsed()
    }
}

fn empty() -> Partition {
    Partition {
        state_epoch: 1,
        leader_epoch: 0,
        leader_fence: 0,
        start_offset: 0,
        init_start_offset: 0,
        delivery_complete_count: 0,
        snapshot_epoch: 0,
        create_time_ms: 0,
        write_time_ms: 0,
        batches: Vec::new(),
        pending: Vec::new(),
        last_lsn: 0,
    }
}

/// Criterion's view: each subject alone.
fn benchmark(criterion: &mut Criterion, runtime: &Runtime, subjects: &[&dyn Subject]) {
    let mut group = criterion.benchmark_group("durable_writes");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    let mut from = 0;
    for callers in CALLERS {
        group.throughput(Throughput::Elements(callers as u64));
        for subject in subjects {
            group.bench_function(BenchmarkId::new(subject.name(), callers), |bencher| {
                bencher.iter_custom(|rounds| {
                    from += rounds;
                    black_box(subject.run(runtime, callers, from - rounds, rounds))
                });
            });
        }
    }
    group.finish();
}

/// Both in turn, several times; the median of each and their ratio.
fn compare(runtime: &Runtime, ours: &dyn Subject, other: &dyn Subject) {
    const TURNS: usize = 7;
    println!(
        "\ncallers  sharestate/s  plain-rocksdb/s  ratio (medians of {TURNS} turns, interleaved)"
    );
    let mut from = 1 << 40;
    for callers in CALLERS {
        let writes = 4_096_u64.max(callers as u64 * 8);
        let rounds = writes / callers as u64;
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (subject, rates) in [ours, other].into_iter().zip(&mut rates) {
                let elapsed = subject.run(runtime, callers, from, rounds);
                rates.push((rounds * callers as u64) as f64 / elapsed.as_secs_f64());
                from += rounds;
            }
        }
        let [ours, other] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[TURNS / 2]
        });
        println!("{callers:>7}  {ours:>12.0}  {other:>15.0}  {:>5.1}", ours / other);
    }
}

fn main() {
    let dir = tempfile::tempdir().expect("directory");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("runtime");
    let ours = Sharestate::open(&dir.path().join("sharestate"));
    let other = Arc::new(PlainRocks::open(&dir.path().join("rocksdb")));
    let mut criterion = Criterion::default().configure_from_args();
    benchmark(&mut criterion, &runtime, &[&ours, &other]);
    criterion.final_summary();
    compare(&runtime, &ours, &other);
}
