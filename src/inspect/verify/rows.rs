//! The snapshot: every row, and that rows tell the same story.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::codec::{self, CodecError};
use crate::error::OpenError;
use crate::inspect::source::SharedRows;
use crate::inspect::{OnProgress, Progress};
use crate::model::{Partition, Producer, SharePartitionKey};
use crate::snapshot::{Family, RowReader, RowStore, Snapshot, SnapshotError};

/// Rows read at once.
const PAGE: usize = 1_024;

/// Rows of a snapshot that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RowCounts {
    /// Share partitions.
    pub partitions: u64,
    /// State batches in them.
    pub batches: u64,
    /// Ranges of pending acks in them.
    pub pending: u64,
    /// Producers.
    pub producers: u64,
    /// Rows that say which share partitions hold a producer's pending acks.
    pub producer_keys: u64,
}

struct Check<'a> {
    rows: &'a SharedRows,
    snapshot: &'a Snapshot,
    findings: &'a mut Findings,
    counts: RowCounts,
    /// Producers looked up lately.
    producers: BTreeMap<i64, Option<Producer>>,
}

/// Reads every row, decodes it, looks it up by its key, and compares it with the rows it refers to.
pub(super) fn check(
    rows: &SharedRows,
    snapshot: &Snapshot,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<RowCounts, OpenError> {
    let counts = RowCounts::default();
    let mut check = Check { rows, snapshot, findings, counts, producers: BTreeMap::new() };
    if let Err(error) = snapshot.verify_files() {
        check.damage(&error)?;
    }
    for family in [Family::Partition, Family::Producer, Family::ProducerKey] {
        check.family(family, progress)?;
    }
    Ok(check.counts)
}

impl Check<'_> {
    fn family(&mut self, family: Family, progress: OnProgress<'_>) -> Result<(), OpenError> {
        let mut from = Vec::new();
        loop {
            let page = match self.rows.scan(family, &from, PAGE) {
                Ok(page) => page,
                Err(error) => return self.damage(&error), // no way past it
            };
            for (key, value) in &page {
                self.row(family, key, value)?;
            }
            let done = self.counts.partitions.saturating_add(self.counts.producers);
            progress(Progress { stage: "checking the snapshot", done, total: 0 });
            match page.last() {
                Some((key, _)) if page.len() == PAGE => {
                    from = key.to_vec();
                    from.push(0);
                }
                _ => return Ok(()),
            }
        }
    }

    fn row(&mut self, family: Family, key: &[u8], value: &[u8]) -> Result<(), OpenError> {
        // Looking it up also reads the filter in front of it, as the store does.
        match self.rows.get(family, key) {
            Ok(Some(found)) if *found == *value => {}
            Ok(_) => self.broken(family, &hex(key), "another value, or none, when looked up"),
            Err(error) => self.damage(&error)?,
        }
        let decoded = match family {
            Family::Partition => self.partition(key, value),
            Family::Producer => self.producer(key),
            Family::ProducerKey => self.producer_key(key, value),
            Family::Meta => Ok(()),
        };
        match decoded {
            Ok(()) => Ok(()),
            Err(RowError::Snapshot(error)) => self.damage(&error),
            Err(RowError::Codec(newer @ CodecError::NewerRow { .. })) => {
                let (path, row) = (self.rows.path(), hex(key));
                Err(SnapshotError::Row { path, family, row, source: newer }.into())
            }
            Err(RowError::Codec(error)) => {
                self.broken(family, &hex(key), &error.to_string());
                Ok(())
            }
        }
    }

    fn partition(&mut self, key: &[u8], value: &[u8]) -> Result<(), RowError> {
        self.counts.partitions += 1;
        let key = codec::decode_partition_key(key)?;
        let row = codec::decode_partition(value)?;
        self.counts.batches += row.batches.len() as u64;
        self.counts.pending += row.pending.len() as u64;
        let name = key.to_string();
        if let Err(rule) = row.check_invariants() {
            self.broken(Family::Partition, &name, rule);
        }
        self.not_newer(Family::Partition, &name, row.last_lsn);
        self.pending(&key, &row)
    }

    /// Every pending ack is known to its producer.
    fn pending(&mut self, key: &SharePartitionKey, row: &Partition) -> Result<(), RowError> {
        let mut owners: Vec<_> =
            row.pending.iter().map(|ack| (ack.owner(), ack.call.two_phase)).collect();
        owners.sort_unstable();
        owners.dedup();
        for ((id, epoch), two_phase) in owners {
            let producer = self.producer_of(id)?;
            let open = producer.as_ref().and_then(|producer| producer.open.get(&epoch));
            let known =
                open.is_some_and(|open| open.keys.contains(key) && open.two_phase == two_phase);
            if !known {
                let found = format!(
                    "pending acks of producer {id} epoch {epoch}, which does not know of them"
                );
                self.broken(Family::Partition, &key.to_string(), &found);
            }
        }
        Ok(())
    }

    fn producer_of(&mut self, id: i64) -> Result<Option<Producer>, RowError> {
        const KEPT: usize = 64;
        if !self.producers.contains_key(&id) {
            if self.producers.len() >= KEPT {
                self.producers.clear();
            }
            let producer = self.snapshot.producer(id)?;
            self.producers.insert(id, producer);
        }
        Ok(self.producers.get(&id).cloned().flatten())
    }

    fn producer(&mut self, key: &[u8]) -> Result<(), RowError> {
        self.counts.producers += 1;
        let id = key.try_into().map(i64::from_be_bytes);
        let id = id.map_err(|_| CodecError::Body("not a producer id".to_owned()))?;
        // Decodes the row and compares it with the number of its `producer_key` rows.
        let Some(producer) = self.snapshot.producer(id)? else { return Ok(()) };
        let name = id.to_string();
        self.not_newer(Family::Producer, &name, producer.last_lsn);
        for (epoch, open) in &producer.open {
            for key in &open.keys {
                let row = self.snapshot.partition(key)?;
                let holds = row
                    .is_some_and(|row| row.pending.iter().any(|ack| ack.owner() == (id, *epoch)));
                if !holds {
                    let found = format!("epoch {epoch} open in {key}, which has nothing pending");
                    self.broken(Family::Producer, &name, &found);
                }
            }
        }
        Ok(())
    }

    fn producer_key(&mut self, key: &[u8], value: &[u8]) -> Result<(), RowError> {
        self.counts.producer_keys += 1;
        let (id, epoch, _) = codec::decode_producer_key(key)?;
        if !value.is_empty() {
            self.broken(Family::ProducerKey, &hex(key), "a value, where none is ever written");
        }
        let producer = self.producer_of(id)?;
        if !producer.is_some_and(|producer| producer.open.contains_key(&epoch)) {
            let found = format!("a row of producer {id} epoch {epoch}, which is not open");
            self.broken(Family::ProducerKey, &hex(key), &found);
        }
        Ok(())
    }

    fn not_newer(&mut self, family: Family, row: &str, lsn: u64) {
        let applied = self.snapshot.applied_lsn();
        if lsn > applied {
            let found = format!("changed by LSN {lsn}, while the snapshot has applied {applied}");
            self.broken(family, row, &found);
        }
    }

    fn broken(&mut self, family: Family, row: &str, found: &str) {
        let expected = format!("row `{row}` of `{family}` to be whole");
        self.findings.add(Finding::new(&self.rows.path(), expected, found));
    }

    /// Damage is a finding, everything else ends the check.
    fn damage(&mut self, error: &SnapshotError) -> Result<(), OpenError> {
        if !error.is_corruption() {
            return Err(error.clone().into());
        }
        self.findings.add(Finding::of_snapshot(error));
        Ok(())
    }
}

enum RowError {
    Codec(CodecError),
    Snapshot(SnapshotError),
}

impl From<CodecError> for RowError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}

impl From<SnapshotError> for RowError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
