//! Looking at the rows of a store without changing them.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use crate::engine::directory::{Directory, Identity};
use crate::engine::recovery::RowOpener;
use crate::error::OpenError;
use crate::fsio::{Fs, FsError, read_file};
use crate::snapshot::{
    Family, RowOp, RowReader, RowStore, RowsVisitor, Snapshot, SnapshotError, SnapshotStats,
};

const PAGE: usize = 1_024;

/// Opens the snapshot and reads every row. Damage is the inner error, in words.
pub(super) fn look(
    fs: &Arc<dyn Fs>,
    rows: &dyn RowOpener,
    directory: &Directory,
    identity: &Identity,
) -> Result<Result<Arc<Snapshot>, String>, OpenError> {
    let opened = rows
        .look(&directory.snapshot())
        .and_then(|rows| Snapshot::open(rows, identity.uuid))
        .and_then(|snapshot| check(&snapshot).map(|()| snapshot));
    match opened {
        Ok(snapshot) => Ok(Ok(Arc::new(snapshot))),
        Err(error) if error.is_corruption() => Ok(Err(error.to_string())),
        // To RocksDB a manifest that is not there is a failed system call.
        Err(SnapshotError::Storage { reason, .. }) if !has_manifest(&**fs, directory)? => {
            Ok(Err(format!("{}: {reason}", directory.snapshot().display())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether `CURRENT` names a manifest that exists.
fn has_manifest(fs: &dyn Fs, directory: &Directory) -> Result<bool, FsError> {
    let dir = directory.snapshot();
    let current = dir.join("CURRENT");
    if !fs.exists(&current)? {
        return Ok(false);
    }
    let bytes = match read_file(fs, &current, 64) {
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => return Ok(false),
        read => read?,
    };
    let name = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
    match name.filter(|name| name.starts_with("MANIFEST-") && !name.contains('/')) {
        Some(name) => fs.exists(&dir.join(name)),
        None => Ok(false),
    }
}

/// Reads and decodes every row.
pub(super) fn check(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    snapshot.verify_files()?;
    let mut after = None;
    loop {
        let page = snapshot.partitions(None, after.as_ref(), PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
    }
    let mut after = None;
    loop {
        let page = snapshot.producers(after, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
    }
}

/// The rows of a new store: none. What a log is replayed on to see whether it leads anywhere.
#[derive(Debug)]
pub(super) struct NoRows(pub Uuid);

impl RowReader for NoRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        Ok(match (family, key) {
            (Family::Meta, b"uuid") => Some(self.0.as_bytes().to_vec()),
            (Family::Meta, _) => Some(vec![0; 8]),
            _ => None,
        })
    }

    fn scan(
        &self,
        _family: Family,
        _from: &[u8],
        _limit: usize,
    ) -> Result<Vec<(Box<[u8]>, Box<[u8]>)>, SnapshotError> {
        Ok(Vec::new())
    }
}

impl RowStore for NoRows {
    fn path(&self) -> PathBuf {
        PathBuf::from("(nothing)")
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        read(self)
    }

    fn write(&self, _ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        Err(self.refusal("write"))
    }

    fn copy_to(&self, _target: &std::path::Path) -> Result<(), SnapshotError> {
        Err(self.refusal("copy"))
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        Ok(())
    }

    fn stats(&self) -> SnapshotStats {
        SnapshotStats::default()
    }
}

impl NoRows {
    fn refusal(&self, operation: &'static str) -> SnapshotError {
        let reason = "these rows are only looked at".to_owned();
        SnapshotError::Storage { path: self.path(), operation, reason, corrupt: false }
    }
}
