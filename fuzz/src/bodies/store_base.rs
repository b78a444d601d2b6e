//! Stores that `segment_dir` damages: made by the log writer itself, the same bytes every time,
//! with the true state after each entry beside them.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use sharestate::codec::encode_transition;
use sharestate::engine::directory::Identity;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::frame::{FrameFields, FrameKind, decode_frame};
use sharestate::log::{
    self, Batch, LogIdentity, LogOptions, LogWriter, Lsn, Prepare, SEGMENT_HEADER_BYTES, SegmentId,
};
use sharestate::model::{Options, State, apply, decide};
use sharestate::snapshot::{CheckpointBatch, MemoryRows, Snapshot};
use uuid::Uuid;

use crate::history::{History, Step};
use crate::oracle::Oracle;

pub const STORE: Uuid = Uuid::from_u128(0x5ba5e);
pub const SEGMENT_BYTES: u64 = 4_096;
const ENTRIES: Lsn = 90;
const OPTIONS: Options = Options { producer_id_expiration_ms: 400 };

/// How a base was written, and how its writer ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Every frame synced before the next; a mark at the end, as an idle store leaves it.
    StrictMarked,
    /// The same, killed before the mark.
    StrictKilled,
    /// Synced now and then only.
    Relaxed,
}

/// A frame and where it stands.
pub struct Placed {
    pub file: usize,
    pub from: usize,
    pub to: usize,
    pub fields: FrameFields,
}

/// An undamaged store.
pub struct Base {
    pub store: Vec<u8>,
    /// Segments: first LSN, bytes.
    pub segments: Vec<(Lsn, Vec<u8>)>,
    pub frames: Vec<Placed>,
    /// The state after each entry, from none on.
    pub states: Vec<State>,
}

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    [Kind::StrictMarked, Kind::StrictKilled, Kind::Relaxed].map(Base::make).into_iter().collect()
});

/// All of them.
pub fn bases() -> &'static [Base] {
    &BASES
}

impl Base {
    pub fn last_lsn(&self) -> Lsn {
        ENTRIES
    }

    /// The snapshot of a checkpoint at `lsn`.
    pub fn rows_at(&self, lsn: Lsn) -> MemoryRows {
        let rows = MemoryRows::default();
        let snapshot = Snapshot::create(Box::new(rows.clone()), STORE).expect("empty rows");
        let state = &self.states[usize::try_from(lsn).expect("small")];
        let partitions = state.partitions.iter().map(|(key, row)| (key.clone(), Some(row.clone())));
        let producers = state.producers.iter().map(|(id, row)| (*id, Some(row.clone())));
        let batch = CheckpointBatch {
            applied_lsn: lsn,
            partitions: partitions.collect(),
            producers: producers.collect(),
        };
        snapshot.write(&batch).expect("memory");
        rows
    }

    fn make(kind: Kind) -> Self {
        let (fs, wal) = (SimFs::new(0), Path::new("/wal"));
        let identity = LogIdentity { uuid: STORE, incarnation: 3 };
        let options = LogOptions {
            segment_bytes: SEGMENT_BYTES,
            relaxed: kind == Kind::Relaxed,
            prepare: Prepare::Inline,
        };
        let log = log::create(Arc::new(fs.clone()), wal, identity, options).expect("memory");
        let states = write(log, kind);
        let mut segments = Vec::new();
        for entry in fs.list(wal).expect("memory") {
            let name = entry.name.to_str().expect("ASCII").to_owned();
            let first_lsn = name.trim_end_matches(".wal").parse().expect("a segment");
            segments.push((first_lsn, fs.content(&wal.join(name)).expect("is there")));
        }
        let frames = frames(&segments);
        assert!(segments.len() >= 3 && frames.len() > 30);
        let identity = Identity { uuid: STORE, incarnation: 3, segment_bytes: SEGMENT_BYTES };
        Self { store: identity.encode().to_vec(), segments, frames, states }
    }
}

/// Writes a history of transactions; answers the state after each entry.
fn write(mut log: LogWriter, kind: Kind) -> Vec<State> {
    let (mut history, mut oracle) = (History::new(5), Oracle::default());
    let mut state = State::default();
    let mut states = vec![state.clone()];
    let mut batch = Batch::new(1);
    let mut lsn = 0;
    while lsn < ENTRIES {
        let Step::Command(command) = history.next(&oracle) else { continue };
        let _ = oracle.execute(&command, history.now, &OPTIONS);
        let decision = decide(&state, &command, history.now, &OPTIONS);
        let Some(transition) = decision.transition else { continue };
        let mut body = Vec::new();
        let (entry, version) = encode_transition(&transition, &mut body).expect("encodes");
        lsn = batch.push(entry as u16, version, &body);
        apply(&mut state, lsn, &transition).expect("was decided");
        states.push(state.clone());
        if lsn % 3 == 0 || lsn % 7 < 3 || lsn == ENTRIES {
            log.append(&batch).expect("memory");
            batch.clear(lsn + 1);
            if kind != Kind::Relaxed || lsn % 10 == 0 {
                log.sync().expect("memory");
            }
        }
    }
    if kind == Kind::StrictMarked {
        log.mark().expect("memory");
    }
    states
}

fn frames(segments: &[(Lsn, Vec<u8>)]) -> Vec<Placed> {
    let mut frames = Vec::new();
    for (file, (first_lsn, bytes)) in segments.iter().enumerate() {
        let id = SegmentId { uuid: STORE, first_lsn: *first_lsn };
        let mut from = SEGMENT_HEADER_BYTES;
        while let Ok(frame) = decode_frame(&id, &bytes[from..], from as u64) {
            let to = from + usize::try_from(frame.frame_bytes()).expect("fits");
            frames.push(Placed { file, from, to, fields: *frame.fields() });
            from = to;
        }
        let is_last = file + 1 == segments.len();
        assert_eq!(frames.last().map(|frame| frame.fields.kind == FrameKind::Seal), Some(!is_last));
    }
    frames
}
