//! The transactions of a simulated share consumer.

use super::ledger::{Ledger, Producer};
use super::shadow::Row;
use super::wire::{AckRun, Deed, MarkerOp, StageOp};
use super::worker::{Consumer, DELIVERY_LIMIT, WINDOW};
use crate::failure::Failure;

/// Producers per consumer; the last one takes part in two-phase commits.
const PRODUCERS: i64 = 3;

/// At this epoch a producer gets a new id, as Kafka's do when theirs are used up.
const EPOCH_MAX: i16 = 32_000;

/// Between ids of the same producer.
const GENERATION: i64 = 1_000_000;

/// Share partitions in which one call stages.
const SLOTS_MAX: u64 = 3;

/// All transactions of one consumer.
pub struct Transactor {
    slots: Vec<usize>,
    clients: Vec<Client>,
}

/// A transactional producer.
pub struct Client {
    id: i64,
    epoch: i16,
    two_phase: bool,
    /// Something is staged at `epoch`.
    is_busy: bool,
    /// Epochs that it left behind without a marker.
    dropped: Vec<i16>,
    last_stage: Option<Deed>,
    last_marker: Option<MarkerOp>,
}

impl Client {
    /// Goes on where the producer stopped before it was killed.
    pub fn find_epoch(
        &mut self,
        mut look_up: impl FnMut(i64) -> Result<Option<Producer>, Failure>,
    ) -> Result<(), Failure> {
        loop {
            let Some(known) = look_up(self.id)? else { return Ok(()) };
            let staged = known.highest.map(|epoch| epoch.saturating_add(1));
            let completed = known.completed.map(|last| last.epoch);
            self.epoch = staged.max(completed).unwrap_or(0);
            if self.epoch < EPOCH_MAX {
                return Ok(());
            }
            self.id += GENERATION;
            self.epoch = 0;
        }
    }
}

impl Transactor {
    pub fn new(slots: Vec<usize>) -> Self {
        Self { slots, clients: Vec::new() }
    }

    /// The producers of a consumer.
    pub fn producers_of(&mut self, lane: usize) -> &mut [Client] {
        let lane = i64::try_from(lane).unwrap_or(0);
        let client = |number| Client {
            id: 1_000 + lane * 10 + number,
            epoch: 0,
            two_phase: number + 1 == PRODUCERS,
            is_busy: false,
            dropped: Vec::new(),
            last_stage: None,
            last_marker: None,
        };
        self.clients = (0..PRODUCERS).map(client).collect();
        &mut self.clients
    }

    /// What one of the producers does next.
    pub fn next(&mut self, consumer: &mut Consumer<'_>) -> Vec<Deed> {
        let number = consumer.rng.below(self.clients.len() as u64) as usize;
        let Some(client) = self.clients.get_mut(number) else { return Vec::new() };
        let coordinator = consumer.epoch;
        let marker = |producer, epoch, commit| MarkerOp { producer, epoch, coordinator, commit };
        let commit = consumer.rng.chance(65);
        let deed = match consumer.rng.below(100) {
            0..25 if client.is_busy && client.epoch < EPOCH_MAX => {
                // An external recovery of a two-phase commit bumps the epoch more than once.
                let bumps = 1 + i16::from(client.two_phase && consumer.rng.chance(20));
                client.epoch += bumps;
                client.is_busy = false;
                let marker = marker(client.id, client.epoch, commit);
                client.last_marker = Some(marker);
                Deed::Marker(marker)
            }
            25..28 if client.is_busy && client.epoch < EPOCH_MAX => {
                // Its marker is on a long way; the producer goes on.
                client.dropped.push(client.epoch);
                client.epoch += 1;
                client.is_busy = false;
                return self.stage(number, consumer);
            }
            28..31 if !client.dropped.is_empty() => {
                let epoch = client.dropped.remove(0);
                Deed::Marker(marker(client.id, epoch + 1, commit))
            }
            31..34 => match client.last_marker {
                Some(marker) if consumer.rng.chance(70) => Deed::Marker(marker),
                Some(marker) => Deed::Marker(MarkerOp { commit: !marker.commit, ..marker }),
                None => return self.stage(number, consumer),
            },
            // From a transaction before the last one, or from a coordinator that is none any more.
            34..36 if client.epoch > 1 => Deed::Marker(marker(client.id, client.epoch - 2, commit)),
            36..38 => {
                let coordinator = coordinator - 1;
                Deed::Marker(MarkerOp { coordinator, ..marker(client.id, client.epoch, commit) })
            }
            // Sent again, perhaps after its transaction is over.
            38..42 if client.last_stage.is_some() => match client.last_stage.clone() {
                Some(deed) => deed,
                None => return Vec::new(),
            },
            _ => return self.stage(number, consumer),
        };
        vec![deed]
    }

