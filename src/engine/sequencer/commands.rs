//! Judging commands and answering them.

use std::time::Instant;

use tokio::sync::oneshot;

use super::super::residency::{PartitionPage, ProducerPage};
use super::super::waiters::Pending;
use super::super::{PageRequest, Rows, Submission};
use super::Sequencer;
use crate::codec;
use crate::error::{Poison, StoreError};
use crate::log::{Batch, ENTRY_HEADER_BYTES};
use crate::model::{self, Answer, Command, Lsn, Rejection, Transition};
use crate::seeded;

impl Sequencer {
    pub(super) fn on_command(&mut self, submission: Submission, now_ms: i64) {
        let Submission { command, reply, permit } = submission;
        match self.execute(&command, now_ms) {
            Ok((lsn, logged, answer)) => {
                let answer = answer.map_err(StoreError::Rejected);
                self.answer(lsn, logged, Pending::Command { reply, answer, permit });
            }
            Err(error) => {
                drop(permit);
                let _ = reply.send(Err(error)); // a caller who has gone does not matter
            }
        }
    }

    /// Judges a command, logs and applies what it changes. Answers the LSN that the answer rests
    /// on, whether that entry is its own, and the answer.
    pub(super) fn execute(
        &mut self,
        command: &Command,
        now_ms: i64,
    ) -> Result<(Lsn, bool, Result<Answer, Rejection>), StoreError> {
        let decision = self.resident.decide(command, now_ms, &self.model_options)?;
        let Some(transition) = decision.transition else {
            let rests_on = match seeded::bug("KAFKA-15784") {
                true => 0,
                false => self.resident.rests_on(&model::reads(command)),
            };
            warn_of_markers(command, &decision.answer);
            return Ok((rests_on, false, decision.answer));
        };
        if let Some(poison) = self.shared.poison.get() {
            return Err(StoreError::Poisoned(poison.clone()));
        }
        self.resident.load_for(&transition)?;
        let (kind, version) = self.encode(&transition)?;
        let lsn = self.next_lsn;
        let effects = match self.resident.apply(lsn, &transition) {
            Ok(effects) => effects,
            Err(source) => {
                self.fail(Poison::Apply { lsn, source: source.clone() });
                return Err(StoreError::Poisoned(Poison::Apply { lsn, source }));
            }
        };
        self.log_entry(kind, version);
        let answer = decision.answer.map(|answer| answer.with_effects(effects));
        warn_of_markers(command, &answer);
        Ok((lsn, true, answer))
    }

    /// Encodes into `body` and checks the size before anything is applied.
    pub(super) fn encode(&mut self, transition: &Transition) -> Result<(u16, u8), StoreError> {
        self.body.clear();
        let (kind, version) = codec::encode_transition(transition, &mut self.body)?;
        let bytes = self.body.len() + ENTRY_HEADER_BYTES;
        if bytes > self.max_entry {
            let what = "the encoded entry";
            let rejection = Rejection::TooLarge { what, found: bytes, bound: self.max_entry };
            return Err(StoreError::Rejected(rejection));
        }
        Ok((kind as u16, version))
    }

    /// Adds the encoded entry to the open frame, or to a new one when it does not fit.
    pub(super) fn log_entry(&mut self, kind: u16, version: u8) {
        let bytes = self.body.len() + ENTRY_HEADER_BYTES;
        if !self.open.is_empty() && self.open.bytes() + bytes > self.max_payload {
            let mut next = self.spare.pop().unwrap_or_else(|| Batch::new(self.next_lsn));
            next.clear(self.next_lsn);
            self.ready.push_back(std::mem::replace(&mut self.open, next));
        }
        self.open.push(kind, version, &self.body);
        // The log refuses the last LSN, which no real log reaches.
        self.next_lsn = self.next_lsn.saturating_add(1);
        self.log_bytes = self.log_bytes.saturating_add(bytes as u64);
        self.oldest_change.get_or_insert_with(Instant::now);
    }

    /// Gives an answer, now or when what it rests on is durable.
    pub(super) fn answer(&mut self, lsn: Lsn, logged: bool, pending: Pending) {
        if lsn <= self.answerable() || seeded::bug("etcd-14370") {
            pending.release();
        } else if let Some(poison) = self.shared.poison.get() {
            pending.fail(StoreError::Poisoned(poison.clone()));
        } else {
            self.waiters.push(lsn, logged, pending);
        }
    }

    pub(super) fn on_partitions(
        &mut self,
        request: PageRequest<Option<String>, model::SharePartitionKey, PartitionPage>,
    ) {
        let PageRequest { filter, after, limit, reply } = request;
        match self.resident.partitions(filter.as_deref(), after.as_ref(), limit) {
            Ok(page) => {
                let rests_on = self.next_lsn - 1;
                self.answer(rests_on, false, Pending::Partitions(reply, page));
            }
            Err(error) => drop(reply.send(Err(error.into()))),
        }
    }

    pub(super) fn on_producers(&mut self, request: PageRequest<(), i64, ProducerPage>) {
        match self.resident.producers(request.after, request.limit) {
            Ok(page) => {
                let rests_on = self.next_lsn - 1;
                self.answer(rests_on, false, Pending::Producers(request.reply, page));
            }
            Err(error) => drop(request.reply.send(Err(error.into()))),
        }
    }

    pub(super) fn on_rows(
        &mut self,
        keys: &[model::SharePartitionKey],
        reply: oneshot::Sender<Result<Rows, StoreError>>,
    ) {
        match self.resident.rows(keys) {
            Ok((rows, rests_on)) => self.answer(rests_on, false, Pending::Rows(reply, rows)),
            Err(error) => drop(reply.send(Err(error.into()))),
        }
    }
}

/// A marker that succeeds but should not have come so: counted, and worth an operator's look
/// (semantics section 4.4).
fn warn_of_markers(command: &Command, answer: &Result<Answer, Rejection>) {
    let Ok(Answer::Resolved { contradicts, orphans, .. }) = answer else { return };
    if *contradicts {
        metrics::counter!("sharestate_contradicting_markers_total").increment(1);
        tracing::warn!(?command, "a marker contradicts the outcome that is remembered");
    }
    if *orphans {
        metrics::counter!("sharestate_orphaning_markers_total").increment(1);
        tracing::warn!(?command, "a marker leaves an older open epoch behind, orphaned");
    }
}
