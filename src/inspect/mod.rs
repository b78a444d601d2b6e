//! Looking into a store, and moving state in and out of it: what the command line prints.
//!
//! Owns read-only views, the offline check, and the text and JSON forms of entries and rows.
//! Changes a store only as any other caller does, through [`ShareStore`](crate::ShareStore);
//! everything else here takes no lock, cuts nothing and repairs nothing, so it also works beside a
//! running store.
//!
//! * [`Reader`]: the state as of now, prepared acks and producers included.
//! * [`verify`]: the whole log and the whole snapshot, every finding with its place.
//! * [`dump`]: every entry of the log.
//! * [`json`], [`load`]: share partitions as JSON lines, and import from Kafka's own log
//!   or from such lines.

mod dump;
mod import;
pub mod json;
mod pending;
mod reader;
mod source;
mod text;
mod verify;

pub use dump::{DumpError, DumpedEntry, dump};
pub use import::{
    ImportError, Input, InputFacts, Loaded, import_json, import_kafka, load, read_json, read_kafka,
};
pub use reader::{Reader, TailNote};
pub use text::{OneLine, ack_name, outcome_name, state_name};
pub use verify::{Finding, RowCounts, Verdict, VerifyReport, verify};

/// How far long work has come, for progress bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is, as far as one can tell; 0 where one cannot.
    pub total: u64,
}

/// Is told of [`Progress`] now and then.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);
