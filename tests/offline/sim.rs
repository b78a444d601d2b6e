//! A store on a simulated disk whose state after every LSN is known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::fsio::Fs;
use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::MemoryRows;
use sharestate::{
    AckRange, AckType, Clock, DeliveryState, Marker, OpenError, Options, Outcome, Repair,
    ShareStore, Stage,
};

use crate::support::{batch, contents, key, write};

#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options.clock = Arc::new(Frozen);
    options
}

pub const ROOT: &str = "/store";

/// A store at rest: its disk and its rows.
#[derive(Debug)]
pub struct Disk {
    pub fs: SimFs,
    pub rows: MemoryRows,
}

impl Disk {
    pub fn open(&self) -> Result<ShareStore, OpenError> {
        self.open_at(ROOT)
    }

    pub fn open_at(&self, root: &str) -> Result<ShareStore, OpenError> {
        ShareStore::open_with(Arc::new(self.fs.clone()), &self.rows, Path::new(root), &options())
    }

    pub fn plan(&self) -> Result<Repair<'_>, OpenError> {
        Repair::plan_with(Arc::new(self.fs.clone()), &self.rows, Path::new(ROOT))
    }

    /// What is found after the machine stopped here.
    pub fn cut(&self, model: PageModel) -> Disk {
        Disk { fs: self.fs.power_cut(model), rows: self.rows.fork() }
    }

    pub fn same(&self) -> Disk {
        self.cut(PageModel::AllKept)
    }

    /// Name and bytes of every file in a directory.
    pub fn files(&self, dir: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let dir = Path::new(dir);
        if !self.fs.exists(dir).expect("exists") {
            return BTreeMap::new();
        }
        let entries = self.fs.list(dir).expect("list").into_iter().filter(|entry| !entry.is_dir);
        entries
            .map(|entry| {
                let bytes = self.fs.content(&dir.join(&entry.name)).expect("a file");
                (PathBuf::from(entry.name), bytes)
            })
            .collect()
    }

    pub fn wal(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.files("/store/wal")
    }

    pub fn change(&self, file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let path = Path::new("/store/wal").join(file);
        let mut bytes = self.fs.content(&path).expect("a segment");
        change(&mut bytes);
        self.fs.set_content(&path, &bytes);
    }

    /// Flips a bit in the header of the frame whose entries begin with this LSN.
    pub fn rot(&self, lsn: u64) {
        let is_it = |frame: &RawFrame| frame.first_lsn == lsn && frame.entries > 0;
        let frame = frames(&self.wal()).into_iter().find(is_it).expect("a frame");
        self.change(&frame.file, |bytes| bytes[frame.offset + 30] ^= 1);
    }
}

/// A store that was killed, and what it held after every LSN.
pub struct Killed {
    pub disk: Disk,
    pub states: Vec<Vec<String>>,
    pub applied: u64,
    pub last: u64,
}

const STEPS: i64 = 60;

/// One entry each: plain writes, acks staged in transactions that are committed, and one that stays
/// open. A checkpoint in the middle if `checkpoint`.
pub fn killed(checkpoint: bool) -> Killed {
    let disk = Disk { fs: SimFs::new(1), rows: MemoryRows::default() };
    let store = disk.open().expect("open");
    let mut states = vec![contents(&store)];
    for n in 0..STEPS {
        step(&store, n);
        let lsn = store.progress().durable_lsn;
        assert_eq!(lsn, states.len() as u64, "one entry a step");
        states.push(contents(&store));
        if checkpoint && n == 24 {
            store.blocking().checkpoint().expect("checkpoint");
        }
    }
    let progress = store.progress();
    let image = disk.same();
    drop(store);
    Killed { disk: image, states, applied: progress.applied_lsn, last: progress.durable_lsn }
}

fn step(store: &ShareStore, n: i64) {
    let store = store.blocking();
    let partition = key("g", i32::try_from(n % 3).expect("small"));
    match n {
        0..3 => drop(store.initialize(&partition, 1, 0).expect("initialize")),
        _ if n % 10 == 5 => drop(store.stage(stage(n, n * 10)).expect("stage")),
        // The marker of the stage before; that of the last one stays out.
        _ if n % 10 == 7 && n < 50 => {
            drop(store.marker(marker(n - 2)).expect("marker"));
        }
        _ => {
            let batches: Vec<_> = (0..6).map(|b| batch(n * 10 + b, n * 10 + b, 2, 1)).collect();
            drop(store.write(&partition, write(&batches)).expect("write"));
        }
    }
}

/// Producer `n` at epoch 1.
pub fn stage(n: i64, offset: i64) -> Stage {
    Stage {
        key: key("g", 1),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: n,
        producer_epoch: 1,
        two_phase: false,
        transaction_version: 2,
        transactional_id: format!("tx-{n}"),
        member_id: "member".into(),
        member_epoch: 1,
        acks: vec![AckRange {
            first_offset: offset,
            last_offset: offset + 3,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    }
}

pub fn marker(producer_id: i64) -> Marker {
    Marker {
        producer_id,
        producer_epoch: 2,
        coordinator_epoch: 1,
        outcome: Outcome::Commit,
        transaction_version: 2,
    }
}

/// The producer whose transaction is open at the end.
pub const OPEN_PRODUCER: i64 = 55;

/// A frame as the bytes show it: segment, offset, first LSN, and the number of its entries.
#[derive(Debug, Clone)]
pub struct RawFrame {
    pub file: PathBuf,
    pub offset: usize,
    pub first_lsn: u64,
    pub entries: u32,
}

/// All frames of the log, found by their magic and not by the decoder under test.
pub fn frames(wal: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<RawFrame> {
    let mut frames = Vec::new();
    for (file, bytes) in wal {
        for offset in (64..bytes.len()).step_by(8) {
            if bytes[offset..].starts_with(b"SFRM") {
                let u64_at = |at: usize| {
                    u64::from_le_bytes(bytes[offset + at..][..8].try_into().expect("8 bytes"))
                };
                frames.push(RawFrame {
                    file: file.clone(),
                    offset,
                    first_lsn: u64_at(16),
                    entries: u64_at(24) as u32,
                });
            }
        }
    }
    frames
}

/// The store opens, holds exactly `state`, takes changes, and opens again with them.
pub fn works_on(disk: &Disk, state: &[String], context: &str) {
    let store = disk.open().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(contents(&store), state, "{context}");
    let after = key("zz-after", 0);
    store.blocking().initialize(&after, 1, 0).unwrap_or_else(|e| panic!("{context}: {e}"));
    let now = contents(&store);
    let image = disk.same();
    drop(store);
    let store = image.open().unwrap_or_else(|error| panic!("{context}, again: {error}"));
    assert_eq!(contents(&store), now, "{context}, again");
}
