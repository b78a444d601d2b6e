//! S: what a broker stages.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{EIO, Fault, PageModel, Repeat, When};
use sharestate::{AckRange, AckType, DeliveryState, ErrorClass, SharePartitionKey, Stage, Write};
use uuid::Uuid;

use super::disk::Disk;
use super::*;

#[test]
fn s_1_a_staged_ack_is_kept_with_owner_type_targets_and_count() {
    let mut store = Store::started();
    assert_eq!(store.stages(at(1, stage([delivered(3, accept(5, 5))]))), [(5, 5)]);
    store.kill_and_open();
    let row = store.row(0);
    let [ack] = &row.pending[..] else { panic!("{row:?}") };
    assert_eq!((ack.first_offset, ack.last_offset, ack.delivery_count), (5, 5, 3));
    assert_eq!(ack.ack_type, AckType::Accept);
    let targets = (ack.commit_target, ack.abort_target);
    assert_eq!(targets, (DeliveryState::ACKNOWLEDGED, DeliveryState::AVAILABLE));
    assert_eq!(ack.owner(), (PID, 1));
    let ids = (&*ack.call.transactional_id, &*ack.call.member_id, ack.call.member_epoch);
    assert_eq!(ids, ("orders", "member", 7));
    assert_eq!(row.batches, [], "the record itself is as it was");
}

#[test]
fn s_2_no_lapse_of_time_ends_a_pending_ack() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.clock.advance(30 * 86_400_000);
    store.checkpoint();
    store.close_and_open();
    assert_eq!(store.pending(0), [(0, 0)]);
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
}

#[test]
fn s_3_a_reader_sees_the_pending_record_apart_from_the_free_one_behind_it() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.writes(0, plain([batch(1, 1, 0, 1)]));
    let read = store.blocking().read(&key(0), 0).expect("read").partition;
    assert_eq!(read.batches, [batch(1, 1, 0, 1)], "0 is not offered");
    assert_eq!(read.pending.len(), 1);
    assert_eq!(read.pending[0].first_offset, 0);
}

#[test]
fn s_4_only_a_record_in_its_current_delivery_can_be_staged() {
    let store = Store::started();
    for (offset, state) in [(0, 0), (1, 2), (2, 3), (3, 4)] {
        store.writes(0, plain([batch(offset, offset, state, 1)]));
        store.refuses(stage([accept(offset, offset)]), INVALID_RECORD_STATE);
    }
    assert_eq!(store.stages(stage([delivered(2, accept(0, 0))])), [(0, 0)], "acquired again");
}

#[test]
fn s_5_who_lost_the_record_cannot_stage_it_any_more() {
    let store = Store::started();
    let late = stage([accept(0, 0)]);
    store.writes(0, plain([batch(0, 0, 0, 1)])); // its lock ran out
    store.refuses(late.clone(), INVALID_RECORD_STATE);
    let other = Stage { member_id: "other".to_owned(), ..of(200, late.clone()) };
    assert_eq!(store.stages(Stage { acks: vec![delivered(2, accept(0, 0))], ..other }), [(0, 0)]);
    store.refuses(late, INVALID_RECORD_STATE);
}

#[test]
fn s_6_a_bad_range_leaves_no_range_pending() {
    let store = Store::started();
    store.writes(0, plain([batch(7, 7, 2, 1)]));
    store.refuses(stage([accept(0, 3), accept(7, 7)]), INVALID_RECORD_STATE);
    assert_eq!(store.pending(0), []);
    assert!(store.blocking().producer(PID).expect("read").is_none(), "nor is the producer known");
}

#[test]
fn s_7_each_share_partition_of_a_call_is_answered_and_an_abort_frees_the_good_one() {
    let store = Store::started();
    store.writes(1, plain([batch(0, 0, 2, 1)]));
    let calls = vec![stage([accept(0, 0)]), on(1, stage([accept(0, 0)]))];
    let answers = store.blocking().stage_all(calls);
    assert_eq!(answers[0].as_ref().expect("good"), &[(0, 0)]);
    let bad = answers[1].as_ref().expect_err("bad");
    assert_eq!(bad.kafka_code(), Some(INVALID_RECORD_STATE));
    assert_eq!((store.pending(0), store.pending(1)), (vec![(0, 0)], vec![]));
    store.resolves(abort(0), &[(0, &[(0, 0)])]);
}

