//! What the store must do, offset by offset: the rules of semantics sections 2 to 4 a second time,
//! written to be read next to the tables and not to be fast. Shares no rule with the library; only
//! the types of commands and answers.
//!
//! One record is one map entry, a producer's open epochs are what the pending records say, and what
//! superseded an epoch is looked up among all epochs that ever staged. Bounds of size are left out.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use sharestate::model::{
    AckRange, AckType, Answer, Command, Marker, Options, Outcome, Partition, Producer, Rejection,
    SharePartitionKey, Stage, State, StateBatch,
};

/// A persisted record: `(delivery count, delivery state)`, so that the greater one wins a merge.
pub type Record = (i16, i8);

/// A pending record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub owner: (i64, i16),
    pub ack_type: AckType,
    pub commit: i8,
    pub abort: i8,
    pub count: i16,
}

/// A share partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub leader_fence: i32,
    pub start: i64,
    pub init_start: i64,
    pub count: i32,
    pub snapshot_epoch: i32,
    pub times: (i64, i64),
    pub records: BTreeMap<i64, Record>,
    pub pending: BTreeMap<i64, Pending>,
}

/// A producer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prod {
    pub highest_stage_epoch: Option<i16>,
    pub last_completed: Option<(i16, Outcome, bool)>,
    pub coordinator_epoch: Option<i32>,
    pub last_used: i64,
    /// Per open epoch: two-phase, what superseded it, its share partitions.
    pub open: BTreeMap<i16, (bool, Option<i16>, BTreeSet<SharePartitionKey>)>,
}

/// Everything, in a form to compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    pub partitions: BTreeMap<SharePartitionKey, Part>,
    pub producers: BTreeMap<i64, Prod>,
}

/// An answer, in a form to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Done { dropped: BTreeSet<i64> },
    Read(Part),
    Summary { epochs: (i32, i32), start: i64, count: i32 },
    Staged(BTreeSet<i64>),
    Resolved { resolved: BTreeMap<SharePartitionKey, BTreeSet<i64>>, flags: (bool, bool) },
    Expired(Vec<i64>),
}

/// Kafka's error code; none where Kafka has none.
pub type Refused = Option<i16>;

const INVALID_REQUEST: Refused = Some(42);
const FENCED_LEADER_EPOCH: Refused = Some(74);
const FENCED_STATE_EPOCH: Refused = Some(124);
const INVALID_RECORD_STATE: Refused = Some(121);
const INVALID_PRODUCER_EPOCH: Refused = Some(47);
const UNSUPPORTED_VERSION: Refused = Some(35);
const COORDINATOR_FENCED: Refused = Some(52);
const NOTHING_PENDING: Refused = None;

fn require(holds: bool, otherwise: Refused) -> Result<(), Refused> {
    if holds { Ok(()) } else { Err(otherwise) }
}

#[derive(Debug, Clone, Default)]
struct Memory {
    highest: Option<i16>,
    last: Option<(i16, Outcome, bool)>,
    coordinator: Option<i32>,
    last_used: i64,
    /// Every epoch that ever staged, with its two-phase setting.
    staged: BTreeMap<i16, bool>,
}

/// The oracle.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    parts: BTreeMap<SharePartitionKey, Part>,
    memory: BTreeMap<i64, Memory>,
}

