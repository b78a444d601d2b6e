//! Transactional calls that no sane broker sends: each gets a typed answer, and nothing is lost.
#![cfg(feature = "rocksdb")]

#[path = "txn_support/real.rs"]
mod real;
mod support;

use real::Real;
use sharestate::{
    AckRange, AckType, Command, DeliveryState, KeyError, Marker, Outcome, Rejection,
    SharePartitionKey, Stage, StoreError,
};
use support::accept;
use uuid::Uuid;

const INVALID_REQUEST: Option<i16> = Some(42);
const COORDINATOR_FENCED: Option<i16> = Some(52);
const UNKNOWN_SERVER_ERROR: Option<i16> = Some(-1);
const NO_CODE: Option<i16> = None;

const PID: i64 = 7;
const BOTH: [Outcome; 2] = [Outcome::Commit, Outcome::Abort];

fn key(group: &str) -> SharePartitionKey {
    SharePartitionKey::new(group, Uuid::from_u128(1), 0).expect("valid")
}

fn reject(first_offset: i64, last_offset: i64) -> AckRange {
    let (ack_type, commit_target) = (AckType::Reject, DeliveryState::ARCHIVED);
    AckRange { ack_type, commit_target, ..accept(first_offset, last_offset) }
}

fn stage(acks: impl Into<Vec<AckRange>>) -> Stage {
    Stage {
        key: key("g"),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: PID,
        producer_epoch: 5,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "t".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 1,
        acks: acks.into(),
    }
}

fn marker(producer_epoch: i16, outcome: Outcome) -> Marker {
    let (coordinator_epoch, transaction_version) = (3, 2);
    Marker { producer_id: PID, producer_epoch, coordinator_epoch, outcome, transaction_version }
}

/// A store with offsets 0 to 4 of `g` pending for [`PID`] at epoch 5.
fn started(segment_bytes: u64) -> Real {
    let real = Real::open(real::options(segment_bytes));
    real.blocking().initialize(&key("g"), 1, 0).expect("initialize");
    real.blocking().stage(stage([accept(0, 4)])).expect("staged");
    real
}

/// What was pending from the start still is, survives a kill, and its marker resolves it.
fn nothing_is_lost(mut real: Real) {
    let before = real.state();
    assert_eq!(before.check_invariants(), Ok(()));
    real.kill_and_open();
    assert_eq!(real.state(), before);
    let resolved = real.blocking().marker(marker(6, Outcome::Commit)).expect("taken").partitions;
    let found = resolved.iter().find(|(found, _)| *found == key("g"));
    assert_eq!(found.expect("resolved").1[0], (0, 4));
}

#[test]
fn epochs_outside_their_range_are_refused_in_every_call() {
    let real = started(16 << 10);
    for epoch in [i16::MIN, -1, i16::MAX] {
        real.refuses(Stage { producer_epoch: epoch, ..stage([accept(9, 9)]) }, INVALID_REQUEST);
    }
    for (epoch, outcome) in [i16::MIN, -1].into_iter().flat_map(|epoch| BOTH.map(|o| (epoch, o))) {
        for transaction_version in [i8::MIN, 0, 1, 2, i8::MAX] {
            let marker = Marker { transaction_version, ..marker(epoch, outcome) };
            real.refuses(marker, INVALID_REQUEST);
        }
    }
    for epoch in [i16::MIN, -1, 4, 6, 32_766, i16::MAX] {
        for outcome in BOTH {
            let force = Command::ForceResolve { producer_id: PID, epoch, outcome };
            real.refuses(force, NO_CODE);
        }
    }
    nothing_is_lost(real);
}

#[test]
fn the_last_epochs_stage_and_resolve_as_all_others_do() {
    for outcome in BOTH {
        let mut real = started(16 << 10);
        let blocking = real.blocking();
        let last = |two_phase| Stage {
            producer_epoch: 32_766,
            producer_id: if two_phase { 8 } else { 9 },
            two_phase,
            ..stage([accept(10 + i64::from(two_phase), 10 + i64::from(two_phase))])
        };
        assert_eq!(blocking.stage(last(false)).expect("staged"), [(10, 10)]);
        assert_eq!(blocking.stage(last(true)).expect("staged"), [(11, 11)]);
        real.kill_and_open();
        for (producer_id, offset) in [(9, 10), (8, 11)] {
            let unbumped = Marker { producer_id, ..marker(32_766, outcome) };
            assert_eq!(real.blocking().marker(unbumped).expect("taken").partitions, []);
            let bumped = Marker { producer_id, ..marker(i16::MAX, outcome) };
            let resolved = real.blocking().marker(bumped).expect("taken").partitions;
            assert_eq!(resolved, [(key("g"), vec![(offset, offset)])]);
            assert_eq!(real.blocking().marker(bumped).expect("repeated").partitions, []);
        }
        nothing_is_lost(real);
    }
}

