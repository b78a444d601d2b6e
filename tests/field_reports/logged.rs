//! What changes the state is logged, once, and nothing else is (fjall commit 5a6db12, fjall 242).

use sharestate::blocking::BlockingShareStore;
use sharestate::snapshot::{Family, MemoryRows, RowReader};
use sharestate::{Outcome, StoreError};

use crate::disk::{Disk, log_only, marker, stage};
use crate::support::{batch, contents, key, write};

type Call = fn(&BlockingShareStore) -> Result<(), StoreError>;

/// Every call that changes the state, in an order in which each of them does.
const CALLS: [(&str, Call); 9] = [
    ("initialize", |s| s.initialize(&key("g", 0), 1, 0).map(drop)),
    ("write", |s| s.write(&key("g", 0), write(&[batch(0, 9, 0, 1)])).map(drop)),
    ("read by a new leader", |s| s.read(&key("g", 0), 5).map(drop)),
    ("stage", |s| {
        let mut stage = stage(7, 0, 20);
        stage.leader_epoch = 5;
        s.stage(stage).map(drop)
    }),
    ("marker", |s| s.marker(marker(7, 0, Outcome::Commit)).map(drop)),
    ("marker that finds nothing", |s| s.marker(marker(8, 0, Outcome::Abort)).map(drop)),
    ("second stage", |s| {
        let mut stage = stage(7, 1, 21);
        stage.leader_epoch = 5;
        s.stage(stage).map(drop)
    }),
    ("forced resolution", |s| s.force_resolve(7, 1, Outcome::Abort).map(drop)),
    ("delete", |s| s.delete(&key("g", 0)).map(drop)),
];

#[test]
fn every_call_that_changes_something_logs_one_entry_and_survives_a_power_cut_at_once() {
    let disk = Disk::new();
    let store = disk.open(&log_only());
    let blocking = store.blocking();
    for (n, (name, call)) in CALLS.iter().enumerate() {
        call(&blocking).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(store.progress().durable_lsn, n as u64 + 1, "{name} logs one entry");
        let (now, image) = (contents(&store), disk.after_power_cut());
        let reopened = image.open(&log_only());
        assert_eq!(contents(&reopened), now, "{name}");
        let producers = |store: &BlockingShareStore| store.producers(None, 10).expect("read").0;
        assert_eq!(producers(&reopened.blocking()), producers(&blocking), "{name}");
    }
}

type Row = (Box<[u8]>, Box<[u8]>);

fn rows_of(rows: &MemoryRows) -> Vec<Row> {
    let families = Family::ALL.into_iter().filter(|family| *family != Family::Meta);
    families.flat_map(|family| rows.scan(family, &[], 100_000).expect("rows")).collect()
}

/// rabbitmq-server commit 2db48432d9: what a snapshot holds depended on the order of a hash map.
#[test]
fn the_same_history_gives_the_same_snapshot_to_the_byte() {
    let snapshot = || {
        let disk = Disk::new();
        let mut options = log_only();
        options.clock = std::sync::Arc::new(Standing);
        let store = disk.open(&options);
        let blocking = store.blocking();
        for partition in 0..40 {
            blocking.initialize(&key("g", partition), 1, 0).expect("initialize");
        }
        for n in 0..400 {
            let partition = i32::try_from(n % 40).expect("small");
            let change = write(&[batch(n, n, 2, 1)]);
            blocking.write(&key("g", partition), change).expect("write");
            blocking.stage(stage(n, 0, n * 3 + 1_000)).expect("stage");
        }
        blocking.checkpoint().expect("checkpoint");
        rows_of(&disk.rows)
    };
    let first = snapshot();
    assert!(first.len() > 400);
    assert_eq!(first, snapshot());
}

#[derive(Debug)]
struct Standing;

impl sharestate::Clock for Standing {
    fn now_ms(&self) -> i64 {
        1_000
    }
}
