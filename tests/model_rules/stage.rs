//! Stage: semantics section 4.3.

use super::*;
use sharestate::limits::{BATCHES_PER_CALL_MAX, ID_BYTES_MAX};
use sharestate::model::OpenEpoch;

fn range(first_offset: i64, last_offset: i64) -> AckRange {
    AckRange { first_offset, last_offset, ..accept(0, 0) }
}

#[test]
fn stage_refuses_a_negative_producer_id() {
    let mut store = Store::new();
    for producer_id in [-1, i64::MIN] {
        store.refuses_request(of(producer_id, stage([accept(5, 5)])), "producer id");
    }
    store.logs(of(0, stage([accept(5, 5)])));
    store.logs(of(i64::MAX, stage([accept(6, 6)])));
}

#[test]
fn stage_refuses_a_producer_epoch_that_only_a_marker_can_carry() {
    let mut store = Store::new();
    for epoch in [i16::MIN, -1, 32_767] {
        store.refuses_request(at(epoch, stage([accept(5, 5)])), "producer epoch");
    }
    store.logs(at(0, stage([accept(5, 5)])));
    store.logs(at(32_766, stage([accept(6, 6)])));
}

#[test]
fn stage_refuses_an_empty_call() {
    Store::new().refuses_request(stage([]), "No ranges");
}

#[test]
fn stage_refuses_each_kind_of_malformed_range() {
    let mut store = Store::new();
    let top = i64::MAX - 1;
    for malformed in [
        range(6, 5),
        range(-1, 5),
        range(5, i64::MAX),
        AckRange { delivery_count: -1, ..accept(5, 6) },
        AckRange { delivery_count: i16::MIN, ..accept(5, 6) },
    ] {
        store.refuses_request(stage([accept(0, 1), malformed]), "malformed");
    }
    let zero = AckRange { delivery_count: 0, ..accept(0, 0) };
    assert_eq!(staged(store.logs(stage([range(top, top), zero]))), [(0, 0), (top, top)]);
}

#[test]
fn stage_refuses_ranges_that_overlap_each_other() {
    let mut store = Store::new();
    store.refuses_request(stage([accept(5, 9), accept(9, 12)]), "overlap");
    store.refuses_request(stage([accept(9, 12), accept(5, 9)]), "overlap");
    store.refuses_request(stage([accept(5, 9), accept(5, 9)]), "overlap");
    store.logs(stage([accept(10, 12), accept(5, 9)]));
}

#[test]
fn stage_refuses_more_ranges_than_one_call_may_carry() {
    let mut store = Store::new();
    let count = |i: i64| (i % 2) as i16 + 1;
    let ack = |i: i64| AckRange { delivery_count: count(i), ..accept(i, i) };
    let most: Vec<_> = (0..BATCHES_PER_CALL_MAX as i64).map(ack).collect();
    store.logs(stage(most.clone()));
    let more = [most, vec![accept(1 << 40, 1 << 40)]].concat();
    store.refuses_request(stage(more), "many");
}

#[test]
fn stage_refuses_ids_that_are_too_long() {
    let mut store = Store::new();
    let (fits, long) = ("x".repeat(ID_BYTES_MAX), "x".repeat(ID_BYTES_MAX + 1));
    let call = stage([accept(5, 5)]);
    let transactional = Stage { transactional_id: long.clone(), ..call.clone() };
    store.refuses_request(transactional, "transactional id");
    store.refuses_request(Stage { member_id: long, ..call.clone() }, "member id");
    store.logs(Stage { transactional_id: fits.clone(), member_id: fits, ..call });
}

#[test]
fn stage_refuses_negative_leader_and_state_epochs() {
    let mut store = Store::new();
    for epoch in [-1, i32::MIN] {
        let call = stage([accept(5, 5)]);
        store.refuses_request(Stage { leader_epoch: epoch, ..call.clone() }, "leader epoch");
        store.refuses_request(Stage { state_epoch: epoch, ..call }, "state epoch");
    }
}

