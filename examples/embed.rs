//! A broker's view of the store from async code: open, initialize, acknowledge from several tasks,
//! fence, close.
//!
//! `cargo run --example embed`

use sharestate::{DeliveryState, Options, SharePartitionKey, ShareStore, StateBatch, Write};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    // Opening blocks on file work, so it happens before the runtime starts.
    let store = ShareStore::open(dir.path(), &Options::default())?;
    println!("opened {} in {:?}", store.path().display(), store.recovery().elapsed);
    tokio::runtime::Builder::new_multi_thread().build()?.block_on(serve(store))
}

async fn serve(store: ShareStore) -> Result<(), Box<dyn std::error::Error>> {
    let topic = Uuid::new_v4();
    let consumers: Vec<_> =
        (0..4).map(|partition| tokio::spawn(consume(store.clone(), topic, partition))).collect();
    for consumer in consumers {
        consumer.await?.map_err(|error| error.to_string())?;
    }

    let page = store.list(Some("billing"), None, 100).await?;
    for (key, partition) in &page.partitions {
        println!("{key} starts at {} with {:?}", partition.start_offset, partition.batches);
    }

    // A new leader reads with a higher epoch; from then on the old one is refused.
    let key = SharePartitionKey::new("billing", topic, 0)?;
    store.read(&key, 2).await?;
    let refused = store.write(&key, acknowledge(1, 100, 100)).await;
    println!("the old leader is told: {}", refused.expect_err("fenced"));

    store.close().await?;
    Ok(())
}

/// A share partition's leader: acknowledges ten records, one durable write each.
async fn consume(
    store: ShareStore,
    topic: Uuid,
    partition: i32,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let key = SharePartitionKey::new("billing", topic, partition)?;
    store.initialize(&key, 1, 0).await?;
    let known = store.read(&key, 1).await?.partition;
    for offset in known.start_offset..known.start_offset + 10 {
        store.write(&key, acknowledge(1, 0, offset)).await?;
    }
    Ok(())
}

fn acknowledge(leader_epoch: i32, start_offset: i64, offset: i64) -> Write {
    Write {
        state_epoch: 1,
        leader_epoch,
        start_offset,
        delivery_complete_count: i32::try_from(offset - start_offset + 1).unwrap_or(-1),
        batches: vec![StateBatch {
            first_offset: offset,
            last_offset: offset,
            delivery_state: DeliveryState::ACKNOWLEDGED,
            delivery_count: 1,
        }],
    }
}
