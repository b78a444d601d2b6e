//! One named test per row of the tables of semantics sections 2, 4.3 and 4.4 and per rule around
//! them: taking any rule away makes a test fail. The order of the rows is proven by ladders: a
//! command that violates every row is repaired row by row, and each time the next row answers.

mod bounds;
mod import;
mod marker;
mod operators;
mod plain;
mod resolution;
mod stage;
mod write;

use sharestate::model::{
    AckRange, AckType, Answer, Command, Decision, DeliveryState, Marker, Options, Outcome,
    Partition, PendingAck, Producer, Rejection, SharePartitionKey, Stage, State, StateBatch,
    Transition, decide,
};
use uuid::Uuid;

use sharestate::model::Outcome::{Abort, Commit};

pub const INVALID_REQUEST: Option<i16> = Some(42);
pub const FENCED_LEADER_EPOCH: Option<i16> = Some(74);
pub const FENCED_STATE_EPOCH: Option<i16> = Some(124);
pub const INVALID_RECORD_STATE: Option<i16> = Some(121);
pub const INVALID_PRODUCER_EPOCH: Option<i16> = Some(47);
pub const UNSUPPORTED_VERSION: Option<i16> = Some(35);
pub const COORDINATOR_FENCED: Option<i16> = Some(52);

pub const STATE_EPOCH: i32 = 3;
pub const PID: i64 = 7;

/// A share partition: `key(0)` is the one that [`Store::new`] initialises.
pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(1), partition).expect("valid")
}

pub fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

pub fn initialize(state_epoch: i32, start_offset: i64) -> Command {
    Command::Initialize { key: key(0), state_epoch, start_offset }
}

pub fn read(leader_epoch: i32) -> Command {
    Command::Read { key: key(0), leader_epoch }
}

pub fn delete() -> Command {
    Command::Delete { key: key(0) }
}

/// A write, to be varied with struct update syntax.
#[derive(Clone)]
pub struct Write {
    pub key: SharePartitionKey,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub start_offset: i64,
    pub count: i32,
    pub batches: Vec<StateBatch>,
}

pub fn write(batches: impl Into<Vec<StateBatch>>) -> Write {
    let (start_offset, count) = (-1, -1);
    let batches = batches.into();
    Write { key: key(0), state_epoch: STATE_EPOCH, leader_epoch: 0, start_offset, count, batches }
}

impl From<Write> for Command {
    fn from(write: Write) -> Self {
        Self::Write {
            key: write.key,
            state_epoch: write.state_epoch,
            leader_epoch: write.leader_epoch,
            start_offset: write.start_offset,
            delivery_complete_count: write.count,
            batches: write.batches,
        }
    }
}

/// ACCEPT of a record that was delivered twice.
pub fn accept(first_offset: i64, last_offset: i64) -> AckRange {
    AckRange {
        first_offset,
        last_offset,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 2,
    }
}

/// A stage call at epoch 0, to be varied with struct update syntax.
pub fn stage(acks: impl Into<Vec<AckRange>>) -> Stage {
    Stage {
        key: key(0),
        state_epoch: STATE_EPOCH,
        leader_epoch: 0,
        producer_id: PID,
        producer_epoch: 0,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "transaction".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 1,
        acks: acks.into(),
    }
}

/// The stage call at another epoch.
pub fn at(producer_epoch: i16, stage: Stage) -> Stage {
    Stage { producer_epoch, ..stage }
}

/// The stage call of another producer.
pub fn of(producer_id: i64, stage: Stage) -> Stage {
    Stage { producer_id, ..stage }
}

/// The stage call as part of a two-phase commit.
pub fn two_phase(stage: Stage) -> Stage {
    Stage { two_phase: true, ..stage }
}

/// A marker of transaction version 2, to be varied with struct update syntax.
pub fn marker(producer_epoch: i16, outcome: Outcome) -> Marker {
    let (coordinator_epoch, transaction_version) = (1, 2);
    Marker { producer_id: PID, producer_epoch, coordinator_epoch, outcome, transaction_version }
}

/// A model with a clock.
#[derive(Clone, Default)]
pub struct Store {
    pub state: State,
    pub lsn: u64,
    pub now: i64,
    pub options: Options,
}

