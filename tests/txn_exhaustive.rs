//! Every sequence of seven of eight actions on the transactions of one producer: 8^7 = 2,097,152.
//!
//! The sequences are walked as a tree, so that a common beginning runs once; at every node the
//! store and the oracle that works offset by offset must agree on the answer and on the whole
//! state, and memory, the replayed log, and the snapshot with the rest of the log on each other.
//! Restarts go on with what snapshot and log hold.
#![cfg(feature = "testing")]

#[path = "support/oracle.rs"]
mod oracle;
#[path = "txn_support/twin.rs"]
mod twin;

use std::collections::BTreeMap;
use std::time::Instant;

use oracle::Told;
use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Options, Outcome, SharePartitionKey, Stage,
};
use twin::Twin;
use uuid::Uuid;

const LENGTH: usize = 7;
const PID: i64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Acks two records that are free, in the producer's transaction.
    Stage,
    Commit,
    Abort,
    /// An operator aborts the oldest open epoch, or what he takes for open.
    OperatorAbort,
    /// The marker of a commit is held back while the producer goes on; the next time it arrives.
    LateMarker,
    /// The last marker once more, from a coordinator that has failed over.
    RepeatedMarker,
    Restart,
    Checkpoint,
}

const ACTIONS: [Action; 8] = [
    Action::Stage,
    Action::Commit,
    Action::Abort,
    Action::OperatorAbort,
    Action::LateMarker,
    Action::RepeatedMarker,
    Action::Restart,
    Action::Checkpoint,
];

/// Both stores, and what producer, broker and coordinator know.
#[derive(Clone)]
struct Node {
    twin: Twin,
    /// Epoch of the producer's transaction.
    epoch: i16,
    /// Transactions that it ended: every other one is part of a two-phase commit.
    ended: usize,
    stages: usize,
    coordinator_epoch: i32,
    late: Option<Marker>,
    last: Option<Marker>,
}

impl Node {
    fn new() -> Self {
        let mut twin = Twin::new(Options::default());
        for partition in 0..2 {
            let command =
                Command::Initialize { key: key(partition), state_epoch: 1, start_offset: 0 };
            twin.execute(&command).expect("agreed").expect("accepted");
        }
        let (late, last) = (None, None);
        Self { twin, epoch: 0, ended: 0, stages: 0, coordinator_epoch: 1, late, last }
    }

    fn act(&mut self, action: Action, tally: &mut Tally) -> Result<(), String> {
        self.twin.now += 1;
        let command = match action {
            Action::Stage => Some(self.stage()),
            Action::Commit => Some(self.end(Outcome::Commit)),
            Action::Abort => Some(self.end(Outcome::Abort)),
            Action::OperatorAbort => {
                let epoch = self.twin.oracle.open(PID).keys().next().copied();
                let epoch = epoch.unwrap_or(self.epoch);
                Some(Command::ForceResolve { producer_id: PID, epoch, outcome: Outcome::Abort })
            }
            Action::LateMarker => match self.late.take() {
                None => {
                    self.late = Some(self.marker(Outcome::Commit));
                    None
                }
                Some(marker) => Some(self.sent(marker)),
            },
            Action::RepeatedMarker => {
                self.coordinator_epoch += 1;
                let unknown = Marker { producer_epoch: self.epoch, ..marker(Outcome::Abort) };
                let coordinator_epoch = self.coordinator_epoch;
                Some(self.sent(Marker { coordinator_epoch, ..self.last.unwrap_or(unknown) }))
            }
            Action::Restart => return self.twin.restart(),
            Action::Checkpoint => return self.twin.checkpoint(),
        };
        let Some(command) = command else { return Ok(()) };
        tally.count(action, self.twin.execute(&command)?);
        Ok(())
    }

    /// The marker that ends the transaction; the producer goes on with the epoch that it carries. A
    /// recovered two-phase transaction ends two epochs up.
    fn marker(&mut self, outcome: Outcome) -> Marker {
        self.epoch += if self.two_phase() { 2 } else { 1 };
        self.ended += 1;
        let (producer_epoch, coordinator_epoch) = (self.epoch, self.coordinator_epoch);
        Marker { producer_epoch, coordinator_epoch, ..marker(outcome) }
    }

    fn end(&mut self, outcome: Outcome) -> Command {
        let marker = self.marker(outcome);
        self.sent(marker)
    }

    fn sent(&mut self, marker: Marker) -> Command {
        self.last = Some(marker);
        Command::Marker(marker)
    }

    fn two_phase(&self) -> bool {
        self.ended % 2 == 1
    }