    /// Stages in one share partition or in several at once.
    fn stage(&mut self, number: usize, consumer: &mut Consumer<'_>) -> Vec<Deed> {
        let Some(client) = self.clients.get_mut(number) else { return Vec::new() };
        let mut deeds = Vec::new();
        let from = consumer.rng.below(self.slots.len() as u64) as usize;
        let many = 1 + consumer.rng.below(SLOTS_MAX) as usize;
        for slot in self.slots.iter().cycle().skip(from).take(many.min(self.slots.len())) {
            let Some(row) = consumer.ledger.rows.get(slot).cloned() else { continue };
            let acks = acks(consumer, &row);
            if acks.is_empty() {
                continue;
            }
            let op = StageOp {
                state_epoch: row.state_epoch,
                leader_epoch: consumer.epoch - i32::from(consumer.rng.chance(2)),
                producer: client.id,
                epoch: client.epoch,
                two_phase: client.two_phase,
                acks,
            };
            let deed = Deed::Stage { slot: *slot, op };
            client.is_busy |= is_staged(&consumer.ledger, &deed);
            client.last_stage = Some(deed.clone());
            deeds.push(deed);
        }
        deeds
    }
}

fn is_staged(ledger: &Ledger, deed: &Deed) -> bool {
    let mut after = ledger.part(&ledger.scope(deed));
    matches!(after.act(deed), super::wire::Answer::Staged(1..))
}

/// Runs of records that the consumer acquired and acknowledges, with one type each.
fn acks(consumer: &mut Consumer<'_>, row: &Row) -> Vec<AckRun> {
    let rng = &mut consumer.rng;
    let start = row.start.max(0);
    let mut runs: Vec<AckRun> = Vec::new();
    let mut offset = start + rng.offset(40);
    for _ in 0..=rng.below(2) {
        let end = (offset + 1 + rng.offset(6)).min(start + WINDOW);
        let kind = rng.below(100);
        for at in (offset..end).filter(|at| !row.prepared.contains_key(at)) {
            let (state, count) = row.offsets.get(&at).copied().unwrap_or((0, 0));
            if state != 0 || count >= DELIVERY_LIMIT {
                continue;
            }
            // After the last delivery nobody gets it again, whatever becomes of the transaction.
            let undone = if count + 1 == DELIVERY_LIMIT { 4 } else { 0 };
            let (ack, commit, abort) = match kind {
                0..70 => (1, 2, undone),
                70..85 => (3, 4, undone),
                85..92 => (3, 3, 3),
                _ if undone == 0 => (0, 4, 0),
                _ => (1, 2, undone),
            };
            let new = (at, at, ack, commit, abort, count + 1);
            match runs.last_mut() {
                Some(last) if last.1 + 1 == at && same_kind(last, &new) => last.1 = at,
                _ => runs.push(new),
            }
        }
        offset = end + rng.offset(6);
    }
    runs
}

fn same_kind(a: &AckRun, b: &AckRun) -> bool {
    (a.2, a.3, a.4, a.5) == (b.2, b.3, b.4, b.5)
}
