//! Which epoch a marker resolves and what is remembered of it: semantics section 4.4.

use super::*;

/// Acks pending at these epochs, each at the offset of its number.
fn store_with(epochs: &[i16]) -> Store {
    let mut store = Store::new();
    for epoch in epochs {
        store.logs(at(*epoch, ack_of(*epoch)));
    }
    store
}

fn ack_of(epoch: i16) -> Stage {
    stage([accept(epoch.into(), epoch.into())])
}

fn old(transaction_version: i8, marker: Marker) -> Marker {
    Marker { transaction_version, ..marker }
}

fn from_coordinator(coordinator_epoch: i32, marker: Marker) -> Marker {
    Marker { coordinator_epoch, ..marker }
}

fn open(store: &Store) -> Vec<i16> {
    store.producer().open.keys().copied().collect()
}

#[test]
fn marker_refuses_a_negative_producer_id() {
    let mut store = store_with(&[1]);
    for producer_id in [-1, i64::MIN] {
        store.refuses_request(Marker { producer_id, ..marker(2, Commit) }, "producer id");
    }
    store.logs(Marker { producer_id: 0, ..marker(2, Commit) });
}

#[test]
fn marker_refuses_a_negative_producer_epoch() {
    let mut store = store_with(&[0]);
    for epoch in [-1, i16::MIN] {
        store.refuses_request(marker(epoch, Commit), "producer epoch");
    }
    store.logs(marker(0, Commit));
    assert_eq!(open(&store), [0], "an epoch of -1 cannot have staged");
}

#[test]
fn marker_refuses_a_coordinator_epoch_below_the_remembered_one() {
    let mut store = store_with(&[1]);
    store.logs(from_coordinator(7, marker(9, Abort)));
    let zombie = from_coordinator(6, marker(2, Commit));
    let rejection = store.refuses(zombie, COORDINATOR_FENCED);
    let expected = Rejection::TransactionCoordinatorFenced { sent: 6, remembered: 7 };
    assert_eq!(rejection, expected);
    store.refuses(from_coordinator(i32::MIN, marker(2, Commit)), COORDINATOR_FENCED);
    assert_eq!(resolved(store.logs(from_coordinator(7, marker(2, Commit)))), [(1, 1)]);
}

#[test]
fn coordinator_epochs_are_compared_per_producer() {
    let mut store = store_with(&[1]);
    store.logs(from_coordinator(7, marker(2, Commit)));
    store.logs(Marker { producer_id: 8, ..from_coordinator(1, marker(2, Commit)) });
}

#[test]
fn a_higher_coordinator_epoch_is_remembered_whatever_follows() {
    let mut store = Store::new();
    store.logs(marker(5, Commit));
    // With a refusal: the one case where a refused command has something to log.
    store.now = 2_000;
    let answer = store.execute(from_coordinator(2, marker(4, Commit)).into());
    assert_eq!(answer.expect_err("over").kafka_code(), INVALID_PRODUCER_EPOCH);
    assert_eq!((store.lsn, store.producer().coordinator_epoch), (3, Some(2)));
    assert_eq!(store.producer().last_used_ms, 2_000);
    assert_eq!(store.last_completed(), Some((5, Commit)));
    // With a repeat.
    store.logs(from_coordinator(3, marker(5, Commit)));
    assert_eq!(store.producer().coordinator_epoch, Some(3));
    // With a resolution.
    store.logs(at(5, ack_of(5)));
    store.logs(from_coordinator(i32::MAX, marker(6, Commit)));
    assert_eq!(store.producer().coordinator_epoch, Some(i32::MAX));
}

#[test]
fn a_refused_request_teaches_no_coordinator_epoch() {
    let mut store = Store::new();
    store.logs(marker(5, Commit));
    store.refuses(from_coordinator(9, marker(-1, Commit)), INVALID_REQUEST);
    assert_eq!(store.producer().coordinator_epoch, Some(1));
}

#[test]
fn marker_resolves_the_epoch_right_below_it() {
    for outcome in [Commit, Abort] {
        let mut store = store_with(&[1]);
        store.now = 2_000;
        assert_eq!(resolved(store.logs(marker(2, outcome))), [(1, 1)]);
        assert!(open(&store).is_empty());
        let completed = store.producer().last_completed.expect("remembered");
        assert_eq!((completed.epoch, completed.outcome), (2, outcome));
        assert!(!completed.operator);
        assert_eq!(store.producer().last_used_ms, 2_000);
        assert_eq!(store.producer().highest_stage_epoch, Some(1));
    }
}

