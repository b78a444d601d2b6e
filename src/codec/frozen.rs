//! Structs shared by entries and rows, and their conversions. Frozen: see the module above.

use bincode::{Decode, Encode};
use uuid::Uuid;

use super::CodecError;
use crate::model::{AckRange, AckType, DeliveryState, Outcome, SharePartitionKey, StateBatch};

#[derive(Debug, Encode, Decode)]
pub(super) struct KeyV1 {
    pub group_id: String,
    pub topic_id: [u8; 16],
    pub partition: i32,
}

impl From<&SharePartitionKey> for KeyV1 {
    fn from(key: &SharePartitionKey) -> Self {
        Self {
            group_id: key.group_id().to_owned(),
            topic_id: key.topic_id().into_bytes(),
            partition: key.partition(),
        }
    }
}

impl TryFrom<KeyV1> for SharePartitionKey {
    type Error = CodecError;

    fn try_from(key: KeyV1) -> Result<Self, CodecError> {
        Ok(Self::new(key.group_id, Uuid::from_bytes(key.topic_id), key.partition)?)
    }
}

#[derive(Debug, Encode, Decode)]
pub(super) struct BatchV1 {
    pub first_offset: i64,
    pub last_offset: i64,
    pub delivery_state: u8,
    pub delivery_count: i16,
}

impl TryFrom<&StateBatch> for BatchV1 {
    type Error = CodecError;

    fn try_from(batch: &StateBatch) -> Result<Self, CodecError> {
        Ok(Self {
            first_offset: batch.first_offset,
            last_offset: batch.last_offset,
            delivery_state: state_to_byte(batch.delivery_state)?,
            delivery_count: batch.delivery_count,
        })
    }
}

impl TryFrom<BatchV1> for StateBatch {
    type Error = CodecError;

    fn try_from(batch: BatchV1) -> Result<Self, CodecError> {
        Ok(Self {
            first_offset: batch.first_offset,
            last_offset: batch.last_offset,
            delivery_state: state_from_byte(batch.delivery_state)?,
            delivery_count: batch.delivery_count,
        })
    }
}

#[derive(Debug, Encode, Decode)]
pub(super) struct AckV1 {
    pub first_offset: i64,
    pub last_offset: i64,
    pub ack_type: u8,
    pub commit_target: u8,
    pub abort_target: u8,
    pub delivery_count: i16,
}

impl TryFrom<&AckRange> for AckV1 {
    type Error = CodecError;

    fn try_from(ack: &AckRange) -> Result<Self, CodecError> {
        Ok(Self {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            ack_type: ack_type_to_byte(ack.ack_type),
            commit_target: state_to_byte(ack.commit_target)?,
            abort_target: state_to_byte(ack.abort_target)?,
            delivery_count: ack.delivery_count,
        })
    }
}

impl TryFrom<AckV1> for AckRange {
    type Error = CodecError;

    fn try_from(ack: AckV1) -> Result<Self, CodecError> {
        Ok(Self {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            ack_type: ack_type_from_byte(ack.ack_type)?,
            commit_target: state_from_byte(ack.commit_target)?,
            abort_target: state_from_byte(ack.abort_target)?,
            delivery_count: ack.delivery_count,
        })
    }
}

/// The encoders refuse what the decoders would.
pub(super) fn state_to_byte(state: DeliveryState) -> Result<u8, CodecError> {
    match u8::try_from(state.0) {
        Ok(byte) if state.is_storable() => Ok(byte),
        _ => Err(CodecError::Value { field: "delivery_state", found: state.0.into() }),
    }
}

pub(super) fn state_from_byte(byte: u8) -> Result<DeliveryState, CodecError> {
    match i8::try_from(byte).map(DeliveryState) {
        Ok(state) if state.is_storable() => Ok(state),
        _ => Err(CodecError::Value { field: "delivery_state", found: byte.into() }),
    }
}

pub(super) fn ack_type_to_byte(ack_type: AckType) -> u8 {
    match ack_type {
        AckType::Gap => 0,
        AckType::Accept => 1,
        AckType::Release => 2,
        AckType::Reject => 3,
        AckType::Renew => 4,
    }
}

pub(super) fn ack_type_from_byte(byte: u8) -> Result<AckType, CodecError> {
    match byte {
        0 => Ok(AckType::Gap),
        1 => Ok(AckType::Accept),
        3 => Ok(AckType::Reject),
        _ => Err(CodecError::Value { field: "ack_type", found: byte.into() }),
    }
}

pub(super) fn outcome_to_byte(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Abort => 0,
        Outcome::Commit => 1,
    }
}

pub(super) fn outcome_from_byte(byte: u8) -> Result<Outcome, CodecError> {
    match byte {
        0 => Ok(Outcome::Abort),
        1 => Ok(Outcome::Commit),
        _ => Err(CodecError::Value { field: "outcome", found: byte.into() }),
    }
}

pub(super) fn batches_to_v1(batches: &[StateBatch]) -> Result<Vec<BatchV1>, CodecError> {
    batches.iter().map(BatchV1::try_from).collect()
}

pub(super) fn batches_from_v1(batches: Vec<BatchV1>) -> Result<Vec<StateBatch>, CodecError> {
    batches.into_iter().map(StateBatch::try_from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_type_and_outcome_has_its_byte_and_no_other_byte_has_a_meaning() {
        let states = [
            (0, DeliveryState::AVAILABLE),
            (2, DeliveryState::ACKNOWLEDGED),
            (3, DeliveryState::ARCHIVING),
            (4, DeliveryState::ARCHIVED),
        ];
        let types = [(0, AckType::Gap), (1, AckType::Accept), (3, AckType::Reject)];
        let outcomes = [(0, Outcome::Abort), (1, Outcome::Commit)];
        for byte in 0..=u8::MAX {
            let state = states.iter().find(|(of, _)| *of == byte).map(|(_, state)| *state);
            assert_eq!(state_from_byte(byte).ok(), state);
            let ack_type = types.iter().find(|(of, _)| *of == byte).map(|(_, ack_type)| *ack_type);
            assert_eq!(ack_type_from_byte(byte).ok(), ack_type);
            let outcome = outcomes.iter().find(|(of, _)| *of == byte).map(|(_, outcome)| *outcome);
            assert_eq!(outcome_from_byte(byte).ok(), outcome);
        }
        for (byte, state) in states {
            assert_eq!(state_to_byte(state).ok(), Some(byte));
        }
        for state in [-1, 1, 5, 6, i8::MIN, i8::MAX].map(DeliveryState) {
            assert!(state_to_byte(state).is_err(), "{state:?} is stored by nobody");
        }
        for (byte, ack_type) in
            types.into_iter().chain([(2, AckType::Release), (4, AckType::Renew)])
        {
            assert_eq!(ack_type_to_byte(ack_type), byte);
        }
        for (byte, outcome) in outcomes {
            assert_eq!(outcome_to_byte(outcome), byte);
        }
    }
}
