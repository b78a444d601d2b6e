//! A store that has failed or is closed.

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{Fault, Repeat, SimFs, When};
use sharestate::kafka::{DeletePartition, InitializePartition, PartitionResult, SummaryPartition};
use sharestate::snapshot::MemoryRows;

use crate::support::*;

const EIO: i32 = 5;

fn message(result: &PartitionResult) -> &str {
    result.error_message.as_deref().expect("message")
}

#[test]
fn a_poisoned_store_answers_each_partition_with_its_code_and_a_path() {
    let (fs, rows) = (SimFs::new(1), MemoryRows::default());
    let persister = open(&fs, &rows, &options());
    start(&persister, &[0, 1, 2]);
    fs.fail(Fault { when: When::Op(FsOp::SyncData), errno: EIO, repeat: Repeat::Once });
    let writes = (0..2).map(|partition| write(partition, vec![batch(0, 9, 2, 1)])).collect();
    let results = run(persister.write_state(group(writes)));
    assert_codes(&results, &[56, 56]);
    let first = message(&results[0].partitions[0]);
    assert!(first.starts_with("the outcome is unknown") && first.contains("/s/wal/"), "{first}");

    // Everything after it was not logged; a refusal is still a refusal.
    let writes = vec![write(0, vec![batch(10, 19, 2, 1)]), write(-1, vec![]), write(2, vec![])];
    let results = run(persister.write_state(group(writes)));
    assert_codes(&results, &[56, 42, 56]);
    let text = message(&results[0].partitions[0]);
    assert!(text.starts_with("nothing was logged"), "{text}");
    let start = InitializePartition { partition: 9, state_epoch: 0, start_offset: 0 };
    assert_codes(&run(persister.initialize_state(group(vec![start]))), &[56]);
    assert_codes(
        &run(persister.txn_share_acknowledge(stage(vec![(2, vec![acks(0, 0, &[1])])]))),
        &[56],
    );
    assert_codes(
        &run(persister.delete_state(group(vec![DeletePartition { partition: 2 }]))),
        &[56],
    );
    let commit = marker(7, 1, true, &[("__share_group_state", &[0, 1])]);
    let results = run(persister.write_txn_markers(vec![commit]));
    let codes: Vec<_> = results[0].topics[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [56, 56]);

    // What is proven durable is still read; what is not is not.
    let results = run(persister.read_state(read_request(&[0, 1, 2], false)));
    let told: Vec<_> = results[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(told, [56, 56, 0]);
}

#[test]
fn a_closed_store_answers_each_partition_that_it_is_not_the_leader_any_more() {
    let persister = started(&[0, 1]);
    run(persister.store().close()).expect("close");
    let writes = vec![write(0, vec![]), write(-7, vec![]), write(1, vec![])];
    assert_codes(&run(persister.write_state(group(writes))), &[6, 42, 6]);
    let summaries = vec![SummaryPartition { partition: 0, leader_epoch: 0 }];
    assert_eq!(run(persister.read_summary(group(summaries)))[0].partitions[0].error_code, 6);
    assert_eq!(read(&persister, 0, true).error_code, 6);
    let commit = marker(7, 1, true, &[("__share_group_state", &[5])]);
    let results = run(persister.write_txn_markers(vec![commit]));
    assert_eq!(results[0].topics[0].partitions[0].error_code, 6);
}

#[test]
fn a_request_larger_than_the_queue_is_refused_and_its_neighbours_are_not() {
    let mut options = options();
    options.queue_bytes = 4 << 10;
    let persister = open(&SimFs::new(1), &MemoryRows::default(), &options);
    start(&persister, &[0, 1]);
    let large = (0..1_000).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    let writes = vec![write(0, large), write(1, vec![batch(0, 0, 2, 1)])];
    let results = run(persister.write_state(group(writes)));
    assert_codes(&results, &[42, 0]);
    assert!(message(&results[0].partitions[0]).contains("the queue holds 4096"), "{results:?}");
    assert_eq!(shown(&read(&persister, 0, false)), []);
}