#[test]
fn the_last_epoch_is_resolved_by_the_largest_marker() {
    let mut store = store_with(&[32_766]);
    assert_eq!(resolved(store.logs(marker(32_767, Commit))), [(32_766, 32_766)]);
    // Nothing can stage after it under this producer id.
    store.refuses(at(32_766, ack_of(1)), INVALID_PRODUCER_EPOCH);
}

#[test]
fn a_plain_epoch_matches_no_other_marker() {
    for other in [0, 1, 3, 4, 32_767] {
        let mut store = store_with(&[1]);
        assert_eq!(resolved(store.execute(marker(other, Commit).into()).expect("success")), []);
        assert_eq!(open(&store), [1], "marker {other}");
    }
}

#[test]
fn a_two_phase_epoch_matches_every_later_marker_while_nothing_superseded_it() {
    for later in [2, 3, 100, 32_767] {
        let mut store = Store::new();
        store.logs(two_phase(at(1, ack_of(1))));
        assert_eq!(resolved(store.logs(marker(later, Commit))), [(1, 1)]);
        assert_eq!(store.last_completed(), Some((later, Commit)));
    }
    for not_later in [0, 1] {
        let mut store = Store::new();
        store.logs(two_phase(at(1, ack_of(1))));
        store.logs(marker(not_later, Commit));
        assert_eq!(open(&store), [1]);
    }
}

#[test]
fn a_superseded_two_phase_epoch_matches_markers_up_to_the_superseding_epoch() {
    let mut store = Store::new();
    store.logs(two_phase(at(1, ack_of(1))));
    store.logs(two_phase(at(4, ack_of(4))));
    for (later, expected) in [(2, (1, 1)), (3, (1, 1)), (4, (1, 1)), (5, (4, 4)), (6, (4, 4))] {
        let mut store = store.clone();
        assert_eq!(resolved(store.logs(marker(later, Commit))), [expected], "marker {later}");
    }
}

#[test]
fn the_marker_of_the_transaction_before_does_not_touch_the_next_one() {
    // M-6: acks of transaction N + 1 are pending at the epoch that N's marker carries.
    let mut store = store_with(&[3]);
    store.logs(marker(3, Commit));
    assert_eq!(open(&store), [3]);
}

#[test]
fn the_larger_of_two_completed_epochs_is_remembered() {
    let mut store = store_with(&[1, 5]);
    store.logs(marker(6, Commit));
    // The late marker of the orphan resolves it, but is not the last one.
    assert_eq!(resolved(store.logs(marker(2, Abort))), [(1, 1)]);
    assert_eq!(store.last_completed(), Some((6, Commit)));
}

#[test]
fn a_marker_equal_to_the_last_completed_one_succeeds_and_does_nothing() {
    let mut store = store_with(&[1]);
    store.logs(marker(2, Commit));
    assert_eq!(flags(store.is_quiet(marker(2, Commit))), (false, false));
}

#[test]
fn a_contradicting_repeat_succeeds_and_is_told_so() {
    let mut store = store_with(&[1]);
    store.logs(marker(2, Commit));
    let answer = store.is_quiet(marker(2, Abort));
    assert_eq!(flags(answer), (true, false));
    assert_eq!(store.last_completed(), Some((2, Commit)));
    assert_eq!(store.row().batches, [batch(1, 1, 2, 2)]);
}

#[test]
fn marker_refuses_an_epoch_below_the_last_completed_one() {
    let mut store = store_with(&[4]);
    store.logs(marker(5, Commit));
    for late in [0, 3, 4] {
        let rejection = store.refuses(marker(late, Commit), INVALID_PRODUCER_EPOCH);
        assert_eq!(rejection, Rejection::InvalidProducerEpoch { sent: late, current: 5 });
    }
}

#[test]
fn an_operators_abort_resolves_the_unbumped_epoch_and_is_not_remembered() {
    for version in [i8::MIN, 0, 1] {
        let mut store = store_with(&[1]);
        assert_eq!(resolved(store.logs(old(version, marker(1, Abort)))), [(1, 1)]);
        assert_eq!(store.last_completed(), None);
        assert_eq!(store.row().batches, [batch(1, 1, 0, 2)]);
        // The transaction goes on and ends.
        store.logs(at(1, stage([AckRange { delivery_count: 3, ..accept(1, 1) }])));
        assert_eq!(resolved(store.logs(marker(2, Commit))), [(1, 1)]);
    }
}

#[test]
fn an_operators_commit_and_a_bumping_version_do_not_resolve_the_unbumped_epoch() {
    let mut store = store_with(&[1]);
    store.logs(old(0, marker(1, Commit)));
    store.is_quiet(old(2, marker(1, Abort)));
    store.is_quiet(old(3, marker(1, Abort)));
    assert_eq!(open(&store), [1]);
}