#[test]
fn an_operator_can_end_the_last_epoch_too() {
    let real = started(16 << 10);
    let last = Stage { producer_epoch: 32_766, producer_id: 9, ..stage([accept(10, 10)]) };
    real.blocking().stage(last).expect("staged");
    let resolved = real.blocking().force_resolve(9, 32_766, Outcome::Abort).expect("ended");
    assert_eq!(resolved.partitions, [(key("g"), vec![(10, 10)])]);
    let producer = real.blocking().producer(9).expect("read").expect("remembered");
    assert_eq!(producer.last_completed.map(|last| last.epoch), Some(i16::MAX));
    nothing_is_lost(real);
}

#[test]
fn ranges_that_overlap_each_other_are_refused_and_unsorted_ones_are_not() {
    let real = started(16 << 10);
    for acks in [
        vec![accept(10, 14), accept(14, 18)],
        vec![accept(10, 14), accept(10, 14)],
        vec![accept(10, 20), reject(12, 12)],
        vec![accept(30, 30), accept(10, 12), accept(11, 11)],
        vec![accept(0, 4), accept(4, 4)],
    ] {
        real.refuses(stage(acks), INVALID_REQUEST);
    }
    let unsorted = stage([accept(30, 31), reject(10, 12), accept(13, 14)]);
    assert_eq!(real.blocking().stage(unsorted).expect("staged"), [(10, 14), (30, 31)]);
    nothing_is_lost(real);
}

#[test]
fn malformed_ranges_are_refused() {
    let real = started(16 << 10);
    let with = |change: fn(&mut AckRange)| {
        let mut range = accept(10, 12);
        change(&mut range);
        stage([accept(20, 20), range])
    };
    for bad in [
        with(|range| range.first_offset = -1),
        with(|range| range.first_offset = i64::MIN),
        with(|range| range.last_offset = 9),
        with(|range| range.last_offset = i64::MAX),
        with(|range| range.delivery_count = -1),
        with(|range| range.delivery_count = i16::MIN),
        with(|range| range.commit_target = DeliveryState::TX_PENDING),
        with(|range| range.commit_target = DeliveryState(i8::MIN)),
        with(|range| range.abort_target = DeliveryState::ACQUIRED),
        with(|range| range.abort_target = DeliveryState::ACKNOWLEDGED),
        stage([]),
    ] {
        real.refuses(bad, INVALID_REQUEST);
    }
    let highest = AckRange { delivery_count: i16::MAX, ..accept(i64::MAX - 1, i64::MAX - 1) };
    let staged = real.blocking().stage(stage([highest])).expect("the last offset and count");
    assert_eq!(staged, [(i64::MAX - 1, i64::MAX - 1)]);
    nothing_is_lost(real);
}

/// ACCEPT and REJECT in turn from offset 1,000 on.
fn alternating(count: i64) -> Vec<AckRange> {
    let range = |n: i64| {
        if n % 2 == 0 { accept(1_000 + n, 1_000 + n) } else { reject(1_000 + n, 1_000 + n) }
    };
    (0..count).map(range).collect()
}

#[test]
fn two_thousand_single_offsets_of_alternating_types_are_one_entry_in_any_order() {
    let real = started(256 << 10);
    let mut acks = alternating(2_000);
    acks.reverse();
    acks.swap(3, 1_500);
    let logged = real.logged();
    assert_eq!(real.blocking().stage(stage(acks.clone())).expect("staged"), [(1_000, 2_999)]);
    assert_eq!(real.logged(), logged + 1);
    assert_eq!(real.blocking().stage(stage(acks)).expect("repeated"), []);
    assert_eq!(real.logged(), logged + 1);
    let conflicting: Vec<_> = (1_000..3_000).map(|offset| accept(offset, offset)).collect();
    real.refuses(stage(conflicting), Some(121));
    assert_eq!(real.state().partitions[&key("g")].pending.len(), 2_001);
    nothing_is_lost(real);
}

#[test]
fn more_ranges_than_a_call_or_a_segment_can_hold_are_refused_as_such() {
    let real = started(4 << 20);
    real.refuses(stage(alternating(65_537)), INVALID_REQUEST);
    real.refuses(stage(alternating(65_536)), UNKNOWN_SERVER_ERROR); // with the range that pends
    let staged = real.blocking().stage(stage(alternating(65_535))).expect("the most there can be");
    assert_eq!(staged, [(1_000, 66_534)]);
    real.refuses(stage([accept(500, 500)]), UNKNOWN_SERVER_ERROR);
    nothing_is_lost(real);

    let small = started(16 << 10);
    let error = small.blocking().stage(stage(alternating(2_000))).expect_err("too large");
    assert!(
        matches!(error, StoreError::Rejected(Rejection::TooLarge { .. })),
        "larger than a segment: {error}"
    );
    nothing_is_lost(small);
}

