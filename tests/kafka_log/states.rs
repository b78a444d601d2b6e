//! Share-group states for records.

use sharestate::kafka_log::ShareSnapshot;
use sharestate::model::{DeliveryState, SharePartitionKey, StateBatch};
use uuid::Uuid;

pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(1), partition).expect("valid")
}

pub fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

pub fn snapshot(leader_epoch: i32, state_batches: Vec<StateBatch>) -> ShareSnapshot {
    ShareSnapshot {
        snapshot_epoch: 1,
        state_epoch: 2,
        leader_epoch,
        start_offset: 0,
        delivery_complete_count: 3,
        create_timestamp: 4,
        write_timestamp: 5,
        state_batches,
    }
}
