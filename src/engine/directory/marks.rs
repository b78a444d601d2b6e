//! Marks of a directory that is not, or not yet, a store to open: a copy being written, a backup, a
//! store being salvaged.

use std::path::Path;
use std::sync::Arc;

use super::{Directory, Identity, STORE, SalvageNote, not_a_store};
use crate::error::OpenError;
use crate::fsio::{self, Fs, FsError};

/// Stands while a backup or a restored store is being written.
pub(super) const COPYING: &str = "COPYING";
/// Stands in a backup for good.
const BACKUP: &str = "BACKUP";
/// Stands while a salvage changes a store.
pub(super) const SALVAGE: &str = "SALVAGE";

pub(super) const UNFINISHED_COPY: &str =
    "a backup or restore into it was not finished: remove it and begin again";

impl Directory {
    /// Whether this is a backup, which is restored and never opened.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn is_backup(&self) -> Result<bool, FsError> {
        self.fs.exists(&self.root.join(BACKUP))
    }

    /// Takes an empty or new directory for a copy, which nobody accepts before
    /// [`finish_copy`](Self::finish_copy).
    ///
    /// # Errors
    /// [`OpenError::NotAStore`] when the directory is not empty, [`OpenError::Io`].
    pub fn begin_copy(fs: Arc<dyn Fs>, root: &Path) -> Result<Self, OpenError> {
        if !fs.exists(root)? {
            fs.create_dir(root)?;
            fsio::sync_parent(&*fs, root)?;
        } else if let Some(entry) = fs.list(root)?.first() {
            let reason = if entry.name == COPYING { UNFINISHED_COPY } else { "it is not empty" };
            return Err(not_a_store(root, reason));
        }
        fsio::write_durably(&*fs, root, COPYING, b"this copy is not finished\n")?;
        let directory = Self { fs, root: root.to_owned(), _locks: Vec::new() };
        for dir in [directory.wal(), directory.quarantine()] {
            directory.fs.create_dir(&dir)?;
        }
        directory.fs.sync_dir(root)?;
        Ok(directory)
    }

    /// Ends the copying; from here on the directory is a store, or a backup of one.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn finish_copy(&self, identity: &Identity, is_backup: bool) -> Result<(), FsError> {
        fsio::write_durably(&*self.fs, &self.root, STORE, &identity.encode())?;
        if is_backup {
            let text = b"a backup: restore it with `sharestate restore`\n";
            fsio::write_durably(&*self.fs, &self.root, BACKUP, text)?;
        }
        self.fs.remove_file(&self.root.join(COPYING))?;
        self.fs.sync_dir(&self.root)
    }

    /// What an interrupted salvage had begun, if there is one.
    ///
    /// # Errors
    /// [`OpenError::BadIdentity`] when its note does not read, [`OpenError::Io`].
    pub fn salvage_note(&self) -> Result<Option<SalvageNote>, OpenError> {
        let path = self.root.join(SALVAGE);
        if !self.fs.exists(&path)? {
            return Ok(None);
        }
        let bytes = fsio::read_file(&*self.fs, &path, 4_096)?;
        match SalvageNote::decode(&bytes) {
            Some(note) => Ok(Some(note)),
            None => Err(OpenError::BadIdentity { path }),
        }
    }

    /// Notes, durably, what a salvage is about to do. Until it is cleared the store opens for
    /// nobody else.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn write_salvage_note(&self, note: &SalvageNote) -> Result<(), FsError> {
        fsio::write_durably(&*self.fs, &self.root, SALVAGE, &note.encode())
    }

    /// The salvage is done.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn clear_salvage_note(&self) -> Result<(), FsError> {
        self.fs.remove_file(&self.root.join(SALVAGE))?;
        self.fs.sync_dir(&self.root)
    }
}
