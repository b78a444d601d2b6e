//! Snapshot rows in memory whose writes a test can count, hold up or fail.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use sharestate::engine::recovery::RowOpener;
use sharestate::snapshot::{
    Family, MemoryRows, RowOp, RowReader, RowStore, RowsVisitor, SnapshotError, SnapshotStats,
};

/// What the test says about writes.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    writes: usize,
    failing: usize,
    failed: usize,
    held: bool,
    waiting: usize,
    /// Openings that fail, and whether that is damage.
    failing_opens: usize,
    corrupt: bool,
    healed: bool,
}

impl Control {
    /// How many writes succeeded so far.
    pub fn writes(&self) -> usize {
        self.state().writes
    }

    /// The next writes fail, without effect.
    pub fn fail(&self, writes: usize) {
        self.state().failing = writes;
    }

    /// How many writes failed so far.
    pub fn failed(&self) -> usize {
        self.state().failed
    }

    /// The next openings for writing fail.
    pub fn fail_opens(&self, opens: usize, corrupt: bool) {
        let mut state = self.state();
        (state.failing_opens, state.corrupt) = (opens, corrupt);
    }

    /// From now on the rows say that damage made them older than they were.
    pub fn damage(&self) {
        self.state().healed = true;
    }

    fn open(&self) -> Result<(), SnapshotError> {
        let mut state = self.state();
        if state.failing_opens == 0 {
            return Ok(());
        }
        state.failing_opens -= 1;
        let (path, reason) = (PathBuf::from("(memory)"), "told to fail".to_owned());
        let corrupt = state.corrupt;
        Err(SnapshotError::Storage { path, operation: "open", reason, corrupt })
    }

    /// Writes wait from now on.
    pub fn hold(&self) {
        self.state().held = true;
    }

    /// Returns once a write waits.
    pub fn until_a_write_waits(&self) {
        let state = self.state();
        drop(self.0.1.wait_while(state, |state| state.waiting == 0).expect("control"));
    }

    /// Lets waiting and later writes go on.
    pub fn release(&self) {
        self.state().held = false;
        self.0.1.notify_all();
    }

    fn pass(&self) -> Result<(), SnapshotError> {
        let mut state = self.state();
        state.waiting += 1;
        self.0.1.notify_all();
        let mut state = self.0.1.wait_while(state, |state| state.held).expect("control");
        state.waiting -= 1;
        if state.failing > 0 {
            state.failing -= 1;
            state.failed += 1;
            let path = PathBuf::from("(memory)");
            return Err(SnapshotError::NoIdentity { path, field: "told to fail" });
        }
        state.writes += 1;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().expect("control")
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct WatchedRows {
    rows: MemoryRows,
    control: Control,
}

impl WatchedRows {
    pub fn new(rows: MemoryRows, control: Control) -> Self {
        Self { rows, control }
    }
}

impl RowOpener for WatchedRows {
    fn create(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.rows.clear();
        Ok(Box::new(self.clone()))
    }

    fn open(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.control.open()?;
        Ok(Box::new(self.clone()))
    }

    /// As RocksDB's, it shows the rows of this moment, whatever is written later.
    fn look(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Ok(Box::new(self.rows.fork()))
    }
}

type Row = (Box<[u8]>, Box<[u8]>);

impl RowReader for WatchedRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.rows.get(family, key)
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        self.rows.scan(family, from, limit)
    }
}

impl RowStore for WatchedRows {
    fn path(&self) -> PathBuf {
        self.rows.path()
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        self.rows.at_once(read)
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        self.control.pass()?;
        self.rows.write(ops)
    }

    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError> {
        self.rows.copy_to(target)
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        self.rows.verify()
    }

    fn damage(&self) -> Option<&str> {
        self.control.state().healed.then_some("an older state")
    }

    fn stats(&self) -> SnapshotStats {
        self.rows.stats()
    }
}
