//! What must hold between rows. For tests, recovery checks and tools; nothing on the way of a
//! command calls it.

use std::collections::BTreeSet;

use super::{OpenEpoch, Producer, RowId, SharePartitionKey, State};

impl State {
    /// Checks every row, and that pending acks and the producers' open epochs tell the same story.
    ///
    /// # Errors
    /// The lowest row that does not hold, and why.
    pub fn check_invariants(&self) -> Result<(), (RowId, &'static str)> {
        let keys: BTreeSet<_> = self.partitions.keys().collect();
        for key in keys {
            self.check_partition(key).map_err(|broken| (RowId::Partition(key.clone()), broken))?;
        }
        let ids: BTreeSet<_> = self.producers.keys().copied().collect();
        for id in ids {
            self.check_producer(id).map_err(|broken| (RowId::Producer(id), broken))?;
        }
        Ok(())
    }

    fn check_partition(&self, key: &SharePartitionKey) -> Result<(), &'static str> {
        let Some(row) = self.partitions.get(key) else { return Ok(()) };
        row.check_invariants()?;
        for ack in &row.pending {
            let (id, epoch) = ack.owner();
            let open = self.producers.get(&id).and_then(|producer| producer.open.get(&epoch));
            let open = open.ok_or("a pending ack of an epoch that is not open")?;
            require(open.keys.contains(key), "a pending ack that its producer does not know of")?;
            let agrees = open.two_phase == ack.call.two_phase;
            require(agrees, "a pending ack with another two-phase setting than its epoch's")?;
        }
        Ok(())
    }

    fn check_producer(&self, id: i64) -> Result<(), &'static str> {
        let Some(producer) = self.producers.get(&id) else { return Ok(()) };
        let mut later = None;
        for (epoch, open) in producer.open.iter().rev() {
            let staged = producer.highest_stage_epoch >= Some(*epoch);
            require(staged, "an open epoch above the highest stage epoch")?;
            self.check_epoch(id, *epoch, open)?;
            check_order(producer, *epoch, open, later)?;
            later = Some(*epoch);
        }
        Ok(())
    }

    fn check_epoch(&self, id: i64, epoch: i16, open: &OpenEpoch) -> Result<(), &'static str> {
        require(!open.keys.is_empty(), "an open epoch without share partitions")?;
        let holds = open.keys.iter().all(|key| {
            let row = self.partitions.get(key);
            row.is_some_and(|row| row.pending.iter().any(|ack| ack.owner() == (id, epoch)))
        });
        require(holds, "an open epoch that holds nothing in one of its share partitions")
    }
}

/// An epoch is superseded by the first later one that staged, which may be closed by now.
fn check_order(
    producer: &Producer,
    epoch: i16,
    open: &OpenEpoch,
    later: Option<i16>,
) -> Result<(), &'static str> {
    match (open.superseded_by, later) {
        (None, None) => {
            let is_highest = producer.highest_stage_epoch == Some(epoch);
            require(is_highest, "an open epoch below the highest stage epoch is not superseded")
        }
        (None, Some(_)) => Err("an open epoch below another is not superseded"),
        (Some(by), later) => {
            let is_later = by > epoch && later.is_none_or(|later| by <= later);
            require(is_later, "an open epoch is superseded by the wrong epoch")
        }
    }
}

fn require(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}