#[test]
fn producers_that_nobody_knows_are_answered() {
    let real = started(16 << 10);
    for producer_id in [-1, i64::MIN] {
        real.refuses(Stage { producer_id, ..stage([accept(9, 9)]) }, INVALID_REQUEST);
        real.refuses(Marker { producer_id, ..marker(6, Outcome::Commit) }, INVALID_REQUEST);
        let force = Command::ForceResolve { producer_id, epoch: 5, outcome: Outcome::Abort };
        real.refuses(force, NO_CODE);
        assert!(real.blocking().producer(producer_id).expect("read").is_none());
    }
    for producer_id in [0, 6, 8, i64::MAX] {
        let force = Command::ForceResolve { producer_id, epoch: 5, outcome: Outcome::Commit };
        real.refuses(force, NO_CODE);
        assert!(real.blocking().producer(producer_id).expect("read").is_none());
        let resolved = real.blocking().marker(Marker { producer_id, ..marker(6, Outcome::Abort) });
        assert_eq!(resolved.expect("succeeds").partitions, []);
        assert!(real.blocking().producer(producer_id).expect("read").is_some());
    }
    nothing_is_lost(real);
}

#[test]
fn the_largest_producer_id_stages_and_resolves() {
    let mut real = started(16 << 10);
    let largest = Stage { producer_id: i64::MAX, ..stage([accept(9, 9)]) };
    real.blocking().stage(largest).expect("staged");
    real.checkpoint();
    real.kill_and_open();
    let (page, next) = real.blocking().producers(Some(i64::MAX - 1), 10).expect("read");
    assert_eq!((page.len(), next), (1, None));
    let marker = Marker { producer_id: i64::MAX, ..marker(6, Outcome::Commit) };
    let resolved = real.blocking().marker(marker).expect("taken").partitions;
    assert_eq!(resolved, [(key("g"), vec![(9, 9)])]);
    nothing_is_lost(real);
}

#[test]
fn markers_of_an_older_coordinator_are_refused_whatever_they_say() {
    let mut real = started(16 << 10);
    let from = |coordinator_epoch, marker| Marker { coordinator_epoch, ..marker };
    for coordinator_epoch in [i32::MIN, -1, 0, 3] {
        // Nothing to resolve; the first coordinator's epoch may be anything.
        let stray = from(coordinator_epoch, marker(5, Outcome::Commit));
        assert_eq!(real.blocking().marker(stray).expect("taken").partitions, []);
    }
    for coordinator_epoch in [i32::MIN, -1, 0, 2] {
        for outcome in BOTH {
            for epoch in [0, 5, 6, 7, 32_766, i16::MAX] {
                real.refuses(from(coordinator_epoch, marker(epoch, outcome)), COORDINATOR_FENCED);
            }
        }
    }
    real.checkpoint();
    real.close_and_open();
    real.refuses(from(2, marker(6, Outcome::Abort)), COORDINATOR_FENCED);
    nothing_is_lost(real);
}

#[test]
fn ids_of_the_greatest_length_are_kept_and_longer_ones_refused() {
    let mut real = started(1 << 20);
    // Bytes that a row key has to escape, and characters of several bytes.
    for group in ["g".repeat(32_767), "\0".repeat(32_767), format!("{}x", "é".repeat(16_383))] {
        let long = key(&group);
        real.blocking().initialize(&long, 1, 0).expect("initialize");
        let stage = Stage {
            key: long.clone(),
            transactional_id: "t".repeat(32_767),
            member_id: "m".repeat(32_767),
            ..stage([accept(3, 3)])
        };
        assert_eq!(real.blocking().stage(stage).expect("staged"), [(3, 3)]);
        real.checkpoint();
        real.kill_and_open();
        let row = real.blocking().read(&long, 0).expect("read").partition;
        assert_eq!(row.pending[0].call.transactional_id.len(), 32_767);
        assert_eq!(real.blocking().list(Some(&group), None, 10).expect("list").partitions.len(), 1);
    }
    let (g, longer) = ("g".repeat(32_768), "x".repeat(32_768));
    let error = SharePartitionKey::new(g, Uuid::from_u128(1), 0).expect_err("too long");
    assert_eq!(error, KeyError::GroupTooLong { bytes: 32_768 });
    real.refuses(
        Stage { transactional_id: longer.clone(), ..stage([accept(9, 9)]) },
        INVALID_REQUEST,
    );
    real.refuses(Stage { member_id: longer, ..stage([accept(9, 9)]) }, INVALID_REQUEST);
    assert_eq!(real.state().partitions.len(), 4);
    nothing_is_lost(real);
}

#[test]
fn a_long_group_id_in_a_store_of_small_segments_is_refused_as_too_large() {
    let real = started(16 << 10);
    let long = key(&"g".repeat(32_767));
    let initialize = Command::Initialize { key: long, state_epoch: 1, start_offset: 0 };
    real.refuses(initialize, UNKNOWN_SERVER_ERROR);
    nothing_is_lost(real);
}
