//! A store on a simulated disk, laid out frame by frame by the log's own writer, and what opening it
//! answers after damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::engine::directory::Identity;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{
    Batch, Entry, LogIdentity, LogOptions, LogWriter, Lsn, Prepare, ScanError, Scope, TailVerdict,
    TornTail, create, scan, segment_file_name,
};
use sharestate::snapshot::{MemoryRows, Snapshot};
use sharestate::{ErrorClass, OpenError, ShareStore};
use uuid::Uuid;

use crate::history::{HISTORY, options, state_of};

pub const SEGMENT_BYTES: usize = 16 << 10;
/// Frames of one write each that fill a segment.
pub const FULL: u64 = 65;

/// How the last segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a mark, which vouches for the last data frame.
    Marked,
    /// With a data frame that nothing vouches for.
    Bare,
}

/// A store at rest.
#[derive(Debug, Clone)]
pub struct Image {
    pub root: PathBuf,
    /// Its files.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Its snapshot.
    pub rows: MemoryRows,
    /// LSN of the snapshot.
    pub applied: Lsn,
    /// Last LSN of the log.
    pub last_lsn: Lsn,
    /// The segments by first LSN, oldest first.
    pub segments: Vec<Lsn>,
}

/// What opening answered. What it found has been compared with the history.
#[derive(Debug)]
pub enum Opened {
    /// A typed error; nothing was changed.
    Refused(OpenError),
    /// The state behind this LSN.
    Whole(Lsn),
    /// The state behind this LSN; an unfinished end was cut, and its bytes are kept.
    Torn(Lsn, TornTail),
}

impl Opened {
    /// What two ways to read the same bytes must agree upon.
    pub fn gist(&self) -> (&'static str, String) {
        match self {
            Self::Refused(error) => ("refused", error.to_string()),
            Self::Whole(lsn) => ("whole", lsn.to_string()),
            Self::Torn(lsn, torn) => ("torn", format!("{lsn} {torn:?}")),
        }
    }
}

impl Image {
    /// `sealed` full segments behind the mixed beginning, which the snapshot holds, and a last one
    /// with 64 frames. The snapshot goes up to the first of them, so all of them are replayed.
    pub fn new(sealed: u64, end: End) -> Self {
        Self::of_store(HISTORY.uuid, sealed, end)
    }

    /// As [`new`](Self::new), for another store; its snapshot is not.
    pub fn of_store(uuid: Uuid, sealed: u64, end: End) -> Self {
        let begun = HISTORY.begun;
        // The beginning is in a segment of its own, filled up with writes, and purged.
        let mut disk = Laid::new(uuid, false);
        disk.log_up_to(begun);
        while disk.log.segments().list().len() < 2 {
            disk.log_up_to(disk.log.next_lsn());
        }
        let first = disk.log.written_lsn();
        disk.log_up_to(first - 1 + FULL * sealed + 64);
        if end == End::Marked {
            disk.log.mark().expect("marked");
        }
        let mut image = disk.image();
        image.applied = first - 1;
        image.rows = rows_at(first - 1);
        let purged = image.segments.remove(0);
        image.files.remove(&image.segment(purged));
        assert_eq!(image.segments.len() as u64, sealed + 1);
        image
    }

    /// The same log with the snapshot as of another LSN.
    pub fn applied_at(&self, applied: Lsn) -> Self {
        Self { applied, rows: rows_at(applied), ..self.clone() }
    }

    /// A log written without waiting for syncs: every frame is relaxed, none vouches for another.
    pub fn relaxed(frames: u64) -> Self {
        let mut disk = Laid::new(HISTORY.uuid, true);
        disk.log_up_to(frames);
        let mut image = disk.image();
        image.rows = rows_at(0);
        image
    }

    pub fn segment(&self, first_lsn: Lsn) -> PathBuf {
        self.root.join("wal").join(segment_file_name(first_lsn))
    }

    pub fn last_segment(&self) -> PathBuf {
        self.segment(*self.segments.last().expect("a segment"))
    }

    pub fn bytes(&self, path: &Path) -> &[u8] {
        &self.files[path]
    }

    /// A disk with these files.
    pub fn disk(&self) -> SimFs {
        let sim = SimFs::new(0);
        for dir in ["", "wal", "quarantine"] {
            sim.create_dir(&self.root.join(dir)).expect("a directory");
        }
        for (path, bytes) in &self.files {
            sim.set_content(path, bytes);
        }
        sim.restart()
    }

    /// Opens a disk, which it uses up, and compares what it finds with the history.
    #[track_caller]
    pub fn open(&self, disk: &SimFs, what: &dyn Fn() -> String) -> Opened {
        let calls = disk.calls();
        let rows = self.rows.fork();
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let store = match ShareStore::open_with(fs, &rows, &self.root, &options()) {
            Ok(store) => store,
            Err(error) => {
                self.assert_typed(&error, what);
                let calls = usize::try_from(calls).expect("few");
                let changed = disk.trace().into_iter().skip(calls).find(|call| call.mutates());
                assert_eq!(changed, None, "{}: refused, yet changed", what());
                return Opened::Refused(error);
            }
        };
        let report = store.recovery();
        let lsn = report.last_lsn;
        let expected = HISTORY.states.get(usize::try_from(lsn).expect("small"));
        assert_eq!(Some(&state_of(&store)), expected, "{}: not the state of {lsn}", what());
        match &report.tail.as_ref().expect("a log was read").verdict {
            TailVerdict::Torn(torn) => {
                let repair = report.repair.as_ref().expect("a repair");
                let kept = repair.evidence.as_ref().map(|path| disk.content(path).expect("kept"));
                let kept = kept.map_or(0, |bytes| bytes.len() as u64);
                assert_eq!(kept, torn.bytes, "{}: the cut bytes are kept", what());
                Opened::Torn(lsn, torn.clone())
            }
            _ => Opened::Whole(lsn),
        }
    }

