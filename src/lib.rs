#![deny(missing_docs, unsafe_code)]
//! `sharestate`: the durable state of Kafka-style share groups (KIP-932), with transactional
//! acknowledgements (KIP-1289) that survive a broker restart.
//!
//! Layers, each of which knows only those below it:
//!
//! ```text
//! store -> engine -> model | log | snapshot -> fsio
//! ```
//!
//! Start at [`ShareStore`]. The lower layers are public for tools, fuzzers and crash tests; a
//! broker needs only what is exported at the root.

pub mod blocking;
pub mod codec;
pub mod engine;
mod error;
pub mod fsio;
#[cfg(all(feature = "rocksdb", feature = "cli"))]
pub mod inspect;
pub mod kafka;
#[cfg(feature = "kafka")]
pub mod kafka_log;
pub mod limits;
pub mod log;
pub mod model;
mod options;
mod pending;
mod seeded;
pub mod snapshot;
mod store;
mod sync;

pub use engine::Progress;
pub use engine::backup::{BackupError, BackupReport};
#[cfg(feature = "rocksdb")]
pub use engine::backup::{backup, restore};
pub use engine::recovery::RecoveryReport;
pub use engine::repair::{Condition, Damage, Repair, RepairError, Repaired, Salvaged};
pub use error::{CheckpointError, EntryError, ErrorClass, OpenError, Poison, StoreError};
pub use model::{
    AckRange, AckType, Answer, Command, DeliveryState, KeyError, Lsn, Marker, Outcome, Partition,
    PendingAck, Producer, ReadAnswer, Rejection, SharePartitionKey, Stage, StateBatch,
    SummaryAnswer,
};
pub use options::{Clock, Create, Options, SyncPolicy, SystemClock};
pub use pending::{PendingEntry, PendingFilter, PendingScan, PendingTotals};
pub use store::{Deleted, Page, Resolved, ShareStore, Write};

/// The README's examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
