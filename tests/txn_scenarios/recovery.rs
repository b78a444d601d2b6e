//! R: what leaders, the store and coordinators find when they come back.

use sharestate::Stage;

use super::*;

const DAY_MS: i64 = 86_400_000;

/// A new leader takes the share partition over and sees what is pending, and nothing to deliver.
fn taken_over(store: &Store, leader_epoch: i32, pending: &[(i64, i64)]) {
    let row = store.blocking().read(&key(0), leader_epoch).expect("read").partition;
    let found: Vec<_> = row.pending.iter().map(|ack| (ack.first_offset, ack.last_offset)).collect();
    assert_eq!((found, row.batches), (pending.to_vec(), vec![]));
    assert_eq!(row.leader_epoch, leader_epoch);
}

#[test]
fn r_1_a_new_leader_sees_the_pending_ack_and_the_commit_resolves_it() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    taken_over(&store, 1, &[(0, 0)]);
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 0, 2, 1)], 1));
}

#[test]
fn r_2_a_new_leader_sees_the_pending_ack_and_the_abort_frees_it() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    taken_over(&store, 1, &[(0, 0)]);
    store.resolves(abort(0), &[(0, &[(0, 0)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 0, 0, 1)], 0));
    let again = Stage { leader_epoch: 1, ..at(1, stage([delivered(2, accept(0, 0))])) };
    assert_eq!(store.stages(again), [(0, 0)], "delivered again");
}

#[test]
fn r_3_a_commit_after_the_store_was_killed_resolves() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.kill_and_open();
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 0, 2, 1)], 1));
}

#[test]
fn r_4_an_abort_after_the_store_was_killed_resolves() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.kill_and_open();
    store.resolves(abort(0), &[(0, &[(0, 0)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 0, 0, 1)], 0));
}

#[test]
fn r_5_six_inputs_of_three_partitions_are_each_consumed_once_over_two_kills() {
    let mut store = Store::started();
    let input = |partition: i32, epoch: i16, count: i16| {
        on(partition, at(epoch, stage([delivered(count, accept(epoch.into(), epoch.into()))])))
    };
    (0..3).for_each(|partition| drop(store.stages(input(partition, 0, 1))));
    store.kill_and_open(); // between stage and end
    store.takes(commit(0));
    (0..3).for_each(|partition| drop(store.stages(input(partition, 1, 1))));
    store.kill_and_open(); // before the forced abort
    store.takes(abort(1));
    for partition in 0..3 {
        assert_eq!(store.records(partition), [batch(0, 0, 2, 1), batch(1, 1, 0, 1)]);
        let again = Stage { producer_epoch: 2, ..input(partition, 1, 2) };
        assert_eq!(store.stages(again), [(1, 1)], "the aborted one is delivered again");
    }
    store.close_and_open();
    store.takes(commit(2));
    for partition in 0..3 {
        assert_eq!(store.records(partition), [batch(0, 0, 2, 1), batch(1, 1, 2, 2)]);
        assert_eq!(store.complete(partition), 2);
    }
}

#[test]
fn r_6_acquired_records_leave_no_trace_and_a_late_stage_is_refused() {
    let mut store = Store::started();
    let before = store.row(0); // records 0..9 are acquired, which no store hears of
    store.kill_and_open();
    assert_eq!(store.row(0), before);
    store.blocking().read(&key(0), 1).expect("the new leader");
    store.refuses(stage([accept(0, 0)]), FENCED_LEADER_EPOCH);
    let write = Write { leader_epoch: 1, ..plain([batch(0, 0, 2, 1)]) }; // delivered to another
    store.writes(0, write);
    let late = Stage { leader_epoch: 1, ..stage([accept(0, 0)]) };
    store.refuses(late, INVALID_RECORD_STATE);
}

#[test]
fn r_7_the_identical_stage_at_the_new_leader_succeeds() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.kill_and_open();
    taken_over(&store, 1, &[(0, 4)]);
    let retry = Stage { leader_epoch: 1, ..stage([accept(0, 4)]) };
    assert_eq!(store.stages(retry.clone()), []);
    let unknown_member = Stage { member_id: String::new(), member_epoch: 0, ..retry };
    assert_eq!(store.stages(unknown_member), [], "whoever owns it after a reload");
    assert_eq!(store.pending(0), [(0, 4)]);
}

#[test]
fn r_8_pending_acks_of_a_snapshot_keep_their_owner_over_later_updates() {
    let mut store = Store::started();
    store.stages(at(3, stage([reject(5, 5)])));
    let before = store.row(0).pending.clone();
    store.checkpoint();
    store.writes(0, plain([batch(0, 4, 2, 1), batch(6, 9, 0, 2)]));
    store.stages(of(200, stage([accept(20, 20)])));
    store.kill_and_open();
    assert!(store.store().recovery().replayed > 0 && store.store().recovery().snapshot_lsn > 0);
    assert_eq!(store.row(0).pending[..1], before[..]);
    store.resolves(commit(3), &[(0, &[(5, 5)])]);
    assert_eq!(store.records(0), [batch(0, 4, 2, 1), batch(5, 5, 4, 1), batch(6, 9, 0, 2)]);
}

