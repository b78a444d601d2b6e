//! The child: opens the store and drives it, until it is killed.

use std::time::Duration;

use sharestate::blocking::BlockingShareStore;
use sharestate::{Options, ShareStore};

use super::ledger::Ledger;
use super::rng::Rng;
use super::shadow::{Row, apply};
use super::transactor::Transactor;
use super::view::{producer_of, refusal, row_of, submit, told_of};
use super::wire::{Answer, Deed, Line, Op, Pipe, Run, key_of};
use crate::args::Worker;
use crate::failure::Failure;

/// Deliveries after which a record is given up.
pub const DELIVERY_LIMIT: i16 = 5;

/// Offsets between the start offset and the end of a topic, at most.
pub const WINDOW: i64 = 160;

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
    let epoch = i32::try_from(args.round).unwrap_or(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..consumers.min(slots))
            .map(|lane| {
                let (store, pipe) = (&store, &pipe);
                let own = (lane..slots).step_by(consumers).collect();
                let purpose = [u64::from(args.round), lane as u64];
                let rng = Rng::new(args.seed, &purpose);
                let ledger = Ledger::default();
                let consumer = Consumer { lane, store, pipe, rng, epoch, ledger };
                scope.spawn(move || consumer.run(own))
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

/// A simulated share consumer with producers of its own, and the partition leaders that it talks
/// to. Nobody else touches its share partitions and its producers.
pub struct Consumer<'a> {
    lane: usize,
    store: &'a BlockingShareStore,
    pipe: &'a Pipe,
    pub rng: Rng,
    /// Leader epoch of all its share partitions, and coordinator epoch of its transactions.
    pub epoch: i32,
    /// What was answered so far.
    pub ledger: Ledger,
}

/// A share partition as its leader sees it.
struct Leader {
    slot: usize,
    /// State epoch of the next initialize.
    next_state_epoch: i32,
}

impl Consumer<'_> {
    fn run(mut self, slots: Vec<usize>) -> Result<(), Failure> {
        let mut leaders = Vec::new();
        for slot in &slots {
            let next_state_epoch = self.take_over(*slot)?;
            leaders.push(Leader { slot: *slot, next_state_epoch });
        }
        let mut transactor = Transactor::new(slots);
        for producer in transactor.producers_of(self.lane) {
            producer.find_epoch(|id| {
                let row = self.store.producer(id)?.map(|row| producer_of(&row));
                self.ledger.producers.extend(row.clone().map(|row| (id, row)));
                Ok(row)
            })?;
        }
        loop {
            if self.rng.chance(40) {
                let deeds = transactor.next(&mut self);
                self.perform(&deeds)?;
                continue;
            }
            let index = self.rng.below(leaders.len() as u64) as usize;
            let Some(leader) = leaders.get_mut(index) else { return Ok(()) };
            let op = self.next_op(leader);
            self.perform(&[Deed::Plain { slot: leader.slot, op }])?;
            if let Some(row) = self.ledger.rows.get(&leader.slot) {
                leader.next_state_epoch = row.state_epoch.saturating_add(1);
            }
        }
    }

    /// A new leader reads the state first, which fences its predecessor. Answers the state epoch
    /// of the next initialize.
    fn take_over(&mut self, slot: usize) -> Result<i32, Failure> {
        let deed = Deed::Plain { slot, op: Op::Read { leader_epoch: self.epoch } };
        self.pipe.send(&Line::Issue { lane: self.lane, deed })?;
        let mut next_state_epoch = 1;
        let answer = match self.store.read(&key_of(slot), self.epoch) {
            Ok(read) => {
                self.ledger.rows.insert(slot, row_of(&read.partition));
                next_state_epoch = read.partition.state_epoch.saturating_add(1);
                Answer::Told(told_of(&read.partition))
            }
            Err(error) => refusal(error)?,
        };
        self.pipe.send(&Line::Ack { lane: self.lane, answer })?;
        Ok(next_state_epoch)
    }

    /// Says what it is about to do, does it all at once, and says what was answered.
    fn perform(&mut self, deeds: &[Deed]) -> Result<(), Failure> {
        for deed in deeds {
            self.pipe.send(&Line::Issue { lane: self.lane, deed: deed.clone() })?;
        }
        for answer in submit(self.store, deeds)? {
            self.pipe.send(&Line::Ack { lane: self.lane, answer })?;
        }
        for deed in deeds {
            self.ledger.act(deed);
        }
        Ok(())
    }

    fn next_op(&mut self, leader: &Leader) -> Op {
        let Some(row) = self.ledger.rows.get(&leader.slot).cloned() else {
            return self.initialize(leader);
        };
        match self.rng.below(100) {
            0 => Op::Delete,
            1 => self.initialize(leader),
            2 => Op::Initialize { state_epoch: row.state_epoch, start: row.init_start },
            3 => Op::Initialize { state_epoch: row.state_epoch.saturating_sub(1), start: 9 },
            4..=6 => Op::Summary,
            7 => Op::Read { leader_epoch: self.epoch },
            8 => Op::Read { leader_epoch: self.epoch.saturating_sub(1) },
            9 => self.write(&row, self.epoch.saturating_sub(1)),
            10 => self.late_write(&row),
            _ => self.write(&row, self.epoch),
        }
    }

    fn initialize(&mut self, leader: &Leader) -> Op {
        let start = if self.rng.chance(25) { -1 } else { self.rng.offset(50) };
        Op::Initialize { state_epoch: leader.next_state_epoch, start }
    }

    /// A write that was underway while a record was acquired anew and staged: refused, or stale.
    fn late_write(&mut self, row: &Row) -> Op {
        let prepared = row.prepared.iter().next().map(|(at, prepared)| (*at, prepared.count));
        let (at, count) = prepared.unwrap_or((row.start.max(0), 1));
        let count = (count - i16::from(self.rng.chance(50))).max(0);
        Op::Write {
            state_epoch: row.state_epoch,
            leader_epoch: self.epoch,
            start: row.start,
            complete: 0,
            runs: vec![(at, at, 0, count)],
        }
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
            for at in (offset..end).filter(|at| !row.prepared.contains_key(at)) {
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
