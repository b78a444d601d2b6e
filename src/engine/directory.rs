//! The store directory: identity, lock, creation, reserve. Knows file names; nothing of what the
//! log and the snapshot hold.

mod marks;
mod note;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use self::marks::{COPYING, SALVAGE, UNFINISHED_COPY};
pub use self::note::{SALVAGE_BYTES, SalvageNote};
use crate::error::OpenError;
use crate::fsio::{self, Fs, FsError, LockError, LockGuard, OpenMode};
use crate::seeded;

/// Version of everything on disk. Raised in `STORE`, durably, before the first byte of a new form
/// is written.
pub const FORMAT_VERSION: u32 = 1;

/// Size of the `STORE` file.
pub const STORE_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"SHSTORE\x01";
const STORE: &str = "STORE";
const LOCK: &str = "LOCK";
const CREATING: &str = "CREATING";
/// All that a crash in the very first step of a creation leaves.
const CREATING_TMP: &str = "CREATING.tmp";
const RESERVE: &str = "RESERVE";
const WAL: &str = "wal";
const SNAPSHOT: &str = "snapshot";
const QUARANTINE: &str = "quarantine";

/// Who a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Drawn at creation; every segment and the snapshot carry it.
    pub uuid: Uuid,
    /// Raised durably at every open for writing.
    pub incarnation: u64,
    /// Size of log segments, in bytes.
    pub segment_bytes: u64,
}

impl Identity {
    /// The bytes of the `STORE` file, see `storage-format.md`.
    #[must_use]
    pub fn encode(&self) -> [u8; STORE_BYTES] {
        let mut bytes = [0_u8; STORE_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            for byte in field {
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = *byte;
                }
                at += 1;
            }
        };
        put(MAGIC);
        put(&FORMAT_VERSION.to_le_bytes());
        put(&(STORE_BYTES as u32).to_le_bytes());
        put(self.uuid.as_bytes());
        put(&self.incarnation.to_le_bytes());
        put(&self.segment_bytes.to_le_bytes());
        put(&[0; 12]);
        let crc = crc32fast::hash(bytes.split_at(STORE_BYTES - 4).0);
        bytes[STORE_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a `STORE` file. A newer format version is told apart before anything else is judged.
    ///
    /// # Errors
    /// What is wrong with the bytes, in [`IdentityError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, IdentityError> {
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(IdentityError::Damaged)?;
        if magic != MAGIC {
            return Err(IdentityError::Damaged);
        }
        let (version, _) = rest.split_first_chunk::<4>().ok_or(IdentityError::Damaged)?;
        let version = u32::from_le_bytes(*version);
        if version > FORMAT_VERSION {
            return Err(match as_of_version(bytes, FORMAT_VERSION) {
                true => IdentityError::Damaged,
                false => IdentityError::Newer { found: version },
            });
        }
        if !as_of_version(bytes, version) {
            return Err(IdentityError::Damaged);
        }
        let bytes: &[u8; STORE_BYTES] = bytes.try_into().map_err(|_| IdentityError::Damaged)?;
        let u64_at = |at: usize| {
            let mut field = [0_u8; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        let mut uuid = [0_u8; 16];
        uuid.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            uuid: Uuid::from_bytes(uuid),
            incarnation: u64_at(32),
            segment_bytes: u64_at(40),
        })
    }
}

/// Whether the bytes match their checksum if `version` stands in them. This release's own file with
/// rot in its version is no newer one, although it says so.
fn as_of_version(bytes: &[u8], version: u32) -> bool {
    let Ok(mut bytes) = <[u8; STORE_BYTES]>::try_from(bytes) else { return false };
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let (covered, crc) = bytes.split_at(STORE_BYTES - 4);
    crc32fast::hash(covered).to_le_bytes() == crc
}

/// Why a `STORE` file does not tell who the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityError {
    /// Not a `STORE` file, or its checksum is wrong.
    Damaged,
    /// Written by a newer release.
    Newer {
        /// Its format version.
        found: u32,
    },
}

/// A locked store directory.
#[derive(Debug)]
pub struct Directory {
    fs: Arc<dyn Fs>,
    root: PathBuf,
    _locks: Vec<Box<dyn LockGuard>>,
}

/// What a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Nothing: a store can be made here.
    Empty,
    /// A store whose creation never finished, so that nothing was ever answered from it.
    HalfMade,
    /// A store.
    Store(Identity),
}