    /// Opens the image with one file replaced.
    #[track_caller]
    pub fn open_with(&self, path: &Path, bytes: &[u8], what: &dyn Fn() -> String) -> Opened {
        let disk = self.disk();
        disk.set_content(path, bytes);
        self.open(&disk, what)
    }

    /// What the log alone answers: the scan that opening a store begins with, on a disk that holds
    /// the image. Much cheaper, as no entry is decoded and applied.
    #[track_caller]
    pub fn scan(&self, disk: &SimFs, what: &dyn Fn() -> String) -> Opened {
        let mut last = self.applied;
        let mut visit = |entry: Entry<'_>| {
            last += 1;
            let logged = &HISTORY.entries[usize::try_from(last - 1).expect("small")];
            let same = (entry.lsn, entry.kind, entry.version, entry.body)
                == (last, logged.kind, logged.version, &*logged.body);
            if same { Ok(()) } else { Err(entry.lsn) }
        };
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let wal = self.root.join("wal");
        match scan(fs, &wal, HISTORY.uuid, self.applied, Scope::Tail, &mut visit) {
            Err(ScanError::Log(error)) => {
                let error = error.into();
                self.assert_typed(&error, what);
                Opened::Refused(error)
            }
            Err(error) => panic!("{}: an entry that was never written: {error}", what()),
            Ok(scanned) => {
                let report = scanned.report();
                assert_eq!(report.last_lsn, last, "{}", what());
                match &report.verdict {
                    TailVerdict::Torn(torn) => Opened::Torn(last, torn.clone()),
                    _ => Opened::Whole(last),
                }
            }
        }
    }

    /// An error that a caller can act upon: of a class, and with the place in it.
    fn assert_typed(&self, error: &OpenError, what: &dyn Fn() -> String) {
        let class = error.class();
        let known = matches!(class, ErrorClass::Corrupt | ErrorClass::Rejected);
        assert!(known, "{}: {class:?}: {error}", what());
        let text = error.to_string();
        let root = self.root.display().to_string();
        // Rows in memory have no path.
        let placed = text.contains(&root) || text.contains("(memory)");
        assert!(placed, "{}: no path in: {text}", what());
    }
}

/// A log being laid out.
struct Laid {
    sim: SimFs,
    root: PathBuf,
    log: LogWriter,
    relaxed: bool,
}

impl Laid {
    fn new(uuid: Uuid, relaxed: bool) -> Self {
        let root = PathBuf::from("/store");
        let sim = SimFs::new(0);
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        for dir in ["", "wal"] {
            fs.create_dir(&root.join(dir)).expect("a directory");
        }
        let identity = LogIdentity { uuid, incarnation: 1 };
        let log_options =
            LogOptions { segment_bytes: SEGMENT_BYTES as u64, relaxed, prepare: Prepare::Inline };
        let log = create(fs, &root.join("wal"), identity, log_options).expect("a log");
        Self { sim, root, log, relaxed }
    }

    /// Logs the history up to an LSN, one frame an entry.
    fn log_up_to(&mut self, lsn: Lsn) {
        while self.log.written_lsn() < lsn {
            let next = self.log.next_lsn();
            let entry = &HISTORY.entries[usize::try_from(next - 1).expect("small")];
            let mut batch = Batch::new(next);
            batch.push(entry.kind, entry.version, &entry.body);
            self.log.append(&batch).expect("written");
            if !self.relaxed {
                self.log.sync().expect("synced");
            }
        }
    }

    fn image(self) -> Image {
        let Self { sim, root, log, .. } = self;
        let identity =
            Identity { uuid: HISTORY.uuid, incarnation: 1, segment_bytes: SEGMENT_BYTES as u64 };
        let mut files = BTreeMap::new();
        files.insert(root.join("LOCK"), Vec::new());
        files.insert(root.join("STORE"), identity.encode().to_vec());
        let listed = log.segments().list();
        for segment in &listed {
            let bytes = sim.content(&segment.path).expect("a segment");
            files.insert(segment.path.clone(), bytes);
        }
        Image {
            root,
            files,
            rows: MemoryRows::default(),
            applied: 0,
            last_lsn: log.written_lsn(),
            segments: listed.iter().map(|segment| segment.first_lsn).collect(),
        }
    }
}

/// The rows of a snapshot as of an LSN: a store that holds no more, with a checkpoint.
pub fn rows_at(lsn: Lsn) -> MemoryRows {
    let rows = MemoryRows::default();
    Snapshot::create(Box::new(rows.clone()), HISTORY.uuid).expect("new rows");
    if lsn == 0 {
        return rows;
    }
    let mut laid = Laid::new(HISTORY.uuid, false);
    laid.log_up_to(lsn);
    let image = laid.image();
    let fs: Arc<dyn Fs> = Arc::new(image.disk());
    let store = ShareStore::open_with(fs, &rows, &image.root, &options()).expect("open");
    assert_eq!(store.blocking().checkpoint().expect("checkpoint"), lsn);
    drop(store);
    rows
}

/// Start and end of every frame of a segment, by its lengths alone.
pub fn frames(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 64;
    while bytes.len() >= at + 56 && bytes[at..].starts_with(b"SFRM") {
        let payload = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().expect("4 bytes"));
        let end = (at + 56 + payload as usize).next_multiple_of(8);
        found.push((at, end));
        at = end;
    }
    found
}

/// A field of the frame at this offset: its first LSN is at 16, its durable mark at 32.
pub fn field(bytes: &[u8], at: usize, field: usize) -> u64 {
    u64::from_le_bytes(bytes[at + field..at + field + 8].try_into().expect("8 bytes"))
}