impl Oracle {
    /// Executes a command and says what its caller must be told.
    pub fn execute(
        &mut self,
        command: &Command,
        now: i64,
        options: &Options,
    ) -> Result<Told, Refused> {
        match command {
            Command::Initialize { key, state_epoch, start_offset } => {
                self.initialize(key, *state_epoch, *start_offset, now)
            }
            Command::Write {
                key,
                state_epoch,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                batches,
            } => {
                require(*leader_epoch >= 0, INVALID_REQUEST)?;
                require(*state_epoch >= 0, INVALID_REQUEST)?;
                require(*start_offset >= -1 && *delivery_complete_count >= -1, INVALID_REQUEST)?;
                require(batches.iter().all(is_legal), INVALID_REQUEST)?;
                let part = self.parts.get_mut(key).ok_or(INVALID_REQUEST)?;
                require(*leader_epoch >= part.leader_fence, FENCED_LEADER_EPOCH)?;
                require(*state_epoch >= part.state_epoch, FENCED_STATE_EPOCH)?;
                part.write(*start_offset, *delivery_complete_count, batches, now)
            }
            Command::Read { key, leader_epoch } => {
                require(*leader_epoch >= 0, INVALID_REQUEST)?;
                let part = self.parts.get_mut(key).ok_or(INVALID_REQUEST)?;
                require(*leader_epoch >= part.leader_fence, FENCED_LEADER_EPOCH)?;
                if *leader_epoch > part.leader_fence {
                    part.leader_epoch = *leader_epoch;
                    part.leader_fence = *leader_epoch;
                }
                Ok(Told::Read(part.clone()))
            }
            Command::Summary { key } => Ok(match self.parts.get(key) {
                None => Told::Summary { epochs: (0, 0), start: -1, count: -1 },
                Some(part) => Told::Summary {
                    epochs: (part.state_epoch, part.leader_epoch),
                    start: part.start,
                    count: part.count,
                },
            }),
            Command::Delete { key } => {
                let part = self.parts.remove(key).unwrap_or_default();
                Ok(Told::Done { dropped: part.pending.into_keys().collect() })
            }
            Command::Stage(stage) => self.stage(stage, now),
            Command::Marker(marker) => self.marker(marker, now),
            Command::ForceResolve { producer_id, epoch, outcome } => {
                self.force(*producer_id, *epoch, *outcome, now)
            }
            Command::ExpireProducers { producer_ids } => {
                let mut expired = producer_ids.clone();
                expired.sort_unstable();
                expired.dedup();
                expired.retain(|id| {
                    let age = |memory: &Memory| now - memory.last_used;
                    let age = self.memory.get(id).map(age);
                    age >= Some(options.producer_id_expiration_ms) && self.open(*id).is_empty()
                });
                expired.iter().for_each(|id| drop(self.memory.remove(id)));
                Ok(Told::Expired(expired))
            }
            Command::Import { key, partition, replace } => self.import(key, partition, *replace),
        }
    }

    /// Everything that a store must hold now.
    pub fn view(&self) -> View {
        let producer = |(id, memory): (&i64, &Memory)| {
            let row = Prod {
                highest_stage_epoch: memory.highest,
                last_completed: memory.last,
                coordinator_epoch: memory.coordinator,
                last_used: memory.last_used,
                open: self.open(*id),
            };
            (*id, row)
        };
        let producers = self.memory.iter().map(producer).collect();
        View { partitions: self.parts.clone(), producers }
    }

    /// A share partition.
    pub fn part(&self, key: &SharePartitionKey) -> Option<&Part> {
        self.parts.get(key)
    }

    /// The open epochs of a producer: two-phase, what superseded it, its share partitions.
    pub fn open(&self, id: i64) -> BTreeMap<i16, (bool, Option<i16>, BTreeSet<SharePartitionKey>)> {
        let mut open = BTreeMap::new();
        for (key, part) in &self.parts {
            for pending in part.pending.values().filter(|pending| pending.owner.0 == id) {
                let epoch = pending.owner.1;
                let staged = &self.memory[&id].staged;
                let later = staged.range(epoch + 1..).next().map(|(later, _)| *later);
                let entry = (staged[&epoch], later, BTreeSet::new());
                open.entry(epoch).or_insert(entry).2.insert(key.clone());
            }
        }
        open
    }

    fn initialize(
        &mut self,
        key: &SharePartitionKey,
        state_epoch: i32,
        start: i64,
        now: i64,
    ) -> Result<Told, Refused> {
        require(state_epoch >= 0, INVALID_REQUEST)?;
        require(start >= -1, INVALID_REQUEST)?;
        let old = self.parts.get(key);
        if let Some(old) = old {
            require(state_epoch >= old.state_epoch, FENCED_STATE_EPOCH)?;
            if state_epoch == old.state_epoch && (start == old.start || start == old.init_start) {
                return Ok(Told::Done { dropped: BTreeSet::new() });
            }
        }
        let new = Part {
            state_epoch,
            leader_epoch: 0,
            leader_fence: old.map_or(0, |old| old.leader_fence),
            start,
            init_start: start,
            count: if start >= 0 { 0 } else { -1 },
            snapshot_epoch: old.map_or(0, |old| old.snapshot_epoch.saturating_add(1)),
            times: (now, now),
            ..Part::default()
        };
        let old = self.parts.insert(key.clone(), new).unwrap_or_default();
        Ok(Told::Done { dropped: old.pending.into_keys().collect() })
    }

