//! Random histories of two transactional producers over three share partitions, from a seed, or
//! from bytes that are drawn instead, so that a fuzzer can steer them.
//!
//! What comes next depends on what the oracle knows, so that most of it makes sense: brokers
//! acquire records before they ack them, producers bump epochs, coordinators send markers at once,
//! late, or never. The rest is what stale brokers, zombies and operators send.

#![allow(dead_code)] // each user takes its own part

use std::sync::Arc;

use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Outcome, SharePartitionKey, Stage,
    StateBatch,
};
use uuid::Uuid;

use crate::oracle::{Oracle, Part};

/// What happens next.
#[derive(Debug, Clone)]
pub enum Step {
    Command(Box<Command>),
    Restart,
    Checkpoint,
}

enum Random {
    /// SplitMix64, so that a seed means the same for ever.
    Seed(u64),
    /// One byte a draw; zeros behind the end.
    Bytes(std::vec::IntoIter<u8>),
}

impl Random {
    fn next(&mut self) -> u64 {
        let state = match self {
            Self::Seed(state) => state,
            Self::Bytes(bytes) => return bytes.next().unwrap_or(0).into(),
        };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound.unsigned_abs()).cast_signed()
    }

    fn one_in(&mut self, bound: i64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as i64)).expect("in range")].clone()
    }
}

/// A producer, the broker that stages for it and the coordinator that ends its transactions.
struct Client {
    id: i64,
    epoch: i16,
    two_phase: bool,
    last_stage: Option<Stage>,
    /// Markers on their way.
    late: Vec<Marker>,
    sent: Vec<Marker>,
}

/// See the module.
pub struct History {
    random: Random,
    clients: [Client; 2],
    coordinator_epoch: i32,
    pub now: i64,
}

impl History {
    pub fn new(seed: u64) -> Self {
        Self::drawing(Random::Seed(seed))
    }

