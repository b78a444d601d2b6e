//! Forced resolution and expiry of producers: semantics sections 4.5 and 4.2.

use super::*;
use sharestate::limits::EXPIRED_PER_ENTRY_MAX;

fn force(epoch: i16, outcome: Outcome) -> Command {
    Command::ForceResolve { producer_id: PID, epoch, outcome }
}

fn expire(producer_ids: impl Into<Vec<i64>>) -> Command {
    Command::ExpireProducers { producer_ids: producer_ids.into() }
}

fn expired(answer: Answer) -> Vec<i64> {
    match answer {
        Answer::Expired { producer_ids } => producer_ids,
        other => panic!("{other:?}"),
    }
}

#[test]
fn force_resolve_refuses_an_epoch_that_is_not_open() {
    let mut store = Store::new();
    let refused = |epoch| Rejection::NothingPending { producer_id: PID, epoch };
    assert_eq!(store.refuses(force(0, Commit), None), refused(0));
    store.logs(at(1, stage([accept(5, 9)])));
    for epoch in [i16::MIN, -1, 0, 2, i16::MAX] {
        assert_eq!(store.refuses(force(epoch, Commit), None), refused(epoch));
    }
    store.logs(force(1, Commit));
    store.refuses(force(1, Commit), None);
}

#[test]
fn force_resolve_ends_one_epoch_as_its_own_marker_would() {
    for (outcome, state) in [(Commit, 2), (Abort, 0)] {
        let mut store = Store::new();
        store.logs(at(1, stage([accept(5, 9)])));
        store.now = 2_000;
        assert_eq!(resolved(store.logs(force(1, outcome))), [(5, 9)]);
        assert_eq!(store.row().batches, [batch(5, 9, state, 2)]);
        assert!(store.producer().open.is_empty());
        let completed = store.producer().last_completed.expect("remembered");
        assert_eq!((completed.epoch, completed.outcome, completed.operator), (2, outcome, true));
        assert_eq!(store.producer().last_used_ms, 2_000);
        assert_eq!(store.producer().coordinator_epoch, None);
    }
}

#[test]
fn after_a_forced_end_the_real_marker_is_a_repeat_and_a_late_stage_is_refused() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(5, 9)])));
    store.logs(force(1, Abort));
    store.refuses(at(1, stage([accept(20, 20)])), INVALID_PRODUCER_EPOCH);
    let answer = store.logs(marker(2, Commit));
    assert_eq!(flags(answer.clone()), (true, false), "the coordinator decided otherwise");
    assert_eq!(resolved(answer), []);
    assert!(store.producer().last_completed.expect("remembered").operator);
    assert_eq!(flags(store.is_quiet(marker(2, Abort))), (false, false));
    store.logs(at(2, stage([accept(20, 20)])));
}

#[test]
fn force_resolve_ends_the_highest_epoch_there_is() {
    let mut store = Store::new();
    store.logs(at(32_766, stage([accept(5, 9)])));
    store.logs(force(32_766, Commit));
    assert_eq!(store.last_completed(), Some((32_767, Commit)));
}

#[test]
fn force_resolve_of_an_orphan_keeps_a_later_completed_marker() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(1, 1)])));
    store.logs(at(4, stage([accept(4, 4)])));
    store.logs(marker(5, Commit));
    assert_eq!(flags(store.logs(force(1, Abort))), (false, false));
    assert_eq!(store.last_completed(), Some((5, Commit)));
    assert!(!store.producer().last_completed.expect("remembered").operator);
}

#[test]
fn force_resolve_leaves_other_epochs_open_and_says_so() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(1, 1)])));
    store.logs(at(4, stage([accept(4, 4)])));
    assert_eq!(flags(store.clone().logs(force(4, Abort))), (false, true));
    assert_eq!(flags(store.logs(force(1, Abort))), (false, false));
    assert_eq!(store.pending(), [(4, 4)]);
    // Its own epoch + 1 is completed now; the transaction above it goes on.
    assert_eq!(resolved(store.logs(marker(5, Commit))), [(4, 4)]);
}

#[test]
fn a_producer_expires_when_it_was_not_used_for_the_configured_time() {
    let mut store = Store { options: Options { producer_id_expiration_ms: 50 }, ..Store::new() };
    store.logs(marker(4, Commit));
    store.now += 49;
    assert!(expired(store.is_quiet(expire([PID]))).is_empty());
    store.now += 1;
    assert_eq!(expired(store.logs(expire([PID]))), [PID]);
    assert!(store.state.producers.is_empty());
}

#[test]
fn a_day_is_the_time_unless_configured() {
    assert_eq!(Options::default().producer_id_expiration_ms, 24 * 60 * 60 * 1_000);
}

#[test]
fn a_clock_that_goes_back_expires_nothing() {
    let mut store = Store::new();
    store.logs(marker(4, Commit));
    store.now = i64::MIN;
    store.is_quiet(expire([PID]));
}

#[test]
fn a_producer_never_expires_while_an_ack_is_pending() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9)]));
    store.now = i64::MAX;
    assert!(expired(store.is_quiet(expire([PID]))).is_empty());
    store.logs(delete());
    assert_eq!(expired(store.logs(expire([PID]))), [PID]);
}

#[test]
fn expiry_names_each_known_producer_once_ascending() {
    let mut store = Store::new();
    for producer_id in [9, 7, 8] {
        store.logs(Marker { producer_id, ..marker(4, Commit) });
    }
    store.now = i64::MAX;
    let answer = store.logs(expire([9, 7, 9, 12, -1]));
    assert_eq!(expired(answer), [7, 9]);
    assert_eq!(store.state.producers.keys().copied().collect::<Vec<_>>(), [8]);
}

#[test]
fn one_entry_expires_so_many_producers_and_the_next_call_goes_on() {
    let mut store = Store::new();
    let ids: Vec<i64> = (0..=EXPIRED_PER_ENTRY_MAX as i64).collect();
    for producer_id in &ids {
        let row = Producer { last_used_ms: 0, ..Producer::default() };
        store.state.producers.insert(*producer_id, row.into());
    }
    store.now = i64::MAX;
    assert_eq!(expired(store.logs(expire(&ids[..]))).len(), EXPIRED_PER_ENTRY_MAX);
    assert_eq!(expired(store.logs(expire(&ids[..]))), [EXPIRED_PER_ENTRY_MAX as i64]);
}

#[test]
fn stage_and_marker_are_uses() {
    let mut store = Store { options: Options { producer_id_expiration_ms: 50 }, ..Store::new() };
    store.logs(stage([accept(5, 9)]));
    store.now += 50;
    store.logs(marker(1, Commit));
    store.now += 49;
    store.is_quiet(expire([PID]));
    store.logs(at(1, stage([accept(20, 20)])));
    store.logs(delete());
    store.now += 49;
    store.is_quiet(expire([PID]));
    store.now += 1;
    store.logs(expire([PID]));
}
