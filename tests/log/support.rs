//! What the tests of the log share: a small log of known content.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{
    Batch, LogError, LogIdentity, LogOptions, LogWriter, Lsn, Prepare, ScanError, ScannedLog,
    Scope, TailReport, TailVerdict, TornTail, create, scan, segment_file_name,
};
use uuid::Uuid;

pub const SEGMENT_BYTES: u64 = 4096;

pub fn store() -> Uuid {
    Uuid::from_u128(0x5e55_1011_0000_4000_8000_0000_0000_0001)
}

pub fn dir() -> PathBuf {
    PathBuf::from("/wal")
}

pub fn quarantine() -> PathBuf {
    PathBuf::from("/quarantine")
}

pub fn identity(incarnation: u64) -> LogIdentity {
    LogIdentity { uuid: store(), incarnation }
}

pub fn options(relaxed: bool) -> LogOptions {
    LogOptions { segment_bytes: SEGMENT_BYTES, relaxed, prepare: Prepare::Inline }
}

/// The body of the entry with this LSN: its length and bytes follow from the LSN alone.
pub fn body(lsn: Lsn) -> Vec<u8> {
    let length = (lsn.wrapping_mul(37) % 190) as usize;
    (0..length)
        .map(|index| (lsn.wrapping_mul(31) as usize).wrapping_add(index * 7 + 1) as u8)
        .collect()
}

pub fn kind(lsn: Lsn) -> u16 {
    (lsn % 5 + 1) as u16
}

#[cfg(feature = "testing")]
pub fn shared(sim: &sharestate::fsio::sim::SimFs) -> Arc<dyn Fs> {
    Arc::new(sim.clone())
}

/// A batch of the next `entries` entries.
pub fn batch(first_lsn: Lsn, entries: u64) -> Batch {
    let mut batch = Batch::new(first_lsn);
    for lsn in first_lsn..first_lsn + entries {
        assert_eq!(batch.push(kind(lsn), 1, &body(lsn)), lsn);
    }
    batch
}

pub fn append(log: &mut LogWriter, entries: u64) -> Result<(), LogError> {
    log.append(&batch(log.next_lsn(), entries))
}

pub fn append_synced(log: &mut LogWriter, entries: u64) -> Result<(), LogError> {
    append(log, entries)?;
    log.sync().map(drop)
}

pub fn new_log(fs: &Arc<dyn Fs>, relaxed: bool) -> LogWriter {
    create(fs.clone(), &dir(), identity(1), options(relaxed)).expect("a new log")
}

/// Scans, checks the content of every entry delivered, and tells their LSNs.
pub fn read_in(
    fs: &Arc<dyn Fs>,
    dir: &Path,
    applied: Lsn,
    scope: Scope,
) -> Result<(Vec<Lsn>, ScannedLog), LogError> {
    let mut lsns = Vec::new();
    let scanned = scan(fs.clone(), dir, store(), applied, scope, &mut |entry| {
        assert_eq!(entry.body, body(entry.lsn), "body of LSN {}", entry.lsn);
        assert_eq!(entry.kind, kind(entry.lsn), "kind of LSN {}", entry.lsn);
        assert_eq!((entry.version, entry.flags), (1, 0), "header of LSN {}", entry.lsn);
        lsns.push(entry.lsn);
        Ok::<(), std::convert::Infallible>(())
    });
    match scanned {
        Ok(scanned) => {
            if let (Some(first), Some(last)) = (lsns.first(), lsns.last()) {
                assert_eq!(last - first + 1, lsns.len() as u64, "dense");
                assert_eq!(*last, scanned.report().last_lsn);
            }
            Ok((lsns, scanned))
        }
        Err(ScanError::Log(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

pub fn read(
    fs: &Arc<dyn Fs>,
    applied: Lsn,
    scope: Scope,
) -> Result<(Vec<Lsn>, ScannedLog), LogError> {
    read_in(fs, &dir(), applied, scope)
}

/// Scans everything and repairs.
pub fn reopen(fs: &Arc<dyn Fs>, incarnation: u64, relaxed: bool) -> Result<LogWriter, LogError> {
    let (_, scanned) = read(fs, 0, Scope::Tail)?;
    Ok(scanned.repair(&quarantine(), incarnation, options(relaxed))?.0)
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

/// The durable mark of the frame at this offset.
pub fn durable_mark(bytes: &[u8], at: usize) -> Lsn {
    Lsn::from_le_bytes(bytes[at + 32..at + 40].try_into().expect("8 bytes"))
}

/// Gives a changed frame of the store's segment `first_lsn` the checksums a writer would have given
/// it.
pub fn reseal(bytes: &mut [u8], first_lsn: Lsn, at: usize) {
    let payload = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().expect("4 bytes")) as usize;
    let mut seed = crc32fast::Hasher::new();
    seed.update(store().as_bytes());
    seed.update(&first_lsn.to_le_bytes());
    seed.update(&(at as u64).to_le_bytes());
    let mut hasher = seed.clone();
    hasher.update(&bytes[at + 8..at + 48]);
    let end = at.saturating_add(56).saturating_add(payload).min(bytes.len());
    hasher.update(&bytes[at + 56..end]);
    bytes[at + 48..at + 52].copy_from_slice(&hasher.finalize().to_le_bytes());
    seed.update(&bytes[at + 8..at + 56]);
    bytes[at + 4..at + 8].copy_from_slice(&seed.finalize().to_le_bytes());
}

/// A simulated disk with a new log.
pub fn start(relaxed: bool) -> (SimFs, Arc<dyn Fs>, LogWriter) {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let log = new_log(&fs, relaxed);
    (sim, fs, log)
}

pub fn segment(first_lsn: Lsn) -> PathBuf {
    dir().join(segment_file_name(first_lsn))
}

pub fn torn(report: &TailReport) -> &TornTail {
    match &report.verdict {
        TailVerdict::Torn(torn) => torn,
        other => panic!("not torn: {other:?}"),
    }
}

#[track_caller]
pub fn assert_corrupt(fs: &Arc<dyn Fs>, row: &str) {
    match read(fs, 0, Scope::Tail) {
        Err(LogError::Corrupt { row: found, .. }) => assert_eq!(found, row),
        Err(other) => panic!("{row}: {other}"),
        Ok((lsns, scanned)) => panic!("delivered {lsns:?}, {:?}", scanned.report().verdict),
    }
}
