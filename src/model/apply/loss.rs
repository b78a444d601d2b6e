//! What becomes of pending acks whose offsets go, and of the open epochs that held them.

use std::collections::BTreeSet;

use super::super::{Partition, PendingAck, RowId, SharePartitionKey, State};
use super::{ApplyError, Entry, Impossible, change_producer};
use crate::seeded;

/// Pending acks that go, and the transactions that hold nothing more in their share partition.
#[derive(Default)]
pub(super) struct Loss {
    pub(super) dropped: Vec<PendingAck>,
    /// Producer id and epoch, ascending.
    released: BTreeSet<(i64, i16)>,
}

impl Loss {
    /// All that a row holds.
    pub(super) fn of(row: Option<&Partition>) -> Self {
        let pending = row.map_or(&[][..], |row| &row.pending);
        Self {
            dropped: pending.to_vec(),
            released: pending.iter().map(PendingAck::owner).collect(),
        }
    }

    /// What lies below a start offset; a straddling ack loses its head only.
    pub(super) fn below(row: &Partition, start_offset: i64) -> Self {
        let gone = below(row, start_offset);
        let kept = row.pending.get(gone.len()..).unwrap_or_default();
        let mut released: BTreeSet<_> = gone.iter().map(PendingAck::owner).collect();
        if !released.is_empty() {
            kept.iter().for_each(|ack| {
                released.remove(&ack.owner());
            });
        }
        let mut dropped = gone.to_vec();
        if let Some(straddling) = kept.first().filter(|ack| ack.first_offset < start_offset) {
            let last_offset = start_offset.saturating_sub(1);
            dropped.push(PendingAck { last_offset, ..straddling.clone() });
        }
        Self { dropped, released }
    }

    /// Requires that the producers know of what they lose.
    pub(super) fn check(
        &self,
        state: &State,
        entry: Entry<'_>,
        key: &SharePartitionKey,
    ) -> Result<(), ApplyError> {
        for (producer_id, epoch) in &self.released {
            let producer = entry.get_producer(state, *producer_id)?;
            let holds = producer.open.get(epoch).is_some_and(|open| open.keys.contains(key));
            entry.require_producer(*producer_id, holds, Impossible::NotOpen)?;
        }
        Ok(())
    }

    /// Takes the share partition from the open epochs that hold nothing more in it; an epoch that
    /// holds nothing more at all is no longer open. What else is remembered of the producers stays.
    /// Returns their rows, ascending.
    pub(super) fn release(
        &self,
        state: &mut State,
        entry: Entry<'_>,
        key: &SharePartitionKey,
    ) -> Vec<RowId> {
        for (producer_id, epoch) in &self.released {
            change_producer(state, entry, *producer_id, |producer| {
                if let Some(open) = producer.open.get_mut(epoch) {
                    open.keys.remove(key);
                    if open.keys.is_empty() || seeded::bug("KAFKA-19164") {
                        producer.open.remove(epoch);
                    }
                }
            });
        }
        producers(&self.released)
    }
}

/// The pending acks wholly below a start offset.
pub(super) fn below(row: &Partition, start_offset: i64) -> &[PendingAck] {
    let gone = row.pending.partition_point(|ack| ack.last_offset < start_offset);
    row.pending.get(..gone).unwrap_or_default()
}

/// A share partition and the producers that own these of its pending acks.
pub(super) fn rows(key: &SharePartitionKey, pending: &[PendingAck]) -> Vec<RowId> {
    let owners = pending.iter().map(PendingAck::owner).collect();
    let mut rows = vec![RowId::Partition(key.clone())];
    rows.append(&mut producers(&owners));
    rows
}

fn producers(owners: &BTreeSet<(i64, i16)>) -> Vec<RowId> {
    let mut ids: Vec<i64> = owners.iter().map(|(producer_id, _)| *producer_id).collect();
    ids.dedup();
    ids.into_iter().map(RowId::Producer).collect()
}