#[test]
fn stage_takes_exactly_the_ack_types_and_targets_of_the_table() {
    let undone = [0, 3, 4];
    for ack_type in (0..5).map(|raw| AckType::from_raw(raw).expect("known")) {
        for (commit, abort) in (-1..7).flat_map(|c| (-1..7).map(move |a| (c, a))) {
            let fits = match ack_type {
                AckType::Accept => commit == 2 && undone.contains(&abort),
                AckType::Reject => [3, 4].contains(&commit) && undone.contains(&abort),
                AckType::Gap => (commit, abort) == (4, 0),
                AckType::Release | AckType::Renew => false,
            };
            let (commit_target, abort_target) = (DeliveryState(commit), DeliveryState(abort));
            let ack = AckRange { ack_type, commit_target, abort_target, ..accept(5, 5) };
            if fits {
                Store::new().logs(stage([ack]));
            } else {
                Store::new().refuses_request(stage([accept(0, 0), ack]), "ack type");
            }
        }
    }
    assert_eq!([AckType::from_raw(-1), AckType::from_raw(5)], [None, None]);
}

#[test]
fn stage_refuses_a_transaction_version_below_two() {
    let mut store = Store::new();
    for transaction_version in [i8::MIN, -1, 0, 1] {
        let call = Stage { transaction_version, ..stage([accept(5, 5)]) };
        let rejection = store.refuses(call, UNSUPPORTED_VERSION);
        assert_eq!(rejection, Rejection::UnsupportedVersion(transaction_version));
    }
    store.logs(Stage { transaction_version: 3, ..stage([accept(5, 5)]) });
}

#[test]
fn stage_refuses_a_key_that_is_not_initialised() {
    Store::default().refuses_request(stage([accept(5, 5)]), "uninitialized");
}

#[test]
fn stage_refuses_a_leader_epoch_below_the_fence() {
    let mut store = Store::new();
    store.logs(read(5));
    let call = stage([accept(5, 5)]);
    let rejection = store.refuses(Stage { leader_epoch: 4, ..call.clone() }, FENCED_LEADER_EPOCH);
    assert_eq!(rejection, Rejection::FencedLeaderEpoch { sent: 4, fence: 5 });
    store.logs(Stage { leader_epoch: 6, ..call });
    assert_eq!(store.row().leader_fence, 5);
}

#[test]
fn stage_refuses_every_other_state_epoch() {
    let mut store = Store::new();
    for state_epoch in [0, STATE_EPOCH - 1, STATE_EPOCH + 1, i32::MAX] {
        let call = Stage { state_epoch, ..stage([accept(5, 5)]) };
        let rejection = store.refuses(call, FENCED_STATE_EPOCH);
        let expected = Rejection::FencedStateEpoch { sent: state_epoch, stored: STATE_EPOCH };
        assert_eq!(rejection, expected);
    }
}

#[test]
fn stage_refuses_an_epoch_below_the_highest_stage_epoch() {
    let mut store = Store::new();
    store.logs(at(5, stage([accept(5, 5)])));
    let late = at(4, stage([accept(6, 6)]));
    let rejection = store.refuses(late.clone(), INVALID_PRODUCER_EPOCH);
    assert_eq!(rejection, Rejection::InvalidProducerEpoch { sent: 4, current: 5 });
    // Also when those acks are gone.
    store.logs(delete());
    store.logs(initialize(STATE_EPOCH, 0));
    store.refuses(late, INVALID_PRODUCER_EPOCH);
    store.logs(at(5, stage([accept(6, 6)])));
}

#[test]
fn stage_refuses_an_epoch_below_the_last_completed_markers() {
    let mut store = Store::new();
    store.logs(marker(6, Abort));
    let rejection = store.refuses(at(5, stage([accept(5, 5)])), INVALID_PRODUCER_EPOCH);
    assert_eq!(rejection, Rejection::InvalidProducerEpoch { sent: 5, current: 6 });
    store.logs(at(6, stage([accept(5, 5)])));
}

