//! Errors of the store, one type per kind of call. Nobody ever has to match on a string: every
//! error has a class, and Kafka's code where one exists.

use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::CodecError;
use crate::fsio::FsError;
use crate::log::LogError;
use crate::model::{ApplyError, KeyError, Lsn, Rejection};
use crate::snapshot::SnapshotError;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The request is at fault; repeating it gives the same answer.
    Rejected,
    /// Nothing is wrong with the request or the data; a later try may succeed.
    Retriable,
    /// A write or sync failed. Only a fresh open decides what survived.
    Poisoned,
    /// Bytes on disk are not what was written.
    Corrupt,
    /// A system call failed.
    Io,
}

/// Why a store could not be opened. Nothing on disk was changed, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory is not a store, and is not empty or must not become one.
    #[error("{} is not a sharestate store: {reason}", path.display())]
    NotAStore {
        /// Directory.
        path: PathBuf,
        /// What was found.
        reason: &'static str,
    },
    /// A new store was asked for where one exists.
    #[error("{} holds a store already", path.display())]
    Exists {
        /// Directory.
        path: PathBuf,
    },
    /// Something that changes the whole directory was begun and not finished.
    #[error("{}: {what}", path.display())]
    Unfinished {
        /// Directory.
        path: PathBuf,
        /// What was begun, and how to go on.
        what: &'static str,
    },
    /// The directory is a backup: opened, it would give out LSNs that its original has given out.
    #[error(
        "{} is a backup: make a store of it with `sharestate restore`", path.display()
    )]
    Backup {
        /// Directory.
        path: PathBuf,
    },
    /// Another process, or another handle of this one, has the store open.
    #[error("the store is in use: {} is locked", path.display())]
    Locked {
        /// Lock file.
        path: PathBuf,
    },
    /// Since a salvage was interrupted, what it was about to keep has been damaged too.
    #[error(
        "all up to LSN {kept_lsn} was to be kept, and now only {found_lsn} can be proved; log and \
         snapshot as they were before are in {}",
        copy.display()
    )]
    LessThanPromised {
        /// Last LSN that was to be kept.
        kept_lsn: Lsn,
        /// Last LSN that is provable now.
        found_lsn: Lsn,
        /// Where they can be put back from.
        copy: PathBuf,
    },
    /// The store was written by a newer release.
    #[error(
        "{} has format version {found}, this release reads up to {supported}",
        path.display()
    )]
    NewerFormat {
        /// `STORE` file.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version that this release reads.
        supported: u32,
    },
    /// The `STORE` file is damaged.
    #[error("{} is damaged: it does not tell who the store is", path.display())]
    BadIdentity {
        /// `STORE` file.
        path: PathBuf,
    },
    /// Settings that cannot work.
    #[error("option {option}: {reason}")]
    BadOption {
        /// Option.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The log is damaged, incomplete, foreign or unreadable, or could not be taken up for writing.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The snapshot is damaged, foreign or unreadable.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// An entry with a valid checksum that does not decode or cannot have happened.
    #[error("{}: LSN {lsn} at offset {offset}: {source}", path.display())]
    Entry {
        /// Segment.
        path: PathBuf,
        /// Offset of its frame.
        offset: u64,
        /// LSN.
        lsn: Lsn,
        /// What is wrong.
        source: EntryError,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] FsError),
    /// A thread could not be started.
    #[error("a thread of the store could not be started: {0}")]
    Thread(std::io::Error),
}

