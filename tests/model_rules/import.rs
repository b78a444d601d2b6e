//! Import of whole share partitions.

use super::*;
use sharestate::limits::ROW_WEIGHT_MAX;

/// A word of the refusal, and what to spoil to get it.
type Case = (&'static str, fn(&mut Partition));

fn imported() -> Partition {
    Partition {
        state_epoch: 2,
        leader_epoch: 3,
        leader_fence: 4,
        start_offset: 10,
        init_start_offset: 5,
        delivery_complete_count: 6,
        snapshot_epoch: 7,
        create_time_ms: 8,
        write_time_ms: 9,
        batches: vec![batch(10, 14, 2, 1), batch(20, 24, 0, 2)],
        pending: vec![],
        last_lsn: 0,
    }
}

fn import(partition: Partition) -> Command {
    Command::Import { key: key(0), partition: Box::new(partition), replace: false }
}

fn replace(partition: Partition) -> Command {
    Command::Import { key: key(0), partition: Box::new(partition), replace: true }
}

#[test]
fn an_import_sets_every_field() {
    let mut store = Store::default();
    store.logs(import(Partition { last_lsn: 99, ..imported() }));
    assert_eq!(*store.row(), Partition { last_lsn: 1, ..imported() });
}

#[test]
fn import_refuses_an_existing_share_partition_unless_told_to_replace_it() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9)]));
    let rejection = store.refuses(import(imported()), INVALID_REQUEST);
    assert_eq!(rejection, Rejection::Exists(key(0)));
    assert_eq!(dropped(store.logs(replace(imported()))), [(5, 9)]);
    assert!(store.producer().open.is_empty());
    assert_eq!(*store.row(), Partition { last_lsn: store.lsn, ..imported() });
}

#[test]
fn import_refuses_what_no_store_can_hold() {
    let bad: [Case; 14] = [
        ("epoch", |row| row.state_epoch = -1),
        ("epoch", |row| row.leader_epoch = -1),
        ("epoch", |row| (row.leader_epoch, row.leader_fence) = (-1, -1)),
        ("epoch", |row| row.snapshot_epoch = -1),
        ("fence", |row| row.leader_epoch = 5),
        ("start offset", |row| row.start_offset = -2),
        ("start offset", |row| row.init_start_offset = -2),
        ("count", |row| row.delivery_complete_count = -2),
        ("malformed", |row| row.batches[0].delivery_state = DeliveryState::ACQUIRED),
        ("malformed", |row| row.batches[0].delivery_state = DeliveryState::TX_PENDING),
        ("malformed", |row| row.batches[0].delivery_count = -1),
        ("malformed", |row| row.batches[0].first_offset = -1),
        ("malformed", |row| row.batches[0].last_offset = 9),
        ("malformed", |row| row.batches[1].last_offset = i64::MAX),
    ];
    for (word, spoil) in bad {
        let mut partition = imported();
        spoil(&mut partition);
        Store::default().refuses_request(import(partition), word);
    }
}

#[test]
fn import_refuses_pending_acks() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9)]));
    let partition = store.row().clone();
    store.refuses_request(replace(partition), "Pending");
}

#[test]
fn imported_batches_are_combined_and_clipped() {
    let mut store = Store::default();
    let batches = vec![batch(30, 39, 0, 1), batch(0, 14, 2, 1), batch(15, 29, 2, 1)];
    store.logs(import(Partition { batches, ..imported() }));
    assert_eq!(store.row().batches, [batch(10, 29, 2, 1), batch(30, 39, 0, 1)]);
}

#[test]
fn an_import_is_bounded_by_the_weight_of_a_row() {
    let mut store = Store::default();
    let single = |i: usize| batch(2 * i as i64 + 10, 2 * i as i64 + 10, 0, 1);
    let with = |n: usize| Partition { batches: (0..n).map(single).collect(), ..imported() };
    let rejection = store.refuses(import(with(ROW_WEIGHT_MAX + 1)), Some(-1));
    assert!(matches!(rejection, Rejection::TooLarge { found: 131_073, bound: 131_072, .. }));
    store.logs(import(with(ROW_WEIGHT_MAX)));
}
