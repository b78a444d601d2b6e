//! Write: semantics section 2.

use super::*;
use sharestate::limits::BATCHES_PER_CALL_MAX;

/// Acks of records delivered twice are pending at 10..=19.
fn store_with_pending() -> Store {
    let mut store = Store::new();
    store.logs(stage([accept(10, 19)]));
    store
}

#[test]
fn write_refuses_a_negative_leader_epoch() {
    let mut store = Store::new();
    for leader_epoch in [-1, i32::MIN] {
        store.refuses_request(Write { leader_epoch, ..write([]) }, "leader epoch");
    }
}

#[test]
fn write_refuses_a_negative_state_epoch() {
    let mut store = Store::new();
    for state_epoch in [-1, i32::MIN] {
        store.refuses_request(Write { state_epoch, ..write([]) }, "state epoch");
    }
}

#[test]
fn write_refuses_a_start_below_minus_one() {
    let mut store = Store::new();
    for start_offset in [-2, i64::MIN] {
        store.refuses_request(Write { start_offset, ..write([]) }, "start offset");
    }
}

#[test]
fn write_refuses_a_count_below_minus_one() {
    let mut store = Store::new();
    for count in [-2, i32::MIN] {
        store.refuses_request(Write { count, ..write([]) }, "count");
    }
}

#[test]
fn write_refuses_each_kind_of_malformed_batch() {
    let mut store = Store::new();
    for malformed in [
        batch(6, 5, 0, 1),
        batch(-1, 5, 0, 1),
        batch(5, i64::MAX, 0, 1),
        batch(5, 6, 1, 1),
        batch(5, 6, 5, 1),
        batch(5, 6, -1, 1),
        batch(5, 6, 0, -1),
        batch(5, 6, 0, i16::MIN),
    ] {
        // Anywhere in the call, and even where it would be clipped away.
        let batches = [batch(0, 1, 0, 1), malformed];
        store.refuses_request(Write { start_offset: 100, ..write(batches) }, "malformed");
    }
    let extremes = [batch(0, 0, 0, 0), batch(i64::MAX - 1, i64::MAX - 1, 3, i16::MAX)];
    store.logs(write(extremes));
    assert_eq!(store.row().batches, extremes);
}

#[test]
fn write_refuses_more_batches_than_one_call_may_carry() {
    let mut store = Store::new();
    let most = vec![batch(0, 0, 0, 1); BATCHES_PER_CALL_MAX];
    store.logs(write(most.clone()));
    store.refuses_request(write([most, vec![batch(1, 1, 0, 1)]].concat()), "many");
}

#[test]
fn write_refuses_a_key_that_is_not_initialised() {
    Store::default().refuses_request(write([]), "uninitialized");
}

#[test]
fn write_refuses_a_leader_epoch_below_the_fence() {
    let mut store = Store::new();
    store.logs(read(5));
    let rejection = store.refuses(Write { leader_epoch: 4, ..write([]) }, FENCED_LEADER_EPOCH);
    assert_eq!(rejection, Rejection::FencedLeaderEpoch { sent: 4, fence: 5 });
    // An initialize does not let an old leader back in.
    store.logs(initialize(STATE_EPOCH + 1, 0));
    let state_epoch = STATE_EPOCH + 1;
    let late = Write { leader_epoch: 4, state_epoch, ..write([]) };
    store.refuses(late.clone(), FENCED_LEADER_EPOCH);
    store.logs(Write { leader_epoch: 5, ..late });
}

#[test]
fn write_refuses_a_state_epoch_below_the_stored_one() {
    let mut store = Store::new();
    let (sent, stored) = (STATE_EPOCH - 1, STATE_EPOCH);
    let rejection = store.refuses(Write { state_epoch: sent, ..write([]) }, FENCED_STATE_EPOCH);
    assert_eq!(rejection, Rejection::FencedStateEpoch { sent, stored });
}

