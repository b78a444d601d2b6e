//! What one checkpoint writes.

use std::sync::Arc;

use super::{Family, RowOp};
use crate::codec::{self, CodecError};
use crate::model::{Lsn, Partition, Producer, SharePartitionKey};

/// The rows that changed since the last checkpoint, as of `applied_lsn`.
#[derive(Debug, Clone, Default)]
pub struct CheckpointBatch {
    /// Every entry up to this LSN is in the rows below or in rows written before.
    pub applied_lsn: Lsn,
    /// Changed share partitions; none = deleted.
    pub partitions: Vec<(SharePartitionKey, Option<Arc<Partition>>)>,
    /// Changed producers; none = forgotten.
    pub producers: Vec<(i64, Option<Arc<Producer>>)>,
}

/// Adds the changes of a producer's row and of its `producer_key` rows, of which `stored` exist.
pub(super) fn producer_ops(
    id: i64,
    producer: Option<&Producer>,
    stored: &[(i16, SharePartitionKey)],
    ops: &mut Vec<RowOp>,
) -> Result<(), CodecError> {
    let holds = |epoch: i16, key: &SharePartitionKey| {
        producer.and_then(|p| p.open.get(&epoch)).is_some_and(|open| open.keys.contains(key))
    };
    for (epoch, key) in stored.iter().filter(|(epoch, key)| !holds(*epoch, key)) {
        let row_key = codec::encode_producer_key(id, *epoch, key);
        ops.push(RowOp::delete(Family::ProducerKey, row_key));
    }
    let row_key = codec::encode_producer_id(id).to_vec();
    let Some(producer) = producer else {
        ops.push(RowOp::delete(Family::Producer, row_key));
        return Ok(());
    };
    let stored: std::collections::HashSet<_> = stored.iter().map(|(e, key)| (*e, key)).collect();
    for (epoch, open) in &producer.open {
        for key in open.keys.iter().filter(|key| !stored.contains(&(*epoch, *key))) {
            let row_key = codec::encode_producer_key(id, *epoch, key);
            ops.push(RowOp::put(Family::ProducerKey, row_key, Vec::new()));
        }
    }
    ops.push(RowOp::put(Family::Producer, row_key, codec::encode_producer(producer)?));
    Ok(())
}
