//! Share partitions from Kafka's own log, or from JSON lines, into a store.
//!
//! Everything is read, decoded and judged before anything is loaded, so bad input leaves the store
//! as it was.

mod input;
mod load;

use std::path::{Path, PathBuf};

pub use input::{Input, InputFacts, read_json, read_kafka};
pub use load::{Loaded, load};

use super::OnProgress;
use super::json::FieldError;
use crate::error::StoreError;
use crate::fsio::FsError;
use crate::kafka_log::KafkaLogError;
use crate::model::{Rejection, SharePartitionKey};
use crate::store::ShareStore;

/// Why nothing was imported; or, for [`Load`](Self::Load) alone, why not everything was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] FsError),
    /// A segment of Kafka's is damaged, or holds what no share coordinator writes.
    #[error(transparent)]
    Kafka(#[from] KafkaLogError),
    /// A segment of Kafka's begins at another offset than its name says.
    #[error("{}: the first offset is {found}, the file's name says {expected}", path.display())]
    SegmentName {
        /// The segment.
        path: PathBuf,
        /// Offset by name.
        expected: i64,
        /// Offset of its first batch.
        found: i64,
    },
    /// Segments of one directory of Kafka's are not given in order, or one between them is missing.
    #[error(
        "{} begins at offset {found}, but {expected} comes next behind {}",
        path.display(), before.display()
    )]
    SegmentOrder {
        /// The later segment.
        path: PathBuf,
        /// The one before it.
        before: PathBuf,
        /// One above the last offset of the one before.
        expected: i64,
        /// First offset of the later one.
        found: i64,
    },
    /// Share partitions whose updates have no snapshot to build on: the beginning of Kafka's log is
    /// missing.
    #[error(
        "{count} share partitions have no snapshot, the first is {key}: older segments of Kafka's \
         log are missing"
    )]
    Headless {
        /// The first of them in key order.
        key: Box<SharePartitionKey>,
        /// How many.
        count: u64,
    },
    /// A line is no JSON object of a share partition.
    #[error("{file}: line {line}, column {column}: {reason}")]
    Json {
        /// Where the lines came from.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Column, from 1; 0 = the line as a whole.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A line does not name a share partition.
    #[error("{file}: line {line}: {source}")]
    Field {
        /// Where the lines came from.
        file: String,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        source: FieldError,
    },
    /// A line names a share partition a second time.
    #[error("{file}: line {line}: share partition {key} was in line {first_line} already")]
    Twice {
        /// Where the lines came from.
        file: String,
        /// Line, from 1.
        line: u64,
        /// The share partition.
        key: Box<SharePartitionKey>,
        /// The earlier line.
        first_line: u64,
    },
    /// A share partition has staged transactional acks, which cannot be imported: the transaction
    /// that they belong to would not know of this store.
    #[error("{place}: share partition {key} has {ranges} pending ack ranges, none can be imported")]
    Pending {
        /// Where it was found.
        place: String,
        /// The share partition.
        key: Box<SharePartitionKey>,
        /// How many ranges are pending.
        ranges: usize,
    },
    /// No store would take this state.
    #[error("{place}: share partition {key}: {source}")]
    Refused {
        /// Where it was found.
        place: String,
        /// The share partition.
        key: Box<SharePartitionKey>,
        /// Why.
        source: Rejection,
    },
    /// The store holds share partitions of the import already.
    #[error("the store has {count} of these share partitions already, the first is {key}")]
    Exists {
        /// The first of them in key order.
        key: Box<SharePartitionKey>,
        /// How many.
        count: u64,
    },
    /// The store could not be asked what it holds.
    #[error("the store cannot be read: {0}")]
    Store(#[source] StoreError),
    /// The store failed while it was loading. Share partitions loaded before stay loaded.
    #[error("share partition {key} was not imported, {loaded} others were: {source}")]
    Load {
        /// The share partition.
        key: Box<SharePartitionKey>,
        /// How many were loaded.
        loaded: u64,
        /// Why.
        source: StoreError,
    },
}

impl ImportError {
    /// Whether it means damage, in the input or in the store.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        use crate::error::ErrorClass;
        match self {
            Self::Kafka(_) | Self::SegmentName { .. } | Self::Headless { .. } => true,
            Self::Store(source) | Self::Load { source, .. } => {
                source.class() == ErrorClass::Corrupt
            }
            _ => false,
        }
    }
}

/// Brings the state in segments of `__share_group_state` into a store.
///
/// Segments of one state partition must come by ascending offset; state partitions may come in any
/// order. Blocks: not for async code.
///
/// # Errors
/// [`ImportError`]; bad input and share partitions that exist (unless `replace`) leave the store as
/// it was.
pub fn import_kafka(
    store: &ShareStore,
    segments: &[impl AsRef<Path>],
    replace: bool,
    progress: OnProgress<'_>,
) -> Result<(InputFacts, Loaded), ImportError> {
    let input = read_kafka(segments, progress)?;
    let facts = input.facts;
    Ok((facts, load(store, input, replace, progress)?))
}

/// Brings the lines of an export into a store. Blocks: not for async code.
///
/// # Errors
/// As [`import_kafka`].
pub fn import_json(
    store: &ShareStore,
    files: &[impl AsRef<Path>],
    replace: bool,
    progress: OnProgress<'_>,
) -> Result<(InputFacts, Loaded), ImportError> {
    let input = read_json(files, progress)?;
    let facts = input.facts;
    Ok((facts, load(store, input, replace, progress)?))
}
