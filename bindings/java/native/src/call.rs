//! Requests of Java: an operation's number and its arguments, in the order in which
//! `sharestate.Request` writes them.

use sharestate::{
    AckRange, AckType, Command, DeliveryState, Marker, Outcome, SharePartitionKey, ShareStore,
    Stage, StateBatch,
};
use uuid::Uuid;

use crate::answer::{Failure, Success};
use crate::wire::{Reader, malformed};

const BATCH_BYTES: usize = 8 + 8 + 1 + 2;
const ACK_BYTES: usize = 8 + 8 + 1 + 1 + 1 + 2;

/// What Java asks for.
#[derive(Debug)]
pub enum Call {
    Command(Command),
    DeleteGroup(String),
    DeleteTopic(Uuid),
    List { group_id: Option<String>, after: Option<SharePartitionKey>, limit: usize },
    Checkpoint,
}

impl Call {
    /// Reads a whole request.
    pub fn decode(bytes: &[u8]) -> Result<Self, Failure> {
        let mut from = Reader::new(bytes);
        let call = match from.u8()? {
            0 => Self::Command(initialize(&mut from)?),
            1 => Self::Command(write(&mut from)?),
            2 => {
                let (key, leader_epoch) = (from.key()?, from.i32()?);
                Self::Command(Command::Read { key, leader_epoch })
            }
            3 => Self::Command(Command::Summary { key: from.key()? }),
            4 => Self::Command(Command::Delete { key: from.key()? }),
            5 => Self::Command(stage(&mut from)?),
            6 => Self::Command(marker(&mut from)?),
            7 => Self::Command(force_resolve(&mut from)?),
            8 => Self::DeleteGroup(from.text()?.to_owned()),
            9 => Self::DeleteTopic(from.uuid()?),
            10 => list(&mut from)?,
            11 => Self::Checkpoint,
            other => return Err(malformed(&format!("there is no operation {other}"))),
        };
        from.end()?;
        Ok(call)
    }

    /// Does it.
    pub async fn run(self, store: &ShareStore) -> Result<Success, Failure> {
        Ok(match self {
            Self::Command(command) => Success::Command(store.execute(command).await?),
            Self::DeleteGroup(group) => Success::Deleted(store.delete_group(&group).await?),
            Self::DeleteTopic(topic) => Success::Deleted(store.delete_topic(topic).await?),
            Self::List { group_id, after, limit } => {
                Success::Page(store.list(group_id.as_deref(), after.as_ref(), limit).await?)
            }
            Self::Checkpoint => Success::Lsn(store.checkpoint().await?),
        })
    }
}

fn initialize(from: &mut Reader<'_>) -> Result<Command, Failure> {
    let key = from.key()?;
    Ok(Command::Initialize { key, state_epoch: from.i32()?, start_offset: from.i64()? })
}

fn write(from: &mut Reader<'_>) -> Result<Command, Failure> {
    let key = from.key()?;
    let (state_epoch, leader_epoch) = (from.i32()?, from.i32()?);
    let (start_offset, delivery_complete_count) = (from.i64()?, from.i32()?);
    let count = from.count(BATCH_BYTES)?;
    let batches = (0..count).map(|_| batch(from)).collect::<Result<_, _>>()?;
    Ok(Command::Write {
        key,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    })
}

fn batch(from: &mut Reader<'_>) -> Result<StateBatch, Failure> {
    Ok(StateBatch {
        first_offset: from.i64()?,
        last_offset: from.i64()?,
        delivery_state: DeliveryState(from.i8()?),
        delivery_count: from.i16()?,
    })
}

fn stage(from: &mut Reader<'_>) -> Result<Command, Failure> {
    let key = from.key()?;
    let (state_epoch, leader_epoch) = (from.i32()?, from.i32()?);
    let (producer_id, producer_epoch) = (from.i64()?, from.i16()?);
    let (two_phase, transaction_version) = (from.u8()? != 0, from.i8()?);
    let (transactional_id, member_id) = (from.text()?.to_owned(), from.text()?.to_owned());
    let member_epoch = from.i32()?;
    let count = from.count(ACK_BYTES)?;
    let acks = (0..count).map(|_| ack(from)).collect::<Result<_, _>>()?;
    Ok(Command::Stage(Stage {
        key,
        state_epoch,
        leader_epoch,
        producer_id,
        producer_epoch,
        two_phase,
        transaction_version,
        transactional_id,
        member_id,
        member_epoch,
        acks,
    }))
}

fn ack(from: &mut Reader<'_>) -> Result<AckRange, Failure> {
    Ok(AckRange {
        first_offset: from.i64()?,
        last_offset: from.i64()?,
        ack_type: match from.i8()? {
            0 => AckType::Gap,
            1 => AckType::Accept,
            2 => AckType::Release,
            3 => AckType::Reject,
            4 => AckType::Renew,
            other => return Err(malformed(&format!("there is no ack type {other}"))),
        },
        commit_target: DeliveryState(from.i8()?),
        abort_target: DeliveryState(from.i8()?),
        delivery_count: from.i16()?,
    })
}

fn outcome(from: &mut Reader<'_>) -> Result<Outcome, Failure> {
    match from.u8()? {
        0 => Ok(Outcome::Abort),
        1 => Ok(Outcome::Commit),
        other => Err(malformed(&format!("there is no outcome {other}"))),
    }
}

fn marker(from: &mut Reader<'_>) -> Result<Command, Failure> {
    let (producer_id, producer_epoch) = (from.i64()?, from.i16()?);
    let (coordinator_epoch, outcome) = (from.i32()?, outcome(from)?);
    let transaction_version = from.i8()?;
    Ok(Command::Marker(Marker {
        producer_id,
        producer_epoch,
        coordinator_epoch,
        outcome,
        transaction_version,
    }))
}

fn force_resolve(from: &mut Reader<'_>) -> Result<Command, Failure> {
    let (producer_id, epoch) = (from.i64()?, from.i16()?);
    Ok(Command::ForceResolve { producer_id, epoch, outcome: outcome(from)? })
}

fn list(from: &mut Reader<'_>) -> Result<Call, Failure> {
    let group_id = if from.u8()? == 0 { None } else { Some(from.text()?.to_owned()) };
    let after = if from.u8()? == 0 { None } else { Some(from.key()?) };
    let limit = usize::try_from(from.i32()?).unwrap_or(0);
    Ok(Call::List { group_id, after, limit })
}
