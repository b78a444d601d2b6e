//! What crosses the boundary by value or by pointer. Every struct is plain data; every choice is a
//! number that is checked, since a C caller can put anything there.

use std::ffi::{c_char, c_void};

/// An open store. 0 is never one.
pub type Store = u64;
/// What a call answered; owned by who received it, freed with `sharestate_answer_free`. 0 is never
/// one.
pub type Answer = u64;
/// Why a call failed; owned by who received it, freed with `sharestate_error_free`. 0 is never one.
pub type Error = u64;
/// A call whose callback is outstanding. Not owned: it becomes stale by itself when the callback
/// has run. 0 is never one.
pub type Call = u64;
/// How a call ended: `SHARESTATE_OK` or what kind of error it was.
pub type Status = i32;

/// Success.
pub const SHARESTATE_OK: i32 = 0;
/// The request is at fault; repeating it gives the same answer.
pub const SHARESTATE_REJECTED: i32 = 1;
/// Nothing is wrong with request or data; a later try may succeed. Also: the store was closed while
/// the call waited.
pub const SHARESTATE_RETRIABLE: i32 = 2;
/// A write or sync failed: only closing and opening the store decides what survived.
pub const SHARESTATE_POISONED: i32 = 3;
/// Bytes on disk are not what was written.
pub const SHARESTATE_CORRUPT: i32 = 4;
/// A system call failed.
pub const SHARESTATE_IO: i32 = 5;
/// The handle is none: never was, or is closed or freed already.
pub const SHARESTATE_INVALID_HANDLE: i32 = 6;
/// A null pointer, text that is not UTF-8, a size or number that means nothing.
pub const SHARESTATE_INVALID_ARGUMENT: i32 = 7;
/// Too late to cancel: the callback runs, or has run.
pub const SHARESTATE_TOO_LATE: i32 = 8;
/// A defect of sharestate itself: a panic was caught. The store may be closed; nothing else is
/// promised of it.
pub const SHARESTATE_INTERNAL: i32 = 9;

/// What `sharestate_error_kafka_code` answers where Kafka has no code, or the handle is none.
pub const SHARESTATE_NO_KAFKA_CODE: i16 = -32_768;

/// UTF-8 text that need not end in a zero byte. `data` may be null when `length` is 0. What the
/// library passes out may hold zero bytes and does not end in one.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text {
    /// First byte.
    pub data: *const c_char,
    /// Bytes.
    pub length: usize,
}

/// A share partition.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Key {
    /// Share group, 1 to 32,767 bytes.
    pub group_id: Text,
    /// Topic id: the 16 bytes of a UUID in network order, not all zero.
    pub topic_id: [u8; 16],
    /// Partition index, not negative.
    pub partition: i32,
}

/// A run of offsets in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Batch {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// How often the records were acquired.
    pub delivery_count: i16,
    /// 0 available, 2 acknowledged, 3 archiving, 4 archived.
    pub delivery_state: i8,
}

/// A run of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
}

/// How a store is opened. Fill it with `sharestate_options_init`, then change what is to be
/// different.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StoreOptions {
    /// `sizeof` this struct as the program was compiled; set by `sharestate_options_init`.
    pub size: usize,
    /// 0: make a store where none is; 1: open an existing one or fail; 2: make one or fail.
    pub create: u32,
    /// When answers are given. 0: after fdatasync, no crash takes them back; 1: after the write,
    /// synced every `sync_every_ms`; 2: after the write.
    pub sync: u32,
    /// For `sync` 1, in ms.
    pub sync_every_ms: u64,
    /// Size of a log segment of a new store.
    pub segment_bytes: u64,
    /// Bound of all calls that wait or are not answered yet, in bytes.
    pub queue_bytes: u64,
    /// Hard bound of changed rows in memory, in bytes.
    pub memory_bytes: u64,
    /// Bound of cached unchanged rows, in bytes.
    pub cache_bytes: u64,
    /// Bound of RocksDB's block cache, in bytes.
    pub block_cache_bytes: u64,
    /// A checkpoint is taken after this many bytes of log; 0 = half a segment.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint is taken when changes are this old, in ms.
    pub checkpoint_interval_ms: u64,
    /// How long an idle producer is remembered, in ms.
    pub producer_id_expiration_ms: u64,
    /// Disk space kept back for opening on a full disk, in bytes.
    pub reserve_bytes: u64,
}