#[test]
fn write_refuses_a_batch_over_a_pending_ack_with_an_equal_or_higher_count() {
    for count in [2, 3, i16::MAX] {
        let mut store = store_with_pending();
        let batches = [batch(0, 5, 2, 1), batch(15, 30, 0, count)];
        let rejection = store.refuses(write(batches), INVALID_RECORD_STATE);
        assert!(matches!(rejection, Rejection::InvalidRecordState { offset: 15, .. }));
    }
}

#[test]
fn write_judges_in_the_order_of_the_table() {
    let mut store = store_with_pending();
    store.logs(read(5));
    let mut bad = Write {
        key: key(1),
        leader_epoch: -1,
        state_epoch: -1,
        start_offset: -2,
        count: -2,
        batches: vec![batch(12, 12, 0, 2), batch(6, 5, 0, 1)],
    };
    store.refuses_request(bad.clone(), "leader epoch");
    bad.leader_epoch = 4;
    store.refuses_request(bad.clone(), "state epoch");
    bad.state_epoch = STATE_EPOCH - 1;
    store.refuses_request(bad.clone(), "start offset");
    bad.start_offset = 0;
    store.refuses_request(bad.clone(), "count");
    bad.count = 0;
    store.refuses_request(bad.clone(), "malformed");
    bad.batches.pop();
    store.refuses_request(bad.clone(), "uninitialized");
    bad.key = key(0);
    store.refuses(bad.clone(), FENCED_LEADER_EPOCH);
    bad.leader_epoch = 5;
    store.refuses(bad.clone(), FENCED_STATE_EPOCH);
    bad.state_epoch = STATE_EPOCH;
    store.refuses(bad.clone(), INVALID_RECORD_STATE);
    bad.batches.clear();
    store.logs(bad);
}

#[test]
fn a_write_never_moves_an_epoch_and_a_future_state_epoch_is_applied() {
    let mut store = Store::new();
    store.logs(read(5));
    let state_epoch = i32::MAX;
    store.logs(Write { state_epoch, leader_epoch: i32::MAX, ..write([batch(0, 1, 2, 1)]) });
    let row = store.row();
    assert_eq!((row.state_epoch, row.leader_epoch, row.leader_fence), (STATE_EPOCH, 5, 5));
    assert_eq!(row.batches, [batch(0, 1, 2, 1)]);
    store.is_quiet(read(5));
}

#[test]
fn the_start_only_rises_and_minus_one_leaves_it() {
    let mut store = Store::with_start(-1);
    for (sent, expected) in [(-1, -1), (0, 0), (10, 10), (4, 10), (-1, 10), (10, 10), (11, 11)] {
        store.logs(Write { start_offset: sent, ..write([]) });
        assert_eq!(store.row().start_offset, expected);
        assert_eq!(store.row().init_start_offset, -1);
    }
}

/// The count after a write onto start offset 10 and count 5.
fn count_after(start_offset: i64, count: i32) -> i32 {
    let mut store = Store::with_start(10);
    store.logs(Write { start_offset: 10, count: 5, ..write([]) });
    store.logs(Write { start_offset, count, ..write([]) });
    store.row().delivery_complete_count
}

#[test]
fn an_equal_start_takes_the_larger_count() {
    assert_eq!(count_after(10, 4), 5);
    assert_eq!(count_after(10, 5), 5);
    assert_eq!(count_after(10, 6), 6);
    assert_eq!(count_after(10, -1), 5);
    assert_eq!(count_after(10, i32::MAX), i32::MAX);
}

#[test]
fn a_lower_start_keeps_the_stored_count() {
    assert_eq!(count_after(9, 6), 5);
    assert_eq!(count_after(-1, 6), 5);
    assert_eq!(count_after(-1, 4), 5);
}

#[test]
fn a_higher_start_takes_the_sent_count() {
    assert_eq!(count_after(11, 4), 4);
    assert_eq!(count_after(11, 6), 6);
    assert_eq!(count_after(11, -1), -1);
}

#[test]
fn an_unknown_start_is_equal_to_an_unknown_start() {
    let mut store = Store::with_start(-1);
    store.logs(Write { count: 3, ..write([]) });
    store.logs(Write { count: 2, ..write([]) });
    assert_eq!(store.row().delivery_complete_count, 3);
}