#[test]
fn s_8_a_failed_write_is_no_refusal_and_the_identical_call_settles_it() {
    for op in [FsOp::Write, FsOp::SyncData] {
        let disk = Disk::new();
        let store = disk.started();
        disk.fs.fail(Fault { when: When::Op(op), errno: EIO, repeat: Repeat::Once });
        let error = store.blocking().stage(stage([accept(0, 4)])).expect_err("fails");
        assert_eq!((error.class(), error.kafka_code()), (ErrorClass::Poisoned, Some(56)));
        for model in [PageModel::AllKept, PageModel::UnsyncedLost] {
            let again = disk.power_cut(model).open();
            let staged = again.blocking().stage(stage([accept(0, 4)])).expect("settled");
            assert!(staged.is_empty() || staged == [(0, 4)], "{op:?}: {staged:?}");
            let row = again.blocking().read(&key(0), 0).expect("read").partition;
            assert_eq!(row.pending.len(), 1, "{op:?}, {model:?}: pending once");
        }
    }
}

#[test]
fn s_9_a_reload_and_a_second_stage_touch_nothing_else() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    let before = store.row(0);
    store.blocking().read(&key(0), 0).expect("read");
    assert_eq!(store.row(0), before, "a reload changes nothing");
    assert_eq!(store.stages(stage([accept(5, 9)])), [(5, 9)]);
    assert_eq!(store.row(0).pending[0], before.pending[0]);
}

#[test]
fn s_10_two_calls_of_one_transaction_commit_together() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.stages(stage([accept(1, 1)]));
    store.resolves(commit(0), &[(0, &[(0, 1)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 1, 2, 1)], 2));
}

#[test]
fn s_11_only_what_was_staged_is_committed() {
    let store = Store::started();
    store.stages(stage([accept(1, 1)]));
    store.resolves(commit(0), &[(0, &[(1, 1)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(1, 1, 2, 1)], 1));
}

#[test]
fn s_12_one_marker_resolves_the_transaction_everywhere() {
    let store = Store::started();
    (0..3).for_each(|partition| drop(store.stages(on(partition, stage([accept(0, 9)])))));
    let ranges: &[(i64, i64)] = &[(0, 9)];
    store.resolves(commit(0), &[(0, ranges), (1, ranges), (2, ranges)]);
    (0..3).for_each(|partition| assert_eq!(store.records(partition), [batch(0, 9, 2, 1)]));
}

#[test]
fn s_13_a_transaction_is_bound_to_no_member_and_no_group() {
    let store = Store::started();
    let other = SharePartitionKey::new("other", Uuid::from_u128(1), 0).expect("valid");
    store.initialize(&other, 1);
    store.stages(stage([accept(0, 0)]));
    store.stages(Stage { member_id: "second".to_owned(), ..stage([accept(1, 1)]) });
    store.stages(Stage { key: other.clone(), ..stage([accept(0, 0)]) });
    let resolved = store.takes(commit(0)).partitions;
    assert_eq!(resolved, [(key(0), vec![(0, 1)]), (other, vec![(0, 0)])]);
    assert_eq!(store.records(0), [batch(0, 1, 2, 1)]);
}

#[test]
fn s_14_each_half_follows_its_own_marker() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.stages(of(200, stage([accept(5, 9)])));
    store.resolves(commit(0), &[(0, &[(0, 4)])]);
    assert_eq!(store.pending(0), [(5, 9)]);
    store.resolves(Marker { producer_id: 200, ..abort(0) }, &[(0, &[(5, 9)])]);
    assert_eq!(store.records(0), [batch(0, 4, 2, 1), batch(5, 9, 0, 1)]);
}

#[test]
fn s_15_a_record_pending_for_another_transaction_cannot_be_staged() {
    let store = Store::started();
    store.stages(at(1, stage([accept(0, 0)])));
    store.refuses(of(200, stage([accept(0, 0)])), INVALID_RECORD_STATE);
    store.refuses(at(2, stage([accept(0, 0)])), INVALID_RECORD_STATE);
    assert_eq!(store.row(0).pending[0].owner(), (PID, 1));
}

#[test]
fn s_16_a_repeated_call_succeeds_once_pending_and_another_type_is_refused() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    let logged = store.logged();
    assert_eq!(store.stages(stage([accept(0, 4)])), []);
    assert_eq!(store.logged(), logged, "nothing new is logged");
    assert_eq!(store.stages(stage([accept(3, 6)])), [(5, 6)], "only the new part is new");
    store.refuses(stage([reject(0, 4)]), INVALID_RECORD_STATE);
    let other_target = AckRange { abort_target: DeliveryState::ARCHIVED, ..accept(0, 4) };
    store.refuses(stage([other_target]), INVALID_RECORD_STATE);
}