#[test]
fn stage_refuses_another_two_phase_setting_for_an_open_epoch() {
    for first in [false, true] {
        let mut store = Store::new();
        let call = |two_phase, offset| Stage { two_phase, ..stage([accept(offset, offset)]) };
        store.logs(call(first, 5));
        store.refuses_request(call(!first, 6), "two-phase");
        store.refuses_request(call(!first, 5), "two-phase");
        store.logs(at(1, call(!first, 6)));
        // A closed epoch has no setting.
        store.logs(initialize(STATE_EPOCH, 9));
        store.logs(at(1, call(first, 12)));
    }
}

/// Stages 5..=9, delivered twice, onto one persisted batch.
fn onto(persisted: StateBatch) -> Result<Answer, Rejection> {
    let mut store = Store::new();
    store.logs(write([persisted]));
    store.execute(stage([accept(5, 9)]).into())
}

#[test]
fn stage_refuses_offsets_whose_delivery_has_ended() {
    for state in [2, 3, 4] {
        for count in [0, 1, 2, 3] {
            let rejection = onto(batch(8, 20, state, count)).expect_err("ended");
            assert_eq!(rejection.kafka_code(), INVALID_RECORD_STATE);
            assert!(matches!(rejection, Rejection::InvalidRecordState { offset: 8, .. }));
        }
    }
    onto(batch(10, 20, 4, 3)).expect("next to it");
}

#[test]
fn stage_refuses_offsets_persisted_with_the_staged_count_or_a_higher_one() {
    for count in [2, 3, i16::MAX] {
        let rejection = onto(batch(0, 5, 0, count)).expect_err("released since");
        assert!(matches!(rejection, Rejection::InvalidRecordState { offset: 5, .. }));
    }
    for count in [0, 1] {
        onto(batch(0, 20, 0, count)).expect("the delivery after that one");
    }
}

#[test]
fn stage_judges_persisted_offsets_at_or_above_the_start_only() {
    let mut store = Store::new();
    store.logs(Write { start_offset: 6, ..write([]) });
    // What is below the start is gone from the row, so is its reason to refuse.
    assert_eq!(staged(store.logs(stage([accept(0, 9)]))), [(6, 9)]);
}

#[test]
fn stage_refuses_offsets_that_are_pending_otherwise() {
    let present = AckRange { ack_type: AckType::Reject, ..accept(5, 9) };
    let present = AckRange { commit_target: DeliveryState::ARCHIVED, ..present };
    let mut store = Store::new();
    store.logs(at(3, stage([present])));
    let twice = AckRange { first_offset: 9, last_offset: 12, ..present };
    let different = [
        ("another type", AckRange { ack_type: AckType::Gap, ..twice }),
        ("another commit", AckRange { commit_target: DeliveryState::ARCHIVING, ..twice }),
        ("another abort", AckRange { abort_target: DeliveryState::ARCHIVED, ..twice }),
        ("a higher count", AckRange { delivery_count: 3, ..twice }),
        ("a lower count", AckRange { delivery_count: 1, ..twice }),
    ];
    for (what, ack) in different {
        let rejection = store.refuses(at(3, stage([ack])), INVALID_RECORD_STATE);
        let names_it = matches!(rejection, Rejection::InvalidRecordState { offset: 9, .. });
        assert!(names_it, "{what}: {rejection}");
    }
    store.refuses(of(8, at(3, stage([twice]))), INVALID_RECORD_STATE);
    store.refuses(at(4, stage([twice])), INVALID_RECORD_STATE);
    assert_eq!(staged(store.logs(at(3, stage([twice])))), [(10, 12)]);
}

#[test]
fn the_lowest_offset_at_fault_is_named() {
    let mut store = Store::new();
    store.logs(of(8, stage([accept(20, 20), accept(40, 40)])));
    store.logs(write([batch(10, 10, 2, 1), batch(30, 30, 2, 1)]));
    for (acks, expected) in [
        (vec![accept(35, 50), accept(5, 31)], 10),
        (vec![accept(35, 50), accept(15, 31)], 20),
        (vec![accept(35, 50), accept(25, 31)], 30),
    ] {
        let rejection = store.refuses(stage(acks), INVALID_RECORD_STATE);
        let Rejection::InvalidRecordState { offset, .. } = rejection else { panic!() };
        assert_eq!(offset, expected);
    }
}

