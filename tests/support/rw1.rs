//! Reference workload RW-1: twelve share partitions, ten transactions, two deletions with
//! re-creation, one reset of a start offset, three checkpoints and 256 frames of about 185 bytes in
//! segments of 12,288 (the multiple of 4,096 nearest to 64 frames of 200 bytes).
//!
//! A seed gives one order of it, for ever. Four transactions commit, three abort, three stay open.
//! One of the three has no ack: the store knows of a transaction by what it staged, so its only ack
//! is dropped again by a start offset that passes it; what stays is the producer's stage epoch,
//! which must outlive every checkpoint and purge (semantics section 4.2).
#![allow(dead_code)] // each test file uses its own part

use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Outcome, SharePartitionKey, Stage,
    StateBatch,
};
use uuid::Uuid;

/// Size of a log segment, in bytes.
pub const SEGMENT_BYTES: u64 = 12_288;

/// Frames with entries.
pub const FRAMES: usize = 256;

pub const KEYS: usize = 12;

/// What happens next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Commands that reach the log in one frame.
    Commands(Vec<Command>),
    Checkpoint,
}

/// SplitMix64, so that a seed means the same for ever.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}

/// What has to happen, besides plain writes, and in which order on its own.
#[derive(Debug, Clone, Copy)]
enum Event {
    Stage {
        producer: i64,
        epoch: i16,
        any_row: bool,
    },
    Marker {
        producer: i64,
        epoch: i16,
        outcome: Outcome,
    },
    /// The start offset passes everything that is pending in the row where this producer staged.
    Pass {
        producer: i64,
    },
    Lead {
        row: usize,
    },
    Recreate {
        row: usize,
    },
    Reset {
        row: usize,
    },
}

struct Row {
    key: SharePartitionKey,
    state_epoch: i32,
    leader_epoch: i32,
    start: i64,
    next: i64,
    /// Who has acks pending, and their first offset.
    pending: Vec<(i64, i64)>,
}

struct Workload {
    random: Random,
    rows: Vec<Row>,
    steps: Vec<Step>,
    frames: usize,
}

/// The steps of the workload with this seed.
pub fn steps(seed: u64) -> Vec<Step> {
    let mut work =
        Workload { random: Random(seed), rows: Vec::new(), steps: Vec::new(), frames: 0 };
    for number in 0..KEYS {
        work.create(number);
    }
    let mut threads = threads();
    let checkpoints = [100, 165, 230].map(|at| at + work.random.below(9));
    while work.frames < FRAMES {
        let left: usize = threads.iter().map(Vec::len).sum();
        // What is left of the events is spread evenly over what is left of the frames.
        if work.random.below(FRAMES - work.frames) < left + left / 8 {
            let open: Vec<usize> = (0..threads.len()).filter(|t| !threads[*t].is_empty()).collect();
            let thread = open[work.random.below(open.len())];
            let event = threads[thread].remove(0);
            work.event(event);
        } else {
            work.writes();
        }
        let taken = work.steps.iter().filter(|step| matches!(step, Step::Checkpoint)).count();
        if checkpoints.get(taken).is_some_and(|at| work.frames >= *at) {
            work.steps.push(Step::Checkpoint);
        }
    }
    assert!(threads.iter().all(Vec::is_empty), "seed {seed}: events are left");
    work.steps
}

/// The events, each list in order, the lists in any. Some producers have one transaction after the
/// other.
fn threads() -> Vec<Vec<Event>> {
    use Outcome::{Abort, Commit};
    let transaction = |producer, epoch, stages, outcome: Option<Outcome>| {
        let stage = |n| Event::Stage { producer, epoch, any_row: n > 0 };
        let mut events: Vec<Event> = (0..stages).map(stage).collect();
        events.extend(outcome.map(|outcome| Event::Marker { producer, epoch, outcome }));
        events
    };
    let both = |first: Vec<Event>, then: Vec<Event>| [first, then].concat();
    let mut threads = vec![
        both(transaction(1_000, 0, 3, Some(Commit)), transaction(1_000, 1, 2, Some(Abort))),
        both(transaction(1_001, 0, 1, Some(Abort)), transaction(1_001, 1, 2, Some(Commit))),
        transaction(1_002, 4, 2, Some(Commit)),
        transaction(1_003, 0, 3, Some(Abort)),
        transaction(1_004, 9, 1, Some(Commit)),
        transaction(1_005, 0, 3, None),
        transaction(1_006, 2, 2, None),
        both(transaction(1_007, 0, 1, None), vec![Event::Pass { producer: 1_007 }]),
        vec![Event::Recreate { row: 10 }],
        vec![Event::Recreate { row: 11 }],
        vec![Event::Reset { row: 9 }],
    ];
    threads.extend([0, 3, 5, 9].map(|row| vec![Event::Lead { row }]));
    threads
}

impl Workload {
    fn push(&mut self, commands: Vec<Command>) {
        self.frames += 1;
        self.steps.push(Step::Commands(commands));
    }

    fn create(&mut self, number: usize) {
        let group = ["orders", "billing", "audit"][number % 3];
        let partition = i32::try_from(number / 3).expect("small");
        let key = SharePartitionKey::new(group, Uuid::from_u128(0x51), partition).expect("valid");
        let row =
            Row { key, state_epoch: 1, leader_epoch: 0, start: 0, next: 0, pending: Vec::new() };
        self.rows.push(row);
        self.initialize(number);
    }

