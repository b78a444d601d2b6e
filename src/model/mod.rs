//! The rules of share-group state: what a command does, and the only code that changes state.
//!
//! Pure: no I/O, no clock, no randomness, no async. Knows nothing of frames, rows or threads.
//! [`decide`] judges a command against the state, [`apply`] carries an accepted [`Transition`] out;
//! the live path, recovery and the tools all call the same `apply`.

#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod apply;
mod batch;
mod command;
mod decide;
mod invariants;
mod key;
mod partition;
mod producer;
mod staging;
mod transition;

pub use apply::{ApplyError, Effects, Impossible, apply, touches};
pub use batch::{DeliveryState, StateBatch, combine};
pub use command::{
    AckRange, Answer, Command, Decision, Marker, ReadAnswer, Rejection, Stage, SummaryAnswer,
};
pub use decide::{Options, decide, reads};
pub use key::{KeyError, SharePartitionKey};
pub use partition::{AckType, Partition, PendingAck, StageCall};
pub use producer::{Completed, OpenEpoch, Outcome, Producer};
pub use transition::{
    ForceResolveTransition, MarkerTransition, RowId, StageTransition, Transition, WriteTransition,
};

use std::collections::HashMap;
use std::sync::Arc;

/// Log sequence number: one per entry, dense, from 1. 0 means "before the first entry".
pub type Lsn = u64;

/// The resident part of the state.
///
/// A key that is absent here does not exist, as far as the model is concerned: whoever calls
/// [`decide`] and [`apply`] has loaded the rows that [`reads`] and [`touches`] name. Rows are
/// shared (`Arc`), so that a checkpoint can hold the values of one LSN while newer entries change
/// copies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Share partitions by key.
    pub partitions: HashMap<SharePartitionKey, Arc<Partition>>,
    /// Producers by producer id.
    pub producers: HashMap<i64, Arc<Producer>>,
}
