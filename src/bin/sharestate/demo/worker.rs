//! The child: opens the store and drives it, until it is killed.

use std::time::Duration;

use sharestate::blocking::BlockingShareStore;
use sharestate::{
    DeliveryState, Options, Partition, SharePartitionKey, ShareStore, StateBatch, StoreError,
    SummaryAnswer, Write,
};

use super::rng::Rng;
use super::shadow::{Row, apply};
use super::wire::{Answer, Line, Op, Pipe, Run, Told, key_of};
use crate::args::Worker;
use crate::failure::Failure;

/// Deliveries after which a record is given up.
const DELIVERY_LIMIT: i16 = 5;

/// Offsets between the start offset and the end of a topic, at most.
const WINDOW: i64 = 160;

/// Settings under which rollovers, checkpoints and purges happen all the time.
pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    options.checkpoint_log_bytes = Some(40 << 10);
    options.checkpoint_interval = Duration::from_secs(1);
    options.cache_bytes = 64 << 10;
    options.reserve_bytes = 1 << 20;
    options
}

/// Works until an error ends it, which is how the child ends when its parent is gone.
pub fn run(args: &Worker) -> Result<(), Failure> {
    let store = ShareStore::open(&args.dir, &options())?.blocking();
    let pipe = Pipe::stdout()?;
    let (consumers, slots) = (args.consumers as usize, args.partitions as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..consumers.min(slots))
            .map(|number| {
                let (store, pipe) = (&store, &pipe);
                let own = (number..slots).step_by(consumers).collect();
                let purpose = [u64::from(args.round), number as u64];
                let rng = Rng::new(args.seed, &purpose);
                scope.spawn(move || Consumer { store, pipe, rng }.run(own, args.round))
            })
            .collect();
        for thread in threads {
            match thread.join() {
                Ok(answer) => answer?,
                Err(_) => return Err(Failure::cannot_run("a consumer panicked")),
            }
        }
        Ok(())
    })
}

/// A simulated share consumer, with the partition leader that it talks to.
struct Consumer<'a> {
    store: &'a BlockingShareStore,
    pipe: &'a Pipe,
    rng: Rng,
}

/// A share partition as its leader sees it.
struct Leader {
    slot: usize,
    key: SharePartitionKey,
    epoch: i32,
    row: Option<Row>,
    /// State epoch of the next initialize.
    next_state_epoch: i32,
}

impl Consumer<'_> {
    fn run(mut self, slots: Vec<usize>, round: u32) -> Result<(), Failure> {
        let epoch = i32::try_from(round).unwrap_or(0);
        let mut leaders = Vec::new();
        for slot in slots {
            let key = key_of(slot);
            let mut leader = Leader { slot, key, epoch, row: None, next_state_epoch: 1 };
            self.take_over(&mut leader)?;
            leaders.push(leader);
        }
        loop {
            let index = self.rng.below(leaders.len() as u64) as usize;
            let Some(leader) = leaders.get_mut(index) else { return Ok(()) };
            let op = self.next_op(leader);
            self.perform(leader, &op)?;
        }
    }

    /// A new leader reads the state first, which fences its predecessor.
    fn take_over(&mut self, leader: &mut Leader) -> Result<(), Failure> {
        let op = Op::Read { leader_epoch: leader.epoch };
        self.pipe.send(&Line::Issue { slot: leader.slot, op })?;
        let answer = self.store.read(&leader.key, leader.epoch);
        let answer = match answer {
            Ok(read) => {
                leader.row = Some(row_of(&read.partition));
                leader.next_state_epoch = read.partition.state_epoch.saturating_add(1);
                Ok(Answer::Told(told_of(&read.partition)))
            }
            Err(error) => refusal(error),
        };
        self.pipe.send(&Line::Ack { slot: leader.slot, answer: answer? })?;
        Ok(())
    }

    fn perform(&mut self, leader: &mut Leader, op: &Op) -> Result<(), Failure> {
        self.pipe.send(&Line::Issue { slot: leader.slot, op: op.clone() })?;
        let answer = match submit(self.store, &leader.key, op) {
            Ok(answer) => answer,
            Err(error) => refusal(error)?,
        };
        self.pipe.send(&Line::Ack { slot: leader.slot, answer })?;
        if !matches!(answer, Answer::Refused(_)) {
            leader.row = apply(leader.row.as_ref(), op).1;
        }
        if let Some(row) = &leader.row {
            leader.next_state_epoch = row.state_epoch.saturating_add(1);
        }
        Ok(())
    }

    fn next_op(&mut self, leader: &Leader) -> Op {
        let Some(row) = &leader.row else { return self.initialize(leader) };
        match self.rng.below(100) {
            0 => Op::Delete,
            1 => self.initialize(leader),
            2 => Op::Initialize { state_epoch: row.state_epoch, start: row.init_start },
            3 => Op::Initialize { state_epoch: row.state_epoch.saturating_sub(1), start: 9 },
            4..=6 => Op::Summary,
            7 => Op::Read { leader_epoch: leader.epoch },
            8 => Op::Read { leader_epoch: leader.epoch.saturating_sub(1) },
            9 => self.write(row, leader.epoch.saturating_sub(1)),
            _ => self.write(row, leader.epoch),
        }
    }

    fn initialize(&mut self, leader: &Leader) -> Op {
        let start = if self.rng.chance(25) { -1 } else { self.rng.offset(50) };
        Op::Initialize { state_epoch: leader.next_state_epoch, start }
    }

    /// Some records were acquired; now their outcomes are written, and the start offset moves over
    /// what is done with.
    fn write(&mut self, row: &Row, leader_epoch: i32) -> Op {
        let runs = self.deliver(row);
        let op = |start, complete, runs| Op::Write {
            state_epoch: row.state_epoch,
            leader_epoch,
            start,
            complete,
            runs,
        };
        let now = row.start.max(0);
        if self.rng.chance(5) {
            return op(-1, -1, runs);
        }
        let (_, after) = apply(Some(row), &op(now, 0, runs.clone()));
        let offsets = after.map(|row| row.offsets).unwrap_or_default();
        let is_done = |offset: &i64| matches!(offsets.get(offset), Some((2 | 4, _)));
        let moved = (now..).take_while(is_done).last().map_or(now, |last| last + 1);
        let start = if self.rng.chance(70) { moved } else { now };
        let complete = offsets.range(start..).filter(|(offset, _)| is_done(offset)).count();
        op(start, i32::try_from(complete).unwrap_or(0), runs)
    }

    /// Runs of records that a consumer acquired, with one outcome each.
    fn deliver(&mut self, row: &Row) -> Vec<Run> {
        let start = row.start.max(0);
        let mut runs = Vec::new();
        let mut offset = start + self.rng.offset(24);
        for _ in 0..=self.rng.below(4) {
            let wanted = 1 + self.rng.offset(6);
            let end = (offset + wanted).min(start + WINDOW);
            let outcome = match self.rng.below(100) {
                0..60 => 2,
                60..85 => 0,
                85..95 => 4,
                _ => 3,
            };
            for at in offset..end {
                let (state, count) = row.offsets.get(&at).copied().unwrap_or((0, 0));
                match state {
                    // Available, or nothing stored yet: the record can be acquired.
                    0 if count < DELIVERY_LIMIT => {
                        let exhausted = outcome == 0 && count + 1 == DELIVERY_LIMIT;
                        let state = if exhausted { 4 } else { outcome };
                        push(&mut runs, (at, at, state, count + 1));
                    }
                    // The copy in the dead-letter queue is there.
                    3 => push(&mut runs, (at, at, 4, count)),
                    _ => {}
                }
            }
            offset = end + self.rng.offset(8);
        }
        runs
    }
}

