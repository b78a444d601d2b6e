//! What RocksDB's manifest was when something was last written behind it.
//!
//! RocksDB reads its manifest up to the end of the file, wherever that is, and takes a record that
//! seems to go on behind the end for the end as well. A manifest that was cut short, or that has rot
//! in the length of a record, gives an older set of tables, of one family of rows or of all; opening
//! for writing then deletes the tables that it no longer names. So every write notes length and
//! checksum of the manifest in the same batch, and whoever opens the database compares before
//! anything is changed.

use std::io;
use std::path::{Path, PathBuf};

use super::SnapshotError;
use crate::fsio::{Fs, FsError, FsFile, OpenMode, RealFs, read_exact_at, read_file};

const CURRENT_BYTES_MAX: u64 = 64;
const READ_BYTES: u64 = 64 << 10;

/// What is noted: 20 bytes, see `storage-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    /// The number in the manifest's name; a later one has a higher number.
    number: u64,
    /// Its length in bytes.
    bytes: u64,
    /// CRC-32 of these bytes.
    checksum: u32,
}

/// The manifest as far as it has been read. It only grows, until another takes its place.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    number: u64,
    bytes: u64,
    hasher: crc32fast::Hasher,
}

impl Progress {
    /// Reads what was added since the last time, and makes all of it durable.
    ///
    /// # Errors
    /// [`SnapshotError::Storage`], which is damage when a file is missing or does not read.
    pub fn note(&mut self, dir: &Path) -> Result<Note, SnapshotError> {
        let number = current(dir)?;
        if number != self.number {
            *self = Self { number, ..Self::default() };
        }
        let mut read = || -> Result<(), FsError> {
            let file = RealFs.open(&name_of(dir, number), OpenMode::ReadWrite)?;
            let end = file.len()?;
            add(&*file, self.bytes, end, &mut self.hasher)?;
            self.bytes = end.max(self.bytes);
            file.sync_data()
        };
        read().map_err(|error| failed(dir, &error))?;
        let (bytes, checksum) = (self.bytes, self.hasher.clone().finalize());
        Ok(Note { number, bytes, checksum })
    }
}

impl Note {
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (bytes, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_le_bytes(*number),
            bytes: u64::from_le_bytes(*bytes),
            checksum: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }

    /// Compares the manifest of the database at `dir` with what was noted. A later one begins with
    /// everything that the earlier ones said.
    ///
    /// # Errors
    /// [`SnapshotError::Storage`] when it was cut short, changed, or replaced by an earlier one.
    pub fn check(self, dir: &Path) -> Result<(), SnapshotError> {
        let number = current(dir)?;
        let path = name_of(dir, number);
        if number > self.number {
            return Ok(());
        }
        if number < self.number {
            let later = name_of(dir, self.number);
            let reason = format!("{}: `CURRENT` named {} before", path.display(), later.display());
            return Err(damaged(dir, reason));
        }
        let read = || -> Result<(u64, u32), FsError> {
            let file = RealFs.open(&path, OpenMode::Read)?;
            let end = file.len()?.min(self.bytes);
            let mut hasher = crc32fast::Hasher::new();
            add(&*file, 0, end, &mut hasher)?;
            Ok((end, hasher.finalize()))
        };
        let (end, checksum) = read().map_err(|error| failed(dir, &error))?;
        let Self { bytes, checksum: noted, .. } = self;
        let path = path.display();
        if end < bytes {
            return Err(damaged(dir, format!("{path} offset {end} is its end, not byte {bytes}")));
        }
        if checksum != noted {
            let reason = format!("{path} offset 0 to {bytes} has checksum {checksum:08x}, it had");
            return Err(damaged(dir, format!("{reason} {noted:08x}")));
        }
        Ok(())
    }
}

/// Whether `CURRENT` names a manifest, and that is there.
///
/// # Errors
/// [`SnapshotError::Storage`], which is damage unless a file or the directory cannot be read.
pub(super) fn exists(dir: &Path) -> Result<(), SnapshotError> {
    let path = name_of(dir, current(dir)?);
    // RocksDB says of a directory that may not be listed that it is missing.
    RealFs.list(dir).map_err(|error| failed(dir, &error))?;
    RealFs.open(&path, OpenMode::Read).map(drop).map_err(|error| failed(dir, &error))
}

