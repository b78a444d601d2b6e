//! What a resolution does to share partitions: semantics section 4.4, after its table.

use super::*;

fn ack(ack_type: AckType, commit: i8, abort: i8, offset: i64) -> AckRange {
    let (commit_target, abort_target) = (DeliveryState(commit), DeliveryState(abort));
    AckRange { ack_type, commit_target, abort_target, ..accept(offset, offset) }
}

/// One ack of every kind, delivered twice, two offsets apart.
fn every_kind() -> Stage {
    stage([
        ack(AckType::Accept, 2, 0, 0),
        ack(AckType::Accept, 2, 3, 2),
        ack(AckType::Accept, 2, 4, 4),
        ack(AckType::Reject, 4, 0, 6),
        ack(AckType::Reject, 3, 4, 8),
        ack(AckType::Gap, 4, 0, 10),
    ])
}

fn states(store: &Store) -> Vec<i8> {
    store.row().batches.iter().map(|batch| batch.delivery_state.0).collect()
}

#[test]
fn a_commit_gives_each_offset_its_commit_target() {
    let mut store = Store::new();
    store.logs(every_kind());
    let answer = store.logs(marker(1, Commit));
    assert_eq!(resolved(answer), [(0, 0), (2, 2), (4, 4), (6, 6), (8, 8), (10, 10)]);
    assert_eq!(states(&store), [2, 2, 2, 4, 3, 4]);
    assert_eq!(store.pending(), []);
}

#[test]
fn an_abort_gives_each_offset_its_abort_target() {
    let mut store = Store::new();
    store.logs(every_kind());
    store.logs(marker(1, Abort));
    assert_eq!(states(&store), [0, 3, 4, 0, 4, 0]);
    assert_eq!(store.pending(), []);
}

#[test]
fn the_delivery_count_stays() {
    for outcome in [Commit, Abort] {
        let mut store = Store::new();
        store.logs(stage([AckRange { delivery_count: i16::MAX, ..accept(5, 9) }]));
        store.logs(marker(1, outcome));
        assert_eq!(store.row().batches[0].delivery_count, i16::MAX);
    }
}