#[test]
fn a_marker_without_a_match_is_remembered_above_the_highest_stage_epoch() {
    let mut store = Store::new();
    assert_eq!(flags(store.logs(marker(4, Abort))), (false, false));
    assert_eq!(store.last_completed(), Some((4, Abort)));
    // M-3: the stage that its transaction sent too late.
    store.refuses(at(3, ack_of(3)), INVALID_PRODUCER_EPOCH);
    store.logs(at(4, ack_of(4)));
    store.logs(marker(6, Commit));
    assert_eq!(store.last_completed(), Some((6, Commit)));
}

#[test]
fn a_marker_without_a_match_is_not_remembered_up_to_the_highest_stage_epoch() {
    let mut store = store_with(&[4]);
    store.logs(marker(4, Commit));
    store.is_quiet(marker(3, Commit));
    assert_eq!((store.last_completed(), open(&store)), (None, vec![4]));
    store.logs(at(4, ack_of(5)));
}

#[test]
fn a_marker_that_changes_nothing_of_the_producer_logs_nothing() {
    let mut store = store_with(&[4]);
    store.logs(marker(3, Commit));
    store.now += 1;
    store.is_quiet(marker(3, Commit));
    store.logs(from_coordinator(2, marker(3, Commit)));
}

#[test]
fn a_success_that_leaves_a_lower_epoch_open_says_so() {
    let orphans =
        |store: &mut Store, marker: Marker| flags(store.execute(marker.into()).expect("success")).1;
    // Resolving another one, without a match, as a repeat, and by an operator.
    assert!(orphans(&mut store_with(&[1, 4]), marker(5, Commit)));
    assert!(orphans(&mut store_with(&[1]), marker(3, Commit)));
    let mut store = store_with(&[1]);
    store.logs(marker(3, Commit));
    assert!(orphans(&mut store, marker(3, Commit)));
    assert!(orphans(&mut store_with(&[1, 4]), old(0, marker(4, Abort))));
    // Only what is below counts, and only what stays.
    assert!(!orphans(&mut store_with(&[4]), marker(5, Commit)));
    assert!(!orphans(&mut store_with(&[4]), marker(4, Commit)));
    assert!(!orphans(&mut store_with(&[4]), marker(3, Commit)));
}

#[test]
fn marker_judges_form_before_the_coordinator_and_the_coordinator_before_all_else() {
    let mut store = store_with(&[1]);
    store.logs(from_coordinator(7, marker(9, Commit)));
    let zombie = from_coordinator(6, marker(-1, Commit));
    store.refuses_request(zombie, "producer epoch");
    // Would match, would be a repeat, would be refused with another error, would abort.
    for marker in [marker(2, Commit), marker(9, Commit), marker(5, Commit), marker(1, Abort)] {
        store.refuses(old(0, from_coordinator(6, marker)), COORDINATOR_FENCED);
    }
}

#[test]
fn a_match_goes_before_every_memory_of_completed_markers() {
    let mut store = store_with(&[1, 5]);
    store.logs(marker(6, Commit));
    // Below the last completed one.
    assert_eq!(resolved(store.logs(marker(2, Commit))), [(1, 1)]);
    // Equal to it: forced by hand one above, the orphan's own marker then.
    let mut store = store_with(&[1, 2]);
    store.logs(Command::ForceResolve { producer_id: PID, epoch: 2, outcome: Abort });
    assert_eq!(store.last_completed(), Some((3, Abort)));
    assert_eq!(resolved(store.logs(marker(2, Commit))), [(1, 1)]);
    assert_eq!(store.last_completed(), Some((3, Abort)));
}

#[test]
fn a_match_goes_before_an_operators_abort() {
    let mut store = store_with(&[1, 2]);
    assert_eq!(resolved(store.logs(old(0, marker(2, Abort)))), [(1, 1)]);
    assert_eq!((store.last_completed(), open(&store)), (Some((2, Abort)), vec![2]));
}

#[test]
fn a_repeat_goes_before_an_operators_abort() {
    let mut store = store_with(&[1]);
    store.logs(marker(2, Abort));
    store.logs(at(2, ack_of(2)));
    assert_eq!(resolved(store.is_quiet(old(0, marker(2, Abort)))), []);
    assert_eq!(open(&store), [2]);
}

#[test]
fn an_old_epoch_is_refused_before_an_operators_abort() {
    let mut store = store_with(&[1]);
    store.logs(marker(4, Commit));
    store.refuses(old(0, marker(1, Abort)), INVALID_PRODUCER_EPOCH);
    assert_eq!(open(&store), [1]);
}
