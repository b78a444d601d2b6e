//! Kafka's replay rules.

use sharestate::kafka_log::{
    KafkaLogError, KafkaLogErrorKind, LogRecord, Replay, ShareRecord, ShareSnapshot, ShareUpdate,
};
use sharestate::model::{Partition, StateBatch};

use crate::states::*;

fn update(leader_epoch: i32, start_offset: i64, state_batches: Vec<StateBatch>) -> ShareUpdate {
    let (snapshot_epoch, delivery_complete_count) = (1, 7);
    ShareUpdate {
        snapshot_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        state_batches,
    }
}

fn at(offset: i64, record: ShareRecord) -> LogRecord {
    LogRecord { position: 99, offset, timestamp: 0, record }
}

fn replay(records: impl IntoIterator<Item = ShareRecord>) -> Replay {
    let mut replay = Replay::new();
    for (offset, record) in (0..).zip(records) {
        replay.apply("file", &at(offset, record)).expect("well-formed");
    }
    replay
}

fn state(records: impl IntoIterator<Item = ShareRecord>) -> Partition {
    let mut states = replay(records).finish();
    assert_eq!(states.len(), 1);
    states.remove(&key(0)).expect("the only key")
}

fn snapshot_record(value: ShareSnapshot) -> ShareRecord {
    ShareRecord::Snapshot { key: key(0), value }
}

fn update_record(value: ShareUpdate) -> ShareRecord {
    ShareRecord::Update { key: key(0), value }
}

#[test]
fn a_snapshot_replaces_the_state_but_not_the_fence() {
    let first = snapshot(8, vec![batch(0, 9, 2, 1)]);
    let second = ShareSnapshot { state_epoch: 3, ..snapshot(0, vec![batch(20, 29, 0, 1)]) };
    let state = state([snapshot_record(first), snapshot_record(second)]);
    assert_eq!((state.leader_epoch, state.leader_fence, state.state_epoch), (0, 8, 3));
    assert_eq!(state.batches, [batch(20, 29, 0, 1)]);
}

#[test]
fn an_update_merges_and_keeps_what_it_does_not_carry() {
    let before = snapshot_record(snapshot(8, vec![batch(0, 9, 0, 1)]));
    let state = state([before.clone(), update_record(update(-1, -1, vec![batch(5, 14, 2, 1)]))]);
    assert_eq!((state.leader_epoch, state.leader_fence, state.start_offset), (8, 8, 0));
    assert_eq!((state.state_epoch, state.create_time_ms, state.write_time_ms), (2, 4, 5));
    assert_eq!(state.delivery_complete_count, 7);
    assert_eq!(state.batches, [batch(0, 4, 0, 1), batch(5, 14, 2, 1)]);

    // The new start offset clips what was there; a lower leader epoch is taken, but fences no less.
    let state = self::state([before, update_record(update(6, 3, vec![batch(1, 3, 2, 1)]))]);
    assert_eq!((state.leader_epoch, state.leader_fence, state.start_offset), (6, 8, 3));
    assert_eq!(state.init_start_offset, 3);
    assert_eq!(state.batches, [batch(3, 3, 2, 1), batch(4, 9, 0, 1)]);
}

#[test]
fn an_update_without_a_state_becomes_the_state_and_is_told() {
    let record = update_record(update(-1, 4, vec![batch(1, 9, 0, 1)]));
    // In a pruned log a snapshot or a tombstone follows.
    let snapshot = snapshot_record(snapshot(1, vec![]));
    for next in [snapshot, ShareRecord::Tombstone { key: key(0) }] {
        assert!(replay([record.clone(), next]).headless().is_empty());
    }
    let replay = replay([record.clone(), record]);
    assert!(replay.headless().iter().eq([&key(0)]));
    let state = replay.finish().remove(&key(0)).expect("a state");
    assert_eq!((state.state_epoch, state.leader_epoch, state.leader_fence), (0, 0, 0));
    assert_eq!((state.create_time_ms, state.write_time_ms), (0, 0));
    assert_eq!((state.start_offset, state.snapshot_epoch), (4, 1));
    assert_eq!(state.batches, [batch(4, 9, 0, 1)]);
}

#[test]
fn a_tombstone_forgets_the_fence_too() {
    let before = snapshot_record(snapshot(8, vec![]));
    let tombstone = ShareRecord::Tombstone { key: key(0) };
    assert!(replay([before.clone(), tombstone.clone()]).finish().is_empty());
    let unknown = ShareRecord::Unknown { key_type: 4 };
    let state = state([before, tombstone, unknown, snapshot_record(snapshot(2, vec![]))]);
    assert_eq!(state.leader_fence, 2);
}

#[test]
fn what_no_coordinator_stores_is_refused_by_name() {
    let good = snapshot(1, vec![batch(0, 9, 2, 1)]);
    let with = |batch| ShareSnapshot { state_batches: vec![batch], ..good.clone() };
    let snapshots = [
        ("snapshot epoch", ShareSnapshot { snapshot_epoch: -1, ..good.clone() }),
        ("state epoch", ShareSnapshot { state_epoch: -1, ..good.clone() }),
        ("leader epoch", ShareSnapshot { leader_epoch: -2, ..good.clone() }),
        ("start offset", ShareSnapshot { start_offset: -2, ..good.clone() }),
        ("delivery complete count", ShareSnapshot { delivery_complete_count: -2, ..good.clone() }),
        ("first offset of a batch", with(batch(-1, 3, 2, 1))),
        ("last offset of a batch", with(batch(4, 3, 2, 1))),
        ("last offset of a batch", with(batch(4, i64::MAX, 2, 1))),
        ("delivery state", with(batch(4, 5, 1, 1))),
        ("delivery state", with(batch(4, 5, 5, 1))),
        ("delivery state", with(batch(4, 5, -1, 1))),
        ("delivery count", with(batch(4, 5, 2, -1))),
    ];
    for (name, value) in snapshots {
        let error = refused(snapshot_record(value.clone()));
        assert!(
            matches!(error.kind, KafkaLogErrorKind::Content { field, .. } if field == name),
            "{name}: {error}"
        );
        assert_eq!((&*error.file, error.position, error.offset), ("file", 99, Some(12)));
        assert_eq!(error.key.as_deref(), Some(&key(0)));
        let value = ShareUpdate {
            snapshot_epoch: value.snapshot_epoch,
            leader_epoch: value.leader_epoch,
            start_offset: value.start_offset,
            delivery_complete_count: value.delivery_complete_count,
            state_batches: value.state_batches,
        };
        if name != "state epoch" {
            assert_eq!(refused(update_record(value)), error);
        }
    }
    let none = state([snapshot_record(ShareSnapshot { leader_epoch: -1, ..good })]);
    assert_eq!((none.leader_epoch, none.leader_fence), (0, 0));
}

fn refused(record: ShareRecord) -> KafkaLogError {
    let mut replay = Replay::new();
    let error = replay.apply("file", &at(12, record)).expect_err("malformed");
    assert!(replay.finish().is_empty());
    error
}
