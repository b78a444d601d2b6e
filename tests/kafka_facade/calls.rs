//! Many topics and partitions a call: order, duplicates, none, ten thousand, success in part.

use sharestate::fsio::sim::SimFs;
use sharestate::kafka::{
    DeletePartition, GroupRequest, InitializePartition, Persister, ReadPartition, SummaryPartition,
    TopicData, WritePartition,
};
use sharestate::snapshot::MemoryRows;
use uuid::Uuid;

use crate::support::*;

fn initialize(partition: i32, state_epoch: i32, start_offset: i64) -> InitializePartition {
    InitializePartition { partition, state_epoch, start_offset }
}

#[test]
fn results_stand_in_the_order_of_the_request() {
    let persister = persister();
    let (a, b) = (Uuid::from_u128(9), Uuid::from_u128(3));
    let topics = vec![
        TopicData { topic_id: a, partitions: vec![initialize(5, 1, 50), initialize(2, 1, 20)] },
        TopicData { topic_id: b, partitions: vec![initialize(0, 1, 7)] },
        TopicData { topic_id: b, partitions: vec![] },
        TopicData { topic_id: a, partitions: vec![initialize(3, 1, 30)] },
    ];
    let request = GroupRequest { group_id: GROUP.to_owned(), topics: topics.clone() };
    let results = run(persister.initialize_state(request));
    let expected: Vec<(Uuid, Vec<i32>)> = topics
        .iter()
        .map(|topic| (topic.topic_id, topic.partitions.iter().map(|p| p.partition).collect()))
        .collect();
    let told: Vec<(Uuid, Vec<i32>)> = results
        .iter()
        .map(|topic| (topic.topic_id, topic.partitions.iter().map(|p| p.partition).collect()))
        .collect();
    assert_eq!(told, expected);
    assert_codes(&results, &[0; 4]);

    let summary =
        |p: &InitializePartition| SummaryPartition { partition: p.partition, leader_epoch: -1 };
    let topics = topics
        .iter()
        .map(|topic| TopicData {
            topic_id: topic.topic_id,
            partitions: topic.partitions.iter().map(summary).collect(),
        })
        .collect();
    let request = GroupRequest { group_id: GROUP.to_owned(), topics };
    let results = run(persister.read_summary(request));
    let starts: Vec<i64> =
        results.iter().flat_map(|t| &t.partitions).map(|p| p.start_offset).collect();
    assert_eq!(starts, [50, 20, 7, 30]);
}

#[test]
fn a_partition_listed_twice_is_executed_twice_in_order_and_answered_twice() {
    let persister = started(&[0]);
    // The second is refused because of what the first did; a later equal one succeeds.
    let twice = vec![initialize(0, 4, 10), initialize(0, 3, 10), initialize(0, 4, 10)];
    assert_codes(&run(persister.initialize_state(group(twice))), &[0, 124, 0]);
    let write = |count, start| WritePartition {
        state_epoch: 4,
        start_offset: start,
        delivery_complete_count: count,
        ..write(0, vec![])
    };
    assert_codes(&run(persister.write_state(group(vec![write(1, 20), write(5, 30)]))), &[0, 0]);
    let result = read(&persister, 0, false);
    assert_eq!((result.state_epoch, result.start_offset), (4, 30));
}

#[test]
fn no_topics_and_no_partitions_give_as_many_results() {
    let persister = persister();
    let none = || GroupRequest::<WritePartition> { group_id: GROUP.to_owned(), topics: vec![] };
    assert_eq!(run(persister.write_state(none())), []);
    let result = run(persister.delete_state(group(Vec::<DeletePartition>::new())));
    assert_eq!(result, [topic(vec![])]);
    assert_eq!(run(persister.read_state(read_request(&[], true))), [topic(vec![])]);
    assert_eq!(run(persister.txn_share_acknowledge(stage(vec![]))), [topic(vec![])]);
    assert_eq!(run(persister.write_txn_markers(vec![])), []);
}

#[test]
fn one_call_succeeds_in_part_and_says_of_each_partition_what_is_wrong() {
    let persister = started(&[0, 1, 2]);
    let read = |partition, leader_epoch| ReadPartition { partition, leader_epoch };
    let mut request = read_request(&[], false);
    request.topics[0].partitions = vec![read(1, 5)];
    assert_eq!(run(persister.read_state(request))[0].partitions[0].error_code, 0);

    let good = |partition| write(partition, vec![batch(0, 9, 2, 1)]);
    let writes = vec![
        good(0),
        WritePartition { leader_epoch: 4, ..good(1) },
        WritePartition { state_epoch: 0, ..good(2) },
        good(-1),
        good(3),
        WritePartition { leader_epoch: -1, ..good(0) },
        WritePartition { state_epoch: -1, ..good(0) },
        write(0, vec![batch(4, 3, 0, 1)]),
        write(0, vec![batch(20, 29, 5, 1)]),
        good(2),
    ];
    let results = run(persister.write_state(group(writes)));
    assert_codes(&results, &[0, 74, 124, 42, 42, 42, 42, 42, 42, 0]);
    let message = |n: usize| results[0].partitions[n].error_message.as_deref().expect("message");
    let kafkas = [
        (1, "The leader epoch in the request is older than the epoch on the broker."),
        (2, "The coordinator rejected the request because the state epoch did not match."),
        (3, "The partition id cannot be a negative number."),
        (4, "Write operation on uninitialized share partition not allowed."),
        (5, "The leader epoch cannot be a negative number."),
        (6, "The state epoch cannot be a negative number."),
    ];
    for (n, text) in kafkas {
        assert!(message(n).starts_with(text), "{n}: {}", message(n));
    }
    assert!(message(1).contains("leader epoch 4 is below the fence 5"), "{}", message(1));
    let shown_of = |partition| shown(&crate::support::read(&persister, partition, false));
    assert_eq!((shown_of(0), shown_of(2)), (vec![(0, 9, 2, 1)], vec![(0, 9, 2, 1)]));
}

