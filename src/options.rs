//! How a store is opened. Owns defaults; knows nothing of what the numbers are used for below.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits;

/// Settings of one store. All have defaults that suit a broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Whether a store may, must or must not be made anew. Default: [`Create::IfMissing`].
    pub create: Create,
    /// When answers are given. Default: [`SyncPolicy::Always`].
    pub sync: SyncPolicy,
    /// Size of a log segment of a **new** store, in bytes; an existing store keeps its own.
    /// Default: 64 MiB.
    pub segment_bytes: u64,
    /// Bound of all commands that wait or are not answered yet, in bytes. Default: 16 MiB.
    pub queue_bytes: usize,
    /// Hard bound of changed rows in memory, in bytes. Half of it triggers a checkpoint; at all of
    /// it writers wait. Default: 256 MiB.
    pub memory_bytes: usize,
    /// Bound of cached unchanged rows, in bytes. Default: 64 MiB.
    pub cache_bytes: usize,
    /// Bound of RocksDB's block cache, in bytes. Default: 32 MiB.
    pub block_cache_bytes: usize,
    /// A checkpoint is taken after this many bytes of log. Default: half a segment.
    pub checkpoint_log_bytes: Option<u64>,
    /// A checkpoint is taken when changes are this old. Default: 5 minutes.
    pub checkpoint_interval: Duration,
    /// How long an idle producer is remembered (Kafka's `producer.id.expiration.ms`). Default: 1
    /// day.
    pub producer_id_expiration: Duration,
    /// How often expired producers are looked for. Default: 10 minutes.
    pub producer_expiry_interval: Duration,
    /// Disk space kept back, given up when the disk is full so that the store can still be opened.
    /// Default: 4 MiB.
    pub reserve_bytes: u64,
    /// Whether the next log segment is made by a thread ahead of need, or by the writer at rollover
    /// (deterministic, for simulation). Default: true.
    pub background_segments: bool,
    /// How long the store is idle before a small synced frame vouches for its last one, so that rot
    /// in it is not mistaken for a torn tail. Default: 20 ms; [`Duration::MAX`] leaves it to
    /// [`close`](crate::ShareStore::close) (deterministic, for simulation).
    pub mark_delay: Duration,
    /// Source of the wall-clock times that entries carry. Nothing is ever ordered by it.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: Create::IfMissing,
            sync: SyncPolicy::Always,
            segment_bytes: limits::SEGMENT_BYTES_DEFAULT,
            queue_bytes: 16 << 20,
            memory_bytes: 256 << 20,
            cache_bytes: 64 << 20,
            block_cache_bytes: 32 << 20,
            checkpoint_log_bytes: None,
            checkpoint_interval: Duration::from_secs(300),
            producer_id_expiration: Duration::from_secs(86_400),
            producer_expiry_interval: Duration::from_secs(600),
            reserve_bytes: 4 << 20,
            background_segments: true,
            mark_delay: Duration::from_millis(20),
            clock: Arc::new(SystemClock),
        }
    }
}

/// Whether opening may make a new store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Open an existing store; make one in an empty or missing directory.
    IfMissing,
    /// Open an existing store or fail.
    Never,
    /// Make a new store or fail.
    New,
}

/// When an answer is given, and with it what a crash may take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After fdatasync: no crash takes an answered change back.
    Always,
    /// After the write to the file; synced at least this often. A power cut may take back what was
    /// answered since the last sync; a killed process takes back nothing.
    Every(Duration),
    /// After the write to the file; synced at checkpoints, rollovers and close only.
    Never,
}

/// A wall clock.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the one place that reads it
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
