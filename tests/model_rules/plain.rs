//! Initialize, read, summary and delete: semantics section 2.

use super::*;
use sharestate::model::SummaryAnswer;

fn partition_of(answer: Answer) -> Partition {
    match answer {
        Answer::Read(read) => read.partition,
        other => panic!("{other:?}"),
    }
}

fn summary_of(answer: Answer) -> (i32, i32, i64, i32) {
    match answer {
        Answer::Summary(SummaryAnswer {
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
        }) => (state_epoch, leader_epoch, start_offset, delivery_complete_count),
        other => panic!("{other:?}"),
    }
}

fn summary() -> Command {
    Command::Summary { key: key(0) }
}

/// Progress that a retry must not wipe: a leader, an ack, a later start, a pending ack.
fn store_with_progress() -> Store {
    let mut store = Store::with_start(10);
    store.logs(read(4));
    let acked = [batch(10, 11, 2, 1)];
    store.logs(Write { leader_epoch: 4, start_offset: 12, count: 1, ..write(acked) });
    store.logs(Stage { leader_epoch: 4, ..stage([accept(20, 29)]) });
    store
}

#[test]
fn malformed_keys_cannot_be_made() {
    let topic = Uuid::from_u128(1);
    assert!(SharePartitionKey::new("", topic, 0).is_err());
    assert!(SharePartitionKey::new("g".repeat(32_768), topic, 0).is_err());
    assert!(SharePartitionKey::new("group", Uuid::nil(), 0).is_err());
    assert!(SharePartitionKey::new("group", topic, -1).is_err());
    assert!(SharePartitionKey::new("g".repeat(32_767), topic, i32::MAX).is_ok());
}

#[test]
fn initialize_refuses_a_negative_state_epoch() {
    let mut store = Store::default();
    for epoch in [-1, i32::MIN] {
        store.refuses_request(initialize(epoch, 0), "state epoch");
    }
    store.logs(initialize(0, 0));
    store.logs(initialize(i32::MAX, 0));
}

#[test]
fn initialize_refuses_a_start_below_minus_one() {
    let mut store = Store::default();
    for start in [-2, i64::MIN] {
        store.refuses_request(initialize(0, start), "start offset");
    }
    store.logs(initialize(0, -1));
    store.logs(initialize(0, i64::MAX - 1));
}

#[test]
fn initialize_refuses_a_lower_state_epoch() {
    let mut store = Store::new();
    let rejection = store.refuses(initialize(STATE_EPOCH - 1, 5), FENCED_STATE_EPOCH);
    let (sent, stored) = (STATE_EPOCH - 1, STATE_EPOCH);
    assert_eq!(rejection, Rejection::FencedStateEpoch { sent, stored });
    store.refuses(initialize(0, 0), FENCED_STATE_EPOCH);
}

#[test]
fn initialize_judges_in_the_order_of_the_table() {
    let mut store = Store::new();
    store.refuses_request(initialize(-1, -2), "state epoch");
    store.refuses_request(initialize(STATE_EPOCH - 1, -2), "start offset");
    store.refuses(initialize(STATE_EPOCH - 1, 5), FENCED_STATE_EPOCH);
    store.logs(initialize(STATE_EPOCH, 5));
}

#[test]
fn the_first_initialize_sets_every_field() {
    let store = Store::with_start(10);
    let expected = Partition {
        state_epoch: STATE_EPOCH,
        leader_epoch: 0,
        leader_fence: 0,
        start_offset: 10,
        init_start_offset: 10,
        delivery_complete_count: 0,
        snapshot_epoch: 0,
        create_time_ms: 1_000,
        write_time_ms: 1_000,
        batches: vec![],
        pending: vec![],
        last_lsn: 1,
    };
    assert_eq!(*store.row(), expected);
}

#[test]
fn an_unknown_start_makes_the_count_unknown() {
    assert_eq!(Store::with_start(-1).row().delivery_complete_count, -1);
    assert_eq!(Store::with_start(0).row().delivery_complete_count, 0);
}

#[test]
fn a_retry_with_the_start_of_the_last_initialize_changes_nothing_however_late() {
    let mut store = store_with_progress();
    assert_eq!(dropped(store.is_quiet(initialize(STATE_EPOCH, 10))), []);
}

#[test]
fn a_retry_with_the_start_that_was_reached_changes_nothing() {
    let mut store = store_with_progress();
    assert_eq!(dropped(store.is_quiet(initialize(STATE_EPOCH, 12))), []);
}

#[test]
fn a_retry_with_an_unknown_start_changes_nothing_after_the_start_is_known() {
    let mut store = Store::with_start(-1);
    store.logs(Write { start_offset: 5, count: 0, ..write([]) });
    store.is_quiet(initialize(STATE_EPOCH, -1));
    store.logs(initialize(STATE_EPOCH, 6));
    store.logs(initialize(STATE_EPOCH, -1));
}

#[test]
fn another_start_at_the_same_epoch_is_a_reset() {
    let mut store = store_with_progress();
    store.now = 2_000;
    assert_eq!(dropped(store.logs(initialize(STATE_EPOCH, 11))), [(20, 29)]);
    let row = store.row();
    assert_eq!((row.start_offset, row.init_start_offset), (11, 11));
    assert_eq!((row.batches.len(), row.pending.len()), (0, 0));
    assert_eq!(row.delivery_complete_count, 0);
    assert_eq!((row.create_time_ms, row.write_time_ms), (2_000, 2_000));
}

#[test]
fn a_higher_epoch_is_a_reset_even_with_the_same_start() {
    let mut store = store_with_progress();
    assert_eq!(dropped(store.logs(initialize(STATE_EPOCH + 1, 12))), [(20, 29)]);
    assert_eq!(store.row().state_epoch, STATE_EPOCH + 1);
    assert_eq!(store.row().pending, []);
}

