//! M: what a transaction marker does.

use std::collections::BTreeSet;

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{EIO, Fault, PageModel, Repeat, When};
use sharestate::{AckRange, DeliveryState, ErrorClass};

use super::disk::{Disk, cut_at_every_call};
use super::real::state_of;
use super::*;

#[test]
fn m_1_a_commit_acknowledges_and_the_leaders_next_write_moves_the_start() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.resolves(commit(0), &[(0, &[(0, 4)])]);
    store.kill_and_open();
    let row = store.row(0);
    assert_eq!((&row.batches[..], row.pending.len()), (&[batch(0, 4, 2, 1)][..], 0));
    assert_eq!((row.start_offset, row.delivery_complete_count), (0, 5));
    store.writes(0, start_at(5));
    assert_eq!((store.row(0).start_offset, store.records(0)), (5, vec![]));
}

#[test]
fn m_2_an_abort_frees_what_was_accepted_and_what_was_rejected() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0), reject(1, 1)]));
    store.resolves(abort(0), &[(0, &[(0, 1)])]);
    store.kill_and_open();
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 1, 0, 1)], 0));
    let again = at(1, stage([delivered(2, accept(0, 1))]));
    assert_eq!(store.stages(again), [(0, 1)], "the next delivery counts one more");
}

#[test]
fn m_3_a_stage_that_comes_after_its_marker_is_refused() {
    let mut store = Store::started();
    store.resolves_nothing(abort(0)); // the transaction timed out before anything was staged
    store.refuses(stage([accept(0, 0)]), INVALID_PRODUCER_EPOCH);
    store.checkpoint();
    store.kill_and_open();
    store.refuses(stage([accept(0, 0)]), INVALID_PRODUCER_EPOCH);
    assert_eq!(store.stages(at(1, stage([accept(0, 0)]))), [(0, 0)], "the next transaction may");
}

#[test]
fn m_4_a_repeated_marker_succeeds_and_changes_nothing() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.takes(commit(0));
    for _ in 0..2 {
        let logged = store.logged();
        assert!(!store.resolves_nothing(commit(0)).contradicts);
        assert_eq!(store.logged(), logged);
        store.kill_and_open();
    }
}

#[test]
fn m_5_an_abort_after_the_commit_has_no_effect_and_is_called_contradicting() {
    let store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.takes(commit(0));
    assert!(store.resolves_nothing(abort(0)).contradicts);
    assert_eq!(store.records(0), [batch(0, 4, 2, 1)]);
}

#[test]
fn m_6_a_late_marker_does_not_touch_the_next_transaction() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.takes(commit(0));
    store.stages(at(1, stage([accept(1, 1)])));
    store.resolves_nothing(commit(0));
    assert_eq!(store.pending(0), [(1, 1)]);
    // Nor when the transaction before had staged nothing, nor in a two-phase one.
    let other = |marker| Marker { producer_id: 200, ..marker };
    store.stages(two_phase(of(200, at(1, stage([accept(2, 2)])))));
    store.resolves_nothing(other(commit(0)));
    assert_eq!(store.pending(0), [(1, 1), (2, 2)]);
    store.resolves(other(commit(1)), &[(0, &[(2, 2)])]);
}

#[test]
fn m_7_only_the_next_epoch_of_the_same_producer_resolves() {
    let store = Store::started();
    store.stages(at(4, stage([accept(0, 0)])));
    store.resolves_nothing(commit(3)); // carries 4, as the acks do
    store.resolves_nothing(Marker { producer_id: 200, ..commit(4) });
    store.resolves_nothing(marker(3, Abort));
    store.resolves(commit(4), &[(0, &[(0, 0)])]);
}

#[test]
fn m_8_a_marker_that_could_not_be_written_leaves_the_ack_and_can_be_repeated() {
    for op in [FsOp::Write, FsOp::SyncData] {
        let disk = Disk::new();
        let store = disk.started();
        store.blocking().stage(stage([accept(0, 4)])).expect("staged");
        disk.fs.fail(Fault { when: When::Op(op), errno: EIO, repeat: Repeat::Once });
        let error = store.blocking().marker(commit(0)).expect_err("fails");
        assert_eq!((error.class(), error.kafka_code()), (ErrorClass::Poisoned, Some(56)));
        let lost = disk.power_cut(PageModel::UnsyncedLost).open();
        let row = lost.blocking().read(&key(0), 0).expect("read").partition;
        assert_eq!(row.pending[0].owner(), (PID, 0), "{op:?}: its owner is kept");
        for model in [PageModel::AllKept, PageModel::UnsyncedLost] {
            let again = disk.power_cut(model).open();
            again.blocking().marker(commit(0)).expect("repeated");
            let row = again.blocking().read(&key(0), 0).expect("read").partition;
            assert_eq!((&row.batches[..], row.pending.len()), (&[batch(0, 4, 2, 1)][..], 0));
            assert_eq!(row.delivery_complete_count, 5, "{op:?}, {model:?}");
        }
    }
}

#[test]
fn m_11_a_store_that_cannot_act_answers_what_a_coordinator_retries() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.blocking().close().expect("close");
    let error = store.blocking().marker(commit(0)).expect_err("closed");
    assert_eq!((error.class(), error.kafka_code()), (ErrorClass::Retriable, Some(6)));
}