#[test]
fn batches_are_combined_and_clipped_at_the_new_start() {
    let mut store = Store::new();
    store.logs(write([batch(0, 9, 0, 1)]));
    store.logs(Write { start_offset: 3, ..write([batch(8, 12, 2, 1), batch(0, 4, 0, 2)]) });
    let after = [batch(3, 4, 0, 2), batch(5, 7, 0, 1), batch(8, 12, 2, 1)];
    assert_eq!(store.row().batches, after);
    // A late write with an older start and a lower count loses.
    store.logs(Write { start_offset: 0, ..write([batch(0, 12, 4, 0)]) });
    assert_eq!(store.row().batches, after);
}

#[test]
fn a_write_moves_the_write_time_only() {
    let mut store = Store::new();
    store.now = 2_000;
    store.logs(write([]));
    let row = store.row();
    assert_eq!((row.create_time_ms, row.write_time_ms, row.snapshot_epoch), (1_000, 2_000, 0));
}

#[test]
fn pending_acks_wholly_below_the_new_start_are_dropped() {
    let mut store = store_with_pending();
    let answer = store.logs(Write { start_offset: 20, ..write([]) });
    assert_eq!(dropped(answer), [(10, 19)]);
    assert_eq!(store.pending(), []);
    assert!(store.producer().open.is_empty());
    assert_eq!(store.producer().highest_stage_epoch, Some(0));
}

#[test]
fn a_straddling_pending_ack_is_clipped() {
    let mut store = store_with_pending();
    let answer = store.logs(Write { start_offset: 15, ..write([]) });
    assert_eq!(dropped(answer), [(10, 14)]);
    assert_eq!(store.pending(), [(15, 19)]);
    assert_eq!(resolved(store.logs(marker(1, Commit))), [(15, 19)]);
}

#[test]
fn an_epoch_stays_open_while_it_holds_anything_in_the_share_partition() {
    let mut store = store_with_pending();
    store.logs(stage([accept(30, 30)]));
    store.logs(of(8, stage([accept(5, 5)])));
    assert_eq!(dropped(store.logs(Write { start_offset: 20, ..write([]) })), [(5, 5), (10, 19)]);
    assert!(store.producer().open[&0].keys.contains(&key(0)));
    assert!(store.state.producers[&8].open.is_empty());
}

#[test]
fn overlap_with_pending_is_judged_after_clipping() {
    let mut store = store_with_pending();
    // Over 10..=14 only, which fall below the new start with this very call.
    store.logs(Write { start_offset: 15, ..write([batch(0, 14, 0, 9)]) });
    assert_eq!(store.pending(), [(15, 19)]);
    // A lower start that was sent does not count, the stored one does.
    store.logs(Write { start_offset: 0, ..write([batch(0, 14, 0, 9)]) });
    store.refuses(write([batch(0, 15, 0, 9)]), INVALID_RECORD_STATE);
}

#[test]
fn a_stale_part_is_ignored_over_the_pending_offsets_only() {
    let mut store = store_with_pending();
    store.logs(write([batch(5, 25, 2, 1)]));
    assert_eq!(store.row().batches, [batch(5, 9, 2, 1), batch(20, 25, 2, 1)]);
    assert_eq!(store.pending(), [(10, 19)]);
}

#[test]
fn a_call_with_a_stale_part_leaves_the_count_alone() {
    for start_offset in [-1, 0, 5] {
        let mut store = store_with_pending();
        store.logs(Write { start_offset: 0, count: 3, ..write([]) });
        store.logs(Write { start_offset, count: 9, ..write([batch(19, 25, 2, 1)]) });
        assert_eq!(store.row().delivery_complete_count, 3, "start {start_offset}");
    }
}

#[test]
fn the_largest_count_sent_for_an_offset_decides_between_stale_and_refused() {
    let mut store = store_with_pending();
    store.logs(write([batch(12, 12, 4, 1), batch(12, 12, 0, 0)]));
    store.refuses(write([batch(12, 12, 4, 1), batch(12, 12, 0, 2)]), INVALID_RECORD_STATE);
}