/// Why an entry cannot be replayed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// It does not decode.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// It is impossible in the state that the entries before it lead to.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A row that it needs cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl OpenError {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Locked { .. } => ErrorClass::Retriable,
            Self::NotAStore { .. }
            | Self::Exists { .. }
            | Self::Unfinished { .. }
            | Self::Backup { .. }
            | Self::NewerFormat { .. }
            | Self::BadOption { .. } => ErrorClass::Rejected,
            Self::BadIdentity { .. } | Self::LessThanPromised { .. } => ErrorClass::Corrupt,
            Self::Log(LogError::Io(_) | LogError::Failed { .. }) => ErrorClass::Io,
            Self::Log(LogError::Newer { .. } | LogError::SegmentBytes { .. }) => {
                ErrorClass::Rejected
            }
            Self::Log(LogError::Overtaken { .. }) => ErrorClass::Retriable,
            Self::Log(_) => ErrorClass::Corrupt,
            Self::Snapshot(error) if error.is_corruption() => ErrorClass::Corrupt,
            Self::Entry { source: EntryError::Codec(CodecError::NewerEntry { .. }), .. } => {
                ErrorClass::Rejected
            }
            Self::Entry { source: EntryError::Snapshot(error), .. } if !error.is_corruption() => {
                ErrorClass::Io
            }
            Self::Entry { .. } => ErrorClass::Corrupt,
            Self::Snapshot(_) | Self::Io(_) | Self::Thread(_) => ErrorClass::Io,
        }
    }
}

/// The first failed write or sync of a store. From then on nothing is written, synced, retried or
/// deleted.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Poison {
    /// The log failed.
    #[error(transparent)]
    Log(Arc<LogError>),
    /// An accepted transition could not be applied: a defect of sharestate itself.
    #[error("LSN {lsn} was accepted but cannot be applied: {source}")]
    Apply {
        /// LSN.
        lsn: Lsn,
        /// What is wrong.
        source: ApplyError,
    },
    /// A thread of the store panicked: a defect of sharestate itself.
    #[error("a thread of the store panicked")]
    Panic,
}

/// Why an operation was not answered with success.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The key is malformed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The request was refused; the store is as before.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The change was being written when the store failed: it may or may not be there after the
    /// next open.
    #[error("the outcome is unknown, the store failed: {0}")]
    OutcomeUnknown(Poison),
    /// The store had failed before: nothing was logged.
    #[error("nothing was logged, the store has failed: {0}")]
    Poisoned(Poison),
    /// A row could not be read; nothing was logged.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The entry does not encode: a defect of sharestate itself. Nothing was logged.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The queue is full (`try_` calls only).
    #[error("the queue is full")]
    QueueFull,
    /// The request alone is larger than the whole queue.
    #[error("the request takes {bytes} bytes, the queue holds {bound}")]
    LargerThanQueue {
        /// Its size.
        bytes: usize,
        /// The queue's.
        bound: usize,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Key(_) | Self::Rejected(_) | Self::LargerThanQueue { .. } => ErrorClass::Rejected,
            Self::OutcomeUnknown(_) | Self::Poisoned(_) => ErrorClass::Poisoned,
            Self::Snapshot(error) if error.is_corruption() => ErrorClass::Corrupt,
            Self::Codec(_) => ErrorClass::Corrupt,
            Self::Snapshot(_) => ErrorClass::Io,
            Self::QueueFull | Self::Closed => ErrorClass::Retriable,
        }
    }

    /// Kafka's error code: the refusal's own, else one that both a broker and a transaction
    /// coordinator react to sanely (semantics section 4.4): `KAFKA_STORAGE_ERROR` (56) or
    /// `NOT_LEADER_OR_FOLLOWER` (6).
    #[must_use]
    pub fn kafka_code(&self) -> Option<i16> {
        match self {
            Self::Key(_) | Self::LargerThanQueue { .. } => Some(42),
            Self::Rejected(rejection) => rejection.kafka_code(),
            Self::Closed | Self::QueueFull => Some(6),
            Self::OutcomeUnknown(_) | Self::Poisoned(_) | Self::Snapshot(_) | Self::Codec(_) => {
                Some(56)
            }
        }
    }
}

/// Why a checkpoint was not taken. The rows stay in memory and in the log; the store goes on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store has failed.
    #[error("the store has failed: {0}")]
    Poisoned(Poison),
    /// The snapshot could not be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}
