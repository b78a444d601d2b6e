//! `WriteTxnMarkers`.

use sharestate::kafka::{Persister, SHARE_GROUP_STATE_TOPIC, TxnMarkerResult};

use crate::support::*;

const STATE: &str = SHARE_GROUP_STATE_TOPIC;

fn staged() -> Persister {
    let persister = started(&[0, 1]);
    let acks = vec![(0, vec![acks(0, 4, &[1])]), (1, vec![acks(7, 8, &[3])])];
    assert_codes(&run(persister.txn_share_acknowledge(stage(acks))), &[0, 0]);
    persister
}

/// Topics with their partitions and codes.
type Told<'a> = Vec<(&'a str, Vec<(i32, i16)>)>;

fn told(results: &[TxnMarkerResult]) -> Vec<(i64, Told<'_>)> {
    results.iter().map(|result| (result.producer_id, topics(result))).collect()
}

fn topics(result: &TxnMarkerResult) -> Told<'_> {
    let topics = result.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        (&*topic.name, partitions.map(|p| (p.partition_index, p.error_code)).collect())
    });
    topics.collect()
}

#[test]
fn one_marker_resolves_everything_and_answers_each_state_partition() {
    let persister = staged();
    let topics: &[(&str, &[i32])] =
        &[("output", &[3]), (STATE, &[9, 2]), ("other", &[0]), (STATE, &[4])];
    let commit = marker(7, 1, true, topics);
    for _ in 0..2 {
        let results = run(persister.write_txn_markers(vec![commit.clone()]));
        let expected = vec![(STATE, vec![(9, 0), (2, 0)]), (STATE, vec![(4, 0)])];
        assert_eq!(told(&results), [(7, expected)]);
        assert_eq!(shown(&read(&persister, 0, false)), [(0, 4, 2, 1)]);
        assert_eq!(shown(&read(&persister, 1, false)), [(7, 8, 4, 1)]);
    }
}

#[test]
fn a_marker_without_a_state_partition_does_nothing() {
    let persister = staged();
    for topics in [&[("output", &[0_i32][..])][..], &[(STATE, &[])], &[]] {
        let results = run(persister.write_txn_markers(vec![marker(7, 1, false, topics)]));
        assert!(results[0].topics.iter().all(|topic| topic.partitions.is_empty()));
    }
    assert_eq!(shown(&read(&persister, 0, true)), [(0, 4, 5, 1)]);
    // Nor is it remembered: the transaction's own marker still has its effect.
    run(persister.write_txn_markers(vec![marker(7, 1, true, &[(STATE, &[0])])]));
    assert_eq!(shown(&read(&persister, 0, false)), [(0, 4, 2, 1)]);
}

#[test]
fn markers_are_judged_in_order_and_answered_in_order() {
    let persister = staged();
    let state: &[(&str, &[i32])] = &[(STATE, &[0])];
    let mut fenced = marker(7, 2, true, state);
    fenced.coordinator_epoch = 0;
    let markers = vec![
        marker(8, 3, true, state),
        marker(7, 1, false, state),
        marker(7, 0, true, state),
        fenced,
        marker(-1, 0, true, state),
        marker(7, 1, true, state), // a repeat that contradicts: a success without effect
    ];
    let results = run(persister.write_txn_markers(markers));
    let codes: Vec<_> =
        told(&results).into_iter().map(|(id, topics)| (id, topics[0].1[0].1)).collect();
    assert_eq!(codes, [(8, 0), (7, 0), (7, 47), (7, 52), (-1, 42), (7, 0)]);
    assert_eq!(shown(&read(&persister, 0, false)), [(0, 4, 0, 1)]);
    assert_eq!(shown(&read(&persister, 1, false)), [(7, 8, 0, 1)]);
}
