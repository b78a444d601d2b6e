//! Reading beside a running writer, with the operating system's files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::*;
use sharestate::fsio::{
    DirEntry, Fs, FsError, FsFile, LockError, LockGuard, Mapped, OpenMode, RealFs,
};
use sharestate::log::{LogError, LogOptions, LogWriter, Prepare, Scope, create, purge};

fn assert_send<T: Send + Sync>() {}

#[test]
fn a_scan_beside_a_writer_that_rolls_over_and_purges_never_calls_it_damaged() {
    assert_send::<LogWriter>();
    let temp = tempfile::tempdir().expect("a directory");
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let dir = temp.path().join("wal");
    let background = LogOptions { prepare: Prepare::Background, ..options(false) };
    let mut log = create(fs.clone(), &dir, identity(1), background).expect("a new log");
    let (done, floor) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut whole, mut overtaken) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..1500u64 {
                append_synced(&mut log, 1 + round % 6).expect("written");
                if round % 3 == 0 {
                    log.mark().expect("marked");
                }
                if round % 100 == 99 {
                    let synced = log.durable_lsn();
                    floor.store(synced, Ordering::SeqCst);
                    purge(&RealFs, &log.segments(), synced).expect("purged");
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            for scope in [Scope::Tail, Scope::All] {
                let applied = floor.load(Ordering::SeqCst);
                match read_in(&fs, &dir, applied, scope) {
                    Ok(_) => whole += 1,
                    Err(LogError::Overtaken { .. }) => overtaken += 1,
                    // The purge was faster than this reader's idea of the snapshot.
                    Err(LogError::Missing { before: None, .. })
                        if floor.load(Ordering::SeqCst) > applied =>
                    {
                        overtaken += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    });
    println!("{whole} scans, {overtaken} overtaken");
    assert!(whole > 0);
}

/// The operating system's files, of which the first read at each opening shows zeros in some place:
/// what a reader sees that was faster than the writer. Notes which files are mapped.
#[derive(Debug)]
struct Early {
    hidden: std::ops::Range<u64>,
    mapped: Mutex<Vec<PathBuf>>,
}

impl Early {
    fn new(hidden: std::ops::Range<u64>) -> Self {
        Self { hidden, mapped: Mutex::default() }
    }
}

#[derive(Debug)]
struct EarlyFile {
    file: Box<dyn FsFile>,
    hidden: std::ops::Range<u64>,
    reads: AtomicU64,
}

impl Fs for Early {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn FsFile>, FsError> {
        let file = RealFs.open(path, mode)?;
        Ok(Box::new(EarlyFile { file, hidden: self.hidden.clone(), reads: AtomicU64::new(0) }))
    }
    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        RealFs.create_dir(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, FsError> {
        RealFs.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool, FsError> {
        RealFs.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        RealFs.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<(), FsError> {
        RealFs.remove_file(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        RealFs.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        RealFs.lock(path)
    }
    fn map(&self, path: &Path) -> Result<Option<Mapped>, FsError> {
        self.mapped.lock().expect("no panic").push(path.to_owned());
        RealFs.map(path)
    }
}

impl FsFile for EarlyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
        let bytes = self.file.read_at(buf, offset)?;
        if self.reads.fetch_add(1, Ordering::SeqCst) == 0 {
            for (at, byte) in (offset..).zip(&mut buf[..bytes]) {
                if self.hidden.contains(&at) {
                    *byte = 0;
                }
            }
        }
        Ok(bytes)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, FsError> {
        self.file.write_at(buf, offset)
    }
    fn sync_data(&self) -> Result<(), FsError> {
        self.file.sync_data()
    }
    fn sync_all(&self) -> Result<(), FsError> {
        self.file.sync_all()
    }
    fn set_len(&self, len: u64) -> Result<(), FsError> {
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> Result<(), FsError> {
        self.file.allocate(len)
    }
    fn len(&self) -> Result<u64, FsError> {
        self.file.len()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

#[test]
fn a_hole_that_a_second_look_does_not_find_is_no_damage() {
    let temp = tempfile::tempdir().expect("a directory");
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    // Smaller and larger than what is read at once: the frames behind the hole are read with it, or
    // later.
    let hidden = [500..3000, 100_000..260_000, 255_000..262_144];
    for (segment_bytes, holes) in [(128 << 10, &hidden[..1]), (1 << 20, &hidden[..])] {
        let dir = temp.path().join(segment_bytes.to_string());
        let options = LogOptions { segment_bytes, ..options(false) };
        let mut log = create(fs.clone(), &dir, identity(1), options).expect("a new log");
        while log.log_bytes() < segment_bytes * 2 / 5 {
            append_synced(&mut log, 20).expect("written");
        }
        for hidden in holes {
            let early: Arc<dyn Fs> = Arc::new(Early::new(hidden.clone()));
            let (lsns, _) = read_in(&early, &dir, 0, Scope::Tail).expect("whole");
            assert_eq!(lsns.last(), Some(&log.written_lsn()), "{hidden:?}");
        }
    }
}

/// Rot below a map is a signal and not an error, and so is a file that another process cuts short.
#[test]
fn only_segments_that_nobody_writes_any_more_are_mapped_and_only_to_read_all() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("wal");
    let early = Arc::new(Early::new(0..0));
    let fs: Arc<dyn Fs> = Arc::clone(&early) as Arc<dyn Fs>;
    let mut log = create(fs.clone(), &dir, identity(1), options(false)).expect("a new log");
    while log.segments().list().len() < 4 {
        append_synced(&mut log, 3).expect("written");
    }
    // The last one holds a frame, so that the seal before it is synced.
    append_synced(&mut log, 3).expect("written");
    let mapped = |scope| {
        let (lsns, _) = read_in(&fs, &dir, 0, scope).expect("whole");
        assert_eq!(lsns.len() as u64, log.written_lsn());
        std::mem::take(&mut *early.mapped.lock().expect("no panic"))
    };
    let paths: Vec<_> = log.segments().list().into_iter().map(|segment| segment.path).collect();
    assert_eq!(mapped(Scope::All), paths[..3]);
    assert_eq!(mapped(Scope::Tail), [] as [PathBuf; 0]);
}
