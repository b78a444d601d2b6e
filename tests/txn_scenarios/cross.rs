//! X: what else happens to share partitions while acks are pending.

use sharestate::{AckRange, DeliveryState, SharePartitionKey, Stage};
use uuid::Uuid;

use super::*;

#[test]
fn x_1_records_that_retention_took_are_dropped_and_never_come_back() {
    for marker in [commit(0), abort(0)] {
        let mut store = Store::started();
        store.stages(stage([accept(0, 4), reject(6, 9)]));
        assert_eq!(store.writes(0, start_at(8)), [(0, 4), (6, 7)], "the caller learns what went");
        store.kill_and_open();
        store.resolves(marker, &[(0, &[(8, 9)])]);
        let row = store.row(0);
        let (state, count) = if marker.outcome == Commit { (4, 2) } else { (0, 0) };
        assert_eq!(row.batches, [batch(8, 9, state, 1)]);
        assert_eq!((row.start_offset, row.delivery_complete_count), (8, count));
    }
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.writes(0, start_at(5));
    assert!(store.producer().open.is_empty(), "nothing is left of the transaction");
    store.resolves_nothing(commit(0));
}

#[test]
fn x_2_a_pending_record_holds_the_start_offset_until_its_marker() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.writes(0, plain([batch(1, 9, 2, 1)]));
    store.stages(on(1, stage([accept(3, 3)])));
    let held: Vec<_> = store
        .listed()
        .iter()
        .map(|entry| (entry.key.partition(), entry.holds_start_offset))
        .collect();
    assert_eq!(held, [(0, true), (1, false)]);
    store.takes(commit(0));
    assert_eq!(store.records(0), [batch(0, 9, 2, 1)], "one run, that the start can jump over");
    store.writes(0, start_at(10));
    assert_eq!((store.records(0), store.row(0).start_offset), (vec![], 10));
}

#[test]
fn x_4_the_target_chosen_at_stage_counts_whatever_the_queues_setting_is_later() {
    let with_queue = AckRange { commit_target: DeliveryState::ARCHIVING, ..reject(0, 0) };
    let mut store = Store::started();
    store.stages(stage([with_queue, reject(1, 1)]));
    store.checkpoint();
    store.close_and_open();
    store.takes(commit(0));
    assert_eq!(store.records(0), [batch(0, 0, 3, 1), batch(1, 1, 4, 1)]);
}

#[test]
fn x_5_an_abort_at_the_delivery_limit_does_what_the_broker_said_at_stage() {
    let at_limit =
        |offset, abort_target| AckRange { abort_target, ..delivered(5, accept(offset, offset)) };
    let mut store = Store::started();
    store.stages(stage([
        delivered(4, accept(0, 0)),
        at_limit(1, DeliveryState::ARCHIVED),
        at_limit(2, DeliveryState::ARCHIVING),
        at_limit(3, DeliveryState::AVAILABLE),
    ]));
    store.kill_and_open();
    store.takes(abort(0));
    let expected = [batch(0, 0, 0, 4), batch(1, 1, 4, 5), batch(2, 2, 3, 5), batch(3, 3, 0, 5)];
    assert_eq!((store.records(0), store.complete(0)), (expected.to_vec(), 1));
    let again = stage([delivered(5, accept(0, 0)), delivered(6, accept(3, 3))]);
    assert_eq!(store.stages(at(1, again)), [(0, 0), (3, 3)], "both are delivered again");
}

#[test]
fn x_6_five_aborts_lose_nothing_and_keep_the_count() {
    let mut store = Store::started();
    for n in 0..5 {
        store.stages(at(n, stage([delivered(n + 1, accept(0, 0))])));
        store.takes(abort(n));
        store.kill_and_open();
        assert_eq!(store.records(0), [batch(0, 0, 0, n + 1)]);
    }
    assert_eq!(store.complete(0), 0);
}

#[test]
fn x_7_a_deleted_group_takes_its_pending_acks_along_and_their_marker_succeeds() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4), reject(6, 6)]));
    store.stages(on(1, stage([accept(0, 0)])));
    let deleted = store.blocking().delete_group("group").expect("deleted");
    assert_eq!((deleted.partitions, deleted.dropped), (3, 3));
    store.kill_and_open();
    assert!(store.state().partitions.is_empty());
    store.resolves_nothing(commit(0));
    store.refuses(stage([accept(0, 0)]), INVALID_REQUEST);
}