    fn import(
        &mut self,
        key: &SharePartitionKey,
        row: &Partition,
        replace: bool,
    ) -> Result<Told, Refused> {
        let epochs = [row.state_epoch, row.leader_epoch, row.leader_fence, row.snapshot_epoch];
        require(epochs.iter().all(|epoch| *epoch >= 0), INVALID_REQUEST)?;
        require(row.leader_epoch <= row.leader_fence, INVALID_REQUEST)?;
        require(row.start_offset >= -1 && row.init_start_offset >= -1, INVALID_REQUEST)?;
        require(row.delivery_complete_count >= -1, INVALID_REQUEST)?;
        require(row.batches.iter().all(is_legal), INVALID_REQUEST)?;
        require(row.pending.is_empty(), INVALID_REQUEST)?;
        require(replace || !self.parts.contains_key(key), INVALID_REQUEST)?;
        let mut part = Part::of(row);
        part.records = merged(&row.batches, row.start_offset);
        let old = self.parts.insert(key.clone(), part).unwrap_or_default();
        Ok(Told::Done { dropped: old.pending.into_keys().collect() })
    }

    fn stage(&mut self, stage: &Stage, now: i64) -> Result<Told, Refused> {
        let Stage { key, producer_id, producer_epoch, two_phase, acks, .. } = stage;
        let mut asked: BTreeMap<i64, &AckRange> = BTreeMap::new();
        require(*producer_id >= 0, INVALID_REQUEST)?;
        require((0..=32_766).contains(producer_epoch), INVALID_REQUEST)?;
        require(!acks.is_empty(), INVALID_REQUEST)?;
        for ack in acks {
            let ordered = 0 <= ack.first_offset && ack.first_offset <= ack.last_offset;
            require(ordered && ack.last_offset < i64::MAX, INVALID_REQUEST)?;
            require(ack.delivery_count >= 0, INVALID_REQUEST)?;
            for offset in ack.first_offset..=ack.last_offset {
                require(asked.insert(offset, ack).is_none(), INVALID_REQUEST)?;
            }
        }
        require(stage.transactional_id.len() <= 32_767, INVALID_REQUEST)?;
        require(stage.member_id.len() <= 32_767, INVALID_REQUEST)?;
        require(stage.state_epoch >= 0 && stage.leader_epoch >= 0, INVALID_REQUEST)?;
        require(acks.iter().all(can_be_staged), INVALID_REQUEST)?;
        require(stage.transaction_version >= 2, UNSUPPORTED_VERSION)?;
        let part = self.parts.get(key).ok_or(INVALID_REQUEST)?;
        require(stage.leader_epoch >= part.leader_fence, FENCED_LEADER_EPOCH)?;
        require(stage.state_epoch == part.state_epoch, FENCED_STATE_EPOCH)?;
        let memory = self.memory.get(producer_id).cloned().unwrap_or_default();
        require(Some(*producer_epoch) >= memory.highest, INVALID_PRODUCER_EPOCH)?;
        let last = memory.last.map(|last| last.0);
        require(Some(*producer_epoch) >= last, INVALID_PRODUCER_EPOCH)?;
        let open = self.open(*producer_id);
        let agrees = open.get(producer_epoch).is_none_or(|open| open.0 == *two_phase);
        require(agrees, INVALID_REQUEST)?;

        let part = self.parts.get_mut(key).expect("checked");
        let mut staged = BTreeMap::new();
        for (offset, ack) in asked.into_iter().filter(|(offset, _)| *offset >= part.start) {
            if let Some((count, state)) = part.records.get(&offset) {
                require(*state == 0 && *count < ack.delivery_count, INVALID_RECORD_STATE)?;
            }
            let pending = Pending {
                owner: (*producer_id, *producer_epoch),
                ack_type: ack.ack_type,
                commit: ack.commit_target.0,
                abort: ack.abort_target.0,
                count: ack.delivery_count,
            };
            match part.pending.get(&offset) {
                None => drop(staged.insert(offset, pending)),
                Some(present) => require(*present == pending, INVALID_RECORD_STATE)?,
            }
        }
        let told = Told::Staged(staged.keys().copied().collect());
        if !staged.is_empty() {
            part.pending.append(&mut staged);
            let memory = self.memory.entry(*producer_id).or_default();
            memory.highest = Some(*producer_epoch);
            memory.last_used = now;
            memory.staged.insert(*producer_epoch, *two_phase);
        }
        Ok(told)
    }

