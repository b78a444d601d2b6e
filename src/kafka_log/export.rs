//! States as a segment file of Kafka's.

use super::batch::BatchBuilder;
use super::error::ExportError;
use super::replay::check_snapshot;
use super::share::{ShareRecord, ShareSnapshot};
use crate::model::{Partition, SharePartitionKey};

/// A batch is closed once its records take this much. Kafka's own bound is about 1 MiB by default
/// (`max.message.bytes`); only a share partition that is larger by itself goes above.
const BATCH_BYTES: usize = 256 << 10;

/// Writes states as the bytes of a segment file of `__share_group_state`: uncompressed batches of
/// snapshot records, with ascending offsets from `first_offset` on, all with this `timestamp` (ms
/// since the Unix epoch).
///
/// A share partition takes one record; two, when its leader fence is above its leader epoch: Kafka
/// keeps the fence in memory only and rebuilds it from the leader epochs that it replays, so the
/// first of the two is the state with the fence as leader epoch.
///
/// The record format has no place for
/// [`init_start_offset`](crate::model::Partition::init_start_offset) and `last_lsn`.
///
/// # Errors
/// When a share partition has pending acks, holds what [`Replay`](super::Replay) would refuse, or
/// is too large for a batch (2 GiB), and when offsets leave their range.
pub fn write_segment<'a>(
    records: impl Iterator<Item = (SharePartitionKey, &'a Partition)>,
    first_offset: i64,
    timestamp: i64,
) -> Result<Vec<u8>, ExportError> {
    if first_offset < 0 {
        return Err(ExportError::Offset(first_offset));
    }
    let batch = BatchBuilder::default();
    let mut writer = Writer { out: Vec::new(), batch, offset: first_offset, timestamp };
    for (key, partition) in records {
        if !partition.pending.is_empty() {
            return Err(ExportError::PendingAcks { key, ranges: partition.pending.len() });
        }
        let value = snapshot(partition);
        check_snapshot(&value)
            .map_err(|reason| ExportError::Content { key: key.clone(), reason })?;
        if partition.leader_fence > partition.leader_epoch {
            let value = ShareSnapshot { leader_epoch: partition.leader_fence, ..value.clone() };
            writer.push(&key, value)?;
        }
        writer.push(&key, value)?;
    }
    writer.close_batch()?;
    Ok(writer.out)
}

fn snapshot(partition: &Partition) -> ShareSnapshot {
    ShareSnapshot {
        snapshot_epoch: partition.snapshot_epoch,
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        start_offset: partition.start_offset,
        delivery_complete_count: partition.delivery_complete_count,
        create_timestamp: partition.create_time_ms,
        write_timestamp: partition.write_time_ms,
        state_batches: partition.batches.clone(),
    }
}

struct Writer {
    out: Vec<u8>,
    batch: BatchBuilder,
    /// Base offset of `batch`.
    offset: i64,
    timestamp: i64,
}

impl Writer {
    fn push(&mut self, key: &SharePartitionKey, value: ShareSnapshot) -> Result<(), ExportError> {
        let record = ShareRecord::Snapshot { key: key.clone(), value };
        let encoded_key = record.encode_key();
        let value = record.encode_value().unwrap_or_default();
        let bytes = encoded_key.len().saturating_add(value.len());
        if self.batch.size().saturating_add(bytes) > BATCH_BYTES {
            self.close_batch()?;
        }
        if self.batch.push(&encoded_key, &value) {
            return Ok(());
        }
        Err(ExportError::TooLarge { key: key.clone(), bytes })
    }

    fn close_batch(&mut self) -> Result<(), ExportError> {
        let out_of_range = ExportError::Offset(self.offset);
        let count = self.batch.finish(self.offset, self.timestamp, &mut self.out);
        // A reader wants the last offset below i64::MAX.
        self.offset = self.offset.checked_add(count.into()).ok_or(out_of_range)?;
        Ok(())
    }
}
