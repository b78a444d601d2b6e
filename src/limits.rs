//! Every bound of the store, in one place. Owns numbers only; knows nothing of how they are
//! enforced.
//!
//! A request that would pass a bound is refused with a typed error before anything is logged; the
//! encoders assert what the decoders reject.

/// Largest number of state batches in one `write`, and of ranges in one `stage` (semantics sections
/// 2 and 4.3).
pub const BATCHES_PER_CALL_MAX: usize = 65_536;

/// Longest group, member or transactional id, in bytes (Kafka's `STRING` length is an `i16`).
pub const ID_BYTES_MAX: usize = 32_767;

/// What one share partition may hold: stored batches plus twice its pending ranges.
///
/// Resolving a pending range takes two from this weight and adds at most two batches (the painted
/// range and the split of a batch around it), so a transaction marker can never push a row over the
/// bound and is never refused for size.
pub const ROW_WEIGHT_MAX: usize = 131_072;

/// Bytes of transactional and member ids that the pending acks of one share partition may carry:
/// what keeps a row that thousands of calls with long ids staged on within what can be written at
/// once.
pub const ROW_CALL_BYTES_MAX: usize = 8 << 20;

/// Share partitions in which one producer epoch may hold pending acks.
pub const KEYS_PER_PRODUCER_MAX: usize = 65_536;

/// Producer ids named by one expiry entry.
pub const EXPIRED_PER_ENTRY_MAX: usize = 4_096;

/// Largest encoded entry, header included, in bytes. A segment smaller than this lowers the bound
/// for its store.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;

/// Largest frame, header included, in bytes.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Smallest and largest size of a log segment, in bytes.
pub const SEGMENT_BYTES_MIN: u64 = 4 << 10;
/// See [`SEGMENT_BYTES_MIN`].
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Size of a log segment unless the options say otherwise, in bytes.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