/// The number of the manifest that `CURRENT` names.
fn current(dir: &Path) -> Result<u64, SnapshotError> {
    let path = dir.join("CURRENT");
    let bytes =
        read_file(&RealFs, &path, CURRENT_BYTES_MAX).map_err(|error| failed(dir, &error))?;
    let text = std::str::from_utf8(&bytes).ok();
    let digits = text.and_then(|text| text.strip_suffix('\n')?.strip_prefix("MANIFEST-"));
    digits
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| damaged(dir, format!("{}: not the name of a manifest", path.display())))
}

fn name_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

/// Takes the bytes from `from` to `to` into the checksum.
fn add(
    file: &dyn FsFile,
    from: u64,
    to: u64,
    hasher: &mut crc32fast::Hasher,
) -> Result<(), FsError> {
    let mut buffer = vec![0; READ_BYTES as usize];
    let mut at = from;
    while at < to {
        let size = READ_BYTES.min(to - at);
        let chunk = buffer.split_at_mut(size as usize).0;
        read_exact_at(file, chunk, at)?;
        hasher.update(chunk);
        at += size;
    }
    Ok(())
}

/// A file of a database that is missing, or longer than it can be, is damage.
fn failed(dir: &Path, error: &FsError) -> SnapshotError {
    let corrupt = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge);
    let (path, operation) = (dir.to_owned(), "open");
    SnapshotError::Storage { path, operation, reason: error.to_string(), corrupt }
}

fn damaged(dir: &Path, reason: String) -> SnapshotError {
    SnapshotError::Storage { path: dir.to_owned(), operation: "open", reason, corrupt: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsio::write_durably;

    struct Database(tempfile::TempDir);

    impl Database {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        fn dir(&self) -> &Path {
            self.0.path()
        }

        fn write(&self, name: &str, bytes: &[u8]) {
            write_durably(&RealFs, self.dir(), name, bytes).expect("written");
        }

        /// Makes this the manifest.
        fn put(&self, number: u64, bytes: &[u8]) {
            let name = format!("MANIFEST-{number:06}");
            self.write(&name, bytes);
            self.write("CURRENT", format!("{name}\n").as_bytes());
        }
    }

    fn is_damage(result: Result<(), SnapshotError>) -> bool {
        matches!(result, Err(SnapshotError::Storage { corrupt: true, .. }))
    }

    #[test]
    fn any_change_but_growth_of_a_manifest_is_damage() {
        let database = Database::new();
        database.put(37, b"first, second");
        let note = Progress::default().note(database.dir()).expect("noted");
        let fits = |number, bytes| {
            database.put(number, bytes);
            note.check(database.dir()).is_ok()
        };
        assert!(fits(37, b"first, second") && fits(37, b"first, second, third"));
        assert!(fits(38, b"new"));
        assert!(!fits(36, b"old") && !fits(36, b"first, second"), "an earlier one");
        assert!(!fits(37, b"first, Second"));
        assert!(!fits(37, b"first, secon"));
        let error = note.check(database.dir()).expect_err("cut short").to_string();
        assert!(error.contains("offset 12 is its end, not byte 13"), "{error}");
    }

    #[test]
    fn a_manifest_read_as_it_grows_and_changes_is_noted_as_if_read_at_once() {
        let database = Database::new();
        let mut progress = Progress::default();
        let long = vec![7; 3 * READ_BYTES as usize + 1];
        let contents: [(u64, &[u8]); 4] =
            [(37, b"first"), (37, b"first, second"), (38, b"snapshot"), (39, &long)];
        for (number, bytes) in contents {
            database.put(number, bytes);
            let note = progress.note(database.dir()).expect("noted");
            let length = bytes.len() as u64;
            assert_eq!(note, Note { number, bytes: length, checksum: crc32fast::hash(bytes) });
        }
    }

    #[test]
    fn a_note_has_twenty_bytes_and_comes_back() {
        let note = Note { number: 1, bytes: 2, checksum: 3 };
        let bytes = note.encode();
        assert_eq!(bytes, [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(Note::decode(&bytes), Some(note));
        assert_eq!(Note::decode(&bytes[..19]), None);
        assert_eq!(Note::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_database_without_its_manifest_is_damage() {
        let database = Database::new();
        assert!(is_damage(exists(database.dir())), "no CURRENT");
        database.put(7, b"");
        assert!(exists(database.dir()).is_ok());
        for other in ["MANIFEST-000008\n", "MANIFEST-000007", "MANIFEST-+00007\n", "000007\n", ""] {
            database.write("CURRENT", other.as_bytes());
            assert!(is_damage(exists(database.dir())), "{other:?}");
        }
    }
}
