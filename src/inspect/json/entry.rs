//! Log entries as JSON.

use serde::Serialize;

use super::{BatchJson, PartitionJson, batches};
use crate::inspect::dump::DumpedEntry;
use crate::inspect::text::{ack_name, outcome_name};
use crate::log::segment_file_name;
use crate::model::{AckRange, Lsn, Transition};

/// A log entry as a JSON object: where it is, what it is, and the fields of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `DumpedEntry`
pub struct EntryJson {
    pub lsn: Lsn,
    pub kind: &'static str,
    pub kind_number: u16,
    pub version: u8,
    /// File name of the segment.
    pub segment: String,
    pub offset: u64,
    pub frame_offset: u64,
    pub body_bytes: usize,
    #[serde(flatten)]
    body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Body {
    Import {
        key: String,
        #[serde(flatten)]
        state: Box<PartitionJson>,
    },
    Initialize {
        key: String,
        state_epoch: i32,
        start_offset: i64,
        time_ms: i64,
    },
    Write {
        key: String,
        start_offset: i64,
        delivery_complete_count: i32,
        time_ms: i64,
        batches: Vec<BatchJson>,
    },
    LeaderEpoch {
        key: String,
        leader_epoch: i32,
    },
    Delete {
        key: String,
    },
    Stage {
        key: String,
        producer_id: i64,
        producer_epoch: i16,
        two_phase: bool,
        transactional_id: String,
        member_id: String,
        member_epoch: i32,
        state_epoch: i32,
        leader_epoch: i32,
        time_ms: i64,
        acks: Vec<AckJson>,
    },
    Marker {
        producer_id: i64,
        producer_epoch: i16,
        coordinator_epoch: i32,
        transaction_version: i8,
        outcome: &'static str,
        resolves: Option<i16>,
        completes: Option<i16>,
        time_ms: i64,
    },
    ForceResolve {
        producer_id: i64,
        epoch: i16,
        outcome: &'static str,
        /// A forced resolution is always an operator's act.
        operator: bool,
        completes: Option<i16>,
        time_ms: i64,
    },
    ExpireProducers {
        producer_ids: Vec<i64>,
    },
    Undecodable {
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct AckJson {
    first_offset: i64,
    last_offset: i64,
    ack_type: &'static str,
    commit_target: i8,
    abort_target: i8,
    delivery_count: i16,
}

impl EntryJson {
    /// A log entry. One that does not decode has kind `unknown` and a field `error`.
    #[must_use]
    pub fn new(entry: &DumpedEntry) -> Self {
        let (kind, body) = match &entry.transition {
            Ok(transition) => (transition.name(), body(transition)),
            Err(error) => ("unknown", Body::Undecodable { error: error.to_string() }),
        };
        Self {
            lsn: entry.lsn,
            kind,
            kind_number: entry.kind,
            version: entry.version,
            segment: segment_file_name(entry.segment),
            offset: entry.offset,
            frame_offset: entry.frame_offset,
            body_bytes: entry.body_bytes,
            body,
        }
    }
}

fn body(transition: &Transition) -> Body {
    match transition.clone() {
        Transition::Initialize { key, state_epoch, start_offset, time_ms } => {
            Body::Initialize { key: key.to_string(), state_epoch, start_offset, time_ms }
        }
        Transition::Write(write) => Body::Write {
            key: write.key.to_string(),
            start_offset: write.start_offset,
            delivery_complete_count: write.delivery_complete_count,
            time_ms: write.time_ms,
            batches: batches(&write.batches),
        },
        Transition::LeaderEpoch { key, leader_epoch } => {
            Body::LeaderEpoch { key: key.to_string(), leader_epoch }
        }
        Transition::Delete { key } => Body::Delete { key: key.to_string() },
        Transition::Import { key, partition } => {
            let state = Box::new(PartitionJson::new(&key, &partition));
            Body::Import { key: key.to_string(), state }
        }
        Transition::Stage(stage) => Body::Stage {
            key: stage.key.to_string(),
            producer_id: stage.producer_id,
            producer_epoch: stage.producer_epoch,
            two_phase: stage.two_phase,
            transactional_id: stage.transactional_id,
            member_id: stage.member_id,
            member_epoch: stage.member_epoch,
            state_epoch: stage.state_epoch,
            leader_epoch: stage.leader_epoch,
            time_ms: stage.time_ms,
            acks: stage.acks.iter().map(ack).collect(),
        },
        Transition::Marker(marker) => Body::Marker {
            producer_id: marker.producer_id,
            producer_epoch: marker.producer_epoch,
            coordinator_epoch: marker.coordinator_epoch,
            transaction_version: marker.transaction_version,
            outcome: outcome_name(marker.outcome),
            resolves: marker.resolves,
            completes: marker.completes,
            time_ms: marker.time_ms,
        },
        Transition::ForceResolve(force) => Body::ForceResolve {
            producer_id: force.producer_id,
            epoch: force.epoch,
            outcome: outcome_name(force.outcome),
            operator: true,
            completes: force.completes,
            time_ms: force.time_ms,
        },
        Transition::ExpireProducers { producer_ids } => Body::ExpireProducers { producer_ids },
    }
}

fn ack(ack: &AckRange) -> AckJson {
    AckJson {
        first_offset: ack.first_offset,
        last_offset: ack.last_offset,
        ack_type: ack_name(ack.ack_type),
        commit_target: ack.commit_target.0,
        abort_target: ack.abort_target.0,
        delivery_count: ack.delivery_count,
    }
}
