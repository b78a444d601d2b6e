//! A store without threads and files, and the oracle beside it: after every step both must agree.
//!
//! The state is in memory, the log is a list of encoded entries, the snapshot is rows in memory. A
//! restart builds the state anew from rows and entries. Copies are independent of each other.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use sharestate::codec;
use sharestate::model::{
    Command, Decision, Effects, Lsn, Options, RowId, State, Transition, apply, decide,
};
use sharestate::snapshot::{CheckpointBatch, MemoryRows, Snapshot};
use uuid::Uuid;

use crate::oracle::{self, Oracle, Refused, Told};

const STORE: Uuid = Uuid::from_u128(0x5707e);

/// An entry as a log holds it.
#[derive(Debug)]
struct Entry {
    lsn: Lsn,
    kind: u16,
    version: u8,
    body: Vec<u8>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Twin {
    pub oracle: Oracle,
    pub now: i64,
    /// LSN of the last entry.
    pub lsn: Lsn,
    options: Options,
    state: State,
    log: Vec<Arc<Entry>>,
    rows: MemoryRows,
    /// Rows that the snapshot does not hold as they are.
    changed: BTreeSet<RowId>,
}

impl Twin {
    pub fn new(options: Options) -> Self {
        let rows = MemoryRows::default();
        Snapshot::create(Box::new(rows.clone()), STORE).expect("empty rows");
        Self {
            oracle: Oracle::default(),
            now: 0,
            lsn: 0,
            options,
            state: State::default(),
            log: Vec::new(),
            rows,
            changed: BTreeSet::new(),
        }
    }

    /// Executes a command on both sides. Answers what its caller is told.
    ///
    /// # Errors
    /// How the two differ, or which invariant is broken.
    pub fn execute(&mut self, command: &Command) -> Result<Result<Told, Refused>, String> {
        let expected = self.oracle.execute(command, self.now, &self.options);
        let Decision { transition, answer } = decide(&self.state, command, self.now, &self.options);
        let answer = match transition {
            None => answer,
            Some(transition) => {
                let effects = self.log(&transition)?;
                answer.map(|answer| answer.with_effects(effects))
            }
        };
        same("the answer", &oracle::told(answer), &expected)?;
        same("the state", &oracle::view(&self.state), &self.oracle.view())?;
        self.state.check_invariants().map_err(|broken| format!("{broken:?}"))?;
        Ok(expected)
    }

    fn log(&mut self, transition: &Transition) -> Result<Effects, String> {
        self.lsn += 1;
        let mut body = Vec::new();
        let (kind, version) = codec::encode_transition(transition, &mut body).map_err(text)?;
        let effects = apply(&mut self.state, self.lsn, transition).map_err(text)?;
        self.changed.extend(effects.touched.iter().cloned());
        self.log.push(Arc::new(Entry { lsn: self.lsn, kind: kind as u16, version, body }));
        Ok(effects)
    }

    /// Writes the changed rows to the snapshot.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn checkpoint(&mut self) -> Result<(), String> {
        let mut batch = CheckpointBatch { applied_lsn: self.lsn, ..CheckpointBatch::default() };
        for id in std::mem::take(&mut self.changed) {
            match id {
                RowId::Partition(key) => {
                    let row = self.state.partitions.get(&key).cloned();
                    batch.partitions.push((key, row));
                }
                RowId::Producer(id) => {
                    batch.producers.push((id, self.state.producers.get(&id).cloned()));
                }
            }
        }
        self.rows = self.rows.fork();
        self.snapshot()?.write(&batch).map_err(text)
    }

    /// Goes on with what snapshot and log hold, which must be what memory held.
    ///
    /// # Errors
    /// How they differ, or why they cannot be read.
    pub fn restart(&mut self) -> Result<(), String> {
        let (state, changed) = self.recovered()?;
        same("snapshot and log", &state, &self.state)?;
        self.state = state;
        self.changed = changed;
        Ok(())
    }

    /// Requires that the whole log alone, and the snapshot with the rest of the log, come to what
    /// memory holds.
    ///
    /// # Errors
    /// How they differ, or why they cannot be read.
    pub fn check_recovery(&self) -> Result<(), String> {
        let mut replayed = State::default();
        self.replay(&mut replayed, 0)?;
        same("the log alone", &replayed, &self.state)?;
        same("snapshot and log", &self.recovered()?.0, &self.state)
    }

    fn snapshot(&self) -> Result<Snapshot, String> {
        Snapshot::open(Box::new(self.rows.clone()), STORE).map_err(text)
    }

    fn recovered(&self) -> Result<(State, BTreeSet<RowId>), String> {
        let snapshot = self.snapshot()?;
        let partitions = snapshot.partitions(None, None, usize::MAX).map_err(text)?;
        let producers = snapshot.producers(None, usize::MAX).map_err(text)?;
        let mut state = State {
            partitions: partitions.into_iter().map(|(key, row)| (key, Arc::new(row))).collect(),
            producers: producers.into_iter().map(|(id, row)| (id, Arc::new(row))).collect(),
        };
        let changed = self.replay(&mut state, snapshot.applied_lsn())?;
        Ok((state, changed))
    }

    fn replay(&self, state: &mut State, applied: Lsn) -> Result<BTreeSet<RowId>, String> {
        let mut changed = BTreeSet::new();
        for entry in self.log.iter().filter(|entry| entry.lsn > applied) {
            let transition = codec::decode_transition(entry.kind, entry.version, &entry.body);
            let effects = apply(state, entry.lsn, &transition.map_err(text)?).map_err(text)?;
            changed.extend(effects.touched);
        }
        Ok(changed)
    }
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is wrong\n   found: {found:?}\nexpected: {expected:?}"))
}
