//! Prepared acks as a [`Reader`] sees them: what is an entry and what a filter means is said in
//! [`pending`](crate::pending).

use super::Reader;
use super::reader::partition;
use crate::pending::{PendingEntry, PendingFilter, entry};
use crate::snapshot::SnapshotError;

/// Producers read at once.
const PAGE: usize = 512;

impl Reader {
    /// The prepared acks that match `filter`: producers ascending, within them epochs, within them
    /// share partitions.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn pending(&mut self, filter: &PendingFilter) -> Result<Vec<PendingEntry>, SnapshotError> {
        let mut entries = Vec::new();
        // A walk of one producer begins just before it.
        let mut after = filter.producer_id.and_then(|id| id.checked_sub(1));
        let limit = if filter.producer_id.is_some() { 1 } else { PAGE };
        loop {
            let (producers, next) = self.producers(after, limit)?;
            for (id, producer) in producers {
                for (epoch, open) in &producer.open {
                    if !filter.wants_epoch(id, producer.orphaned(*epoch)) {
                        continue;
                    }
                    for key in open.keys.iter().filter(|key| filter.wants_key(key)) {
                        let Some(row) = partition(self.replay(), key)? else { continue };
                        let entry = entry(key.clone(), &row, id, *epoch, &producer);
                        entries.extend(entry.filter(|entry| filter.wants_call(&entry.oldest)));
                    }
                }
            }
            match next.filter(|_| filter.producer_id.is_none()) {
                Some(next) => after = Some(next),
                None => return Ok(entries),
            }
        }
    }
}