#[test]
fn stage_judges_in_the_order_of_the_table() {
    let mut store = Store::new();
    store.logs(read(5));
    let row_of_others = Stage { leader_epoch: 5, ..stage([accept(5, 5)]) };
    store.logs(at(4, row_of_others));
    store.logs(marker(6, Commit));
    let unfit = AckRange { ack_type: AckType::Release, ..accept(5, 5) };
    let mut bad = Stage {
        key: key(1),
        state_epoch: STATE_EPOCH + 1,
        leader_epoch: 4,
        producer_id: -1,
        producer_epoch: 3,
        two_phase: true,
        transaction_version: 1,
        acks: vec![unfit],
        ..stage([])
    };
    store.refuses_request(bad.clone(), "producer id");
    bad.producer_id = PID;
    bad.acks.push(unfit);
    store.refuses_request(bad.clone(), "overlap");
    bad.acks.pop();
    store.refuses_request(bad.clone(), "ack type");
    bad.acks = vec![accept(5, 5)];
    store.refuses(bad.clone(), UNSUPPORTED_VERSION);
    bad.transaction_version = 2;
    store.refuses_request(bad.clone(), "uninitialized");
    bad.key = key(0);
    store.refuses(bad.clone(), FENCED_LEADER_EPOCH);
    bad.leader_epoch = 5;
    store.refuses(bad.clone(), FENCED_STATE_EPOCH);
    bad.state_epoch = STATE_EPOCH;
    store.refuses(bad.clone(), INVALID_PRODUCER_EPOCH);
    // From here on the epoch must be current and open with the other setting.
    store.logs(Stage {
        two_phase: false,
        producer_epoch: 6,
        acks: vec![accept(9, 9)],
        ..bad.clone()
    });
    bad.producer_epoch = 6;
    store.refuses_request(bad.clone(), "two-phase");
    bad.two_phase = false;
    store.refuses(bad.clone(), INVALID_RECORD_STATE);
    bad.acks = vec![accept(8, 8)];
    store.logs(bad);
}

#[test]
fn a_range_below_the_start_is_skipped_and_a_straddling_one_is_clipped() {
    let mut store = Store::with_start(10);
    let answer = store.logs(stage([accept(0, 4), accept(8, 12), accept(20, 20)]));
    assert_eq!(staged(answer), [(10, 12), (20, 20)]);
    assert_eq!(store.pending(), [(10, 12), (20, 20)]);
}

#[test]
fn a_call_wholly_below_the_start_succeeds_and_remembers_nothing() {
    let mut store = Store::with_start(10);
    assert_eq!(staged(store.is_quiet(stage([accept(0, 9)]))), []);
    assert!(store.state.producers.is_empty());
}

#[test]
fn a_repeated_call_succeeds_and_logs_nothing_whoever_leads_now() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9), accept(20, 29)]));
    store.logs(read(7));
    let (leader_epoch, member_epoch) = (7, 2);
    let member_id = "another".to_owned();
    let again = stage([accept(20, 29), accept(5, 9)]);
    let again = Stage { leader_epoch, member_id, member_epoch, ..again };
    assert_eq!(staged(store.is_quiet(again)), []);
}

#[test]
fn only_what_is_new_is_staged() {
    let mut store = Store::new();
    store.logs(stage([accept(5, 9), accept(20, 29)]));
    assert_eq!(
        staged(store.logs(stage([accept(0, 24), accept(28, 30)]))),
        [(0, 4), (10, 19), (30, 30),]
    );
    assert_eq!(store.pending(), [(0, 4), (5, 9), (10, 19), (20, 29), (30, 30)]);
    let calls: Vec<_> = store.row().pending.iter().map(|ack| ack.call.lsn).collect();
    assert_eq!(calls, [3, 2, 3, 2, 3]);
}

#[test]
fn a_call_is_all_or_nothing() {
    let mut store = Store::new();
    store.logs(write([batch(9, 9, 2, 1)]));
    store.refuses(stage([accept(0, 5), accept(9, 9)]), INVALID_RECORD_STATE);
    assert_eq!(store.pending(), []);
    assert!(store.state.producers.is_empty());
}

