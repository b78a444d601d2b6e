//! States that a real Kafka 4.4 broker left (`tests/fixtures/kafka-4.4`), asked for through the
//! facade: each answer must be the broker's own, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use sharestate::kafka::{
    GroupRequest, Persister, ReadPartition, ReadRequest, ReadResult, SummaryPartition,
    SummaryResult, TopicCatalogue, TopicData,
};
use sharestate::kafka_log::{Replay, read_segment};
use uuid::Uuid;

use crate::support::{persister, run};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.4").join(name)
}

fn json_file(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(name)).expect("fixture")).expect("JSON")
}

/// Kafka prints topic ids in base64 of the URL alphabet.
fn topic_id(value: &Value) -> Uuid {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |letter| alphabet.iter().position(|known| *known == letter).expect("base64");
    let text = value.as_str().expect("topic id");
    let number = text.bytes().take(21).fold(0_u128, |n, letter| (n << 6) | digit(letter) as u128);
    Uuid::from_u128((number << 2) | (digit(text.as_bytes()[21]) as u128 >> 4))
}

/// The topics that were not deleted.
#[derive(Debug)]
struct Topics(BTreeMap<Uuid, i64>);

impl TopicCatalogue for Topics {
    fn contains(&self, topic_id: Uuid, partition: i32) -> bool {
        self.0.get(&topic_id).is_some_and(|partitions| i64::from(partition) < *partitions)
    }
}

fn topics() -> Topics {
    let manifest = json_file("manifest.json");
    let topics = manifest["topics"].as_array().expect("topics").iter();
    let live = topics.filter(|topic| topic["deleted"] == false);
    Topics(live.map(|t| (topic_id(&t["topicId"]), t["partitions"].as_i64().expect("n"))).collect())
}

/// A store that holds what Kafka's state partitions hold.
fn loaded() -> Persister {
    let persister = persister().with_catalogue(Arc::new(topics()));
    let mut replay = Replay::new();
    for partition in 0..3 {
        let name = format!("state-{partition}.log");
        let bytes = std::fs::read(file(&name)).expect("fixture");
        let mut apply = |record| replay.apply(&name, &record);
        read_segment(&name, &bytes, &mut apply).expect("a segment of Kafka's");
    }
    for (key, partition) in replay.finish() {
        run(persister.store().import(&key, partition, false)).expect("import");
    }
    persister
}

fn as_kafka_tells_a_read(result: &ReadResult) -> Value {
    let batches: Vec<_> = result
        .state_batches
        .iter()
        .map(|b| {
            json!({
                "firstOffset": b.first_offset,
                "lastOffset": b.last_offset,
                "deliveryState": b.delivery_state.0,
                "deliveryCount": b.delivery_count,
            })
        })
        .collect();
    json!({
        "partition": result.partition,
        "errorCode": result.error_code,
        "errorMessage": result.error_message,
        "stateEpoch": result.state_epoch,
        "startOffset": result.start_offset,
        "stateBatches": batches,
    })
}

fn as_kafka_tells_a_summary(result: &SummaryResult) -> Value {
    json!({
        "partition": result.partition,
        "errorCode": result.error_code,
        "errorMessage": result.error_message,
        "stateEpoch": result.state_epoch,
        "leaderEpoch": result.leader_epoch,
        "startOffset": result.start_offset,
        "deliveryCompleteCount": result.delivery_complete_count,
    })
}

#[test]
fn every_answer_is_the_one_that_kafkas_own_coordinator_gave() {
    let persister = loaded();
    let summary = json_file("summary.json");
    let told = summary["sharePartitions"].as_array().expect("share partitions");
    let groups: BTreeSet<&str> = told.iter().filter_map(|t| t["groupId"].as_str()).collect();
    let (mut answers, mut errors) = (0, 0);
    for group in groups {
        // One call for all of a group, as the broker's persister merges them.
        let of_group: Vec<&Value> = told.iter().filter(|t| t["groupId"] == group).collect();
        let reads = run(persister.read_state(ReadRequest {
            group_id: group.to_owned(),
            accepts_pending: false,
            topics: each(&of_group, |partition, leader_epoch| ReadPartition {
                partition,
                leader_epoch,
            }),
        }));
        let summaries = run(persister.read_summary(GroupRequest {
            group_id: group.to_owned(),
            topics: each(&of_group, |partition, leader_epoch| SummaryPartition {
                partition,
                leader_epoch,
            }),
        }));
        for (kafkas, (read, summary)) in of_group.iter().zip(reads.iter().zip(&summaries)) {
            let read = as_kafka_tells_a_read(&read.partitions[0]);
            let summary = as_kafka_tells_a_summary(&summary.partitions[0]);
            assert_eq!(read, kafkas["state"], "{group}: {}", kafkas["topic"]);
            assert_eq!(summary, kafkas["summary"], "{group}: {}", kafkas["topic"]);
            answers += 2;
            errors += [&read, &summary].iter().filter(|a| a["errorCode"] != 0).count();
        }
    }
    println!("answers-equal-to-kafkas={answers} of-them-errors={errors}");
    assert_eq!((answers, errors), (66, 13));
}

/// One topic entry for each share partition, in the order of the file.
fn each<P>(told: &[&Value], make: impl Fn(i32, i32) -> P) -> Vec<TopicData<P>> {
    let int = |value: &Value| i32::try_from(value.as_i64().expect("number")).expect("small");
    told.iter()
        .map(|t| TopicData {
            topic_id: topic_id(&t["topicId"]),
            partitions: vec![make(int(&t["partition"]), int(&t["summary"]["leaderEpoch"]))],
        })
        .collect()
}
