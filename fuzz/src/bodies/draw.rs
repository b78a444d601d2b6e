//! Values built from fuzz input: legal ones for the codecs, anything for the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use sharestate::model::{
    AckRange, AckType, Command, Completed, DeliveryState, ForceResolveTransition, Marker,
    MarkerTransition, OpenEpoch, Outcome, Partition, PendingAck, Producer, SharePartitionKey,
    Stage, StageCall, StageTransition, StateBatch, Transition, WriteTransition,
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

/// Commands in a small world, where they meet, with the ends of every range mixed in.
impl Draw<'_> {
    fn near_key(&mut self) -> Result<SharePartitionKey> {
        let (group, partition) = self.pick(&[("a", 0), ("a", 1), ("b", 0)])?;
        Ok(SharePartitionKey::new(group, Uuid::from_u128(1), partition).expect("valid"))
    }

    fn near_epoch(&mut self) -> Result<i32> {
        self.pick(&[0, 0, 0, 1, 1, 2, 3, -1, i32::MAX - 1, i32::MAX, i32::MIN])
    }

    fn near_producer_epoch(&mut self) -> Result<i16> {
        self.pick(&[0, 0, 1, 1, 2, 2, 3, 4, 5, -1, 32_765, 32_766, 32_767, i16::MIN])
    }

    fn near_offset(&mut self) -> Result<i64> {
        let far = [-2, i64::MAX - 9, i64::MAX - 1, i64::MAX, i64::MIN];
        let near = i64::from(self.below(24)?) - 1;
        if self.below(12)? == 0 { self.pick(&far) } else { Ok(near) }
    }

    /// Narrow: the oracle counts every offset.
    fn near_range(&mut self) -> Result<(i64, i64)> {
        let first = self.near_offset()?;
        let width = i64::from(self.pick(&[0, 0, 1, 2, 3, 5, -1])?);
        Ok((first, first.saturating_add(width)))
    }

    fn near_count(&mut self) -> Result<i16> {
        self.pick(&[0, 1, 1, 2, 2, 3, 4, -1, i16::MAX])
    }

    fn near_batch(&mut self) -> Result<StateBatch> {
        let (first_offset, last_offset) = self.near_range()?;
        Ok(StateBatch {
            first_offset,
            last_offset,
            delivery_state: DeliveryState(self.pick(&[0, 0, 2, 2, 3, 4, 1, 5, -1, i8::MIN])?),
            delivery_count: self.near_count()?,
        })
    }

    fn near_ack(&mut self) -> Result<AckRange> {
        use AckType::{Accept, Gap, Reject, Release, Renew};
        let (first_offset, last_offset) = self.near_range()?;
        let (ack_type, commit, abort) = self.pick(&[
            (Accept, 2, 0),
            (Accept, 2, 0),
            (Accept, 2, 3),
            (Accept, 2, 4),
            (Reject, 4, 0),
            (Reject, 3, 4),
            (Gap, 4, 0),
            (Release, 0, 0),
            (Renew, 2, 0),
            (Accept, 4, 0),
            (Gap, 2, 0),
            (Accept, 1, -1),
        ])?;
        Ok(AckRange {
            first_offset,
            last_offset,
            ack_type,
            commit_target: DeliveryState(commit),
            abort_target: DeliveryState(abort),
            delivery_count: self.near_count()?,
        })
    }

    fn near_row(&mut self) -> Result<Partition> {
        let start_offset = self.near_offset()?;
        Ok(Partition {
            state_epoch: self.near_epoch()?,
            leader_epoch: self.near_epoch()?,
            leader_fence: self.near_epoch()?,
            start_offset,
            init_start_offset: start_offset,
            delivery_complete_count: self.near_epoch()?,
            snapshot_epoch: self.near_epoch()?,
            create_time_ms: 5,
            write_time_ms: 6,
            batches: self.list(4, Self::near_batch)?,
            pending: Vec::new(),
            last_lsn: 0,
        })
    }

    pub fn command(&mut self) -> Result<Command> {
        let key = self.near_key()?;
        let producer_id = self.pick(&[7, 7, 8, 9, 0, -1, i64::MAX])?;
        Ok(match self.below(16)? {
            0 => Command::Initialize {
                key,
                state_epoch: self.near_epoch()?,
                start_offset: self.near_offset()?,
            },
            1..=4 => Command::Write {
                key,
                state_epoch: self.near_epoch()?,
                leader_epoch: self.near_epoch()?,
                start_offset: self.near_offset()?,
                delivery_complete_count: self.near_epoch()?,
                batches: self.list(4, Self::near_batch)?,
            },
            5 => Command::Read { key, leader_epoch: self.near_epoch()? },
            6 => Command::Summary { key },
            7 => Command::Delete { key },
            8..=11 => Command::Stage(Stage {
                key,
                state_epoch: self.near_epoch()?,
                leader_epoch: self.near_epoch()?,
                producer_id,
                producer_epoch: self.near_producer_epoch()?,
                two_phase: self.below(4)? == 0,
                transaction_version: self.pick(&[2, 2, 2, 3, 1, i8::MIN])?,
                transactional_id: "t".to_owned(),
                member_id: String::new(),
                member_epoch: self.near_epoch()?,
                acks: self.list(3, Self::near_ack)?,
            }),
            12 | 13 => Command::Marker(Marker {
                producer_id,
                producer_epoch: self.near_producer_epoch()?,
                coordinator_epoch: self.near_epoch()?,
                outcome: self.outcome()?,
                transaction_version: self.pick(&[2, 2, 0, 1, 3])?,
            }),
            14 if self.any()? => Command::ForceResolve {
                producer_id,
                epoch: self.near_producer_epoch()?,
                outcome: self.outcome()?,
            },
            14 => Command::ExpireProducers { producer_ids: vec![8, producer_id, 7, 8] },
            _ => {
                Command::Import { key, partition: Box::new(self.near_row()?), replace: self.any()? }
            }
        })
    }
}