#[test]
fn equal_neighbours_of_one_call_are_one_range_and_others_stay_apart() {
    let mut store = Store::new();
    let other = AckRange { delivery_count: 3, ..accept(6, 7) };
    let answer = store.logs(stage([accept(0, 2), accept(3, 5), other]));
    assert_eq!(staged(answer), [(0, 7)], "the answer tells offsets only");
    assert_eq!(store.pending(), [(0, 5), (6, 7)]);
}

#[test]
fn everything_that_a_pending_ack_carries_is_stored() {
    let mut store = Store::new();
    store.logs(read(5));
    store.now = 2_000;
    let ack = AckRange {
        ack_type: AckType::Reject,
        commit_target: DeliveryState::ARCHIVING,
        abort_target: DeliveryState::ARCHIVED,
        delivery_count: 4,
        ..accept(5, 9)
    };
    let call = two_phase(at(6, Stage { leader_epoch: 5, member_epoch: 11, ..stage([ack]) }));
    store.logs(call);
    let [pending] = &store.row().pending[..] else { panic!() };
    assert_eq!((pending.first_offset, pending.last_offset), (5, 9));
    assert_eq!((pending.ack_type, pending.delivery_count), (AckType::Reject, 4));
    let targets = (pending.commit_target, pending.abort_target);
    assert_eq!(targets, (DeliveryState::ARCHIVING, DeliveryState::ARCHIVED));
    let call = &pending.call;
    assert_eq!((call.lsn, call.stage_time_ms), (3, 2_000));
    assert_eq!((call.producer_id, call.producer_epoch, call.two_phase), (PID, 6, true));
    assert_eq!((&*call.transactional_id, &*call.member_id), ("transaction", "member"));
    assert_eq!((call.member_epoch, call.state_epoch, call.leader_epoch), (11, STATE_EPOCH, 5));
}

#[test]
fn a_stage_is_remembered_of_its_producer() {
    let mut store = Store::new();
    store.now = 2_000;
    store.logs(two_phase(at(6, stage([accept(5, 9)]))));
    let producer = store.producer();
    assert_eq!(producer.highest_stage_epoch, Some(6));
    assert_eq!((producer.last_completed, producer.coordinator_epoch), (None, None));
    assert_eq!((producer.last_used_ms, producer.last_lsn), (2_000, 2));
    let keys = [key(0)].into();
    let open = OpenEpoch { two_phase: true, superseded_by: None, keys };
    assert_eq!(producer.open, [(6, open)].into());
}

#[test]
fn a_later_epoch_supersedes_the_open_ones_and_the_first_such_epoch_stays() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(1, 1)])));
    store.logs(at(3, stage([accept(3, 3)])));
    store.logs(at(5, stage([accept(5, 5)])));
    let producer = store.producer();
    let superseded: Vec<_> =
        producer.open.iter().map(|(s, open)| (*s, open.superseded_by)).collect();
    assert_eq!(superseded, [(1, Some(3)), (3, Some(5)), (5, None)]);
    let orphaned = [1, 2, 3, 5].map(|epoch| producer.orphaned(epoch));
    assert_eq!(orphaned, [true, false, true, false]);
    assert_eq!(resolved(store.logs(marker(2, Commit))), [(1, 1)], "its own marker still may come");
}

#[test]
fn an_epoch_that_stages_behind_the_marker_of_the_one_before_is_not_orphaned() {
    let mut store = Store::new();
    store.logs(stage([accept(1, 1)]));
    store.logs(marker(1, Commit));
    store.logs(at(1, stage([accept(2, 2)])));
    assert_eq!(store.last_completed(), Some((1, Commit)));
    assert!(!store.producer().orphaned(1));
}

#[test]
fn an_open_epoch_below_a_completed_marker_is_orphaned_too() {
    let mut store = Store::new();
    store.logs(at(1, stage([accept(1, 1)])));
    assert!(!store.producer().orphaned(1));
    store.logs(marker(4, Commit));
    assert!(store.producer().orphaned(1));
}