#[test]
fn a_malformed_group_or_topic_is_told_for_each_partition() {
    let persister = persister();
    let partitions = || vec![initialize(0, 1, 0), initialize(1, 1, 0)];
    for group_id in [String::new(), "g".repeat(32_768)] {
        let request = GroupRequest { group_id, topics: vec![topic(partitions())] };
        assert_codes(&run(persister.initialize_state(request)), &[42, 42]);
    }
    let nil = TopicData { topic_id: Uuid::nil(), partitions: partitions() };
    let request =
        GroupRequest { group_id: GROUP.to_owned(), topics: vec![nil, topic(partitions())] };
    assert_codes(&run(persister.initialize_state(request)), &[42, 42, 0, 0]);
}

#[test]
fn an_error_stands_beside_the_defaults_of_kafkas_messages() {
    let persister = persister();
    let result = read(&persister, 0, true);
    assert_eq!((result.state_epoch, result.start_offset), (0, 0));
    assert_eq!((result.error_code, result.state_batches.len()), (42, 0));
    let summary = |partition| SummaryPartition { partition, leader_epoch: 0 };
    let results = run(persister.read_summary(group(vec![summary(0), summary(-1)])));
    let told: Vec<_> = results[0]
        .partitions
        .iter()
        .map(|p| {
            (p.state_epoch, p.leader_epoch, p.start_offset, p.delivery_complete_count, p.error_code)
        })
        .collect();
    // Not initialised is no error of a summary, and tells so by its start offset.
    assert_eq!(told, [(0, 0, -1, -1, 0), (0, 0, 0, -1, 42)]);
    assert_codes(&run(persister.delete_state(group(vec![DeletePartition { partition: 0 }]))), &[0]);
}

/// More than the queue holds at once, in each call.
#[test]
fn ten_thousand_partitions_a_call_are_each_answered() {
    const MANY: i32 = 10_000;
    let mut options = options();
    options.queue_bytes = 64 << 10;
    let (fs, rows) = (SimFs::new(1), MemoryRows::default());
    let persister = open(&fs, &rows, &options);
    let all = || 0..MANY;
    let ok = vec![0; MANY as usize];
    let starts = all().map(|p| initialize(p, 1, i64::from(p))).collect();
    assert_codes(&run(persister.initialize_state(group(starts))), &ok);
    let batch_of = |p: i32| batch(i64::from(p), i64::from(p) + 4, 2, 1);
    let writes = all().map(|p| write(p, vec![batch_of(p)])).collect();
    assert_codes(&run(persister.write_state(group(writes))), &ok);

    let check = |persister: &Persister| {
        let request = read_request(&all().collect::<Vec<_>>(), false);
        let results = run(persister.read_state(request));
        for (p, result) in all().zip(&results[0].partitions) {
            let first = i64::from(p);
            assert_eq!((result.partition, result.start_offset), (p, first));
            assert_eq!(shown(result), [(first, first + 4, 2, 1)]);
        }
        assert_eq!(results[0].partitions.len(), MANY as usize);
    };
    check(&persister);
    drop(persister);
    let persister = open(&fs.restart(), &rows, &options);
    check(&persister);

    let acks = all().map(|p| (p, vec![acks(i64::from(p) + 5, i64::from(p) + 5, &[1])])).collect();
    assert_codes(&run(persister.txn_share_acknowledge(stage(acks))), &ok);
    let summaries = all().map(|partition| SummaryPartition { partition, leader_epoch: 0 });
    let results = run(persister.read_summary(group(summaries.collect())));
    assert!(results[0].partitions.iter().all(|p| (p.error_code, p.state_epoch) == (0, 1)));
    let deletes = all().map(|partition| DeletePartition { partition }).collect();
    assert_codes(&run(persister.delete_state(group(deletes))), &ok);
    let page = run(persister.store().list(None, None, 10)).expect("list");
    assert!(page.partitions.is_empty());
    println!("partitions-a-call={MANY} calls=6");
}