#[test]
fn m_12_a_marker_cut_from_power_resolves_everywhere_or_nowhere() {
    let mut found = BTreeSet::new();
    let images = cut_at_every_call(
        |store| {
            for partition in 0..3 {
                let stage = on(partition, stage([accept(0, 4), reject(6, 6)]));
                store.blocking().stage(stage).expect("staged");
            }
        },
        |store| store.blocking().marker(commit(0)).is_ok(),
        |store, answered, context| {
            let state = state_of(store);
            let resolved = |partition| state.partitions[&key(partition)].pending.is_empty();
            let resolved: BTreeSet<bool> = (0..3).map(resolved).collect();
            assert_eq!(resolved.len(), 1, "{context}: a partial commit");
            assert!(!answered || resolved.contains(&true), "{context}: answered and lost");
            found.extend(resolved);
            store.blocking().marker(commit(0)).expect("repeated");
            for row in state_of(store).partitions.values() {
                assert_eq!(row.batches, [batch(0, 4, 2, 1), batch(6, 6, 4, 1)], "{context}");
                assert_eq!(row.delivery_complete_count, 6, "{context}: counted once");
            }
        },
    );
    println!("marker-crash-images={images}");
    assert_eq!(found, BTreeSet::from([false, true]), "both were seen");
}

/// Pending in the snapshot, the marker in the log behind it.
fn resolved_behind_a_snapshot(marker: Marker) -> Store {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.checkpoint();
    store.takes(marker);
    store.kill_and_open();
    assert_eq!(store.pending(0), []);
    store
}

#[test]
fn m_13_a_commit_wins_over_the_pending_ack_it_resolves() {
    let store = resolved_behind_a_snapshot(commit(0));
    assert_eq!(store.records(0), [batch(0, 4, 2, 1)]);
}

#[test]
fn m_14_an_abort_wins_over_the_pending_ack_it_resolves() {
    let mut store = resolved_behind_a_snapshot(abort(0));
    assert_eq!(store.records(0), [batch(0, 4, 0, 1)]);
    store.close_and_open();
    assert_eq!((store.pending(0), store.records(0)), (vec![], vec![batch(0, 4, 0, 1)]));
}

#[test]
fn m_15_neighbours_of_different_transactions_stay_apart_in_the_snapshot() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.stages(of(200, stage([accept(5, 9)])));
    for _ in 0..2 {
        store.checkpoint();
        store.close_and_open();
        assert_eq!(store.pending(0), [(0, 4), (5, 9)]);
    }
    store.resolves(commit(0), &[(0, &[(0, 4)])]);
    assert_eq!(store.pending(0), [(5, 9)]);
}

#[test]
fn m_16_what_was_answered_is_readable_and_the_answer_says_what_to_read_again() {
    let store = Store::started();
    store.stages(stage([accept(0, 1)]));
    store.stages(on(2, stage([accept(7, 7)])));
    let leader = store.store().clone();
    let resolved = store.takes(commit(0)).partitions;
    assert_eq!(resolved, [(key(0), vec![(0, 1)]), (key(2), vec![(7, 7)])]);
    for (key, ranges) in resolved {
        let row = leader.blocking().read(&key, 0).expect("read").partition;
        assert_eq!(row.pending, []);
        let [(first, last)] = ranges[..] else { panic!("{ranges:?}") };
        assert_eq!(row.batches, [batch(first, last, 2, 1)]);
    }
}

/// REJECT in a group with a dead-letter queue.
fn to_the_queue(offset: i64) -> AckRange {
    AckRange { commit_target: DeliveryState::ARCHIVING, ..reject(offset, offset) }
}

#[test]
fn m_18_a_committed_reject_waits_for_the_dead_letter_queue_and_an_aborted_one_does_not() {
    let store = Store::started();
    store.stages(stage([to_the_queue(0)]));
    store.takes(commit(0));
    assert_eq!(store.records(0), [batch(0, 0, 3, 1)]);
    assert_eq!(store.complete(0), 0, "not terminal yet");
    let written =
        Write { start_offset: 0, delivery_complete_count: 1, ..plain([batch(0, 0, 4, 1)]) };
    store.writes(0, written);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 0, 4, 1)], 1));
    store.stages(at(1, stage([to_the_queue(1)])));
    store.takes(abort(1));
    assert_eq!(store.records(0), [batch(0, 0, 4, 1), batch(1, 1, 0, 1)]);
}

#[test]
fn m_19_a_crash_before_the_dead_letter_write_leaves_the_record_archiving() {
    let mut store = Store::started();
    store.stages(stage([delivered(4, to_the_queue(0))]));
    store.takes(commit(0));
    store.kill_and_open();
    let row = store.blocking().read(&key(0), 1).expect("the new leader").partition;
    assert_eq!(row.batches, [batch(0, 0, 3, 4)], "with the count that tells the cause");
}

#[test]
fn m_20_each_terminal_record_is_counted_once() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4), reject(5, 6), to_the_queue(7)]));
    store.takes(commit(0));
    assert_eq!(store.complete(0), 7);
    store.takes(commit(0));
    store.kill_and_open();
    store.takes(commit(0));
    assert_eq!(store.complete(0), 7);
}
