//! Commands drawn from fuzz input, legal or not: in a small world, where they meet, with the ends of
//! every range mixed in.

use arbitrary::Result;
use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Partition, SharePartitionKey, Stage,
    StateBatch,
};
use uuid::Uuid;

use super::draw::Draw;

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