#[test]
fn the_count_rises_once_per_offset_that_becomes_acknowledged_or_archived() {
    let mut store = Store::new();
    store.logs(every_kind());
    store.logs(marker(1, Commit));
    // All but the one that is on its way to a dead-letter queue.
    assert_eq!(store.row().delivery_complete_count, 5);
    store.is_quiet(marker(1, Commit));
    assert_eq!(store.row().delivery_complete_count, 5);

    let mut store = Store::new();
    store.logs(every_kind());
    store.logs(marker(1, Abort));
    assert_eq!(store.row().delivery_complete_count, 2);

    let mut store = Store::new();
    store.logs(stage([accept(10, 19)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().delivery_complete_count, 10, "per offset, not per range");
}

#[test]
fn an_unknown_count_stays_unknown() {
    let mut store = Store::with_start(-1);
    store.logs(stage([accept(10, 19)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().delivery_complete_count, -1);
}

#[test]
fn the_count_saturates() {
    let mut store = Store::new();
    store.logs(Write { start_offset: 0, count: i32::MAX - 5, ..write([]) });
    store.logs(stage([accept(10, 19)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().delivery_complete_count, i32::MAX);
    let mut store = Store::new();
    store.logs(stage([accept(0, i64::MAX - 1)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().delivery_complete_count, i32::MAX);
    assert_eq!(store.row().batches, [batch(0, i64::MAX - 1, 2, 2)]);
}

#[test]
fn a_resolution_moves_neither_start_nor_epochs_nor_times() {
    let mut store = Store::new();
    store.logs(read(5));
    store.logs(Stage { leader_epoch: 5, ..stage([accept(0, 9)]) });
    let before = store.row().clone();
    store.now = 9_000;
    store.logs(marker(1, Commit));
    let expected = Partition {
        batches: vec![batch(0, 9, 2, 2)],
        pending: vec![],
        delivery_complete_count: 10,
        last_lsn: store.lsn,
        ..before
    };
    assert_eq!(*store.row(), expected);
}

#[test]
fn a_resolution_is_painted_and_splits_what_is_around_it() {
    let mut store = Store::new();
    store.logs(write([batch(0, 20, 0, 1)]));
    store.logs(stage([accept(5, 9)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().batches, [batch(0, 4, 0, 1), batch(5, 9, 2, 2), batch(10, 20, 0, 1)]);
}

#[test]
fn a_resolution_joins_its_neighbours() {
    let mut store = Store::new();
    store.logs(write([batch(0, 4, 2, 2), batch(10, 14, 2, 2)]));
    store.logs(stage([accept(5, 9)]));
    store.logs(marker(1, Commit));
    assert_eq!(store.row().batches, [batch(0, 14, 2, 2)]);
}

#[test]
fn a_plain_write_after_a_resolution_is_combined_again() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9)]));
    store.logs(marker(1, Abort));
    store.logs(write([batch(5, 9, 4, 1)]));
    assert_eq!(store.row().batches, [batch(5, 9, 0, 2)]);
    // F-12, accepted: equal count and higher state number.
    store.logs(write([batch(5, 6, 2, 2)]));
    assert_eq!(store.row().batches, [batch(5, 6, 2, 2), batch(7, 9, 0, 2)]);
}

#[test]
fn one_marker_resolves_all_share_partitions_of_the_epoch() {
    let mut store = Store::new();
    for partition in 1..5 {
        store.initialize_also(partition);
    }
    for partition in [4, 2, 0] {
        store.logs(Stage { key: key(partition), ..stage([accept(5, 6), accept(9, 9)]) });
    }
    let Answer::Resolved { resolved, .. } = store.logs(marker(1, Commit)) else { panic!() };
    let expected = [0, 2, 4].map(|partition| (key(partition), vec![(5, 6), (9, 9)]));
    assert_eq!(resolved, expected);
    for partition in [0, 2, 4] {
        assert_eq!(store.row_of(partition).batches, [batch(5, 6, 2, 2), batch(9, 9, 2, 2)]);
        assert_eq!(store.row_of(partition).last_lsn, store.lsn);
    }
    assert_ne!(store.row_of(1).last_lsn, store.lsn);
}

#[test]
fn a_marker_leaves_other_producers_and_other_epochs_alone() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(0, 1)])));
    store.logs(at(2, stage([accept(2, 3)])));
    store.logs(of(8, at(1, stage([accept(4, 5)]))));
    assert_eq!(resolved(store.logs(marker(2, Commit))), [(0, 1)]);
    assert_eq!(store.pending(), [(2, 3), (4, 5)]);
    assert_eq!(resolved(store.logs(marker(3, Abort))), [(2, 3)]);
    assert_eq!(store.pending(), [(4, 5)]);
    assert_eq!(store.row().batches, [batch(0, 1, 2, 2), batch(2, 3, 0, 2)]);
}

#[test]
fn touching_ranges_are_answered_as_one() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 6)]));
    store.logs(stage([accept(7, 9), accept(11, 11)]));
    assert_eq!(resolved(store.logs(marker(1, Commit))), [(5, 9), (11, 11)]);
}

#[test]
fn a_marker_resolves_a_full_row_in_a_moment() {
    let mut store = Store::new();
    // Every second offset of one transaction, those between of another: 65,536 ranges.
    let ack = |i: i64| accept(2 * i, 2 * i);
    store.logs(stage((0..32_768).map(ack).collect::<Vec<_>>()));
    let between = |i: i64| accept(2 * i + 1, 2 * i + 1);
    store.logs(of(8, stage((0..32_768).map(between).collect::<Vec<_>>())));
    assert_eq!(resolved(store.logs(marker(1, Commit))).len(), 32_768);
    assert_eq!(store.row().weight(), 3 * 32_768);
    let other = Marker { producer_id: 8, ..marker(1, Commit) };
    assert_eq!(resolved(store.logs(other)).len(), 32_768);
    assert_eq!(store.row().batches, [batch(0, 65_535, 2, 2)]);
}
