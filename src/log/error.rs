//! Errors of the log.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::Lsn;
use crate::fsio::FsError;
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

/// What the log was doing when a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Making the log of a new store.
    Create,
    /// Turning the prepared file into the next segment.
    Rollover,
    /// Writing a frame.
    Write,
    /// Syncing written frames.
    Sync,
    /// Copying a torn tail to the quarantine.
    Quarantine,
    /// Cutting a torn tail.
    Cut,
    /// Writing again what may never have reached the disk.
    Rewrite,
    /// Unlinking segments that are no longer needed.
    Purge,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Create => "creating the log",
            Stage::Rollover => "rolling over to the next segment",
            Stage::Write => "writing a frame",
            Stage::Sync => "syncing the log",
            Stage::Quarantine => "copying a torn tail to the quarantine",
            Stage::Cut => "cutting a torn tail",
            Stage::Rewrite => "rewriting frames",
            Stage::Purge => "purging segments",
        })
    }
}

/// Why the log cannot be read, written or repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk did not answer a read. Nothing was changed.
    #[error("cannot read the log: {0}")]
    Io(#[from] FsError),

    /// A write, sync or rename failed; what it reached on disk is unknown.
    #[error("failed {stage}: {source}")]
    Failed {
        /// What the log was doing.
        stage: Stage,
        /// The failed call.
        source: FsError,
    },

    /// An earlier failure stopped this writer for good; nothing was written.
    #[error("the log was stopped by an earlier error {stage}, at {}", path.display())]
    Poisoned {
        /// What the log was doing then.
        stage: Stage,
        /// The file it was doing it to.
        path: PathBuf,
        /// At which byte offset, where the call had one.
        offset: Option<u64>,
        /// What the operating system said.
        kind: io::ErrorKind,
        /// The operating system's error number, where it gave one.
        errno: Option<i32>,
    },

    /// A batch does not fit into a frame; nothing was written.
    #[error("a batch of {bytes} bytes does not fit into a frame of at most {limit}")]
    TooLarge {
        /// Bytes of the batch.
        bytes: usize,
        /// The most a frame takes.
        limit: usize,
    },

    /// A batch is empty or starts at another LSN than the next one; nothing was written.
    #[error("a batch of {entries} entries from LSN {found} cannot follow: next is {expected}")]
    OutOfOrder {
        /// The next LSN of the log.
        expected: Lsn,
        /// The first LSN of the batch.
        found: Lsn,
        /// Entries in the batch.
        entries: usize,
    },

    /// The LSNs of this log are used up; nothing was written. An append a nanosecond would take
    /// five centuries to come here; a forged segment needs one.
    #[error("no LSN is left behind {last}")]
    LsnsExhausted {
        /// The last LSN of the log.
        last: Lsn,
    },

    /// The segment size is not allowed.
    #[error(
        "segments cannot have {bytes} bytes: a multiple of 4096 from {SEGMENT_BYTES_MIN} \
         to {SEGMENT_BYTES_MAX} is allowed"
    )]
    SegmentBytes {
        /// The size asked for, in bytes.
        bytes: u64,
    },

    /// Something that was once whole no longer is. Nothing was changed.
    #[error(
        "corrupt log {} at byte {offset}, LSN {lsn}: expected {expected}, found {found}{}{row}",
        path.display(), if row.is_empty() { "" } else { " " }
    )]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// The LSN expected there.
        lsn: Lsn,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
        /// The row of the end-of-log table that decided it; empty if none was asked.
        row: &'static str,
    },

    /// Written by a newer version, with a feature unknown to this one. Nothing was changed.
    #[error(
        "{} at byte {offset} was written by a newer version: {field} {found}, \
         this one knows {supported}",
        path.display()
    )]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is unknown.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The newest value known.
        supported: u64,
    },

    /// The segment belongs to another store.
    #[error("{} belongs to store {found}, this is store {expected}", path.display())]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// This store.
        expected: Uuid,
        /// The store in the segment's header.
        found: Uuid,
    },

    /// The segment's name and header name different LSNs.
    #[error("{} is the segment from LSN {found} according to its header", path.display())]
    Misnamed {
        /// The segment.
        path: PathBuf,
        /// First LSN by name.
        expected: Lsn,
        /// First LSN by header.
        found: Lsn,
    },

    /// Entries that are needed are in no segment.
    #[error(
        "the log in {} lacks {}, between {} and {}",
        dir.display(), Lsns(*first, *last, after.is_none()),
        Name(before.as_deref()), Name(after.as_deref())
    )]
    Missing {
        /// The log's directory.
        dir: PathBuf,
        /// First LSN that is missing.
        first: Lsn,
        /// Last LSN that is missing; `u64::MAX` when no segment follows.
        last: Lsn,
        /// The segment before the gap, if any.
        before: Option<PathBuf>,
        /// The segment behind the gap, if any.
        after: Option<PathBuf>,
    },

    /// The newest segment is sealed, so the one that follows it is lost.
    #[error(
        "{} is sealed at LSN {next_lsn}, but the segment from there on is missing",
        path.display()
    )]
    MissingSuccessor {
        /// The sealed segment.
        path: PathBuf,
        /// First LSN of the missing segment.
        next_lsn: Lsn,
    },

    /// Two segments claim the same LSNs.
    #[error(
        "{} goes on to LSN {last}, {} starts at LSN {first}", path.display(), next.display()
    )]
    Overlap {
        /// The earlier segment.
        path: PathBuf,
        /// The later segment.
        next: PathBuf,
        /// Last LSN of the earlier segment.
        last: Lsn,
        /// First LSN of the later segment.
        first: Lsn,
    },

    /// The snapshot holds entries that the log has lost.
    #[error(
        "the log ends with LSN {last_lsn} in {}, the snapshot has applied LSN {applied_lsn}",
        path.display()
    )]
    BehindSnapshot {
        /// The log's last segment.
        path: PathBuf,
        /// Where the log ends, in bytes.
        offset: u64,
        /// Last LSN of the log.
        last_lsn: Lsn,
        /// The snapshot's LSN.
        applied_lsn: Lsn,
    },

    /// The log was written by this or a later opening of the store.
    #[error("incarnation {given} is not newer than the log's {found}")]
    StaleIncarnation {
        /// The incarnation to open with.
        given: u64,
        /// The newest in the log.
        found: u64,
    },

    /// There is a log already.
    #[error("{} already holds a log", path.display())]
    Exists {
        /// A file of it.
        path: PathBuf,
    },

    /// Segments came and went during the scan: a store is at work here. Scan again.
    #[error("the segments in {} changed during the scan", dir.display())]
    Overtaken {
        /// The log's directory.
        dir: PathBuf,
    },
}

