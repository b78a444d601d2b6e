//! Topics that the broker's metadata does not know, checked last as Kafka does
//! (`tests/data/shard.json`, the scenarios with metadata steps).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use sharestate::kafka::{
    DeletePartition, InitializePartition, PartitionResult, Persister, ReadPartition,
    SummaryPartition, TopicCatalogue, TopicData, WritePartition,
};
use uuid::Uuid;

use crate::support::*;

/// Knows partitions 0 and 1 of [`TOPIC`], or nothing.
#[derive(Debug)]
struct Catalogue(AtomicBool);

impl TopicCatalogue for Catalogue {
    fn contains(&self, topic_id: Uuid, partition: i32) -> bool {
        self.0.load(Ordering::Relaxed) && topic_id == TOPIC && partition < 2
    }
}

fn with_catalogue() -> (Persister, Arc<Catalogue>) {
    let catalogue = Arc::new(Catalogue(AtomicBool::new(true)));
    (persister().with_catalogue(Arc::clone(&catalogue) as _), catalogue)
}

#[test]
fn unknown_partitions_are_answered_so_and_nothing_is_done() {
    let (persister, catalogue) = with_catalogue();
    let start = |partition| InitializePartition { partition, state_epoch: 1, start_offset: 0 };
    let starts = vec![start(0), start(2), start(1)];
    let results = run(persister.initialize_state(group(starts)));
    assert_codes(&results, &[0, 3, 0]);
    let text = results[0].partitions[1].error_message.as_deref();
    assert_eq!(text, Some("This server does not host this topic-partition."));

    catalogue.0.store(false, Ordering::Relaxed);
    let before = rows(&persister);
    assert_eq!(before.len(), 2);
    let writes = vec![write(0, vec![batch(0, 9, 2, 1)]), write(1, vec![])];
    assert_codes(&run(persister.write_state(group(writes))), &[3, 3]);
    let mut request = read_request(&[], true);
    request.topics[0].partitions = vec![ReadPartition { partition: 0, leader_epoch: 6 }];
    assert_eq!(run(persister.read_state(request))[0].partitions[0].error_code, 3);
    assert_codes(&run(persister.delete_state(group(vec![DeletePartition { partition: 0 }]))), &[3]);
    assert_codes(
        &run(persister.txn_share_acknowledge(stage(vec![(0, vec![acks(0, 0, &[1])])]))),
        &[3],
    );
    let summary = SummaryPartition { partition: 0, leader_epoch: 0 };
    assert_eq!(run(persister.read_summary(group(vec![summary])))[0].partitions[0].error_code, 3);
    assert_eq!(rows(&persister), before);
}

#[test]
fn every_other_refusal_goes_before_an_unknown_partition() {
    let (persister, catalogue) = with_catalogue();
    start(&persister, &[0, 1]);
    let mut request = read_request(&[], true);
    request.topics[0].partitions = vec![ReadPartition { partition: 0, leader_epoch: 6 }];
    run(persister.read_state(request));
    catalogue.0.store(false, Ordering::Relaxed);
    let writes = vec![
        write(0, vec![]),
        WritePartition { state_epoch: 0, leader_epoch: 6, ..write(0, vec![]) },
        write(-1, vec![]),
        write(5, vec![]),
        WritePartition { leader_epoch: 6, ..write(0, vec![]) },
    ];
    assert_codes(&run(persister.write_state(group(writes))), &[74, 124, 42, 42, 3]);
}

#[test]
fn kafkas_scenarios_about_metadata_hold() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shard.json");
    let text = std::fs::read_to_string(path).expect("readable");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let (mut ran, mut steps) = (0, 0);
    for scenario in document["scenarios"].as_array().expect("scenarios") {
        let all = scenario["steps"].as_array().expect("steps");
        let levels = scenario["levels"].as_array().expect("levels");
        if !all.iter().any(|step| step["op"] == "metadata") || !levels.contains(&"4.4".into()) {
            continue;
        }
        let (persister, catalogue) = with_catalogue();
        for step in all {
            perform(&persister, &catalogue, step, &format!("{}: {step}", scenario["id"]));
            steps += 1;
        }
        ran += 1;
    }
    println!("metadata-scenarios={ran} steps={steps}");
    assert_eq!((ran, steps), (9, 25));
}

fn int<T: TryFrom<i64>>(value: &Value) -> T {
    value.as_i64().and_then(|n| T::try_from(n).ok()).unwrap_or_else(|| panic!("{value}"))
}

fn perform(persister: &Persister, catalogue: &Catalogue, step: &Value, at: &str) {
    let input = &step["in"];
    let partition = input["partition"].as_i64().map_or(0, |n| i32::try_from(n).expect("small"));
    let answer = match step["op"].as_str().expect("op") {
        // An old log holds a leader epoch of -1, which a store of ours cannot hold; 0 fences as
        // little.
        "load" => return start_as(persister, &step["record"]),
        "metadata" => return catalogue.0.store(step["value"] == "present", Ordering::Relaxed),
        "initialize" => {
            let (state_epoch, start_offset) =
                (int(&input["state_epoch"]), int(&input["start_offset"]));
            let request = InitializePartition { partition, state_epoch, start_offset };
            only(run(persister.initialize_state(group(vec![request]))))
        }
        "write" => {
            let request = WritePartition {
                partition,
                state_epoch: int(&input["state_epoch"]),
                leader_epoch: int(&input["leader_epoch"]),
                start_offset: int(&input["start_offset"]),
                delivery_complete_count: int(&input["delivery_complete_count"]),
                state_batches: vec![batch(0, 10, 0, 1)],
            };
            only(run(persister.write_state(group(vec![request]))))
        }
        "read" => {
            let mut request = read_request(&[], false);
            let leader_epoch = int(&input["leader_epoch"]);
            request.topics[0].partitions = vec![ReadPartition { partition, leader_epoch }];
            let read = run(persister.read_state(request)).remove(0).partitions.remove(0);
            let (error_code, error_message) = (read.error_code, read.error_message);
            PartitionResult { partition, error_code, error_message }
        }
        "delete" => only(run(persister.delete_state(group(vec![DeletePartition { partition }])))),
        other => panic!("op {other}"),
    };
    let code = match step["expect"]["error"].as_str() {
        Some("UNKNOWN_TOPIC_OR_PARTITION") => 3,
        Some("FENCED_LEADER_EPOCH") => 74,
        Some("NONE") | None => 0,
        other => panic!("{other:?}"),
    };
    assert_eq!(answer.error_code, code, "{at}");
    if let Some(text) = step["expect"]["message"].as_str() {
        assert_eq!(answer.error_message.as_deref(), Some(text), "{at}");
    }
}

/// The state that the record of a scenario's log leads to.
fn start_as(persister: &Persister, record: &Value) {
    let (state_epoch, start_offset) = (int(&record["state_epoch"]), int(&record["start_offset"]));
    let request = InitializePartition { partition: 0, state_epoch, start_offset };
    assert_codes(&run(persister.initialize_state(group(vec![request]))), &[0]);
}

fn only(mut topics: Vec<TopicData<PartitionResult>>) -> PartitionResult {
    topics.remove(0).partitions.remove(0)
}

fn rows(persister: &Persister) -> Vec<String> {
    let page = run(persister.store().list(None, None, 100)).expect("list");
    page.partitions.iter().map(|(key, row)| format!("{key} {row:?}")).collect()
}
