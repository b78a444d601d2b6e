//! Values built from fuzz input: any that the codecs can write. What the model is to meet is drawn
//! in `near.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use sharestate::model::{
    AckRange, AckType, Completed, DeliveryState, ForceResolveTransition, MarkerTransition,
    OpenEpoch, Outcome, Partition, PendingAck, Producer, SharePartitionKey, StageCall,
    StageTransition, StateBatch, Transition, WriteTransition,
};
use uuid::Uuid;

/// Draws typed values from bytes; zeros behind their end.
pub struct Draw<'a>(pub Unstructured<'a>);

impl<'a> Draw<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn any<T: Arbitrary<'a>>(&mut self) -> Result<T> {
        self.0.arbitrary()
    }

    /// A number below `bound`, from one byte.
    pub fn below(&mut self, bound: u8) -> Result<u8> {
        Ok(self.any::<u8>()? % bound)
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Result<T> {
        Ok(self.0.choose(from)?.clone())
    }

    pub fn list<T>(&mut self, most: u8, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.below(most + 1)?).map(|_| one(self)).collect()
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.any()? { some(self).map(Some) } else { Ok(None) }
    }

    pub fn outcome(&mut self) -> Result<Outcome> {
        self.pick(&[Outcome::Commit, Outcome::Abort])
    }

    /// Any key at all, most often a short one.
    pub fn key(&mut self) -> Result<SharePartitionKey> {
        let mut group: String = self.any()?;
        if group.is_empty() {
            group.push(self.pick(&['g', '\0', ':', 'é'])?);
        }
        let topic = Uuid::from_u128(self.any::<u128>()?.max(1));
        let partition = self.any::<i32>()? & i32::MAX;
        Ok(SharePartitionKey::new(group, topic, partition).expect("valid"))
    }

    fn storable(&mut self) -> Result<DeliveryState> {
        self.pick(&[0, 2, 3, 4]).map(DeliveryState)
    }

    fn batch(&mut self) -> Result<StateBatch> {
        Ok(StateBatch {
            first_offset: self.any()?,
            last_offset: self.any()?,
            delivery_state: self.storable()?,
            delivery_count: self.any()?,
        })
    }

    fn storable_ack(&mut self) -> Result<AckRange> {
        Ok(AckRange {
            first_offset: self.any()?,
            last_offset: self.any()?,
            ack_type: self.pick(&[AckType::Gap, AckType::Accept, AckType::Reject])?,
            commit_target: self.storable()?,
            abort_target: self.storable()?,
            delivery_count: self.any()?,
        })
    }

    /// A row that the codec can write; whether a store could hold it is not its business.
    pub fn row(&mut self, with_pending: bool) -> Result<Partition> {
        let mut pending = Vec::new();
        if with_pending {
            for lsn in 0..self.below(4)? {
                let call = Arc::new(self.call(lsn.into())?);
                for _ in 0..=self.below(3)? {
                    let ack = self.storable_ack()?;
                    pending.push(PendingAck {
                        first_offset: ack.first_offset,
                        last_offset: ack.last_offset,
                        ack_type: ack.ack_type,
                        commit_target: ack.commit_target,
                        abort_target: ack.abort_target,
                        delivery_count: ack.delivery_count,
                        call: Arc::clone(&call),
                    });
                }
            }
            let turn = usize::from(self.any::<u8>()?) % pending.len().max(1);
            pending.rotate_left(turn);
        }
        Ok(Partition {
            state_epoch: self.any()?,
            leader_epoch: self.any()?,
            leader_fence: self.any()?,
            start_offset: self.any()?,
            init_start_offset: self.any()?,
            delivery_complete_count: self.any()?,
            snapshot_epoch: self.any()?,
            create_time_ms: self.any()?,
            write_time_ms: self.any()?,
            batches: self.list(6, Self::batch)?,
            pending,
            last_lsn: if with_pending { self.any()? } else { 0 },
        })
    }

    fn call(&mut self, lsn: u64) -> Result<StageCall> {
        Ok(StageCall {
            lsn,
            producer_id: self.any()?,
            producer_epoch: self.any()?,
            two_phase: self.any()?,
            transactional_id: self.any()?,
            member_id: self.any()?,
            member_epoch: self.any()?,
            state_epoch: self.any()?,
            leader_epoch: self.any()?,
            stage_time_ms: self.any()?,
        })
    }

    pub fn producer(&mut self) -> Result<Producer> {
        let mut open = BTreeMap::new();
        for _ in 0..self.below(4)? {
            let keys: BTreeSet<_> = self.list(3, Self::key)?.into_iter().collect();
            let two_phase = self.any()?;
            let superseded_by = self.any()?;
            open.insert(self.any()?, OpenEpoch { two_phase, superseded_by, keys });
        }
        Ok(Producer {
            highest_stage_epoch: self.any()?,
            last_completed: self.option(|draw| {
                let (epoch, operator) = draw.any()?;
                Ok(Completed { epoch, outcome: draw.outcome()?, operator })
            })?,
            coordinator_epoch: self.any()?,
            open,
            last_used_ms: self.any()?,
            last_lsn: self.any()?,
        })
    }

    /// A transition that the codec can write.
    pub fn transition(&mut self) -> Result<Transition> {
        Ok(match self.below(9)? {
            0 => Transition::Initialize {
                key: self.key()?,
                state_epoch: self.any()?,
                start_offset: self.any()?,
                time_ms: self.any()?,
            },
            1 => Transition::Write(WriteTransition {
                key: self.key()?,
                start_offset: self.any()?,
                delivery_complete_count: self.any()?,
                time_ms: self.any()?,
                batches: self.list(8, Self::batch)?,
            }),
            2 => Transition::LeaderEpoch { key: self.key()?, leader_epoch: self.any()? },
            3 => Transition::Delete { key: self.key()? },
            4 => Transition::Stage(StageTransition {
                key: self.key()?,
                producer_id: self.any()?,
                producer_epoch: self.any()?,
                two_phase: self.any()?,
                transactional_id: self.any()?,
                member_id: self.any()?,
                member_epoch: self.any()?,
                state_epoch: self.any()?,
                leader_epoch: self.any()?,
                time_ms: self.any()?,
                acks: self.list(8, Self::storable_ack)?,
            }),
            5 => Transition::Marker(MarkerTransition {
                producer_id: self.any()?,
                producer_epoch: self.any()?,
                coordinator_epoch: self.any()?,
                transaction_version: self.any()?,
                outcome: self.outcome()?,
                resolves: self.any()?,
                completes: self.any()?,
                time_ms: self.any()?,
            }),
            6 => Transition::ForceResolve(ForceResolveTransition {
                producer_id: self.any()?,
                epoch: self.any()?,
                outcome: self.outcome()?,
                completes: self.any()?,
                time_ms: self.any()?,
            }),
            7 => Transition::ExpireProducers { producer_ids: self.list(16, Self::any)? },
            _ => Transition::Import { key: self.key()?, partition: Box::new(self.row(false)?) },
        })
    }
}