impl LogError {
    pub(super) fn failed(stage: Stage) -> impl FnOnce(FsError) -> LogError {
        move |source| LogError::Failed { stage, source }
    }

    pub(super) fn missing(
        dir: &Path,
        first: Lsn,
        last: Lsn,
        before: Option<&Path>,
        after: Option<&Path>,
    ) -> LogError {
        LogError::Missing {
            dir: dir.to_owned(),
            first,
            last,
            before: before.map(Path::to_owned),
            after: after.map(Path::to_owned),
        }
    }

    /// The operating system's part in it, if it had one.
    pub fn fs_error(&self) -> Option<&FsError> {
        match self {
            LogError::Io(source) | LogError::Failed { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What is missing, and whether nothing follows it.
struct Lsns(Lsn, Lsn, bool);

impl fmt::Display for Lsns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lsns(first, _, true) => write!(f, "every segment from LSN {first} on"),
            Lsns(first, last, false) => write!(f, "LSN {first} to {last}"),
        }
    }
}

struct Name<'a>(Option<&'a Path>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(Path::file_name) {
            Some(name) => name.display().fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

/// Why a scan ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError<E> {
    /// The log could not be read or is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The visitor refused an entry.
    #[error("entry with LSN {lsn} at byte {offset} of {}", path.display())]
    Visit {
        /// The entry's LSN.
        lsn: Lsn,
        /// The segment.
        path: PathBuf,
        /// Where the entry starts, in bytes.
        offset: u64,
        /// The visitor's error.
        #[source]
        source: E,
    },
}