/// What opening found and did.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Recovery {
    /// Last entry of the log.
    pub last_lsn: u64,
    /// Last entry that was in the snapshot.
    pub snapshot_lsn: u64,
    /// Entries replayed on top of it.
    pub replayed: u64,
    /// Which opening for writing this is.
    pub incarnation: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
    /// 1: the store was made by this call.
    pub created: u8,
    /// 1: the log's tail was torn by a crash and was repaired.
    pub repaired: u8,
}

/// What is durable and what is in the snapshot.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Progress {
    /// Every entry up to this one survives any crash.
    pub durable_lsn: u64,
    /// Every entry up to this one is in the snapshot.
    pub applied_lsn: u64,
}

/// The arguments of a write.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Write {
    /// State epoch that the partition leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Start offset, -1 = leave it.
    pub start_offset: i64,
    /// Delivery-complete count (KIP-1226), -1 = unknown.
    pub delivery_complete_count: i32,
    /// Changed batches, in any order; may be null when there are none.
    pub batches: *const Batch,
    /// How many, at most 65,536.
    pub batch_count: usize,
}

/// One range of acks to stage.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Ack {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// Delivery count of the acquired records.
    pub delivery_count: i16,
    /// 0 gap, 1 accept, 3 reject.
    pub ack_type: i8,
    /// State after a commit: 2 for an accept, 3 or 4 for a reject, 4 for a gap.
    pub commit_target: i8,
    /// State after an abort: 0; 3 or 4 where the delivery limit is reached.
    pub abort_target: i8,
}

/// Acks to stage inside a producer's transaction.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stage {
    /// State epoch that the leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Transaction version; below 2 is refused.
    pub transaction_version: i8,
    /// 1: part of an external two-phase commit (KIP-939); 0 where the broker cannot tell.
    pub two_phase: u8,
    /// Epoch of the member.
    pub member_epoch: i32,
    /// Transactional id.
    pub transactional_id: Text,
    /// Share consumer.
    pub member_id: Text,
    /// What to stage.
    pub acks: *const Ack,
    /// How many, 1 to 65,536.
    pub ack_count: usize,
}

/// A transaction marker.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Marker {
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch; under transaction version 2 one above that of the acks.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
    /// 1 commit, 0 abort.
    pub commit: u8,
    /// Transaction version, 0 = not carried.
    pub transaction_version: i8,
}

/// A share partition's state, without batches and pending acks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Partition {
    /// State epoch; 0 when not initialised (summary only).
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Start offset, -1 = not known, or not initialised (summary only).
    pub start_offset: i64,
    /// Delivery-complete count, -1 = not known.
    pub delivery_complete_count: i32,
}

/// A range of staged acks. Texts are valid until the answer is freed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pending {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// Delivery count of the records when they were staged.
    pub delivery_count: i16,
    /// 0 gap, 1 accept, 3 reject.
    pub ack_type: i8,
    /// State after a commit.
    pub commit_target: i8,
    /// State after an abort.
    pub abort_target: i8,
    /// 1: part of an external two-phase commit.
    pub two_phase: u8,
    /// Producer epoch at stage.
    pub producer_epoch: i16,
    /// Producer id.
    pub producer_id: i64,
    /// When it was staged, in ms since the Unix epoch.
    pub stage_time_ms: i64,
    /// Transactional id.
    pub transactional_id: Text,
    /// Share consumer.
    pub member_id: Text,
}

/// Counts of all prepared acks.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PendingTotals {
    /// Producers with something pending.
    pub producers: u64,
    /// Open epochs that are orphaned.
    pub orphaned_epochs: u64,
    /// Share partitions with something pending, once per producer epoch.
    pub partitions: u64,
    /// Ranges.
    pub ranges: u64,
    /// Offsets.
    pub offsets: u64,
}

/// What is told of a call when it is over. Runs on the store's callback thread, under no lock,
/// after the calling function has returned or while it returns; exactly once unless the call is
/// cancelled. `status` is `SHARESTATE_OK` and `answer` a handle, or `status` is another and `error`
/// a handle; the other of the two is 0. The callback owns the handle and must free it. It must not
/// throw or `longjmp`, and should be short: while it runs the store's other callbacks wait.
pub type Callback = Option<
    unsafe extern "C" fn(user_data: *mut c_void, status: Status, answer: Answer, error: Error),
>;
