//! Pending acks in a read: batches of state 5 for who understands them, an error for who does not.

use proptest::prelude::*;
use sharestate::kafka::{PersisterBatch, ReadPartition, StagedFields};
use sharestate::{AckType, DeliveryState, StateBatch};

use crate::support::*;

#[test]
fn pending_acks_are_batches_of_state_5_with_their_staged_fields() {
    let persister = started(&[0]);
    let stored = vec![batch(0, 9, 0, 1), batch(12, 14, 2, 1)];
    assert_codes(&run(persister.write_state(group(vec![write(0, stored)]))), &[0]);
    let mut second = acks(4, 5, &[3]);
    (second.delivery_count, second.reject_target) = (2, DeliveryState::ARCHIVING);
    second.abort_target = DeliveryState::ARCHIVED;
    let mut first = acks(2, 3, &[1]);
    first.delivery_count = 2;
    let gap = acks(10, 11, &[0]);
    assert_codes(
        &run(persister.txn_share_acknowledge(stage(vec![(0, vec![first, second, gap])]))),
        &[0],
    );

    let result = read(&persister, 0, true);
    assert_eq!((result.error_code, result.state_epoch, result.start_offset), (0, 1, 0));
    assert_eq!(
        shown(&result),
        [(0, 1, 0, 1), (2, 3, 5, 2), (4, 5, 5, 2), (6, 9, 0, 1), (10, 11, 5, 1), (12, 14, 2, 1)]
    );
    let staged = |ack_type, delivery_state, abort_state| {
        Some(StagedFields {
            producer_id: 7,
            producer_epoch: 0,
            ack_type,
            delivery_state,
            abort_state,
        })
    };
    use DeliveryState as S;
    let fields: Vec<_> = result.state_batches.iter().map(|batch| batch.staged).collect();
    assert_eq!(
        fields,
        [
            None,
            staged(AckType::Accept, S::ACKNOWLEDGED, S::AVAILABLE),
            staged(AckType::Reject, S::ARCHIVING, S::ARCHIVED),
            None,
            staged(AckType::Gap, S::ARCHIVED, S::AVAILABLE),
            None,
        ]
    );
}

#[test]
fn a_reader_that_does_not_understand_pending_acks_is_refused_where_there_are_any() {
    let persister = started(&[0, 1, 2]);
    assert_codes(
        &run(persister.txn_share_acknowledge(stage(vec![(1, vec![acks(3, 4, &[1])])]))),
        &[0],
    );
    let results = run(persister.read_state(read_request(&[0, 1, 2], false)));
    let told: Vec<_> = results[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(told, [0, 35, 0]);
    let refused = &results[0].partitions[1];
    assert_eq!((refused.state_epoch, refused.start_offset), (0, 0));
    assert!(refused.state_batches.is_empty());
    let message = refused.error_message.as_deref().expect("message");
    assert!(message.contains("pending transactional acknowledgements"), "{message}");

    // Once the transaction is over there is nothing to hide.
    let commit = marker(7, 1, true, &[("__share_group_state", &[0])]);
    assert_eq!(
        run(persister.write_txn_markers(vec![commit]))[0].topics[0].partitions[0].error_code,
        0
    );
    assert_eq!(shown(&read(&persister, 1, false)), [(3, 4, 2, 1)]);
}

#[test]
fn a_refused_reader_has_fenced_older_leaders_all_the_same() {
    let persister = started(&[0]);
    assert_codes(
        &run(persister.txn_share_acknowledge(stage(vec![(0, vec![acks(3, 4, &[1])])]))),
        &[0],
    );
    let mut request = read_request(&[], false);
    request.topics[0].partitions = vec![ReadPartition { partition: 0, leader_epoch: 8 }];
    assert_eq!(run(persister.read_state(request))[0].partitions[0].error_code, 35);
    assert_codes(
        &run(persister.write_state(group(vec![write(0, vec![batch(9, 9, 2, 1)])]))),
        &[74],
    );
}

#[test]
fn neighbours_that_nothing_tells_apart_are_one_batch() {
    let persister = started(&[0]);
    for range in [acks(0, 4, &[1]), acks(5, 9, &[1]), acks(10, 10, &[3])] {
        assert_codes(&run(persister.txn_share_acknowledge(stage(vec![(0, vec![range])]))), &[0]);
    }
    assert_eq!(shown(&read(&persister, 0, true)), [(0, 9, 5, 1), (10, 10, 5, 1)]);
}

/// Offset by offset: a pending ack stands above the batch at its offset.
fn painted(batches: &[StateBatch], pending: &[(i64, i64)]) -> Vec<Option<(i8, i16)>> {
    let mut offsets = vec![None; 64];
    for b in batches {
        for offset in b.first_offset..=b.last_offset {
            offsets[offset as usize] = Some((b.delivery_state.0, b.delivery_count));
        }
    }
    for (first, last) in pending {
        for offset in *first..=*last {
            offsets[offset as usize] = Some((5, 9));
        }
    }
    offsets
}

fn by_offset(shown: &[PersisterBatch]) -> Vec<Option<(i8, i16)>> {
    let mut offsets = vec![None; 64];
    for b in shown {
        for offset in b.first_offset..=b.last_offset {
            let place = &mut offsets[offset as usize];
            assert_eq!(*place, None, "offset {offset} is shown twice");
            *place = Some((b.delivery_state.0, b.delivery_count));
        }
    }
    offsets
}

/// Disjoint ranges below offset 60, with gaps of 0 to 3 between them.
fn ranges() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((0..4_i64, 1..6_i64), 0..10).prop_map(|steps| {
        let mut at = 0;
        let place = |(gap, length): (i64, i64)| {
            let first = at + gap;
            at = first + length;
            (first, at - 1)
        };
        steps.into_iter().map(place).filter(|(_, last)| *last < 60).collect()
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_offset_is_shown_once_as_pending_or_as_stored(
        stored in ranges(), counts in prop::collection::vec(0..4_i16, 10), pending in ranges(),
    ) {
        let persister = started(&[0]);
        let batches: Vec<_> = stored
            .iter()
            .zip(counts)
            .map(|((first, last), count)| batch(*first, *last, 0, count))
            .collect();
        let results = run(persister.write_state(group(vec![write(0, batches.clone())])));
        assert_codes(&results, &[0]);
        let ranges: Vec<_> = pending
            .iter()
            .map(|(first, last)| {
                let mut range = acks(*first, *last, &[1]);
                range.delivery_count = 9;
                range
            })
            .collect();
        if !ranges.is_empty() {
            assert_codes(&run(persister.txn_share_acknowledge(stage(vec![(0, ranges)]))), &[0]);
        }
        let shown = read(&persister, 0, true).state_batches;
        prop_assert_eq!(by_offset(&shown), painted(&batches, &pending));
        // Sorted, and as few as can be.
        prop_assert!(shown.is_sorted_by(|a, b| a.last_offset < b.first_offset));
        let touch = |a: &PersisterBatch, b: &PersisterBatch| {
            a.last_offset + 1 == b.first_offset
                && (a.delivery_state, a.delivery_count) == (b.delivery_state, b.delivery_count)
        };
        prop_assert!(!shown.windows(2).any(|pair| touch(&pair[0], &pair[1])));
    }
}
