//! Consume, process, produce, exactly once: acknowledgements join the producer's transaction, the
//! process dies between stage and marker, and after a restart the transaction coordinator's marker
//! still decides, for output and acknowledgements alike.
//!
//! `cargo run --example exactly_once`

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use sharestate::{
    AckRange, AckType, DeliveryState, Marker, Options, Outcome, PendingFilter, SharePartitionKey,
    ShareStore, Stage,
};
use uuid::Uuid;

const PRODUCER: i64 = 4_711;
const BATCH: i64 = 10;

fn key() -> SharePartitionKey {
    SharePartitionKey::new("orders-processor", Uuid::from_u128(1), 0).expect("a valid key")
}

/// What a transaction coordinator keeps of a transaction: its epoch, how it ends, and the output it
/// covers.
struct Transaction {
    epoch: i16,
    outcome: Outcome,
    first_offset: i64,
}

/// The first transaction commits. The process dies while the second is between stage and marker;
/// its coordinator has the commit on record. The third was never finished, so the coordinator
/// aborts it.
fn transactions() -> [Transaction; 3] {
    [(0, Outcome::Commit), (1, Outcome::Commit), (2, Outcome::Abort)].map(|(epoch, outcome)| {
        Transaction { epoch, outcome, first_offset: i64::from(epoch) * BATCH }
    })
}

/// Acknowledges the records of a transaction inside it.
fn stage(transaction: &Transaction) -> Stage {
    Stage {
        key: key(),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: PRODUCER,
        producer_epoch: transaction.epoch,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "orders-processor-1".to_owned(),
        member_id: "consumer-1".to_owned(),
        member_epoch: 1,
        acks: vec![AckRange {
            first_offset: transaction.first_offset,
            last_offset: transaction.first_offset + BATCH - 1,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    }
}

/// The marker of a transaction: under transaction version 2 it carries the epoch after the
/// transaction's own.
fn marker(transaction: &Transaction) -> Marker {
    Marker {
        producer_id: PRODUCER,
        producer_epoch: transaction.epoch + 1,
        coordinator_epoch: 5,
        outcome: transaction.outcome,
        transaction_version: 2,
    }
}

/// The broker process: works until it dies.
fn broker(dir: &Path) -> Result<(), Box<dyn Error>> {
    let store = ShareStore::open(dir, &Options::default())?.blocking();
    store.initialize(&key(), 1, 0)?;
    let [first, second, _] = transactions();
    store.stage(stage(&first))?;
    store.marker(marker(&first))?;
    store.stage(stage(&second))?;
    println!("broker: transaction 1 is committed, the acks of transaction 2 are prepared; dying");
    std::process::abort();
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(dir) = std::env::args_os().nth(1) {
        return broker(Path::new(&dir));
    }
    let dir = tempfile::tempdir()?;
    let status = Command::new(std::env::current_exe()?).arg(dir.path()).status()?;
    println!("the broker ended with {status}");

    let store = ShareStore::open(dir.path(), &Options::default())?.blocking();
    println!("reopened: {} entries replayed", store.store().recovery().replayed);
    for entry in store.pending(PendingFilter::default())? {
        println!(
            "still prepared: {} offsets of {}, producer {} epoch {}, {}",
            entry.offsets(),
            entry.key,
            entry.producer_id,
            entry.producer_epoch,
            entry.oldest.transactional_id,
        );
    }

    let [_, second, third] = transactions();
    let resolved = store.marker(marker(&second))?;
    println!("the marker of transaction 2 resolved {:?}", resolved.partitions);
    store.stage(stage(&third))?;
    let resolved = store.marker(marker(&third))?;
    println!("the marker of transaction 3 gave back {:?}", resolved.partitions);
    assert!(store.marker(marker(&third))?.partitions.is_empty(), "a repeat is harmless");

    // Output and acknowledgements agree: committed batches are acknowledged, the aborted one is
    // delivered again.
    let mut states = BTreeMap::new();
    for batch in store.read(&key(), 1)?.partition.batches {
        for offset in batch.first_offset..=batch.last_offset {
            states.insert(offset, batch.delivery_state);
        }
    }
    for transaction in transactions() {
        let expected = match transaction.outcome {
            Outcome::Commit => DeliveryState::ACKNOWLEDGED,
            Outcome::Abort => DeliveryState::AVAILABLE,
        };
        for offset in transaction.first_offset..transaction.first_offset + BATCH {
            assert_eq!(states.get(&offset), Some(&expected), "offset {offset}");
        }
    }
    println!("every record is acknowledged exactly if its output was committed");
    store.close()?;
    Ok(())
}
