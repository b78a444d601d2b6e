//! Stores in real directories, with RocksDB: what they hold, and what opening and `verify` answer
//! after damage.

use std::fs;
use std::path::{Path, PathBuf};

use sharestate::inspect::{Verdict, VerifyReport, verify};
use sharestate::log::Lsn;
use sharestate::{
    AckRange, AckType, DeliveryState, ErrorClass, OpenError, Options, ShareStore, Stage,
    StateBatch, StoreError, Write,
};
use tempfile::TempDir;

use crate::effort::Random;
use crate::history::{self, key};
use crate::support::{copy_dir, crash_image, tree};

/// A directory for many short-lived copies: in memory where the machine offers that.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}

/// A store at rest, as a kill leaves it, and what it holds.
pub struct Kept {
    _dir: TempDir,
    pub image: PathBuf,
    pub state: Vec<String>,
    pub last_lsn: Lsn,
    pub options: Options,
}

/// Partitions of [`Kept`].
const PARTITIONS: i32 = 160;

fn write(random: &mut Random) -> Write {
    let mut offset = 1_000;
    let mut batch = || {
        offset += 1 + i64::try_from(random.below(1 << 20)).expect("small");
        StateBatch {
            first_offset: offset,
            last_offset: offset,
            delivery_state: DeliveryState::AVAILABLE,
            delivery_count: i16::try_from(random.below(30_000)).expect("small"),
        }
    };
    Write {
        state_epoch: 1,
        leader_epoch: 0,
        start_offset: -1,
        delivery_complete_count: 0,
        batches: (0..8).map(|_| batch()).collect(),
    }
}

fn stage(producer_id: i64, partition: i32) -> Stage {
    Stage {
        key: key(partition),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id,
        producer_epoch: 0,
        two_phase: false,
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

impl Kept {
    /// Tables from earlier openings, two checkpoints in RocksDB's own log, and a log that goes on
    /// behind the second. It begins at the first of the two, or `whole`, with the store.
    pub fn new(whole: bool) -> Self {
        let dir = scratch();
        let live = dir.path().join("live");
        let mut options = history::options();
        options.segment_bytes = if whole { 512 << 10 } else { 8 << 10 };
        let mut random = Random(19);
        for opening in 0..3_i64 {
            let store = ShareStore::open(&live, &options).expect("open").blocking();
            for partition in 0..PARTITIONS {
                if opening == 0 {
                    store.initialize(&key(partition), 1, 0).expect("initialize");
                }
                if i64::from(partition) % 3 == opening || opening == 2 {
                    store.write(&key(partition), write(&mut random)).expect("write");
                }
            }
            for n in 0..6 {
                let producer = opening * 10 + n;
                let partition = i32::try_from(producer).expect("small");
                store.stage(stage(producer, partition)).expect("stage");
            }
            store.checkpoint().expect("checkpoint");
        }
        let store = ShareStore::open(&live, &options).expect("open");
        let blocking = store.blocking();
        for round in 0..3 {
            for partition in 0..PARTITIONS / 2 {
                blocking.write(&key(partition), write(&mut random)).expect("write");
            }
            if round < 2 {
                blocking.checkpoint().expect("checkpoint");
            }
        }
        let (state, last_lsn) = (history::state_of(&store), store.progress().durable_lsn);
        let image = dir.path().join("image");
        crash_image(&live, &image);
        drop((blocking, store));
        fs::remove_dir_all(&live).expect("remove");
        for (path, _) in tree(&image) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if name == "LOG" || name.starts_with("LOG.old") {
                fs::remove_file(&path).expect("remove"); // what RocksDB tells of itself
            }
        }
        Self { _dir: dir, image, state, last_lsn, options }
    }

    /// The store of format version 1 that is kept for ever.
    pub fn golden() -> Self {
        let dir = scratch();
        let image = dir.path().join("image");
        copy_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1"), &image);
        fs::remove_file(image.join("rows.txt")).expect("remove");
        let mut options = history::options();
        options.segment_bytes = 4 << 10;
        let opened = dir.path().join("opened");
        copy_dir(&image, &opened);
        let store = ShareStore::open(&opened, &options).expect("opens");
        let (state, last_lsn) = (history::state_of(&store), store.recovery().last_lsn);
        drop(store);
        Self { _dir: dir, image, state, last_lsn, options }
    }

    /// A copy to damage.
    pub fn copy(&self, to: &Path) {
        if to.exists() {
            fs::remove_dir_all(to).expect("remove");
        }
        copy_dir(&self.image, to);
    }

    /// Opens a copy and reads everything.
    #[track_caller]
    pub fn open(&self, path: &Path, what: &dyn Fn() -> String) -> Answer {
        let store = match ShareStore::open(path, &self.options) {
            Ok(store) => store,
            Err(error) => return Answer::Refused(error),
        };
        match try_state_of(&store) {
            Ok(state) => {
                let report = store.recovery();
                let torn = report.repair.as_ref().is_some_and(|repair| repair.cut.is_some());
                // How much a lost end of the log may take away is the affair of the tests of the log.
                let shorter = report.last_lsn < self.last_lsn;
                assert!(shorter || state == self.state, "{}: another content", what());
                let healed = report.snapshot_damage.is_some();
                Answer::Whole { torn, healed, shorter }
            }
            Err(error) => Answer::Unreadable(error),
        }
    }
}

/// What opening a damaged copy, and reading all of it, answered.
#[derive(Debug)]
pub enum Answer {
    /// It did not open.
    Refused(OpenError),
    /// It opened, and some of its rows could not be read.
    Unreadable(StoreError),
    /// It holds what it held.
    Whole {
        /// An unfinished end of the log was cut.
        torn: bool,
        /// An older state of the snapshot was opened, and the log replayed over it.
        healed: bool,
        /// The log has lost entries at its end.
        shorter: bool,
    },
}

impl Answer {
    /// A refusal is typed and names a place.
    #[track_caller]
    pub fn assert_typed(&self, root: &Path, what: &dyn Fn() -> String) {
        let (class, text) = match self {
            Self::Refused(error) => (error.class(), error.to_string()),
            Self::Unreadable(error) => (error.class(), error.to_string()),
            Self::Whole { .. } => return,
        };
        assert_eq!(class, ErrorClass::Corrupt, "{}: {text}", what());
        assert!(text.contains(&root.display().to_string()), "{}: no path: {text}", what());
    }

    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Whole { shorter: false, .. })
    }
}

