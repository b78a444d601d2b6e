//! The child: opens the store and drives it, until it is killed.

use std::sync::Arc;
use std::time::Duration;

use sharestate::blocking::BlockingShareStore;
use sharestate::{Clock, Options, ShareStore, StoreError, SystemClock};

use super::faults;
use super::ledger::Ledger;
use super::rng::Rng;
use super::shadow::{Row, apply};
use super::transactor::Transactor;
use super::view::{producer_of, refusal, row_of, submit, told_of};
use super::wire::{Answer, Deed, Fate, Line, Op, Pipe, Run, key_of};
use crate::args::Worker;
use crate::failure::Failure;

/// Deliveries after which a record is given up.
pub const DELIVERY_LIMIT: i16 = 5;

/// Offsets between the start offset and the end of a topic, at most.
pub const WINDOW: i64 = 160;

/// How often producers are looked for that have expired, when they are to expire.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(20);

/// Operations that a consumer still tries after the store has failed: none of them must be logged.
const TRIES_AFTER_FAILURE: u64 = 3;

/// Settings under which rollovers, checkpoints and purges happen all the time.
pub fn options(days_ahead: u32) -> Options {
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    options.checkpoint_log_bytes = Some(40 << 10);
    options.checkpoint_interval = Duration::from_secs(1);
    options.cache_bytes = 64 << 10;
    options.reserve_bytes = 1 << 20;
    options.clock = Arc::new(Ahead(i64::from(days_ahead) * 86_400_000));
    options
}

/// A clock that is ahead by so many milliseconds.
#[derive(Debug)]
struct Ahead(i64);

impl Clock for Ahead {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms().saturating_add(self.0)
    }
}

/// Works until an error ends it, which is how the child ends when its parent is gone, or until all
/// is done.
pub fn run(args: &Worker) -> Result<(), Failure> {
    die_with(args.parent)?;
    let pipe = Pipe::stdout()?;
    let mut options = options(args.days_ahead);
    if args.expiring {
        options.producer_expiry_interval = EXPIRY_INTERVAL;
    }
    let store = match ShareStore::open(&args.dir, &options) {
        Ok(store) => store,
        Err(error) if args.failing => {
            let class = format!("{:?}", error.class());
            pipe.send(&Line::Unopened { class, error: Failure::from(error).to_string() })?;
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    work(args, &store, &pipe)?;
    if let Err(error) = store.blocking().close()
        && !args.failing
    {
        return Err(error.into());
    }
    pipe.send(&Line::End { poisoned: store.poison().is_some() })?;
    Ok(())
}

/// A child that is stopped cannot find out that its parent has gone: the kernel kills it then.
fn die_with(parent: u32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    asked.map_err(|error| Failure::cannot_run(format!("prctl: {error}")))?;
    let now = getppid().and_then(|parent| u32::try_from(parent.as_raw_pid()).ok());
    if now == Some(parent) { Ok(()) } else { Err(Failure::Quiet) }
}

/// All consumers work until they are done.
fn work(args: &Worker, owner: &ShareStore, pipe: &Pipe) -> Result<(), Failure> {
    let store = &owner.blocking();
    let (consumers, slots) = (args.consumers as usize, args.partitions as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..consumers.min(slots))
            .map(|lane| {
                let own = (lane..slots).step_by(consumers).collect();
                let purpose = [u64::from(args.round), lane as u64];
                let consumer = Consumer {
                    lane,
                    owner,
                    store,
                    pipe,
                    rng: Rng::new(args.seed, &purpose),
                    epoch: i32::try_from(args.round).unwrap_or(0),
                    ledger: Ledger::default(),
                    transactions: if args.expiring { 0 } else { TRANSACTIONS },
                    ops: args.ops.unwrap_or(u64::MAX),
                    is_failing: args.failing,
                };
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
    owner: &'a ShareStore,
    store: &'a BlockingShareStore,
    pipe: &'a Pipe,
    pub rng: Rng,
    /// Leader epoch of all its share partitions, and coordinator epoch of its transactions.
    pub epoch: i32,
    /// What was answered so far.
    pub ledger: Ledger,
    /// Percentage of operations inside transactions.
    transactions: u64,
    /// Operations to go.
    ops: u64,
    /// Failures are expected, and told instead of ended by.
    is_failing: bool,
}

/// Percentage of operations inside transactions.
const TRANSACTIONS: u64 = 40;

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
                let row = match self.store.producer(id) {
                    Ok(row) => row.map(|row| producer_of(&row)),
                    // It will be refused for its epoch.
                    Err(_) if self.is_failing => None,
                    Err(error) => return Err(error.into()),
                };
                self.ledger.producers.extend(row.clone().map(|row| (id, row)));
                Ok(row)
            })?;
        }
        let mut has_failed = false;
        while self.ops > 0 {
            self.ops -= 1;
            if self.owner.poison().is_some() && !std::mem::replace(&mut has_failed, true) {
                self.ops = self.ops.min(TRIES_AFTER_FAILURE);
            }
            if self.rng.chance(self.transactions) {
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
        Ok(())
    }

    /// A new leader reads the state first, which fences its predecessor. Answers the state epoch
    /// of the next initialize.
    fn take_over(&mut self, slot: usize) -> Result<i32, Failure> {
        let deed = Deed::Plain { slot, op: Op::Read { leader_epoch: self.epoch } };
        let doomed = self.is_failing && faults::no_sync_succeeds();
        self.pipe.send(&Line::Issue { lane: self.lane, deed, doomed })?;
        let mut next_state_epoch = 1;
        let answer = match self.store.read(&key_of(slot), self.epoch) {
            Ok(read) => {
                self.ledger.rows.insert(slot, row_of(&read.partition));
                next_state_epoch = read.partition.state_epoch.saturating_add(1);
                Answer::Told(told_of(&read.partition))
            }
            Err(error) => self.refusal(error)?,
        };
        self.pipe.send(&Line::Ack { lane: self.lane, answer })?;
        Ok(next_state_epoch)
    }

    /// Says what it is about to do, does it all at once, and says what was answered.
    fn perform(&mut self, deeds: &[Deed]) -> Result<(), Failure> {
        let doomed = self.is_failing && faults::no_sync_succeeds();
        for deed in deeds {
            self.pipe.send(&Line::Issue { lane: self.lane, deed: deed.clone(), doomed })?;
        }
        let answers = submit(self.store, deeds)?;
        for (deed, answer) in deeds.iter().zip(answers) {
            self.pipe.send(&Line::Ack { lane: self.lane, answer })?;
            match answer {
                Answer::Failed(fate) if !self.is_failing => return Err(self.ended(fate)),
                Answer::Failed(_) => {}
                _ => drop(self.ledger.act(deed)),
            }
        }
        Ok(())
    }

    fn ended(&self, fate: Fate) -> Failure {
        let why = self.owner.poison().map_or_else(String::new, |poison| format!(": {poison}"));
        Failure::cannot_run(format!("the store failed, {fate:?}{why}"))
    }

    fn refusal(&self, error: StoreError) -> Result<Answer, Failure> {
        match refusal(error)? {
            Answer::Failed(fate) if !self.is_failing => Err(self.ended(fate)),
            answer => Ok(answer),
        }
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
