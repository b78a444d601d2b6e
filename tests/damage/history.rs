//! A history of a store: what every entry of its log says, and the state behind each of them as the
//! live store answered it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use sharestate::blocking::BlockingShareStore;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{Entry, Lsn, Scope, scan};
use sharestate::snapshot::MemoryRows;
use sharestate::{
    AckRange, AckType, Clock, DeliveryState, Marker, Options, Outcome, SharePartitionKey,
    ShareStore, Stage, StateBatch, Write,
};
use uuid::Uuid;

/// Share partitions of the history.
pub const KEYS: i32 = 12;
/// Writes behind the mixed beginning: four segments of 65 frames, and most of a fifth.
const WRITES: i64 = 400;

/// Time stands still, so that states can be compared to the letter.
#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

/// Nothing happens but what a test asks for.
pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options.block_cache_bytes = 1 << 20;
    options.clock = Arc::new(Frozen);
    options
}

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct Logged {
    pub kind: u16,
    pub version: u8,
    pub body: Vec<u8>,
}

/// See the module.
pub struct History {
    pub uuid: Uuid,
    /// The entry with LSN n is at n - 1.
    pub entries: Vec<Logged>,
    /// The state behind LSN n is at n.
    pub states: Vec<Vec<String>>,
    /// The last LSN of the mixed beginning; behind it are writes of one size only.
    pub begun: Lsn,
}

/// The history, made once.
pub static HISTORY: LazyLock<History> = LazyLock::new(History::make);

/// Everything a store holds, in comparable form.
pub fn state_of(store: &ShareStore) -> Vec<String> {
    let blocking = store.blocking();
    let page = blocking.list(None, None, 1_000).expect("list");
    let mut state: Vec<_> = page.partitions.iter().map(|(k, row)| format!("{k} {row:?}")).collect();
    let (producers, _) = blocking.producers(None, 1_000).expect("producers");
    state.extend(producers.iter().map(|(id, row)| format!("{id} {row:?}")));
    state
}

pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group-1", Uuid::from_u128(0x51), partition).expect("valid")
}

/// A write of six batches that leaves the row as large as it is. In a frame of its own it takes 248
/// bytes.
pub fn write(n: i64) -> Write {
    let count = i16::try_from(n).expect("small");
    let batch = |at: i64| StateBatch {
        first_offset: 1_000 + at,
        last_offset: 1_000 + at,
        delivery_state: DeliveryState::AVAILABLE,
        delivery_count: count + i16::try_from(at % 2).expect("small"),
    };
    Write {
        state_epoch: 1,
        leader_epoch: 0,
        start_offset: -1,
        delivery_complete_count: 0,
        batches: (0..6).map(batch).collect(),
    }
}

fn stage(producer_id: i64, partition: i32) -> Stage {
    Stage {
        key: key(partition),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id,
        producer_epoch: 0,
        two_phase: producer_id % 2 == 0,
        transaction_version: 2,
        transactional_id: format!("transaction-{producer_id}"),
        member_id: "member".into(),
        member_epoch: 1,
        acks: vec![AckRange {
            first_offset: producer_id * 10,
            last_offset: producer_id * 10 + 4,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    }
}

type Step<'a> = Box<dyn Fn(&BlockingShareStore) + 'a>;

/// Twelve keys, ten transactions (four committed, three aborted, three left open), two deletions
/// with a new beginning, one reset of a start offset; each step logs one entry.
fn beginning() -> Vec<Step<'static>> {
    let mut steps: Vec<Step<'static>> = Vec::new();
    for partition in 0..KEYS {
        steps.push(Box::new(move |store| {
            store.initialize(&key(partition), 1, 0).expect("initialize");
        }));
    }
    for producer in 1..=10 {
        let partition = i32::try_from(producer).expect("small") % 4;
        steps.push(Box::new(move |store| {
            store.stage(stage(producer, partition)).expect("stage");
        }));
    }
    for producer_id in 1..=7 {
        let outcome = if producer_id <= 4 { Outcome::Commit } else { Outcome::Abort };
        let marker = Marker {
            producer_id,
            producer_epoch: 1,
            coordinator_epoch: 3,
            outcome,
            transaction_version: 2,
        };
        steps.push(Box::new(move |store| {
            store.marker(marker).expect("marker");
        }));
    }
    for partition in [10, 11] {
        steps.push(Box::new(move |store| {
            store.delete(&key(partition)).expect("delete");
        }));
        steps.push(Box::new(move |store| {
            store.initialize(&key(partition), 1, 0).expect("initialize");
        }));
    }
    steps.push(Box::new(|store| {
        let reset = Write { start_offset: 500, batches: Vec::new(), ..write(1) };
        store.write(&key(9), reset).expect("reset");
    }));
    steps
}

impl History {
    fn make() -> Self {
        let sim = SimFs::new(0);
        let fs: Arc<dyn Fs> = Arc::new(sim);
        let root = Path::new("/live");
        let mut options = options();
        options.segment_bytes = 1 << 20;
        let rows = MemoryRows::default();
        let store = ShareStore::open_with(Arc::clone(&fs), &rows, root, &options).expect("open");
        let blocking = store.blocking();
        let mut states = vec![state_of(&store)];
        let beginning = beginning();
        let begun = beginning.len() as Lsn;
        for step in beginning {
            step(&blocking);
            states.push(state_of(&store));
        }
        for n in 1..=WRITES {
            let partition = i32::try_from(n % i64::from(KEYS)).expect("small");
            blocking.write(&key(partition), write(n)).expect("write");
            states.push(state_of(&store));
        }
        let uuid = store.uuid();
        drop((blocking, store));
        let entries = logged(&fs, &root.join("wal"), uuid);
        assert_eq!(entries.len() + 1, states.len(), "one entry a step");
        Self { uuid, entries, states, begun }
    }
}

/// All entries of a log.
fn logged(fs: &Arc<dyn Fs>, wal: &Path, uuid: Uuid) -> Vec<Logged> {
    let mut entries = Vec::new();
    let mut visit = |entry: Entry<'_>| {
        let body = entry.body.to_vec();
        entries.push(Logged { kind: entry.kind, version: entry.version, body });
        Ok::<(), std::convert::Infallible>(())
    };
    scan(Arc::clone(fs), wal, uuid, 0, Scope::All, &mut visit).expect("the live log");
    entries
}