#[test]
fn a_reset_zeroes_the_leader_epoch_and_keeps_the_fence() {
    let mut store = store_with_progress();
    store.logs(initialize(STATE_EPOCH + 1, 0));
    assert_eq!((store.row().leader_epoch, store.row().leader_fence), (0, 4));
    store.refuses(read(3), FENCED_LEADER_EPOCH);
}

#[test]
fn a_reset_counts_the_snapshot_epoch_on_and_stops_at_the_end() {
    let mut store = Store::new();
    store.logs(initialize(STATE_EPOCH, 1));
    assert_eq!(store.row().snapshot_epoch, 1);
    let partition = Box::new(Partition { snapshot_epoch: i32::MAX, ..store.row().clone() });
    store.logs(Command::Import { key: key(0), partition, replace: true });
    store.logs(initialize(STATE_EPOCH, 2));
    assert_eq!(store.row().snapshot_epoch, i32::MAX);
}

#[test]
fn a_reset_closes_the_epochs_that_held_pending_acks_only_there() {
    let mut store = store_with_progress();
    store.initialize_also(1);
    store.logs(of(8, Stage { leader_epoch: 4, ..stage([accept(40, 40)]) }));
    store.logs(of(8, Stage { key: key(1), ..stage([accept(40, 40)]) }));
    store.logs(initialize(STATE_EPOCH + 1, 0));
    assert!(store.producer().open.is_empty());
    assert_eq!(store.producer().highest_stage_epoch, Some(0));
    let open = &store.state.producers[&8].open[&0];
    assert_eq!(open.keys.iter().collect::<Vec<_>>(), [&key(1)]);
}

#[test]
fn a_marker_for_acks_that_a_reset_dropped_succeeds_and_does_nothing() {
    let mut store = store_with_progress();
    store.logs(initialize(STATE_EPOCH + 1, 0));
    let row = store.row().clone();
    assert_eq!(resolved(store.logs(marker(1, Commit))), []);
    assert_eq!(*store.row(), row);
}

#[test]
fn read_refuses_a_negative_leader_epoch() {
    let mut store = Store::new();
    for epoch in [-1, i32::MIN] {
        store.refuses_request(read(epoch), "leader epoch");
    }
}

#[test]
fn read_refuses_a_key_that_is_not_initialised() {
    Store::default().refuses_request(read(0), "uninitialized");
}

#[test]
fn read_refuses_a_leader_epoch_below_the_fence() {
    let mut store = Store::new();
    store.logs(read(5));
    let rejection = store.refuses(read(4), FENCED_LEADER_EPOCH);
    assert_eq!(rejection, Rejection::FencedLeaderEpoch { sent: 4, fence: 5 });
}

#[test]
fn read_judges_in_the_order_of_the_table() {
    let mut store = Store::default();
    store.refuses_request(read(-1), "leader epoch");
    store.refuses_request(read(4), "uninitialized");
    store.logs(initialize(STATE_EPOCH, 0));
    store.logs(read(5));
    store.refuses_request(read(-1), "leader epoch");
    store.refuses(read(4), FENCED_LEADER_EPOCH);
    store.is_quiet(read(5));
}

#[test]
fn a_read_of_a_new_leader_raises_epoch_and_fence_and_answers_with_them() {
    let mut store = Store::new();
    let read = partition_of(store.logs(read(i32::MAX)));
    assert_eq!((read.leader_epoch, read.leader_fence), (i32::MAX, i32::MAX));
    assert_eq!((store.row().leader_epoch, store.row().leader_fence), (i32::MAX, i32::MAX));
}

#[test]
fn a_read_at_the_fence_logs_nothing_and_leaves_the_leader_epoch() {
    let mut store = store_with_progress();
    store.is_quiet(read(4));
    store.logs(initialize(STATE_EPOCH, 11));
    assert_eq!(partition_of(store.is_quiet(read(4))).leader_epoch, 0);
}

#[test]
fn a_read_answers_with_the_whole_row() {
    let mut store = store_with_progress();
    let row = store.row().clone();
    assert_eq!(partition_of(store.is_quiet(read(4))), row);
    assert_eq!((row.start_offset, row.delivery_complete_count), (12, 1));
    assert_eq!(store.pending(), [(20, 29)]);
}

#[test]
fn a_summary_of_an_unknown_key_is_a_success() {
    assert_eq!(summary_of(Store::default().is_quiet(summary())), (0, 0, -1, -1));
}

#[test]
fn a_summary_answers_epochs_start_and_count_and_never_logs() {
    let mut store = store_with_progress();
    assert_eq!(summary_of(store.is_quiet(summary())), (STATE_EPOCH, 4, 12, 1));
}

#[test]
fn delete_drops_everything_and_says_what_was_pending() {
    let mut store = store_with_progress();
    assert_eq!(dropped(store.logs(delete())), [(20, 29)]);
    assert!(store.state.partitions.is_empty());
    assert!(store.producer().open.is_empty());
    assert_eq!(store.producer().highest_stage_epoch, Some(0), "what else is known stays");
    assert_eq!(resolved(store.logs(marker(1, Commit))), []);
    // The fence is gone as well: a new share partition begins from nothing.
    store.logs(initialize(0, 0));
    assert_eq!((store.row().leader_fence, store.row().snapshot_epoch), (0, 0));
}

#[test]
fn deleting_what_is_not_there_succeeds_and_logs_nothing() {
    assert_eq!(dropped(Store::default().is_quiet(delete())), []);
}
