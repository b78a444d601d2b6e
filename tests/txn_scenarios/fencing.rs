//! F: who may not act any more.

use sharestate::Stage;

use super::*;

#[test]
fn f_1_a_stage_below_the_epoch_that_the_store_has_seen_is_refused() {
    let mut store = Store::started();
    store.stages(at(5, stage([accept(0, 0)])));
    store.refuses(at(4, stage([accept(1, 1)])), INVALID_PRODUCER_EPOCH);
    store.takes(commit(5));
    store.refuses(at(5, stage([accept(1, 1)])), INVALID_PRODUCER_EPOCH);
    store.checkpoint();
    store.kill_and_open();
    store.refuses(at(5, stage([accept(1, 1)])), INVALID_PRODUCER_EPOCH);
    assert_eq!(store.stages(at(6, stage([accept(1, 1)]))), [(1, 1)]);
}

#[test]
fn f_4_the_acks_of_a_fenced_producer_are_freed_and_it_stages_no_more() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.resolves(abort(0), &[(0, &[(0, 0)])]); // a new instance took its transactional id
    assert_eq!(store.records(0), [batch(0, 0, 0, 1)]);
    store.refuses(stage([accept(1, 1)]), INVALID_PRODUCER_EPOCH);
    store.stages(at(1, stage([delivered(2, accept(0, 0))])));
}

#[test]
fn f_5_a_leader_that_was_replaced_stages_no_more() {
    let mut store = Store::started();
    let by = |leader_epoch, stage| Stage { leader_epoch, ..stage };
    store.blocking().read(&key(0), 5).expect("the old leader");
    store.stages(by(5, stage([accept(0, 0)])));
    store.blocking().read(&key(0), 6).expect("the new leader");
    store.refuses(by(5, stage([accept(1, 1)])), FENCED_LEADER_EPOCH);
    store.kill_and_open();
    store.refuses(by(5, stage([accept(1, 1)])), FENCED_LEADER_EPOCH);
    assert_eq!(store.stages(by(6, stage([accept(1, 1)]))), [(1, 1)]);
}

#[test]
fn f_6_the_marker_of_an_older_coordinator_is_refused() {
    let mut store = Store::started();
    let from = |coordinator_epoch, marker| Marker { coordinator_epoch, ..marker };
    store.stages(stage([accept(0, 0)]));
    store.takes(from(7, commit(0)));
    store.stages(at(1, stage([accept(1, 1)])));
    store.refuses(from(6, abort(1)), COORDINATOR_FENCED);
    store.checkpoint();
    store.kill_and_open();
    store.refuses(from(6, abort(1)), COORDINATOR_FENCED);
    store.refuses(from(6, commit(0)), COORDINATOR_FENCED);
    store.resolves(from(7, commit(1)), &[(0, &[(1, 1)])]);
}

#[test]
fn f_6_the_epoch_of_a_coordinator_counts_even_where_its_marker_is_refused() {
    let store = Store::started();
    let from = |coordinator_epoch, marker| Marker { coordinator_epoch, ..marker };
    store.stages(at(5, stage([accept(0, 0)])));
    store.takes(from(7, commit(5)));
    let error = store.blocking().marker(from(9, commit(2))).expect_err("long over");
    assert_eq!(error.kafka_code(), Some(INVALID_PRODUCER_EPOCH));
    assert_eq!(store.producer().coordinator_epoch, Some(9));
    store.refuses(from(8, commit(6)), COORDINATOR_FENCED);
}

#[test]
fn f_7_the_member_epoch_is_kept_and_never_judged() {
    let store = Store::started();
    for (offset, member_epoch) in [(0, -2), (1, 0), (2, i32::MAX)] {
        store.stages(Stage { member_epoch, ..stage([accept(offset, offset)]) });
    }
    let row = store.row(0);
    let epochs: Vec<_> = row.pending.iter().map(|ack| ack.call.member_epoch).collect();
    assert_eq!(epochs, [-2, 0, i32::MAX]);
    store.resolves(commit(0), &[(0, &[(0, 2)])]);
}

#[test]
fn f_9_the_last_epoch_of_a_producer_id_resolves_and_the_next_id_starts_afresh() {
    let mut store = Store::started();
    store.refuses(at(i16::MAX, stage([accept(0, 0)])), INVALID_REQUEST);
    store.stages(at(32_766, stage([accept(0, 0)])));
    store.stages(of(200, stage([accept(1, 1)])));
    store.kill_and_open();
    store.resolves(commit(32_766), &[(0, &[(0, 0)])]);
    assert_eq!(store.producer().last_completed.map(|last| last.epoch), Some(i16::MAX));
    store.refuses(at(32_766, stage([accept(2, 2)])), INVALID_PRODUCER_EPOCH);
    store.resolves_nothing(commit(32_766));
    store.resolves(Marker { producer_id: 200, ..commit(0) }, &[(0, &[(1, 1)])]);
}

#[test]
fn f_10_transaction_version_1_cannot_stage_and_its_markers_lose_nothing() {
    let store = Store::started();
    let old = Stage { transaction_version: 1, ..stage([accept(0, 0)]) };
    store.refuses(old, UNSUPPORTED_VERSION);
    store.stages(stage([accept(0, 0)]));
    let version_1 = |marker| Marker { transaction_version: 1, ..marker };
    store.resolves_nothing(version_1(marker(0, Commit)));
    assert_eq!(store.pending(0), [(0, 0)], "neither refused nor resolved");
    store.resolves(version_1(commit(0)), &[(0, &[(0, 0)])]);
}

#[test]
fn f_11_acks_of_a_group_that_was_made_anew_are_gone_and_their_marker_succeeds() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.stages(on(1, stage([accept(0, 0)])));
    store.blocking().delete(&key(0)).expect("deleted");
    store.initialize(&key(0), 2);
    store.initialize(&key(1), 2); // without a deletion in between
    store.kill_and_open();
    store.refuses(stage([accept(0, 0)]), FENCED_STATE_EPOCH);
    store.resolves_nothing(commit(0));
    let row = store.row(0);
    assert_eq!((row.batches.len(), row.pending.len(), row.delivery_complete_count), (0, 0, 0));
    store.stages(Stage { state_epoch: 2, ..at(1, stage([accept(0, 0)])) });
}

#[test]
fn f_12_a_stale_leaders_write_neither_undoes_a_commit_nor_frees_a_pending_record() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.takes(commit(0));
    store.stages(at(1, stage([delivered(2, accept(1, 1))])));
    let released =
        Write { start_offset: 0, delivery_complete_count: 9, ..plain([batch(0, 1, 0, 1)]) };
    store.writes(0, released);
    assert_eq!((store.records(0), store.pending(0)), (vec![batch(0, 0, 2, 1)], vec![(1, 1)]));
    assert_eq!(store.complete(0), 1, "the count of a leader that knows less says nothing");
    let again = plain([batch(1, 1, 0, 2)]);
    store.refuses(write_command(0, again), INVALID_RECORD_STATE);
}

#[test]
fn f_12_a_late_write_of_a_higher_state_over_an_aborted_record_wins_as_in_kafka() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.takes(abort(0));
    store.writes(0, plain([batch(0, 0, 2, 1)]));
    assert_eq!(store.records(0), [batch(0, 0, 2, 1)], "known and accepted");
}