    /// Whose draws are these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::drawing(Random::Bytes(Vec::from(bytes).into_iter()))
    }

    /// Whether all bytes are drawn; a seed never ends.
    pub fn is_over(&self) -> bool {
        matches!(&self.random, Random::Bytes(bytes) if bytes.len() == 0)
    }

    fn drawing(mut random: Random) -> Self {
        // Some begin where the epochs of a producer id end.
        let epoch = if random.one_in(16) { 32_740 } else { 0 };
        let clients = [7, 8].map(|id| Client {
            id,
            epoch,
            two_phase: id == 8,
            last_stage: None,
            late: Vec::new(),
            sent: Vec::new(),
        });
        Self { random, clients, coordinator_epoch: 1, now: 1_000 }
    }

    /// The next step, and the clock moved on to it.
    pub fn next(&mut self, oracle: &Oracle) -> Step {
        self.now += self.random.below(20);
        let key = self.key();
        let (client, action) = (usize::from(self.random.one_in(2)), self.random.below(100));
        if action < 24
            && let Some(command) = self.transaction(client, action, oracle)
        {
            return Step::Command(Box::new(command));
        }
        let command = match (action, oracle.part(&key)) {
            (96.., _) => return Step::Restart,
            (92..96, _) => return Step::Checkpoint,
            (24..27, _) => {
                let producer_ids = vec![8, 7, 99, 7];
                Command::ExpireProducers { producer_ids }
            }
            (27, _) => Command::Summary { key },
            (28..31, _) => Command::Delete { key },
            (31..36, part) => self.initialize(key, part),
            (_, None) => Command::Initialize {
                key,
                state_epoch: self.random.pick(&[0, 1]),
                start_offset: self.random.pick(&[-1, 0, 0, 3]),
            },
            (36..41, Some(part)) => {
                let leader_epoch = self.near(part.leader_fence);
                Command::Read { key, leader_epoch }
            }
            (41..56, Some(part)) => self.write(key, part),
            (_, Some(part)) => Command::Stage(self.stage(client, key, part)),
        };
        Step::Command(Box::new(command))
    }

    fn key(&mut self) -> SharePartitionKey {
        let (group, partition): (&str, i32) = self.random.pick(&[("a", 0), ("a", 1), ("b", 0)]);
        SharePartitionKey::new(Arc::from(group), Uuid::from_u128(1), partition).expect("valid")
    }

    /// What a caller sends for an epoch: the right one, as a rule.
    fn near(&mut self, epoch: i32) -> i32 {
        epoch + self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1])
    }

    /// Everything that ends transactions; none when a marker does not come.
    fn transaction(&mut self, client: usize, action: i64, oracle: &Oracle) -> Option<Command> {
        let outcome = self.random.pick(&[Outcome::Commit, Outcome::Commit, Outcome::Abort]);
        self.coordinator_epoch += i32::from(self.random.one_in(20));
        let coordinator_epoch = self.coordinator_epoch;
        let client = &mut self.clients[client];
        let open = oracle.open(client.id);
        let oldest = open.keys().next().copied();
        let stray = Marker {
            producer_id: client.id,
            producer_epoch: self.random.pick(&[-2, -1, 0, 0, 0, 1]) + client.epoch.min(32_765),
            coordinator_epoch: coordinator_epoch - self.random.pick(&[0, 0, 1]),
            outcome,
            transaction_version: self.random.pick(&[0, 0, 1, 2, 3]),
        };
        let marker = match action {
            0..3 => {
                let epoch = oldest.unwrap_or(client.epoch);
                return Some(Command::ForceResolve { producer_id: client.id, epoch, outcome });
            }
            // Kafka's tool aborts with the epoch as it is.
            3..5 => Marker {
                outcome: Outcome::Abort,
                transaction_version: 0,
                producer_epoch: oldest.unwrap_or(client.epoch),
                ..stray
            },
            5..7 => stray,
            7..10 if !client.late.is_empty() => {
                let marker = client.late.remove(0);
                client.sent.push(marker);
                marker
            }
            7..13 if !client.sent.is_empty() => {
                Marker { coordinator_epoch, ..self.random.pick(&client.sent) }
            }
            // The producer ends its transaction; a recovered two-phase one further up.
            _ => {
                let bump = if client.two_phase { self.random.pick(&[1, 2, 3]) } else { 1 };
                client.epoch = client.epoch.saturating_add(bump);
                client.two_phase = self.random.one_in(3);
                let producer_epoch = client.epoch;
                let ends =
                    Marker { producer_epoch, coordinator_epoch, transaction_version: 2, ..stray };
                match self.random.below(6) {
                    0 => return None, // the marker is lost
                    1 => {
                        client.late.push(ends);
                        return None;
                    }
                    _ => client.sent.push(ends),
                }
                ends
            }
        };
        Some(Command::Marker(marker))
    }

    fn initialize(&mut self, key: SharePartitionKey, part: Option<&Part>) -> Command {
        let (epoch, start) = part.map_or((0, 0), |part| (part.state_epoch, part.start));
        let state_epoch = epoch + self.random.pick(&[0, 0, 0, 1, -1]);
        let start_offset = self.random.pick(&[start, start, start, start + 2, 0, -1]);
        Command::Initialize { key, state_epoch, start_offset }
    }

    fn write(&mut self, key: SharePartitionKey, part: &Part) -> Command {
        let moves = self.random.one_in(3);
        let more = self.random.pick(&[0, 1, 2, 5]);
        let start_offset = match (moves, self.random.one_in(5)) {
            (true, _) => part.start.max(0) + more,
            (false, true) => -1,
            (false, false) => part.start,
        };
        let batches = (0..self.random.below(4))
            .map(|_| {
                let first_offset = part.start.max(0) + self.random.below(16);
                StateBatch {
                    first_offset,
                    last_offset: first_offset + self.random.below(3),
                    delivery_state: DeliveryState(self.random.pick(&[0, 0, 2, 3, 4])),
                    delivery_count: self.random.pick(&[0, 1, 1, 1, 2, 3]),
                }
            })
            .collect();
        Command::Write {
            key,
            state_epoch: self.near(part.state_epoch),
            leader_epoch: self.near(part.leader_fence),
            start_offset,
            delivery_complete_count: self.random.pick(&[-1, 0, part.count, part.count + 1]).max(-1),
            batches,
        }
    }

    fn stage(&mut self, client: usize, key: SharePartitionKey, part: &Part) -> Stage {
        if let Some(stage) = self.clients[client].last_stage.clone()
            && self.random.one_in(8)
        {
            return stage; // the answer was lost
        }
        let mut at = part.start.max(0) + self.random.below(14) - self.random.pick(&[0, 0, 0, 2]);
        let is_free = |offset: &i64| {
            let ended = part.records.get(offset).is_some_and(|(_, state)| *state != 0);
            !ended && !part.pending.contains_key(offset)
        };
        if self.random.one_in(2) {
            at = (at..).find(is_free).unwrap_or(at);
        }
        let mut acks = Vec::new();
        for _ in 0..=self.random.below(3) {
            let first_offset = at.max(0);
            let last_offset = first_offset + self.random.below(3);
            acks.push(self.ack(part, first_offset, last_offset));
            at = last_offset + 1 + self.random.below(3) - i64::from(self.random.one_in(60));
        }
        let (state_epoch, leader_epoch) =
            (self.near(part.state_epoch), self.near(part.leader_fence));
        let changed = self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1]);
        let client = &mut self.clients[client];
        let stage = Stage {
            key,
            state_epoch,
            leader_epoch,
            producer_id: client.id,
            producer_epoch: client.epoch.saturating_add(changed),
            two_phase: client.two_phase ^ self.random.one_in(30),
            transaction_version: self.random.pick(&[2, 2, 2, 2, 2, 2, 2, 2, 3, 1]),
            transactional_id: format!("t-{}", client.id),
            member_id: "m".to_owned(),
            member_epoch: 1,
            acks,
        };
        client.last_stage = Some(stage.clone());
        stage
    }

    /// An ack of records that were acquired once more than the store knows of, as a rule.
    fn ack(&mut self, part: &Part, first_offset: i64, last_offset: i64) -> AckRange {
        let records = part.records.range(first_offset..=last_offset);
        let delivered = records.map(|(_, record)| record.0).max().unwrap_or(0);
        let (ack_type, commit, abort) = self.random.pick(&[
            (AckType::Accept, 2, 0),
            (AckType::Accept, 2, 0),
            (AckType::Accept, 2, 3),
            (AckType::Accept, 2, 4),
            (AckType::Reject, 4, 0),
            (AckType::Reject, 3, 4),
            (AckType::Gap, 4, 0),
        ]);
        let ack_type = if self.random.one_in(60) { AckType::Release } else { ack_type };
        AckRange {
            first_offset,
            last_offset,
            ack_type,
            commit_target: DeliveryState(commit),
            abort_target: DeliveryState(abort),
            delivery_count: delivered + self.random.pick(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
        }
    }
}