fn try_state_of(store: &ShareStore) -> Result<Vec<String>, StoreError> {
    let blocking = store.blocking();
    let page = blocking.list(None, None, 1_000)?;
    let mut state: Vec<_> = page.partitions.iter().map(|(k, row)| format!("{k} {row:?}")).collect();
    let (producers, _) = blocking.producers(None, 1_000)?;
    state.extend(producers.iter().map(|(id, row)| format!("{id} {row:?}")));
    Ok(state)
}

/// What `verify` says of a directory.
pub fn verified(path: &Path) -> Result<VerifyReport, OpenError> {
    verify(path, &mut |_| {})
}

/// `verify` and opening must not disagree: what cannot be opened or read is found, with its file;
/// what is called clean or torn opens with the true content. (Damage in what an opening does not
/// need is found although the store opens.)
#[track_caller]
pub fn assert_agree(
    path: &Path,
    answer: &Answer,
    said: &Result<VerifyReport, OpenError>,
    what: &dyn Fn() -> String,
) {
    let said = match said {
        Ok(said) => said,
        Err(error) => panic!("{}: verify could not run: {error}", what()),
    };
    match &said.verdict {
        Verdict::Damage => {
            assert!(!said.findings.is_empty(), "{}: damage without a finding", what());
            for finding in &said.findings {
                assert!(finding.file.starts_with(path), "{}: {finding}", what());
            }
        }
        Verdict::Clean => {
            assert!(matches!(answer, Answer::Whole { torn: false, .. }), "{}: {answer:?}", what());
        }
        Verdict::Torn(_) => {
            assert!(matches!(answer, Answer::Whole { torn: true, .. }), "{}: {answer:?}", what());
        }
    }
}
