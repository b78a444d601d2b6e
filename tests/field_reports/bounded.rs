//! The log stays bounded whatever is logged: checkpoints come by bytes, not by what was written.

use sharestate::blocking::BlockingShareStore;
use sharestate::{Outcome, StoreError};

use crate::disk::{Disk, checkpointing, marker, stage};
use crate::support::{batch, contents, key, write};

/// Two checkpoints' worth of log with its frames, and the next segment.
const BOUND: u64 = 8 * (16 << 10);

/// Checkpoints run beside the traffic; when it rests, they catch up by themselves.
fn shrinks(disk: &Disk, what: &str) {
    for _ in 0..6_000 {
        if disk.log_bytes() <= BOUND {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: {} bytes of log", disk.log_bytes());
}

/// One step of a kind of traffic, the n-th.
type Step = fn(&BlockingShareStore, i64) -> Result<(), StoreError>;

/// The epoch that transaction `n` of a producer has, before its id runs out of epochs.
fn epoch(n: i64) -> i16 {
    i16::try_from(n).expect("few transactions")
}

/// One kind of change alone (rabbitmq-server 2505 and its kin, 6447; Kafka KAFKA-18058).
const KINDS: [(&str, Step); 7] = [
    ("stages that nobody ends", |store, n| store.stage(stage(n, 0, n)).map(drop)),
    ("aborted transactions", |store, n| {
        let mut stage = stage(7, epoch(n), 5);
        stage.acks[0].delivery_count = epoch(n) + 1; // delivered again after each abort
        store.stage(stage)?;
        store.marker(marker(7, epoch(n), Outcome::Abort)).map(drop)
    }),
    ("markers that find nothing", |store, n| store.marker(marker(n, 0, Outcome::Commit)).map(drop)),
    ("creation and deletion", |store, n| {
        store.initialize(&key("churn", 0), i32::try_from(n).expect("small"), 0)?;
        store.delete(&key("churn", 0)).map(drop)
    }),
    ("initializations", |store, n| {
        store.initialize(&key("h", 0), i32::try_from(n).expect("small"), n).map(drop)
    }),
    ("leader epochs", |store, n| {
        store.read(&key("g", 0), i32::try_from(n).expect("small")).map(drop)
    }),
    ("start offsets", |store, n| {
        let mut change = write(&[]);
        change.start_offset = n;
        store.write(&key("g", 0), change).map(drop)
    }),
];

#[test]
fn one_kind_of_change_alone_does_not_let_the_log_grow() {
    for (name, step) in KINDS {
        let disk = Disk::new();
        let store = disk.open(&checkpointing());
        let blocking = store.blocking();
        blocking.initialize(&key("g", 0), 1, 0).expect("initialize");
        for n in 0..3_000 {
            step(&blocking, n).unwrap_or_else(|error| panic!("{name}, step {n}: {error}"));
        }
        assert!(store.progress().durable_lsn >= 3_000, "{name}: every step is logged");
        shrinks(&disk, name);
        let before = contents(&store);
        drop((blocking, store));
        assert_eq!(contents(&disk.after_power_cut().open(&checkpointing())), before, "{name}");
    }
}

/// Kafka KAFKA-18170: a share partition that stopped changing kept the log from being cut.
#[test]
fn a_cold_share_partition_does_not_hold_the_log_back() {
    let disk = Disk::new();
    let store = disk.open(&checkpointing());
    let blocking = store.blocking();
    blocking.initialize(&key("cold", 0), 1, 3).expect("initialize");
    blocking.write(&key("cold", 0), write(&[batch(3, 9, 2, 1)])).expect("write");
    blocking.initialize(&key("hot", 0), 1, 0).expect("initialize");
    for n in 0..100_000 {
        let mut change = write(&[batch(n, n, 2, 1)]);
        change.start_offset = (n - 10).max(0);
        blocking.write(&key("hot", 0), change).expect("write");
    }
    shrinks(&disk, "a cold share partition");
    drop((blocking, store));
    let reopened = disk.after_power_cut().open(&checkpointing());
    let cold = reopened.blocking().read(&key("cold", 0), 0).expect("read").partition;
    assert_eq!((cold.start_offset, cold.batches), (3, vec![batch(3, 9, 2, 1)]));
}
