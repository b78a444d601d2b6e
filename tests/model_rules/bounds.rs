//! How much a row of a share partition and one of a producer may hold.

use super::*;
use sharestate::limits::{KEYS_PER_PRODUCER_MAX, ROW_WEIGHT_MAX};

#[test]
fn a_row_grows_to_its_bound_and_shrinks_from_beyond_it() {
    let mut store = Store::new();
    let row = store.row().clone();
    let single = |i: usize| batch(2 * i as i64 + 1, 2 * i as i64 + 1, 0, 1);
    let full = Partition { batches: (0..ROW_WEIGHT_MAX).map(single).collect(), ..row };
    let command = Command::Import { key: key(0), partition: Box::new(full), replace: true };
    store.logs(command);
    assert_eq!(store.row().weight(), ROW_WEIGHT_MAX);

    let rejection = store.refuses(write([single(ROW_WEIGHT_MAX)]), Some(-1));
    let found = ROW_WEIGHT_MAX + 1;
    assert!(matches!(rejection, Rejection::TooLarge { found: f, .. } if f == found));
    // No heavier than before, then lighter.
    store.logs(Write { start_offset: 2, ..write([single(ROW_WEIGHT_MAX)]) });
    store.logs(write([batch(3, 99, 0, 1)]));
    assert!(store.row().weight() < ROW_WEIGHT_MAX);

    // Rows of an older, wider bound may be heavier: they may stay so.
    let row = store.state.partitions.get_mut(&key(0)).expect("there");
    let heavy = (0..ROW_WEIGHT_MAX + 9).map(single).collect();
    std::sync::Arc::make_mut(row).batches = heavy;
    store.logs(write([batch(3, 3, 2, 1)]));
    store.refuses(write([batch(2, 2, 2, 1), batch(6, 6, 2, 1)]), Some(-1));
}

#[test]
fn acks_that_a_write_drops_make_room_for_its_batches() {
    let mut store = Store::new();
    let acks = (0..ROW_WEIGHT_MAX as i64 / 2).map(|i| accept(2 * i, 2 * i));
    store.logs(stage(acks.collect::<Vec<_>>()));
    assert_eq!(store.row().weight(), ROW_WEIGHT_MAX);
    // Two acks lie below the new start, the third at it.
    let write = |batches: i64| {
        let single = |i: i64| batch(2 * i + 5, 2 * i + 5, 0, 1);
        Write { start_offset: 4, ..write((0..batches).map(single).collect::<Vec<_>>()) }
    };
    let rejection = store.refuses(write(5), Some(-1));
    let found = ROW_WEIGHT_MAX + 1;
    assert!(matches!(rejection, Rejection::TooLarge { found: f, .. } if f == found));
    assert_eq!(dropped(store.logs(write(4))), [(0, 0), (2, 2)]);
    assert_eq!(store.row().weight(), ROW_WEIGHT_MAX);
}

#[test]
fn a_row_takes_pending_ranges_up_to_its_bound() {
    let mut store = Store::new();
    let ack = |i: i64| accept(2 * i, 2 * i);
    store.logs(stage((0..65_536).map(ack).collect::<Vec<_>>()));
    let rejection = store.refuses(stage([ack(70_000)]), Some(-1));
    assert!(matches!(rejection, Rejection::TooLarge { found: 131_074, bound: 131_072, .. }));
    // A repeat stages nothing new, so it is a success still.
    store.is_quiet(stage([ack(5)]));
    assert_eq!(resolved(store.logs(marker(1, Commit))).len(), 65_536);
    store.logs(at(1, stage([ack(70_000)])));
}

#[test]
fn a_row_takes_ids_of_stage_calls_up_to_its_bound() {
    let mut store = Store::new();
    let long = |i: i64| {
        let stage = stage([accept(2 * i, 2 * i)]);
        Stage { transactional_id: "t".repeat(32_767), member_id: "m".repeat(32_767), ..stage }
    };
    let calls = 8 * 1_024 * 1_024 / 65_534;
    (0..calls).for_each(|i| drop(store.logs(long(i))));
    let rejection = store.refuses(long(calls), Some(-1));
    assert!(matches!(rejection, Rejection::TooLarge { bound: 8_388_608, .. }));
    store.is_quiet(long(5));

    let with_ids = |bytes: usize, offset: i64| {
        let stage = stage([accept(offset, offset)]);
        Stage { transactional_id: "t".repeat(bytes), member_id: String::new(), ..stage }
    };
    let left = 8 * 1_024 * 1_024 - calls as usize * 65_534;
    let rejection = store.refuses(with_ids(left + 1, 70_000), Some(-1));
    assert!(matches!(rejection, Rejection::TooLarge { found: 8_388_609, .. }));
    store.logs(with_ids(left, 70_000));
    store.refuses(with_ids(1, 80_000), Some(-1));
    store.logs(with_ids(0, 80_000));
}

#[test]
fn a_producer_epoch_takes_share_partitions_up_to_its_bound() {
    let mut store = Store::new();
    store.initialize_also(1);
    store.logs(stage([accept(5, 5)]));
    let holding = |keys: usize| {
        let mut store = store.clone();
        let producer = store.state.producers.get_mut(&PID).expect("there");
        let open = std::sync::Arc::make_mut(producer).open.get_mut(&0).expect("open");
        open.keys.extend((2..=keys as i32).map(key));
        assert_eq!(open.keys.len(), keys);
        store
    };
    // The other share partitions are not there: only what is judged counts.
    let judge = |store: &Store, key| {
        let command = Stage { key, ..stage([accept(6, 6)]) }.into();
        decide(&store.state, &command, 0, &store.options).answer
    };
    let full = holding(KEYS_PER_PRODUCER_MAX);
    assert!(judge(&full, key(0)).is_ok(), "it holds this one already");
    let rejection = judge(&full, key(1)).expect_err("one too many");
    assert!(matches!(rejection, Rejection::TooLarge { found: 65_537, bound: 65_536, .. }));
    assert!(judge(&holding(KEYS_PER_PRODUCER_MAX - 1), key(1)).is_ok(), "the last one");
}