#[test]
fn s_17_release_and_renew_cannot_be_staged_alone_or_mixed() {
    let store = Store::started();
    for ack_type in [AckType::Release, AckType::Renew] {
        let bad = AckRange { ack_type, ..accept(1, 1) };
        store.refuses(stage([bad]), INVALID_REQUEST);
        store.refuses(stage([accept(0, 0), bad]), INVALID_REQUEST);
    }
}

#[test]
fn s_18_what_lies_below_the_start_offset_is_skipped() {
    let store = Store::started();
    store.writes(0, start_at(10));
    let logged = store.logged();
    assert_eq!(store.stages(stage([accept(0, 9)])), []);
    assert_eq!(store.logged(), logged, "nothing is logged");
    assert_eq!(store.stages(stage([accept(5, 12)])), [(10, 12)]);
    assert_eq!(store.pending(0), [(10, 12)]);
}

#[test]
fn s_19_a_plain_ack_of_a_pending_record_is_refused() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    for state in [0, 2, 3, 4] {
        let write = plain([batch(2, 2, state, 1)]);
        store.refuses(write_command(0, write), INVALID_RECORD_STATE);
    }
}

#[test]
fn s_20_a_release_of_the_neighbours_leaves_pending_records_alone() {
    let store = Store::started();
    store.stages(stage([accept(2, 3)]));
    store.writes(0, plain([batch(0, 1, 0, 1), batch(4, 9, 0, 1)]));
    assert_eq!(store.pending(0), [(2, 3)]);
    assert_eq!(store.records(0), [batch(0, 1, 0, 1), batch(4, 9, 0, 1)]);
}

#[test]
fn s_21_a_transaction_with_nothing_but_acks_is_one() {
    let store = Store::started();
    store.stages(stage([reject(0, 0)]));
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
    assert_eq!(store.records(0), [batch(0, 0, 4, 1)]);
}

#[test]
fn s_22_a_gap_is_archived_by_a_commit_and_free_after_an_abort() {
    let gap = |offset| AckRange { ack_type: AckType::Gap, ..reject(offset, offset) };
    let store = Store::started();
    store.stages(stage([accept(0, 0), gap(1), accept(2, 2)]));
    store.resolves(commit(0), &[(0, &[(0, 2)])]);
    let committed = [batch(0, 0, 2, 1), batch(1, 1, 4, 1), batch(2, 2, 2, 1)];
    assert_eq!((store.records(0), store.complete(0)), (committed.to_vec(), 3));
    store.stages(on(1, at(1, stage([gap(5)]))));
    store.resolves(abort(1), &[(1, &[(5, 5)])]);
    assert_eq!(store.records(1), [batch(5, 5, 0, 1)]);
}

#[test]
fn s_23_a_read_behind_a_stage_in_flight_shows_it_pending() {
    let store = Store::started();
    let mut context = Context::from_waker(Waker::noop());
    for offset in 0..50 {
        let mut staging = pin!(store.store().stage(stage([accept(offset, offset)])));
        let submitted = staging.as_mut().poll(&mut context); // it is on its way
        let read = store.blocking().read(&key(0), 0).expect("read").partition;
        assert_eq!(read.pending.last().map(|ack| ack.last_offset), Some(offset));
        let answered = if submitted.is_ready() { submitted } else { staging.poll(&mut context) };
        let Poll::Ready(answer) = answered else {
            panic!("a read that shows the stage is answered before it")
        };
        assert_eq!(answer.expect("staged"), [(offset, offset)]);
    }
}

#[test]
fn s_24_an_abort_frees_one_record_of_a_stored_batch_and_not_its_neighbour() {
    let store = Store::started();
    store.writes(0, plain([batch(1, 2, 0, 1)]));
    store.stages(stage([delivered(2, accept(1, 1))]));
    store.stages(of(200, stage([delivered(2, accept(2, 2))])));
    store.resolves(Marker { producer_id: 200, ..abort(0) }, &[(0, &[(2, 2)])]);
    assert_eq!(store.pending(0), [(1, 1)]);
    assert_eq!(store.records(0), [batch(1, 1, 0, 1), batch(2, 2, 0, 2)]);
    let count: Write = plain([batch(1, 1, 0, 2)]);
    store.refuses(write_command(0, count), INVALID_RECORD_STATE);
}