    fn marker(&mut self, marker: &Marker, now: i64) -> Result<Told, Refused> {
        let Marker { producer_id: id, producer_epoch: m, outcome, .. } = *marker;
        require(id >= 0 && m >= 0, INVALID_REQUEST)?;
        let before = self.memory.get(&id).cloned().unwrap_or_default();
        let coordinator = Some(marker.coordinator_epoch);
        require(coordinator >= before.coordinator, COORDINATOR_FENCED)?;
        if coordinator > before.coordinator {
            let memory = self.memory.entry(id).or_default();
            memory.coordinator = coordinator;
            memory.last_used = now;
        }
        let open = self.open(id);
        let matching = open.iter().find(|(s, (two_phase, later, _))| {
            let next = i32::from(**s) + 1 == i32::from(m);
            next || *two_phase && m > **s && later.is_none_or(|later| later >= m)
        });
        let last = before.last.map_or(-1, |last| last.0);
        let (resolves, completes, contradicts) = match matching {
            Some((s, _)) => (Some(*s), m > last, false),
            None if m == last => (None, false, before.last.is_some_and(|last| last.1 != outcome)),
            None if m < last => return Err(INVALID_PRODUCER_EPOCH),
            None => {
                let is_old_abort = marker.transaction_version < 2 && outcome == Outcome::Abort;
                if is_old_abort && open.contains_key(&m) {
                    (Some(m), false, false)
                } else {
                    (None, Some(m) > before.highest, false)
                }
            }
        };
        let orphans = open.keys().any(|s| *s < m && Some(*s) != resolves);
        let resolved = resolves.map(|epoch| self.resolve((id, epoch), outcome));
        if completes || resolves.is_some() {
            let memory = self.memory.entry(id).or_default();
            memory.last_used = now;
            if completes {
                memory.last = Some((m, outcome, false));
            }
        }
        let flags = (contradicts, orphans);
        Ok(Told::Resolved { resolved: resolved.unwrap_or_default(), flags })
    }

    fn force(&mut self, id: i64, epoch: i16, outcome: Outcome, now: i64) -> Result<Told, Refused> {
        let open = self.open(id);
        require(open.contains_key(&epoch), NOTHING_PENDING)?;
        let resolved = self.resolve((id, epoch), outcome);
        let memory = self.memory.get_mut(&id).expect("open");
        memory.last_used = now;
        if memory.last.is_none_or(|last| last.0 < epoch + 1) {
            memory.last = Some((epoch + 1, outcome, true));
        }
        let orphans = open.keys().any(|s| *s < epoch);
        Ok(Told::Resolved { resolved, flags: (false, orphans) })
    }

    fn resolve(
        &mut self,
        owner: (i64, i16),
        outcome: Outcome,
    ) -> BTreeMap<SharePartitionKey, BTreeSet<i64>> {
        let mut resolved: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
        for (key, part) in &mut self.parts {
            let pending = std::mem::take(&mut part.pending);
            for (offset, ack) in pending {
                if ack.owner != owner {
                    part.pending.insert(offset, ack);
                    continue;
                }
                let target = if outcome == Outcome::Commit { ack.commit } else { ack.abort };
                let before = part.records.insert(offset, (ack.count, target));
                let is_terminal = |state| state == 2 || state == 4;
                let was_terminal = before.is_some_and(|(_, state)| is_terminal(state));
                if is_terminal(target) && !was_terminal && part.count >= 0 {
                    part.count = part.count.saturating_add(1);
                }
                resolved.entry(key.clone()).or_default().insert(offset);
            }
        }
        resolved
    }
}

impl Part {
    fn write(
        &mut self,
        start: i64,
        count: i32,
        batches: &[StateBatch],
        now: i64,
    ) -> Result<Told, Refused> {
        let new_start = self.start.max(start);
        let mut sent = merged(batches, new_start);
        let mut stale = false;
        for (offset, pending) in self.pending.range(new_start.max(0)..) {
            if let Some((count, _)) = sent.get(offset) {
                require(*count < pending.count, INVALID_RECORD_STATE)?;
                stale = true;
                sent.remove(offset);
            }
        }
        if !stale {
            self.count = match start {
                start if start < self.start => self.count,
                start if start == self.start => self.count.max(count),
                _ => count,
            };
        }
        self.start = new_start;
        self.times.1 = now;
        for (offset, record) in sent {
            let winner = self.records.get(&offset).map_or(record, |stored| record.max(*stored));
            self.records.insert(offset, winner);
        }
        self.records.retain(|offset, _| *offset >= new_start);
        let dropped: BTreeSet<i64> = self.pending.range(..new_start.max(0)).map(|p| *p.0).collect();
        self.pending.retain(|offset, _| *offset >= new_start);
        Ok(Told::Done { dropped })
    }