/// Adds a run, or lengthens the last one.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.1 + 1 == run.0 && (last.2, last.3) == (run.2, run.3) => last.1 = run.1,
        _ => runs.push(run),
    }
}

fn submit(
    store: &BlockingShareStore,
    key: &SharePartitionKey,
    op: &Op,
) -> Result<Answer, StoreError> {
    match op {
        Op::Initialize { state_epoch, start } => {
            store.initialize(key, *state_epoch, *start).map(|_| Answer::Done)
        }
        Op::Read { leader_epoch } => {
            store.read(key, *leader_epoch).map(|answer| Answer::Told(told_of(&answer.partition)))
        }
        Op::Write { state_epoch, leader_epoch, start, complete, runs } => {
            let batch = |(first, last, state, count): &Run| StateBatch {
                first_offset: *first,
                last_offset: *last,
                delivery_state: DeliveryState(*state),
                delivery_count: *count,
            };
            let write = Write {
                state_epoch: *state_epoch,
                leader_epoch: *leader_epoch,
                start_offset: *start,
                delivery_complete_count: *complete,
                batches: runs.iter().map(batch).collect(),
            };
            store.write(key, write).map(|_| Answer::Done)
        }
        Op::Summary => store.summary(key).map(|summary| Answer::Told(told_in(&summary))),
        Op::Delete => store.delete(key).map(|_| Answer::Done),
    }
}

/// A refusal is an answer; any other error ends the child.
fn refusal(error: StoreError) -> Result<Answer, Failure> {
    match &error {
        StoreError::Rejected(rejection) => match rejection.kafka_code() {
            Some(code) => Ok(Answer::Refused(code)),
            None => Err(error.into()),
        },
        _ => Err(error.into()),
    }
}

fn told_in(summary: &SummaryAnswer) -> Told {
    Told {
        state_epoch: summary.state_epoch,
        leader_epoch: summary.leader_epoch,
        start: summary.start_offset,
        complete: summary.delivery_complete_count,
    }
}

fn told_of(partition: &Partition) -> Told {
    Told {
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        start: partition.start_offset,
        complete: partition.delivery_complete_count,
    }
}

/// A row of the store in the record's form.
pub fn row_of(partition: &Partition) -> Row {
    let offsets = partition.batches.iter().flat_map(|batch| {
        let value = (batch.delivery_state.0, batch.delivery_count);
        (batch.first_offset..=batch.last_offset).map(move |offset| (offset, value))
    });
    Row {
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        leader_fence: partition.leader_fence,
        start: partition.start_offset,
        init_start: partition.init_start_offset,
        complete: partition.delivery_complete_count,
        offsets: offsets.collect(),
    }
}
