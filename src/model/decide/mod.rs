//! What a command comes to: the checks of semantics sections 2 and 4 in their order, and the
//! decided values.
//!
//! Owns every refusal. Changes nothing and knows no way to: see [`apply`](super::apply()).

mod import;
mod marker;
mod plain;
mod producers;
mod stage;
mod write;

use super::{
    Answer, Command, Decision, Lsn, Marker, Partition, Producer, Rejection, RowId,
    SharePartitionKey, Stage, State, Transition, apply,
};
use crate::limits::ROW_WEIGHT_MAX;

/// What a decision depends on besides state, command and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long after its last use a producer with nothing pending is remembered. Kafka's
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self { producer_id_expiration_ms: 86_400_000 }
    }
}

/// Judges a command. The first check that fails is the answer; what is accepted becomes a
/// [`Transition`] to log and to [`apply`](super::apply()).
///
/// The rows that [`reads`] names must be resident.
#[must_use]
pub fn decide(state: &State, command: &Command, now_ms: i64, options: &Options) -> Decision {
    match command {
        Command::Initialize { key, state_epoch, start_offset } => {
            plain::initialize(state, key, *state_epoch, *start_offset, now_ms).into()
        }
        Command::Write {
            key,
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            batches,
        } => write::Write {
            key,
            state_epoch: *state_epoch,
            leader_epoch: *leader_epoch,
            start_offset: *start_offset,
            delivery_complete_count: *delivery_complete_count,
            batches,
        }
        .decide(state, now_ms)
        .into(),
        Command::Read { key, leader_epoch } => plain::read(state, key, *leader_epoch).into(),
        Command::Summary { key } => plain::summary(state, key).into(),
        Command::Delete { key } => plain::delete(state, key).into(),
        Command::Stage(command) => stage::stage(state, command, now_ms).into(),
        Command::Marker(command) => marker::marker(state, command, now_ms),
        Command::ForceResolve { producer_id, epoch, outcome } => {
            producers::force_resolve(state, *producer_id, *epoch, *outcome, now_ms).into()
        }
        Command::ExpireProducers { producer_ids } => {
            producers::expire(state, producer_ids, now_ms, options).into()
        }
        Command::Import { key, partition, replace } => {
            import::import(state, key, partition, *replace).into()
        }
    }
}

/// The rows that [`decide`] looks at.
#[must_use]
pub fn reads(command: &Command) -> Vec<RowId> {
    match command {
        Command::Initialize { key, .. }
        | Command::Write { key, .. }
        | Command::Read { key, .. }
        | Command::Summary { key }
        | Command::Delete { key }
        | Command::Import { key, .. } => vec![RowId::Partition(key.clone())],
        Command::Stage(Stage { key, producer_id, .. }) => {
            vec![RowId::Partition(key.clone()), RowId::Producer(*producer_id)]
        }
        Command::Marker(Marker { producer_id, .. }) | Command::ForceResolve { producer_id, .. } => {
            vec![RowId::Producer(*producer_id)]
        }
        Command::ExpireProducers { producer_ids } => {
            producer_ids.iter().copied().map(RowId::Producer).collect()
        }
    }
}

impl State {
    /// Decides a command and applies what was accepted, in memory: a store without a log. `lsn` is
    /// that of the last entry and advances when something would be logged.
    ///
    /// # Errors
    /// The refusal of [`decide`].
    ///
    /// # Panics
    /// When the state violates an invariant of its own, so that [`apply`](super::apply()) refuses
    /// what `decide` accepted; no command leads there.
    pub fn execute(
        &mut self,
        lsn: &mut Lsn,
        command: &Command,
        now_ms: i64,
        options: &Options,
    ) -> Result<Answer, Rejection> {
        let Decision { transition, answer } = decide(self, command, now_ms, options);
        let Some(transition) = transition else { return answer };
        *lsn = lsn.saturating_add(1);
        match apply(self, *lsn, &transition) {
            Ok(effects) => answer.map(|answer| answer.with_effects(effects)),
            Err(error) => panic!("apply refused what decide accepted: {error}"),
        }
    }

    fn partition(&self, key: &SharePartitionKey) -> Option<&Partition> {
        self.partitions.get(key).map(|row| &**row)
    }

    fn producer(&self, producer_id: i64) -> Option<&Producer> {
        self.producers.get(&producer_id).map(|row| &**row)
    }
}

/// A success: what to log, if anything, and the answer.
type Accepted = (Option<Transition>, Answer);

impl From<Result<Accepted, Rejection>> for Decision {
    fn from(result: Result<Accepted, Rejection>) -> Self {
        match result {
            Ok((transition, answer)) => Self { transition, answer: Ok(answer) },
            Err(rejection) => Self { transition: None, answer: Err(rejection) },
        }
    }
}

/// The answer of calls whose only news is what they dropped.
const DONE: Answer = Answer::Done { dropped: Vec::new() };

fn check(holds: bool, otherwise: &'static str) -> Result<(), Rejection> {
    if holds { Ok(()) } else { Err(Rejection::InvalidRequest(otherwise)) }
}

fn check_leader_epoch(row: &Partition, sent: i32) -> Result<(), Rejection> {
    let fence = row.leader_fence;
    if sent < fence { Err(Rejection::FencedLeaderEpoch { sent, fence }) } else { Ok(()) }
}

fn check_state_epoch_not_below(row: &Partition, sent: i32) -> Result<(), Rejection> {
    let stored = row.state_epoch;
    if sent < stored { Err(Rejection::FencedStateEpoch { sent, stored }) } else { Ok(()) }
}

/// A row may not grow past its bound; one that is past it already may stay or shrink.
fn check_weight(before: usize, after: usize) -> Result<(), Rejection> {
    if after <= ROW_WEIGHT_MAX || after <= before {
        return Ok(());
    }
    let what = "weight of the share partition (batches plus twice the pending ranges)";
    Err(Rejection::TooLarge { what, found: after, bound: ROW_WEIGHT_MAX })
}

// Kafka's own texts, where it has any.
const NEGATIVE_LEADER_EPOCH: &str = "The leader epoch cannot be a negative number.";
const NEGATIVE_STATE_EPOCH: &str = "The state epoch cannot be a negative number.";
const START_OFFSET_TOO_LOW: &str = "The start offset cannot be below -1.";