    fn of(row: &Partition) -> Self {
        let mut part = Self {
            state_epoch: row.state_epoch,
            leader_epoch: row.leader_epoch,
            leader_fence: row.leader_fence,
            start: row.start_offset,
            init_start: row.init_start_offset,
            count: row.delivery_complete_count,
            snapshot_epoch: row.snapshot_epoch,
            times: (row.create_time_ms, row.write_time_ms),
            records: merged(&row.batches, -1),
            pending: BTreeMap::new(),
        };
        for ack in &row.pending {
            for offset in ack.first_offset..=ack.last_offset {
                let pending = Pending {
                    owner: (ack.call.producer_id, ack.call.producer_epoch),
                    ack_type: ack.ack_type,
                    commit: ack.commit_target.0,
                    abort: ack.abort_target.0,
                    count: ack.delivery_count,
                };
                part.pending.insert(offset, pending);
            }
        }
        part
    }
}

impl Prod {
    fn of(row: &Producer) -> Self {
        let open = |(epoch, open): (&i16, &sharestate::model::OpenEpoch)| {
            (*epoch, (open.two_phase, open.superseded_by, open.keys.clone()))
        };
        Self {
            highest_stage_epoch: row.highest_stage_epoch,
            last_completed: row
                .last_completed
                .map(|last| (last.epoch, last.outcome, last.operator)),
            coordinator_epoch: row.coordinator_epoch,
            last_used: row.last_used_ms,
            open: row.open.iter().map(open).collect(),
        }
    }
}

/// What a store holds.
pub fn view(state: &State) -> View {
    let partitions =
        state.partitions.iter().map(|(key, row)| (key.clone(), Part::of(row))).collect();
    let producers = state.producers.iter().map(|(id, row)| (*id, Prod::of(row))).collect();
    View { partitions, producers }
}

/// What a caller was told.
pub fn told(answer: Result<Answer, Rejection>) -> Result<Told, Refused> {
    let offsets = |ranges: &[(i64, i64)]| -> BTreeSet<i64> {
        ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
    };
    Ok(match answer.map_err(|rejection| rejection.kafka_code())? {
        Answer::Done { dropped } => {
            let dropped = dropped.iter().flat_map(|ack| ack.first_offset..=ack.last_offset);
            Told::Done { dropped: dropped.collect() }
        }
        Answer::Read(read) => Told::Read(Part::of(&read.partition)),
        Answer::Summary(summary) => Told::Summary {
            epochs: (summary.state_epoch, summary.leader_epoch),
            start: summary.start_offset,
            count: summary.delivery_complete_count,
        },
        Answer::Staged { staged } => Told::Staged(offsets(&staged)),
        Answer::Resolved { resolved, contradicts, orphans } => {
            let resolved = resolved.into_iter().map(|(key, ranges)| (key, offsets(&ranges)));
            Told::Resolved { resolved: resolved.collect(), flags: (contradicts, orphans) }
        }
        Answer::Expired { producer_ids } => Told::Expired(producer_ids),
    })
}

/// Merges batches offset by offset (semantics section 3).
pub fn merged(batches: &[StateBatch], start: i64) -> BTreeMap<i64, Record> {
    let mut records = BTreeMap::new();
    for batch in batches {
        for offset in batch.first_offset..=batch.last_offset {
            if start == -1 || offset >= start {
                let record = (batch.delivery_count, batch.delivery_state.0);
                let winner = records.entry(offset).or_insert(record);
                *winner = record.max(*winner);
            }
        }
    }
    records
}

fn is_legal(batch: &StateBatch) -> bool {
    0 <= batch.first_offset
        && batch.first_offset <= batch.last_offset
        && batch.last_offset < i64::MAX
        && [0, 2, 3, 4].contains(&batch.delivery_state.0)
        && batch.delivery_count >= 0
}

fn can_be_staged(ack: &AckRange) -> bool {
    let (commit, abort) = (ack.commit_target.0, ack.abort_target.0);
    match ack.ack_type {
        AckType::Accept => commit == 2 && [0, 3, 4].contains(&abort),
        AckType::Reject => [3, 4].contains(&commit) && [0, 3, 4].contains(&abort),
        AckType::Gap => commit == 4 && abort == 0,
        AckType::Release | AckType::Renew => false,
    }
}