impl Store {
    /// `key(0)` initialised with state epoch [`STATE_EPOCH`] and start offset 0.
    pub fn new() -> Self {
        Self::with_start(0)
    }

    pub fn with_start(start_offset: i64) -> Self {
        let mut store = Self { now: 1_000, ..Self::default() };
        store.logs(initialize(STATE_EPOCH, start_offset));
        store
    }

    pub fn initialize_also(&mut self, partition: i32) {
        let (state_epoch, start_offset) = (STATE_EPOCH, 0);
        self.logs(Command::Initialize { key: key(partition), state_epoch, start_offset });
    }

    /// Succeeds, and something is logged.
    pub fn logs(&mut self, command: impl Into<Command>) -> Answer {
        let before = self.lsn;
        let answer = self.execute(command.into()).expect("accepted");
        assert_eq!(self.lsn, before + 1, "nothing was logged");
        answer
    }

    /// Succeeds, nothing is logged and nothing changes.
    pub fn is_quiet(&mut self, command: impl Into<Command>) -> Answer {
        let before = self.clone();
        let answer = self.execute(command.into()).expect("accepted");
        assert_eq!(self.lsn, before.lsn, "something was logged");
        assert_eq!(self.state, before.state);
        answer
    }

    /// Is refused; nothing is logged and nothing changes.
    pub fn refuses(&mut self, command: impl Into<Command>, code: Option<i16>) -> Rejection {
        let before = self.clone();
        let rejection = self.execute(command.into()).expect_err("accepted");
        assert_eq!(rejection.kafka_code(), code, "{rejection}");
        assert_eq!((self.lsn, &self.state), (before.lsn, &before.state));
        rejection
    }

    /// Is refused with INVALID_REQUEST and a text that holds `word`, which tells rows of one code
    /// apart.
    pub fn refuses_request(&mut self, command: impl Into<Command>, word: &str) {
        let rejection = self.refuses(command, INVALID_REQUEST).to_string();
        assert!(rejection.contains(word), "`{rejection}` does not say `{word}`");
    }

    pub fn execute(&mut self, command: Command) -> Result<Answer, Rejection> {
        let answer = self.state.execute(&mut self.lsn, &command, self.now, &self.options);
        assert_eq!(self.state.check_invariants(), Ok(()));
        answer
    }

    /// What would be logged.
    pub fn transition(&self, command: impl Into<Command>) -> Transition {
        let Decision { transition, .. } =
            decide(&self.state, &command.into(), self.now, &self.options);
        transition.expect("logged")
    }

    pub fn row(&self) -> &Partition {
        self.row_of(0)
    }

    pub fn row_of(&self, partition: i32) -> &Partition {
        &self.state.partitions[&key(partition)]
    }

    pub fn producer(&self) -> &Producer {
        &self.state.producers[&PID]
    }

    /// The pending ranges of `key(0)`.
    pub fn pending(&self) -> Vec<(i64, i64)> {
        ranges(&self.row().pending)
    }

    pub fn last_completed(&self) -> Option<(i16, Outcome)> {
        self.producer().last_completed.map(|last| (last.epoch, last.outcome))
    }
}

pub fn ranges(pending: &[PendingAck]) -> Vec<(i64, i64)> {
    pending.iter().map(|ack| (ack.first_offset, ack.last_offset)).collect()
}

pub fn dropped(answer: Answer) -> Vec<(i64, i64)> {
    match answer {
        Answer::Done { dropped } => ranges(&dropped),
        other => panic!("{other:?}"),
    }
}

pub fn staged(answer: Answer) -> Vec<(i64, i64)> {
    match answer {
        Answer::Staged { staged } => staged,
        other => panic!("{other:?}"),
    }
}

/// The resolved ranges of `key(0)`.
pub fn resolved(answer: Answer) -> Vec<(i64, i64)> {
    match answer {
        Answer::Resolved { resolved, .. } => {
            resolved.into_iter().find(|(found, _)| *found == key(0)).map_or(vec![], |(_, r)| r)
        }
        other => panic!("{other:?}"),
    }
}

/// Whether a success was called contradicting, and whether orphaning.
pub fn flags(answer: Answer) -> (bool, bool) {
    match answer {
        Answer::Resolved { contradicts, orphans, .. } => (contradicts, orphans),
        other => panic!("{other:?}"),
    }
}