impl Directory {
    /// Locks `root` for writing, making it when `create`. A directory that is not a store is left
    /// untouched.
    ///
    /// # Errors
    /// [`OpenError::NotAStore`], [`OpenError::Locked`] or [`OpenError::Io`].
    pub fn lock(fs: Arc<dyn Fs>, root: &Path, create: bool) -> Result<Self, OpenError> {
        if !fs.exists(root)? {
            if !create {
                return Err(not_a_store(root, "the directory does not exist"));
            }
            fs.create_dir(root)?;
            fsio::sync_parent(&*fs, root)?;
        }
        let ours = [LOCK, STORE, CREATING].iter().map(|name| fs.exists(&root.join(name)));
        let ours = ours.collect::<Result<Vec<_>, _>>()?.contains(&true);
        if !ours {
            refuse_leftovers(&*fs, root)?;
            if !create {
                return Err(not_a_store(root, "STORE is missing"));
            }
        }
        let path = root.join(LOCK);
        if seeded::bug("zeebe-11347") {
            return Ok(Self { fs, root: root.to_owned(), _locks: Vec::new() });
        }
        let failed = |error| match error {
            LockError::Held { .. } => OpenError::Locked { path: path.clone() },
            LockError::Fs(error) => OpenError::Io(error),
        };
        // Somebody may have deleted LOCK under a holder: the directory keeps others out then.
        let mut locks: Vec<_> = fs.lock_dir(root).map_err(failed)?.into_iter().collect();
        locks.push(fs.lock(&path).map_err(failed)?);
        Ok(Self { fs, root: root.to_owned(), _locks: locks })
    }

    /// Looks at `root` without a lock, for tools beside a live store.
    #[must_use]
    pub fn unlocked(fs: Arc<dyn Fs>, root: &Path) -> Self {
        Self { fs, root: root.to_owned(), _locks: Vec::new() }
    }

    /// What the directory holds.
    ///
    /// # Errors [`OpenError::NotAStore`] when `STORE` is missing beside other content,
    /// [`OpenError::Unfinished`], [`OpenError::NewerFormat`], [`OpenError::BadIdentity`],
    /// [`OpenError::Io`].
    pub fn contents(&self) -> Result<Contents, OpenError> {
        let contents = self.contents_for_repair()?;
        if self.fs.exists(&self.root.join(SALVAGE))? {
            let what = "a salvage of it was interrupted: go on with `sharestate repair --salvage`";
            return Err(OpenError::Unfinished { path: self.root.clone(), what });
        }
        Ok(contents)
    }

    /// As [`contents`](Self::contents), also of a store whose salvage was interrupted.
    ///
    /// # Errors
    /// As [`contents`](Self::contents).
    pub fn contents_for_repair(&self) -> Result<Contents, OpenError> {
        if self.fs.exists(&self.root.join(COPYING))? {
            return Err(OpenError::Unfinished { path: self.root.clone(), what: UNFINISHED_COPY });
        }
        let path = self.root.join(STORE);
        if !self.fs.exists(&path)? {
            if self.fs.exists(&self.root.join(CREATING))? {
                return Ok(Contents::HalfMade);
            }
            refuse_leftovers(&*self.fs, &self.root)?;
            return Ok(Contents::Empty);
        }
        let file = self.fs.open(&path, OpenMode::Read)?;
        let mut bytes = vec![0; STORE_BYTES + 1];
        let read = fsio::read_up_to(&*file, &mut bytes, 0)?;
        bytes.truncate(read);
        match Identity::decode(&bytes) {
            Ok(identity) => Ok(Contents::Store(identity)),
            Err(IdentityError::Damaged) if seeded::bug("nats-7556") => Ok(Contents::HalfMade),
            Err(IdentityError::Damaged) => Err(OpenError::BadIdentity { path }),
            Err(IdentityError::Newer { found }) => {
                Err(OpenError::NewerFormat { path, found, supported: FORMAT_VERSION })
            }
        }
    }