    fn initialize(&mut self, row: usize) {
        let row = &self.rows[row];
        let command = Command::Initialize {
            key: row.key.clone(),
            state_epoch: row.state_epoch,
            start_offset: row.start,
        };
        self.push(vec![command]);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Stage { producer, epoch, any_row } => {
                // The first stage of a transaction goes where nothing is ever dropped.
                let row = self.random.below(if any_row { KEYS } else { 9 });
                let stage = self.stage(row, producer, epoch);
                self.push(vec![stage]);
            }
            Event::Marker { producer, epoch, outcome } => {
                for row in &mut self.rows {
                    row.pending.retain(|(owner, _)| *owner != producer);
                }
                let marker = Marker {
                    producer_id: producer,
                    producer_epoch: epoch + 1,
                    coordinator_epoch: 3,
                    outcome,
                    transaction_version: 2,
                };
                self.push(vec![Command::Marker(marker)]);
            }
            Event::Pass { producer } => self.pass(producer),
            Event::Lead { row } => {
                self.rows[row].leader_epoch += 1;
                let (key, leader_epoch) = (self.rows[row].key.clone(), self.rows[row].leader_epoch);
                self.push(vec![Command::Read { key, leader_epoch }]);
            }
            Event::Recreate { row } => {
                let key = self.rows[row].key.clone();
                self.push(vec![Command::Delete { key }]);
                self.rows[row].forget(0, 1);
                self.initialize(row);
            }
            Event::Reset { row } => {
                let (start, epoch) = (self.rows[row].next + 50, self.rows[row].state_epoch + 1);
                self.rows[row].forget(start, epoch);
                self.initialize(row);
            }
        }
    }

    fn stage(&mut self, row: usize, producer: i64, epoch: i16) -> Command {
        let two_phase = producer % 2 == 0;
        let kinds = [(AckType::Accept, 2, 0), (AckType::Reject, 4, 4), (AckType::Gap, 4, 0)];
        let first = self.random.below(kinds.len());
        let row = &mut self.rows[row];
        row.pending.push((producer, row.next));
        let acks = (0..2).map(|n| {
            let (ack_type, commit, abort) = kinds[(first + n) % kinds.len()];
            let first_offset = row.next;
            row.next += 3;
            AckRange {
                first_offset,
                last_offset: first_offset + 2,
                ack_type,
                commit_target: DeliveryState(commit),
                abort_target: DeliveryState(abort),
                delivery_count: 1,
            }
        });
        Command::Stage(Stage {
            acks: acks.collect(),
            key: row.key.clone(),
            state_epoch: row.state_epoch,
            leader_epoch: row.leader_epoch,
            producer_id: producer,
            producer_epoch: epoch,
            two_phase,
            transaction_version: 2,
            transactional_id: format!("payments-{producer}"),
            member_id: "member-1".to_owned(),
            member_epoch: 7,
        })
    }

    fn pass(&mut self, producer: i64) {
        let holds = |row: &Row| row.pending.iter().any(|(owner, _)| *owner == producer);
        let number = self.rows.iter().position(holds).expect("it has staged");
        // Only its own ack is passed: what others staged behind it stays.
        let row = &mut self.rows[number];
        let first = |row: &Row| row.pending.iter().map(|(_, first)| *first).min();
        row.pending.retain(|(owner, _)| *owner != producer);
        let start = first(row).unwrap_or(row.next).max(row.start);
        let own_is_last = start == row.next;
        row.start = start;
        let command = self.write(number, usize::from(own_is_last));
        self.push(vec![command]);
    }

    /// A plain write, or three that share a frame.
    fn writes(&mut self) {
        let commands = if self.random.below(16) == 0 {
            let row = self.random.below(KEYS);
            (0..3).map(|n| self.write((row + n) % KEYS, 1)).collect()
        } else {
            let (row, batches) = (self.random.below(KEYS), 1 + self.random.below(4));
            if self.random.below(6) == 0 {
                let row = &mut self.rows[row];
                let first_pending = row.pending.iter().map(|(_, first)| *first).min();
                row.start = row.start.max(first_pending.unwrap_or(row.next - 12));
            }
            vec![self.write(row, batches)]
        };
        self.push(commands);
    }

    fn write(&mut self, row: usize, batches: usize) -> Command {
        let row = &mut self.rows[row];
        let batches = (0..batches).map(|n| {
            let (state, count) = [(2, 1), (0, 1), (4, 2), (3, 2)][n % 4];
            let first_offset = row.next;
            row.next += 2;
            StateBatch {
                first_offset,
                last_offset: first_offset + 1,
                delivery_state: DeliveryState(state),
                delivery_count: count,
            }
        });
        Command::Write {
            batches: batches.collect(),
            key: row.key.clone(),
            state_epoch: row.state_epoch,
            leader_epoch: row.leader_epoch,
            start_offset: row.start,
            delivery_complete_count: i32::try_from(row.next - row.start).expect("small"),
        }
    }
}

impl Row {
    /// As after a new initialize.
    fn forget(&mut self, start: i64, state_epoch: i32) {
        self.pending.clear();
        self.leader_epoch = if state_epoch == 1 { 0 } else { self.leader_epoch };
        (self.start, self.next, self.state_epoch) = (start, start, state_epoch);
    }
}
