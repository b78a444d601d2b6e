//! Answers and errors on their way to Java: a status byte (0 success, 1 failure) and what it says.

use sharestate::engine::recovery::RecoveryReport;
use sharestate::{
    Answer, CheckpointError, Deleted, ErrorClass, OpenError, Page, Partition, PendingAck,
    StoreError,
};

use crate::wire::Writer;

/// Why a call failed, as `sharestate.ShareStoreException` tells it.
#[derive(Debug)]
pub struct Failure {
    class: Class,
    kafka_code: Option<i16>,
    message: String,
}

/// In the order of the constants of `sharestate.ErrorClass`.
#[derive(Debug, Clone, Copy)]
enum Class {
    Rejected,
    Retriable,
    Poisoned,
    Corrupt,
    Io,
    Closed,
    Internal,
}

impl Failure {
    /// A defect of this binding or of the store.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { class: Class::Internal, kafka_code: Some(-1), message: message.into() }
    }

    /// The handle is of no open store.
    pub fn closed() -> Self {
        Self::from(StoreError::Closed)
    }

    /// Settings that cannot be used.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self { class: Class::Rejected, kafka_code: None, message: message.into() }
    }

    fn put(&self, out: &mut Writer) {
        out.i8(self.class as i8).flag(self.kafka_code.is_some());
        out.i16(self.kafka_code.unwrap_or_default()).text(&self.message);
    }
}

impl From<ErrorClass> for Class {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Rejected => Self::Rejected,
            ErrorClass::Retriable => Self::Retriable,
            ErrorClass::Poisoned => Self::Poisoned,
            ErrorClass::Corrupt => Self::Corrupt,
            ErrorClass::Io => Self::Io,
            _ => Self::Internal,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let class = match error {
            StoreError::Closed => Class::Closed,
            _ => error.class().into(),
        };
        Self { class, kafka_code: error.kafka_code(), message: error.to_string() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { class: error.class().into(), kafka_code: None, message: error.to_string() }
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let class = match &error {
            CheckpointError::Poisoned(_) => Class::Poisoned,
            CheckpointError::Snapshot(error) if error.is_corruption() => Class::Corrupt,
            CheckpointError::Snapshot(_) => Class::Io,
            CheckpointError::Closed => Class::Closed,
            _ => Class::Internal,
        };
        Self { class, kafka_code: None, message: error.to_string() }
    }
}

/// What a call succeeded with.
#[derive(Debug)]
pub enum Success {
    /// Of a command.
    Command(Answer),
    /// Of a walk that deletes.
    Deleted(Deleted),
    /// Of a listing.
    Page(Page),
    /// Of a checkpoint.
    Lsn(u64),
    /// Of opening: the handle and what recovery did.
    Opened { handle: i64, uuid: String, report: Box<RecoveryReport> },
    /// Of closing.
    Nothing,
}

/// Status and content.
pub fn encode(answer: &Result<Success, Failure>) -> Vec<u8> {
    let mut out = Writer::default();
    match answer {
        Ok(success) => success.put(out.i8(0)),
        Err(failure) => failure.put(out.i8(1)),
    }
    out.into_bytes()
}

impl Success {
    fn put(&self, out: &mut Writer) {
        match self {
            Self::Command(answer) => command(answer, out),
            Self::Deleted(deleted) => {
                out.u64(deleted.partitions).u64(deleted.dropped);
            }
            Self::Page(page) => {
                out.count(page.partitions.len());
                for (key, row) in &page.partitions {
                    partition(row, out.key(key));
                }
                out.flag(page.next.is_some());
            }
            Self::Lsn(lsn) => {
                out.u64(*lsn);
            }
            Self::Opened { handle, uuid, report } => {
                out.i64(*handle).text(uuid);
                recovery(report, out);
            }
            Self::Nothing => {}
        }
    }
}

fn command(answer: &Answer, out: &mut Writer) {
    match answer {
        Answer::Done { dropped } => pending(dropped, out),
        Answer::Read(read) => partition(&read.partition, out),
        Answer::Summary(summary) => {
            out.i32(summary.state_epoch).i32(summary.leader_epoch);
            out.i64(summary.start_offset).i32(summary.delivery_complete_count);
        }
        Answer::Staged { staged } => ranges(staged, out),
        Answer::Resolved { resolved, contradicts, orphans } => {
            out.flag(*contradicts).flag(*orphans).count(resolved.len());
            for (key, resolved) in resolved {
                ranges(resolved, out.key(key));
            }
        }
        Answer::Expired { producer_ids } => {
            out.count(producer_ids.len());
            for id in producer_ids {
                out.i64(*id);
            }
        }
    }
}

fn ranges(ranges: &[(i64, i64)], out: &mut Writer) {
    out.count(ranges.len());
    for (first, last) in ranges {
        out.i64(*first).i64(*last);
    }
}

fn partition(row: &Partition, out: &mut Writer) {
    out.i32(row.state_epoch).i32(row.leader_epoch).i64(row.start_offset);
    out.i32(row.delivery_complete_count).count(row.batches.len());
    for batch in &row.batches {
        out.i64(batch.first_offset).i64(batch.last_offset);
        out.i8(batch.delivery_state.0).i16(batch.delivery_count);
    }
    pending(&row.pending, out);
}

fn pending(acks: &[PendingAck], out: &mut Writer) {
    out.count(acks.len());
    for ack in acks {
        out.i64(ack.first_offset).i64(ack.last_offset).i8(ack.ack_type as i8);
        out.i8(ack.commit_target.0).i8(ack.abort_target.0).i16(ack.delivery_count);
        let call = &ack.call;
        out.i64(call.producer_id).i16(call.producer_epoch).flag(call.two_phase);
        out.text(&call.transactional_id).text(&call.member_id).i32(call.member_epoch);
    }
}

fn recovery(report: &RecoveryReport, out: &mut Writer) {
    out.flag(report.created).u64(report.snapshot_lsn).u64(report.replayed).u64(report.last_lsn);
    out.u64(report.incarnation);
    out.i64(i64::try_from(report.elapsed.as_micros()).unwrap_or(i64::MAX));
    out.text(report.snapshot_damage.as_deref().unwrap_or_default());
    let cut = report.repair.as_ref().and_then(|repair| repair.cut.as_ref());
    out.text(&cut.map(|cut| format!("{cut:?}")).unwrap_or_default());
}