    /// Begins the creation of a store: everything up to `STORE` can be thrown away after a crash.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub fn begin_creation(&self) -> Result<(), OpenError> {
        // Whoever made the directory, a killed opening of ours perhaps, may not have synced its
        // name, and everything in it is only as durable as that.
        match fsio::sync_parent(&*self.fs, &self.root) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(%error, "the name of the store's directory may not be durable");
            }
            synced => synced?,
        }
        fsio::write_durably(
            &*self.fs,
            &self.root,
            CREATING,
            b"creation of this store is not finished\n",
        )?;
        for dir in [WAL, QUARANTINE] {
            let dir = self.root.join(dir);
            if !self.fs.exists(&dir)? {
                self.fs.create_dir(&dir)?;
            }
        }
        for entry in self.fs.list(&self.wal())? {
            self.fs.remove_file(&self.wal().join(entry.name))?;
        }
        self.fs.sync_dir(&self.wal())?;
        self.fs.sync_dir(&self.root)?;
        Ok(())
    }

    /// Ends the creation: from here on the directory is a store.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub fn finish_creation(&self, identity: &Identity) -> Result<(), OpenError> {
        self.write_identity(identity)?;
        self.fs.remove_file(&self.root.join(CREATING))?;
        self.fs.sync_dir(&self.root)?;
        Ok(())
    }

    /// Writes `STORE` durably; on a full disk the reserve is given up for it.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub fn write_identity(&self, identity: &Identity) -> Result<(), OpenError> {
        let bytes = identity.encode();
        let write = || fsio::write_durably(&*self.fs, &self.root, STORE, &bytes);
        match write() {
            Err(error) if error.is_full() && self.release_reserve()? => Ok(write()?),
            other => Ok(other?),
        }
    }

    /// Gives the reserved space back to the file system. Answers whether there was any.
    ///
    /// # Errors
    /// [`FsError`] when it cannot be removed.
    pub fn release_reserve(&self) -> Result<bool, FsError> {
        let path = self.root.join(RESERVE);
        if !self.fs.exists(&path)? {
            return Ok(false);
        }
        self.fs.remove_file(&path)?;
        self.fs.sync_dir(&self.root)?;
        Ok(true)
    }

    /// Reserves `bytes` of disk space if none are. Best effort: without it the store works as well.
    pub fn keep_reserve(&self, bytes: u64) {
        let path = self.root.join(RESERVE);
        let made = (|| -> Result<(), FsError> {
            if bytes == 0 || self.fs.exists(&path)? {
                return Ok(());
            }
            let file = self.fs.open(&path, OpenMode::CreateNew)?;
            file.allocate(bytes)?;
            file.sync_all()?;
            self.fs.sync_dir(&self.root)
        })();
        if let Err(error) = made {
            tracing::warn!(%error, "no disk space could be reserved");
            let _ = self.fs.remove_file(&path); // half a reserve is none; the next open tries again
        }
    }

    /// Files of the store's root that the next opening removes.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, FsError> {
        let path = self.root.join(CREATING);
        Ok(if self.fs.exists(&path)? { vec![path] } else { Vec::new() })
    }

    /// Completes a creation whose last step, the removal of `CREATING`, was lost.
    ///
    /// # Errors
    /// [`FsError`] when it cannot be removed.
    pub fn clear_creating(&self) -> Result<(), FsError> {
        let path = self.root.join(CREATING);
        if self.fs.exists(&path)? {
            self.fs.remove_file(&path)?;
            self.fs.sync_dir(&self.root)?;
        }
        Ok(())
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Log segments.
    #[must_use]
    pub fn wal(&self) -> PathBuf {
        self.root.join(WAL)
    }

    /// RocksDB.
    #[must_use]
    pub fn snapshot(&self) -> PathBuf {
        self.root.join(SNAPSHOT)
    }

    /// Copies made before a repair.
    #[must_use]
    pub fn quarantine(&self) -> PathBuf {
        self.root.join(QUARANTINE)
    }
}

/// A directory without `STORE` must hold nothing but a lock file and what the first step of a
/// creation leaves: it is never taken for a new store otherwise.
fn refuse_leftovers(fs: &dyn Fs, root: &Path) -> Result<(), OpenError> {
    for entry in fs.list(root)? {
        if entry.name == LOCK || entry.name == CREATING_TMP {
            continue;
        }
        let reason = if entry.name == COPYING {
            UNFINISHED_COPY
        } else if entry.name == WAL || entry.name == SNAPSHOT {
            "STORE is missing beside the data of a store"
        } else {
            "the directory holds other files and no STORE"
        };
        return Err(not_a_store(root, reason));
    }
    Ok(())
}

fn not_a_store(root: &Path, reason: &'static str) -> OpenError {
    OpenError::NotAStore { path: root.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { uuid: Uuid::from_u128(0x1234), incarnation: 7, segment_bytes: 1 << 20 }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_of_store_is_found() {
        let bytes = identity().encode();
        assert_eq!(Identity::decode(&bytes), Ok(identity()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Identity::decode(&damaged), Err(IdentityError::Damaged), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(Identity::decode(&bytes[..cut]), Err(IdentityError::Damaged), "cut {cut}");
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = identity().encode();
        bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
        // Its checksum is wrong here, or somewhere else, or of another kind.
        bytes[60..].fill(0x5a);
        assert_eq!(Identity::decode(&bytes), Err(IdentityError::Newer { found: 9 }));
        let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..].copy_from_slice(&crc);
        assert_eq!(Identity::decode(&bytes), Err(IdentityError::Newer { found: 9 }));
    }
}