    /// One ACCEPT, and one ack of another type, of the first records that can be acquired.
    fn stage(&mut self) -> Command {
        let key = key(i32::try_from(self.stages % 2).expect("small"));
        let part = self.twin.oracle.part(&key).expect("initialised");
        let count = |offset: i64| match part.records.get(&offset) {
            Some((_, state)) if *state != 0 => None,
            record => (!part.pending.contains_key(&offset)).then_some(record.map_or(0, |r| r.0)),
        };
        let free: Vec<_> =
            (0..).filter_map(|offset| Some((offset, count(offset)?))).take(2).collect();
        let others = [(AckType::Reject, 4, 0), (AckType::Reject, 3, 4), (AckType::Gap, 4, 0)];
        let kinds = [(AckType::Accept, 2, 0), others[self.stages % 3]];
        let ack =
            |((offset, count), (ack_type, commit, abort)): ((i64, i16), (AckType, i8, i8))| {
                AckRange {
                    first_offset: offset,
                    last_offset: offset,
                    ack_type,
                    commit_target: DeliveryState(commit),
                    abort_target: DeliveryState(abort),
                    delivery_count: count + 1,
                }
            };
        let acks = free.into_iter().zip(kinds).map(ack).collect();
        self.stages += 1;
        Command::Stage(Stage {
            key,
            state_epoch: 1,
            leader_epoch: 0,
            producer_id: PID,
            producer_epoch: self.epoch,
            two_phase: self.two_phase(),
            transaction_version: 2,
            transactional_id: "t".to_owned(),
            member_id: "m".to_owned(),
            member_epoch: 1,
            acks,
        })
    }
}

fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("g", Uuid::from_u128(1), partition).expect("valid")
}

/// A marker of the first epoch, to be varied.
fn marker(outcome: Outcome) -> Marker {
    Marker {
        producer_id: PID,
        producer_epoch: 0,
        coordinator_epoch: 1,
        outcome,
        transaction_version: 2,
    }
}

/// What was walked over, and what the answers were: a walk that never sees a kind of answer proves
/// nothing of it.
#[derive(Default)]
struct Tally {
    nodes: u64,
    sequences: u64,
    answers: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn count(&mut self, action: Action, answer: Result<Told, Option<i16>>) {
        let late = action == Action::LateMarker;
        let kind = match answer {
            Ok(Told::Staged(_)) => "staged",
            Ok(Told::Resolved { flags: (true, _), .. }) => "contradicts",
            Ok(Told::Resolved { resolved, .. }) if resolved.is_empty() => "resolves nothing",
            Ok(Told::Resolved { .. }) if late => "resolves late",
            Ok(Told::Resolved { flags: (_, true), .. }) => "resolves and orphans",
            Ok(Told::Resolved { .. }) => "resolves",
            Err(Some(47)) => "epoch over",
            Err(Some(52)) => "coordinator fenced",
            Err(None) => "nothing pending",
            other => panic!("{action:?}: {other:?}"),
        };
        *self.answers.entry(kind).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.sequences += other.sequences;
        for (kind, count) in other.answers {
            *self.answers.entry(kind).or_default() += count;
        }
    }
}

/// Walks everything below a node. `path` is how it was reached.
fn walk(node: &Node, path: &mut Vec<Action>, tally: &mut Tally) {
    for action in ACTIONS {
        step(node, action, path, tally);
    }
}

fn step(node: &Node, action: Action, path: &mut Vec<Action>, tally: &mut Tally) {
    let mut child = node.clone();
    path.push(action);
    let mut agreed = child.act(action, tally);
    if child.twin.lsn > node.twin.lsn || action == Action::Checkpoint {
        agreed = agreed.and_then(|()| child.twin.check_recovery());
    }
    if let Err(difference) = agreed {
        panic!("after {path:?}: {difference}");
    }
    tally.nodes += 1;
    if path.len() == LENGTH {
        tally.sequences += 1;
    } else {
        walk(&child, path, tally);
    }
    path.pop();
}

#[test]
fn all_sequences_of_seven_actions_end_as_the_oracle_says() {
    let started = Instant::now();
    let root = Node::new();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let subtrees: Vec<_> = ACTIONS
            .into_iter()
            .map(|action| {
                let root = &root;
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    step(root, action, &mut Vec::new(), &mut tally);
                    tally
                })
            })
            .collect();
        for subtree in subtrees {
            tally.add(subtree.join().expect("no difference"));
        }
    });
    println!(
        "exhaustive-sequences={} nodes={} seconds={:.1} answers={:?}",
        tally.sequences,
        tally.nodes,
        started.elapsed().as_secs_f64(),
        tally.answers
    );
    assert_eq!((tally.sequences, tally.nodes), (8_u64.pow(7), (1..=7).map(|n| 8_u64.pow(n)).sum()));
    assert_eq!(tally.answers.len(), 9, "some answer was never given: {:?}", tally.answers);
}