#[test]
fn x_8_a_reset_drops_pending_acks_and_the_records_are_free_for_new_ones() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    let dropped = store.blocking().initialize(&key(0), 1, 3).expect("reset");
    assert_eq!(dropped.len(), 1, "the caller learns what went");
    store.kill_and_open();
    store.resolves_nothing(commit(0));
    assert_eq!(store.stages(at(1, stage([accept(0, 4)]))), [(3, 4)]);
    let retry = store.blocking().initialize(&key(0), 1, 3).expect("retried");
    assert_eq!((retry.len(), store.pending(0)), (0, vec![(3, 4)]), "a late retry wipes nothing");
}

#[test]
fn x_9_a_deleted_topic_takes_its_pending_acks_along_and_their_marker_succeeds() {
    let mut store = Store::started();
    let other = SharePartitionKey::new("group", Uuid::from_u128(2), 0).expect("valid");
    store.initialize(&other, 1);
    store.stages(stage([accept(0, 4)]));
    store.stages(Stage { key: other.clone(), ..stage([accept(0, 0)]) });
    let deleted = store.blocking().delete_topic(Uuid::from_u128(1)).expect("deleted");
    assert_eq!((deleted.partitions, deleted.dropped), (3, 1));
    store.kill_and_open();
    assert_eq!(store.takes(commit(0)).partitions, [(other, vec![(0, 0)])]);
}

#[test]
fn x_10_a_leader_that_forgot_its_cache_finds_what_is_pending() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    let first = store.blocking().read(&key(0), 0).expect("read");
    assert_eq!(store.blocking().read(&key(0), 0).expect("read again"), first);
    assert_eq!(first.partition.pending.len(), 1);
}

#[cfg(feature = "cli")]
#[test]
fn x_11_what_kafka_could_not_show_is_not_exported() {
    use sharestate::kafka_log::{ExportError, write_segment};
    let store = Store::started();
    store.stages(stage([accept(0, 4), reject(6, 6)]));
    let export = || {
        let row = store.row(0);
        write_segment([(key(0), &*row)].into_iter(), 0, 1)
    };
    assert_eq!(export(), Err(ExportError::PendingAcks { key: key(0), ranges: 2 }));
    store.takes(commit(0));
    assert!(export().is_ok_and(|bytes| !bytes.is_empty()));
}

#[test]
fn x_14_a_marker_of_one_group_does_nothing_to_another() {
    let store = Store::started();
    let other = SharePartitionKey::new("other", Uuid::from_u128(1), 0).expect("valid");
    store.initialize(&other, 1);
    store.stages(stage([accept(0, 4)]));
    store.stages(of(200, Stage { key: other.clone(), ..stage([accept(0, 4)]) }));
    store.resolves(commit(0), &[(0, &[(0, 4)])]);
    let row = store.blocking().read(&other, 0).expect("read").partition;
    assert_eq!((row.pending.len(), row.batches.len()), (1, 0));
}

#[test]
fn x_15_two_thousand_acks_of_alternating_types_are_one_entry_and_resolve_as_one() {
    let mut store = Store::with_segments(256 << 10);
    let logged = store.logged();
    let acks: Vec<_> =
        (0..2_000).map(|n| if n % 2 == 0 { accept(n, n) } else { reject(n, n) }).collect();
    assert_eq!(store.stages(stage(acks)), [(0, 1_999)], "the answer is one run");
    assert_eq!(store.logged(), logged + 1);
    assert_eq!(store.row(0).pending.len(), 2_000);
    store.kill_and_open();
    store.resolves(commit(0), &[(0, &[(0, 1_999)])]);
    assert_eq!((store.records(0).len(), store.complete(0)), (2_000, 2_000));
    let equal: Vec<_> = (3_000..5_000).map(|n| accept(n, n)).collect();
    store.stages(at(1, stage(equal)));
    assert_eq!(store.pending(0), [(3_000, 4_999)], "equal neighbours are one range");
}
