//! States exported as a segment and imported again.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sharestate::kafka_log::{
    ExportError, LogRecord, Replay, ShareRecord, ShareSnapshot, read_segment, write_segment,
};
use sharestate::model::{
    AckType, DeliveryState, Partition, PendingAck, SharePartitionKey, StageCall, StateBatch,
    combine,
};
use uuid::Uuid;

use crate::states::*;

/// The state after these snapshots.
fn state(snapshots: impl IntoIterator<Item = ShareSnapshot>) -> Partition {
    let mut replay = Replay::new();
    for value in snapshots {
        let record = ShareRecord::Snapshot { key: key(0), value };
        let record = LogRecord { position: 0, offset: 0, timestamp: 0, record };
        replay.apply("file", &record).expect("well-formed");
    }
    replay.finish().remove(&key(0)).expect("the only key")
}

fn import(bytes: &[u8]) -> BTreeMap<SharePartitionKey, Partition> {
    let mut replay = Replay::new();
    read_segment("export", bytes, &mut |record| replay.apply("export", &record)).expect("readable");
    replay.finish()
}

#[test]
fn a_fence_above_the_leader_epoch_survives_the_export() {
    let state = state([snapshot(8, vec![]), snapshot(0, vec![batch(3, 4, 2, 1)])]);
    assert_eq!((state.leader_epoch, state.leader_fence), (0, 8));
    let states = BTreeMap::from([(key(0), state)]);
    let records = states.iter().map(|(key, state)| (key.clone(), state));
    let bytes = write_segment(records, 5, 0).expect("exportable");
    let summary = read_segment("export", &bytes, &mut |_| Ok(())).expect("readable");
    assert_eq!((summary.records, summary.last_offset), (2, Some(6)));
    assert_eq!(import(&bytes), states);
}

#[test]
fn large_exports_are_split_into_batches() {
    let many = (0..3_000).map(|index| batch(index * 2, index * 2, 2, 1)).collect();
    let state = state([snapshot(1, many)]);
    let states: BTreeMap<_, _> = (0..10).map(|index| (key(index), state.clone())).collect();
    let records = states.iter().map(|(key, state)| (key.clone(), state));
    let bytes = write_segment(records, 0, 0).expect("exportable");
    let summary = read_segment("export", &bytes, &mut |_| Ok(())).expect("readable");
    assert_eq!((summary.batches, summary.records), (3, 10));
    assert_eq!(import(&bytes), states);
}

#[test]
fn what_cannot_be_exported_is_refused_by_name() {
    let good = state([snapshot(1, vec![batch(0, 9, 0, 1)])]);
    let export =
        |state: &Partition, offset| write_segment(std::iter::once((key(0), state)), offset, 0);
    let mut pending = good.clone();
    pending.pending.push(pending_ack());
    let refused = Err(ExportError::PendingAcks { key: key(0), ranges: 1 });
    assert_eq!(export(&pending, 0), refused);

    let mut malformed = good.clone();
    malformed.batches[0].delivery_state = DeliveryState::ACQUIRED;
    let answer = export(&malformed, 0);
    assert!(matches!(answer, Err(ExportError::Content { .. })), "{answer:?}");

    assert_eq!(export(&good, -1), Err(ExportError::Offset(-1)));
    assert_eq!(export(&good, i64::MAX), Err(ExportError::Offset(i64::MAX)));
    assert_eq!(import(&export(&good, i64::MAX - 1).expect("the last offset")).len(), 1);
    assert_eq!(write_segment(std::iter::empty(), 0, 0), Ok(Vec::new()));
}

fn pending_ack() -> PendingAck {
    let call = StageCall {
        lsn: 1,
        producer_id: 1,
        producer_epoch: 0,
        two_phase: false,
        transactional_id: String::new(),
        member_id: String::new(),
        member_epoch: 0,
        state_epoch: 2,
        leader_epoch: 1,
        stage_time_ms: 0,
    };
    PendingAck {
        first_offset: 1,
        last_offset: 2,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
        call: Arc::new(call),
    }
}

fn any_batch() -> impl Strategy<Value = StateBatch> {
    let states = prop::sample::select(vec![0_i8, 2, 3, 4]);
    (0..i64::MAX - 100, 0_i64..100, states, 0..=i16::MAX)
        .prop_map(|(first, more, state, count)| batch(first, first + more, state, count))
}

fn any_partition() -> impl Strategy<Value = Partition> {
    let epochs = (0..=i32::MAX, 0..=i32::MAX, 0..=i32::MAX, 0..=i32::MAX);
    let numbers = (-1..=i64::MAX, -1..=i32::MAX, any::<i64>(), any::<i64>());
    let batches = prop::collection::vec(any_batch(), 0..20);
    (epochs, numbers, batches).prop_map(|(epochs, numbers, batches)| Partition {
        state_epoch: epochs.0,
        leader_epoch: epochs.1,
        leader_fence: epochs.1.max(epochs.2),
        start_offset: numbers.0,
        init_start_offset: numbers.0,
        delivery_complete_count: numbers.1,
        snapshot_epoch: epochs.3,
        create_time_ms: numbers.2,
        write_time_ms: numbers.3,
        batches: combine(&[], &batches, numbers.0),
        pending: Vec::new(),
        last_lsn: 0,
    })
}

fn any_key() -> impl Strategy<Value = SharePartitionKey> {
    ("\\PC{1,20}", 1_u128.., 0..=i32::MAX).prop_map(|(group, topic, partition)| {
        SharePartitionKey::new(group, Uuid::from_u128(topic), partition).expect("valid")
    })
}

proptest! {
    #[test]
    fn every_state_survives_export_and_import(
        states in prop::collection::btree_map(any_key(), any_partition(), 0..20),
        first_offset in 0..1_i64 << 60,
        timestamp in any::<i64>(),
    ) {
        let records = states.iter().map(|(key, state)| (key.clone(), state));
        let bytes = write_segment(records, first_offset, timestamp).expect("exportable");
        prop_assert_eq!(import(&bytes), states);
    }
}