#[test]
fn r_9_a_commit_resolves_from_the_snapshot_alone() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    let filler: Vec<_> = (0..400).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    for _ in 0..3 {
        (0..3).for_each(|_| drop(store.writes(2, plain(filler.clone()))));
        store.checkpoint();
    }
    let first = support::segments(store.path()).remove(0);
    assert!(!first.ends_with("00000000000000000001.wal"), "the stage's segment is purged");
    store.close_and_open();
    assert_eq!(store.store().recovery().replayed, 0);
    store.resolves(commit(0), &[(0, &[(0, 4)])]);
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 4, 2, 1)], 5));
}

#[test]
fn r_10_a_marker_behind_the_snapshot_is_applied_once_however_often_it_is_replayed() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.checkpoint();
    store.takes(commit(0));
    let expected = store.state();
    for _ in 0..3 {
        store.kill_and_open();
        assert_eq!(store.store().recovery().replayed, 1);
        assert_eq!(store.state(), expected);
        assert_eq!(store.complete(0), 5);
    }
}

#[test]
fn r_11_markers_sent_again_by_the_next_coordinator_all_succeed() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.takes(commit(0));
    store.stages(of(200, stage([accept(1, 1)]))); // its participant has not seen the marker yet
    store.kill_and_open();
    let again = Marker { coordinator_epoch: 4, ..commit(0) };
    assert!(!store.resolves_nothing(again).contradicts);
    store.resolves(Marker { producer_id: 200, ..again }, &[(0, &[(1, 1)])]);
    store.resolves_nothing(Marker { coordinator_epoch: 5, ..commit(0) });
}

#[test]
fn r_12_with_everybody_crashed_the_record_stays_pending_until_the_marker_comes() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    for leader_epoch in 1..4 {
        store.kill_and_open();
        taken_over(&store, leader_epoch, &[(0, 0)]);
    }
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
}

#[test]
fn r_14_a_prepared_two_phase_transaction_outlives_every_timeout_and_commits_once() {
    let mut store = Store::started();
    store.stages(two_phase(at(42, stage([accept(0, 4)]))));
    store.clock.advance(30 * DAY_MS);
    store.checkpoint();
    store.kill_and_open();
    let listed = store.listed();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].two_phase && !listed[0].orphaned);
    store.resolves(commit(42), &[(0, &[(0, 4)])]);
    store.resolves_nothing(commit(42));
    assert_eq!(store.complete(0), 5);
}

#[test]
fn r_15_without_two_phase_the_coordinators_abort_frees_what_was_prepared() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.kill_and_open(); // the application crashed as well, after its own "prepare"
    store.resolves(abort(0), &[(0, &[(0, 4)])]);
    assert!(store.resolves_nothing(commit(0)).contradicts, "the recovered commit comes too late");
    assert_eq!((store.records(0), store.complete(0)), (vec![batch(0, 4, 0, 1)], 0));
}

#[test]
fn r_17_after_a_restart_pending_records_are_not_offered_and_nobody_else_can_ack_them() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 4)]));
    store.checkpoint();
    for _ in 0..2 {
        store.kill_and_open();
        taken_over(&store, 0, &[(0, 4)]);
        store.refuses(write_command(0, plain([batch(0, 0, 2, 1)])), INVALID_RECORD_STATE);
        store.refuses(of(200, stage([accept(0, 4)])), INVALID_RECORD_STATE);
    }
}

#[test]
fn r_18_a_recovered_transaction_resolves_whatever_epoch_its_marker_carries() {
    for bumped in [101, 102, 103, 150] {
        let mut store = Store::started();
        store.stages(two_phase(at(100, stage([accept(0, 0)]))));
        store.kill_and_open(); // the process restarts, and keeps the prepared transaction
        store.kill_and_open();
        store.resolves(marker(bumped, Commit), &[(0, &[(0, 0)])]);
        let last = store.producer().last_completed.map(|last| last.epoch);
        assert_eq!(last, Some(bumped), "a delayed stage or marker is told from the next one's");
    }
}

#[test]
fn r_18_a_marker_of_a_later_transaction_does_not_resolve_a_superseded_one() {
    let store = Store::started();
    store.stages(two_phase(at(100, stage([accept(0, 0)]))));
    store.stages(two_phase(at(102, stage([accept(1, 1)]))));
    store.resolves(marker(103, Commit), &[(0, &[(1, 1)])]);
    store.resolves(marker(102, Abort), &[(0, &[(0, 0)])]);
    assert_eq!(store.records(0), [batch(0, 0, 0, 1), batch(1, 1, 2, 1)]);
}
