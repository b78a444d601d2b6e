//! Snapshot rows that are not what they should be are refused by name, and walks read all that are.

use std::collections::BTreeSet;
use std::sync::Arc;

use sharestate::SharePartitionKey;
use sharestate::codec;
use sharestate::model::{OpenEpoch, Partition, Producer};
use sharestate::snapshot::{
    CheckpointBatch, Family, MemoryRows, RowOp, RowStore, Snapshot, SnapshotError,
};
use uuid::Uuid;

use super::support::key;

const STORE: Uuid = Uuid::from_u128(1);

fn new() -> (MemoryRows, Snapshot) {
    let rows = MemoryRows::default();
    let snapshot = Snapshot::create(Box::new(rows.clone()), STORE).expect("made");
    (rows, snapshot)
}

fn row(n: i64) -> Arc<Partition> {
    Arc::new(Partition::new_initialized(1, n, 1, None, 9))
}

fn put(rows: &MemoryRows, family: Family, key: &[u8], value: &[u8]) {
    rows.write(vec![RowOp::put(family, key.to_vec(), value.to_vec())]).expect("written");
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, SnapshotError>, of: Family, name: &str) {
    match answer.expect_err("damaged") {
        error @ SnapshotError::Row { .. } => {
            let text = error.to_string();
            assert!(text.contains(of.name()) && text.contains(name), "{text}");
            let SnapshotError::Row { family, row, .. } = error else { unreachable!() };
            assert_eq!((family, &*row), (of, name));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_snapshot_belongs_to_one_store_and_says_to_which() {
    let (rows, snapshot) = new();
    assert_eq!((snapshot.uuid(), snapshot.applied_lsn()), (STORE, 0));
    let open = |uuid| Snapshot::open(Box::new(rows.clone()), uuid);
    let batch = |applied_lsn| CheckpointBatch { applied_lsn, ..CheckpointBatch::default() };
    for lsn in [5, 9] {
        snapshot.write(&batch(lsn)).expect("written");
    }
    for snapshot in [snapshot, open(STORE).expect("readable")] {
        assert_eq!((snapshot.applied_lsn(), snapshot.previous_applied_lsn()), (9, 5));
        assert_eq!((snapshot.uuid(), snapshot.damage()), (STORE, None));
    }
    let other = Uuid::from_u128(2);
    let error = open(other).expect_err("of another store");
    let told = matches!(error, SnapshotError::Foreign { expected, found, .. }
        if expected == other && found == STORE);
    assert!(told && error.is_corruption(), "{error}");
    for name in ["uuid", "applied_lsn", "previous_applied_lsn"] {
        for value in [None, Some(b"odd".to_vec())] {
            let rows = rows.fork();
            let (family, key) = (Family::Meta, name.into());
            rows.write(vec![RowOp { family, key, value }]).expect("written");
            let error = Snapshot::open(Box::new(rows), STORE).expect_err("damaged");
            let told = matches!(error, SnapshotError::NoIdentity { field, .. } if field == name);
            assert!(told && error.is_corruption(), "{name}: {error}");
        }
    }
}

#[test]
fn families_have_the_names_that_stand_on_disk() {
    let names = Family::ALL.map(Family::name);
    assert_eq!(names, ["partition", "producer", "producer_key", "meta"]);
    assert_eq!(Family::ALL.map(|family| family.to_string()), names);
}

#[test]
fn a_row_that_does_not_decode_is_named() {
    let (rows, snapshot) = new();
    put(&rows, Family::Partition, b"\x00\xab", b"");
    refused(snapshot.partitions(None, None, 9), Family::Partition, "00ab");
    let (rows, snapshot) = new();
    let damaged = key("g", 3);
    put(&rows, Family::Partition, &codec::encode_partition_key(&damaged), b"\x01rot");
    refused(snapshot.partition(&damaged), Family::Partition, &damaged.to_string());
    refused(snapshot.partitions(None, None, 9), Family::Partition, &damaged.to_string());
    assert_eq!(snapshot.partition(&key("g", 4)).expect("none"), None);
    let (rows, snapshot) = new();
    put(&rows, Family::Producer, &codec::encode_producer_id(7), b"\x01rot");
    refused(snapshot.producer(7), Family::Producer, "7");
    refused(snapshot.producers(None, 9), Family::Producer, "7");
    assert_eq!(snapshot.producer(8).expect("none"), None);
    let (rows, snapshot) = new();
    put(&rows, Family::Producer, b"short", b"");
    refused(snapshot.producers(None, 9), Family::Producer, "73686f7274");
    // What a newer release wrote is no damage.
    put(&rows, Family::Partition, &codec::encode_partition_key(&damaged), b"\x02new");
    let error = snapshot.partition(&damaged).expect_err("newer");
    assert!(!error.is_corruption(), "{error}");
    put(&rows, Family::Partition, &codec::encode_partition_key(&damaged), b"\x01rot");
    assert!(snapshot.partition(&damaged).expect_err("damaged").is_corruption());
}

fn open(keys: impl IntoIterator<Item = i32>) -> OpenEpoch {
    let keys: BTreeSet<_> = keys.into_iter().map(|n| key("g", n)).collect();
    OpenEpoch { two_phase: false, superseded_by: None, keys }
}

#[test]
fn a_producer_is_read_with_exactly_the_keys_that_its_row_counts() {
    let producer =
        Producer { open: [(4, open([1, 2])), (6, open([3]))].into(), ..Producer::default() };
    let at = |rows: &MemoryRows, epoch: i16, n: i32| {
        let row_key = codec::encode_producer_key(7, epoch, &key("g", n));
        put(rows, Family::ProducerKey, &row_key, b"");
    };
    let with = |keys: &[(i16, i32)]| {
        let (rows, snapshot) = new();
        let row = codec::encode_producer(&producer).expect("encodes");
        put(&rows, Family::Producer, &codec::encode_producer_id(7), &row);
        keys.iter().for_each(|(epoch, n)| at(&rows, *epoch, *n));
        // Those of other producers do not matter.
        put(&rows, Family::ProducerKey, &codec::encode_producer_key(8, 4, &key("g", 1)), b"");
        snapshot
    };
    let whole = with(&[(4, 1), (4, 2), (6, 3)]);
    assert_eq!(whole.producer(7).expect("whole"), Some(producer.clone()));
    assert_eq!(whole.producers(None, 9).expect("whole"), [(7, producer.clone())]);
    for keys in [&[][..], &[(4, 1), (4, 2)], &[(4, 1), (6, 3)], &[(4, 1), (4, 2), (4, 9), (6, 3)]] {
        refused(with(keys).producer(7), Family::Producer, "7");
    }
    let error = with(&[(4, 1), (4, 2), (5, 3), (6, 3)]).producer(7);
    refused(error, Family::ProducerKey, "7");

    // An epoch that is open nowhere is not open.
    let none = Producer { open: [(4, open([]))].into(), ..Producer::default() };
    let (rows, snapshot) = new();
    let row = codec::encode_producer(&none).expect("encodes");
    put(&rows, Family::Producer, &codec::encode_producer_id(7), &row);
    refused(snapshot.producer(7), Family::Producer, "7");
}

#[test]
fn walks_read_on_however_many_rows_there_are() {
    let (_, snapshot) = new();
    let many = 2_500;
    let keys: Vec<SharePartitionKey> = (0..many).map(|n| key("g", n)).collect();
    let epoch = OpenEpoch { keys: keys.iter().cloned().collect(), ..open([]) };
    let producer = Producer { open: [(4, epoch)].into(), ..Producer::default() };
    let batch = CheckpointBatch {
        applied_lsn: 1,
        partitions: keys.iter().map(|key| (key.clone(), Some(row(5)))).collect(),
        producers: vec![(7, Some(Arc::new(producer.clone()))), (9, Some(Arc::default()))],
    };
    snapshot.write(&batch).expect("written");
    assert_eq!(snapshot.producer(7).expect("readable"), Some(producer));
    let stats = snapshot.stats();
    assert_eq!((stats.partitions, stats.producers, stats.producer_keys), (2_500, 2, 2_500));
    for limit in [0, 1, 1_023, 1_024, 1_025, 2_049, 2_500, 9_999] {
        for group in [None, Some("g")] {
            let page = snapshot.partitions(group, None, limit).expect("readable");
            let found: Vec<_> = page.into_iter().map(|(key, _)| key).collect();
            assert_eq!(found, keys[..limit.min(keys.len())], "{limit}");
        }
        assert_eq!(snapshot.producers(None, limit).expect("readable").len(), limit.min(2));
    }
    let behind = snapshot.partitions(Some("g"), Some(&keys[9]), 2).expect("readable");
    assert_eq!(behind.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), keys[10..12]);
    assert_eq!(snapshot.partitions(Some("f"), None, 9).expect("readable").len(), 0);
    // A group behind which the walk goes on is not run into, nor begun before it.
    let before = snapshot.partitions(Some("g"), Some(&key("a", 0)), 1).expect("readable");
    assert_eq!(before[0].0, keys[0]);
    assert_eq!(snapshot.producers(Some(7), 9).expect("readable").len(), 1);
}
