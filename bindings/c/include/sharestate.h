// sharestate: the durable state of Kafka-style share groups. The C ABI.
//
// Made by tools/cbindgen.sh from bindings/c/src. Do not edit.
//
// THREADS. Every function may be called from any thread at any time, also with the same handle from
// several threads at once; only what an answer or error points to needs care: do not free it while
// another thread looks at it. A call without `_async` waits where it stands. Each store has one thread
// of its own that runs callbacks, one after the other and under no lock: a callback may call anything
// but sharestate_close of its own store, and should be short. After fork() the child must not use a
// store that its parent opened.
//
// OWNERSHIP. Handles are numbers that are never given out twice; 0 is never one. A call copies its
// arguments before it returns. Whoever receives an answer or an error, from a call or in a callback,
// owns it and frees it, once; freeing 0, a stale handle or one of another kind is
// SHARESTATE_INVALID_HANDLE and does nothing. What an answer or error points to lives until it is freed.
// `answer`, `call` and `error` may be null where they are not wanted; nothing needs freeing then. Else
// they are set, to 0 where there is nothing. (C evaluates arguments in any order: do not use `error` in
// the very call that contains the call which sets it.)
//
// ERRORS. A call answers SHARESTATE_OK or the class of its error. The error itself, if asked for, has
// Kafka's code and a text. No panic of the library leaves it: it is SHARESTATE_INTERNAL.
//
// CALLBACKS. A callback runs exactly once if its call answered SHARESTATE_OK, unless sharestate_cancel
// took it back, and never otherwise. sharestate_close returns only after the last one has returned.
// Leaving the process without closing loses nothing that was answered.
//
// VERSIONS. Check sharestate_abi_compatible(SHARESTATE_ABI_VERSION) first. A minor version only adds
// functions and constants. sharestate_options_t carries its size.


#ifndef SHARESTATE_H
#define SHARESTATE_H

#include <stddef.h>
#include <stdint.h>

// Version of this ABI: major version in the upper 16 bits, minor in the lower. A higher minor
// version only adds; a higher major version may change anything.
#define SHARESTATE_ABI_VERSION 65536

// Success.
#define SHARESTATE_OK 0

// The request is at fault; repeating it gives the same answer.
#define SHARESTATE_REJECTED 1

// Nothing is wrong with request or data; a later try may succeed. Also: the store was closed while
// the call waited.
#define SHARESTATE_RETRIABLE 2

// A write or sync failed: only closing and opening the store decides what survived.
#define SHARESTATE_POISONED 3

// Bytes on disk are not what was written.
#define SHARESTATE_CORRUPT 4

// A system call failed.
#define SHARESTATE_IO 5

// The handle is none: never was, or is closed or freed already.
#define SHARESTATE_INVALID_HANDLE 6

// A null pointer, text that is not UTF-8, a size or number that means nothing.
#define SHARESTATE_INVALID_ARGUMENT 7

// Too late to cancel: the callback runs, or has run.
#define SHARESTATE_TOO_LATE 8

// A defect of sharestate itself: a panic was caught. The store may be closed; nothing else is
// promised of it.
#define SHARESTATE_INTERNAL 9

// What `sharestate_error_kafka_code` answers where Kafka has no code, or the handle is none.
#define SHARESTATE_NO_KAFKA_CODE -32768

// How a call ended: `SHARESTATE_OK` or what kind of error it was.
typedef int32_t sharestate_status_t;

// What a call answered; owned by who received it, freed with `sharestate_answer_free`. 0 is never
// one.
typedef uint64_t sharestate_answer_t;

// A share partition's state, without batches and pending acks.
typedef struct {
    // State epoch; 0 when not initialised (summary only).
    int32_t state_epoch;
    // Leader epoch.
    int32_t leader_epoch;
    // Start offset, -1 = not known, or not initialised (summary only).
    int64_t start_offset;
    // Delivery-complete count, -1 = not known.
    int32_t delivery_complete_count;
} sharestate_partition_t;

// A run of offsets in one state.
typedef struct {
    // First offset, inclusive.
    int64_t first_offset;
    // Last offset, inclusive.
    int64_t last_offset;
    // How often the records were acquired.
    int16_t delivery_count;
    // 0 available, 2 acknowledged, 3 archiving, 4 archived.
    int8_t delivery_state;
} sharestate_batch_t;

// A run of offsets.
typedef struct {
    // First offset, inclusive.
    int64_t first_offset;
    // Last offset, inclusive.
    int64_t last_offset;
} sharestate_range_t;

// UTF-8 text that need not end in a zero byte. `data` may be null when `length` is 0. What the
// library passes out may hold zero bytes and does not end in one.
typedef struct {
    // First byte.
    const char *data;
    // Bytes.
    size_t length;
} sharestate_text_t;

// A range of staged acks. Texts are valid until the answer is freed.
typedef struct {
    // First offset, inclusive.
    int64_t first_offset;
    // Last offset, inclusive.
    int64_t last_offset;
    // Delivery count of the records when they were staged.
    int16_t delivery_count;
    // 0 gap, 1 accept, 3 reject.
    int8_t ack_type;
    // State after a commit.
    int8_t commit_target;
    // State after an abort.
    int8_t abort_target;
    // 1: part of an external two-phase commit.
    uint8_t two_phase;
    // Producer epoch at stage.
    int16_t producer_epoch;
    // Producer id.
    int64_t producer_id;
    // When it was staged, in ms since the Unix epoch.
    int64_t stage_time_ms;
    // Transactional id.
    sharestate_text_t transactional_id;
    // Share consumer.
    sharestate_text_t member_id;
} sharestate_pending_t;

// A share partition.
typedef struct {
    // Share group, 1 to 32,767 bytes.
    sharestate_text_t group_id;
    // Topic id: the 16 bytes of a UUID in network order, not all zero.
    uint8_t topic_id[16];
    // Partition index, not negative.
    int32_t partition;
} sharestate_key_t;

// Counts of all prepared acks.
typedef struct {
    // Producers with something pending.
    uint64_t producers;
    // Open epochs that are orphaned.
    uint64_t orphaned_epochs;
    // Share partitions with something pending, once per producer epoch.
    uint64_t partitions;
    // Ranges.
    uint64_t ranges;
    // Offsets.
    uint64_t offsets;
} sharestate_pending_totals_t;

// An open store. 0 is never one.
typedef uint64_t sharestate_store_t;

// Why a call failed; owned by who received it, freed with `sharestate_error_free`. 0 is never one.
typedef uint64_t sharestate_error_t;

// What is told of a call when it is over. Runs on the store's callback thread, under no lock,
// after the calling function has returned or while it returns; exactly once unless the call is
// cancelled. `status` is `SHARESTATE_OK` and `answer` a handle, or `status` is another and `error`
// a handle; the other of the two is 0. The callback owns the handle and must free it. It must not
// throw or `longjmp`, and should be short: while it runs the store's other callbacks wait.
typedef void (*sharestate_callback_t)(void *user_data,
                                      sharestate_status_t status,
                                      sharestate_answer_t answer,
                                      sharestate_error_t error);

// A call whose callback is outstanding. Not owned: it becomes stale by itself when the callback
// has run. 0 is never one.
typedef uint64_t sharestate_call_t;

// The arguments of a write.
typedef struct {
    // State epoch that the partition leader knows.
    int32_t state_epoch;
    // Leader epoch.
    int32_t leader_epoch;
    // Start offset, -1 = leave it.
    int64_t start_offset;
    // Delivery-complete count (KIP-1226), -1 = unknown.
    int32_t delivery_complete_count;
    // Changed batches, in any order; may be null when there are none.
    const sharestate_batch_t *batches;
    // How many, at most 65,536.
    size_t batch_count;
} sharestate_write_t;

// One range of acks to stage.
typedef struct {
    // First offset, inclusive.
    int64_t first_offset;
    // Last offset, inclusive.
    int64_t last_offset;
    // Delivery count of the acquired records.
    int16_t delivery_count;
    // 0 gap, 1 accept, 3 reject.
    int8_t ack_type;
    // State after a commit: 2 for an accept, 3 or 4 for a reject, 4 for a gap.
    int8_t commit_target;
    // State after an abort: 0; 3 or 4 where the delivery limit is reached.
    int8_t abort_target;
} sharestate_ack_t;

// Acks to stage inside a producer's transaction.
typedef struct {
    // State epoch that the leader knows.
    int32_t state_epoch;
    // Leader epoch.
    int32_t leader_epoch;
    // Producer id.
    int64_t producer_id;
    // Producer epoch.
    int16_t producer_epoch;
    // Transaction version; below 2 is refused.
    int8_t transaction_version;
    // 1: part of an external two-phase commit (KIP-939); 0 where the broker cannot tell.
    uint8_t two_phase;
    // Epoch of the member.
    int32_t member_epoch;
    // Transactional id.
    sharestate_text_t transactional_id;
    // Share consumer.
    sharestate_text_t member_id;
    // What to stage.
    const sharestate_ack_t *acks;
    // How many, 1 to 65,536.
    size_t ack_count;
} sharestate_stage_t;

// A transaction marker.
typedef struct {
    // Producer id.
    int64_t producer_id;
    // Producer epoch; under transaction version 2 one above that of the acks.
    int16_t producer_epoch;
    // Epoch of the transaction coordinator.
    int32_t coordinator_epoch;
    // 1 commit, 0 abort.
    uint8_t commit;
    // Transaction version, 0 = not carried.
    int8_t transaction_version;
} sharestate_marker_t;

// How a store is opened. Fill it with `sharestate_options_init`, then change what is to be
// different.
typedef struct {
    // `sizeof` this struct as the program was compiled; set by `sharestate_options_init`.
    size_t size;
    // 0: make a store where none is; 1: open an existing one or fail; 2: make one or fail.
    uint32_t create;
    // When answers are given. 0: after fdatasync, no crash takes them back; 1: after the write,
    // synced every `sync_every_ms`; 2: after the write.
    uint32_t sync;
    // For `sync` 1, in ms.
    uint64_t sync_every_ms;
    // Size of a log segment of a new store.
    uint64_t segment_bytes;
    // Bound of all calls that wait or are not answered yet, in bytes.
    uint64_t queue_bytes;
    // Hard bound of changed rows in memory, in bytes.
    uint64_t memory_bytes;
    // Bound of cached unchanged rows, in bytes.
    uint64_t cache_bytes;
    // Bound of RocksDB's block cache, in bytes.
    uint64_t block_cache_bytes;
    // A checkpoint is taken after this many bytes of log; 0 = half a segment.
    uint64_t checkpoint_log_bytes;
    // A checkpoint is taken when changes are this old, in ms.
    uint64_t checkpoint_interval_ms;
    // How long an idle producer is remembered, in ms.
    uint64_t producer_id_expiration_ms;
    // Disk space kept back for opening on a full disk, in bytes.
    uint64_t reserve_bytes;
} sharestate_options_t;

// What opening found and did.
typedef struct {
    // Last entry of the log.
    uint64_t last_lsn;
    // Last entry that was in the snapshot.
    uint64_t snapshot_lsn;
    // Entries replayed on top of it.
    uint64_t replayed;
    // Which opening for writing this is.
    uint64_t incarnation;
    // How long it took, in microseconds.
    uint64_t elapsed_us;
    // 1: the store was made by this call.
    uint8_t created;
    // 1: the log's tail was torn by a crash and was repaired.
    uint8_t repaired;
} sharestate_recovery_t;

// What is durable and what is in the snapshot.
typedef struct {
    // Every entry up to this one survives any crash.
    uint64_t durable_lsn;
    // Every entry up to this one is in the snapshot.
    uint64_t applied_lsn;
} sharestate_progress_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the ABI that the library has, which may differ from that of the header a program
// was compiled with.
uint32_t sharestate_abi_version(void);

// Whether a program that was compiled with a header of version `header_version` can use this
// library: pass `SHARESTATE_ABI_VERSION`. Answers 1 if the major versions are equal and the
// library is not older, else 0. Call it before anything else.
int32_t sharestate_abi_compatible(uint32_t header_version);

// The release of the library as text, for logs. Never null; valid for ever.
const char *sharestate_version(void);

// Frees an answer and everything that points into it. Answers `SHARESTATE_INVALID_HANDLE` if it is
// none, or freed already.
sharestate_status_t sharestate_answer_free(sharestate_answer_t answer);

// The state without batches: of a read and of a summary. `SHARESTATE_INVALID_ARGUMENT` for answers
// of other calls, which have none.
//
// # Safety
// `partition` is null or valid for a write.
sharestate_status_t sharestate_answer_partition(sharestate_answer_t answer,
                                                sharestate_partition_t *partition);

// The batches of a read, ascending and disjoint, as stored: pending acks are not among them, see
// `sharestate_answer_pending`. None for other calls. `*batches` is valid until the answer is
// freed.
//
// # Safety
// `batches` and `count` are null or valid for a write.
sharestate_status_t sharestate_answer_batches(sharestate_answer_t answer,
                                              const sharestate_batch_t **batches,
                                              size_t *count);

// The offset ranges that a stage newly staged. None for other calls, and for a repeated stage.
// `*ranges` is valid until the answer is freed.
//
// # Safety
// `ranges` and `count` are null or valid for a write.
sharestate_status_t sharestate_answer_staged(sharestate_answer_t answer,
                                             const sharestate_range_t **ranges,
                                             size_t *count);

// How many ranges of pending acks the answer holds: all of the share partition for a read; those
// that were dropped for initialize, write and delete.
//
// # Safety
// `count` is null or valid for a write.
sharestate_status_t sharestate_answer_pending_count(sharestate_answer_t answer, size_t *count);

// One range of pending acks, `index` from 0. `SHARESTATE_INVALID_ARGUMENT` behind the last. Its
// texts are valid until the answer is freed.
//
// # Safety
// `pending` is null or valid for a write.
sharestate_status_t sharestate_answer_pending(sharestate_answer_t answer,
                                              size_t index,
                                              sharestate_pending_t *pending);

// In how many share partitions a marker, or a forced resolution, resolved something.
//
// # Safety
// `count` is null or valid for a write.
sharestate_status_t sharestate_answer_resolved_count(sharestate_answer_t answer, size_t *count);

// One of these share partitions, `index` from 0, and the offset ranges that were resolved in it.
// `SHARESTATE_INVALID_ARGUMENT` behind the last. Text and ranges are valid until the answer is
// freed.
//
// # Safety
// `key`, `ranges` and `count` are null or valid for a write.
sharestate_status_t sharestate_answer_resolved(sharestate_answer_t answer,
                                               size_t index,
                                               sharestate_key_t *key,
                                               const sharestate_range_t **ranges,
                                               size_t *count);

// Of a marker: 1 in `contradicts` if it is a repeat whose outcome is not the one remembered, 1 in
// `orphans` if an open epoch below it stays behind.
//
// # Safety
// `contradicts` and `orphans` are null or valid for a write.
sharestate_status_t sharestate_answer_marker(sharestate_answer_t answer,
                                             uint8_t *contradicts,
                                             uint8_t *orphans);

// Of the deletion of a group or topic: how many share partitions were deleted, and how many ranges
// of pending acks were dropped with them.
//
// # Safety
// `partitions` and `dropped` are null or valid for a write.
sharestate_status_t sharestate_answer_deleted(sharestate_answer_t answer,
                                              uint64_t *partitions,
                                              uint64_t *dropped);

// The answer of `sharestate_pending_totals`; `SHARESTATE_INVALID_ARGUMENT` for those of other
// calls.
//
// # Safety
// `totals` is null or valid for a write.
sharestate_status_t sharestate_answer_pending_totals(sharestate_answer_t answer,
                                                     sharestate_pending_totals_t *totals);

// Of a checkpoint: the entry up to which the snapshot holds everything.
//
// # Safety
// `lsn` is null or valid for a write.
sharestate_status_t sharestate_answer_lsn(sharestate_answer_t answer, uint64_t *lsn);

// Starts a share partition anew; a repeated identical call changes nothing. The answer holds the
// pending acks that were dropped.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_initialize(sharestate_store_t store,
                                          const sharestate_key_t *key,
                                          int32_t state_epoch,
                                          int64_t start_offset,
                                          sharestate_answer_t *answer,
                                          sharestate_error_t *error);

// As `sharestate_initialize`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_initialize_async(sharestate_store_t store,
                                                const sharestate_key_t *key,
                                                int32_t state_epoch,
                                                int64_t start_offset,
                                                sharestate_callback_t callback,
                                                void *user_data,
                                                sharestate_call_t *call,
                                                sharestate_error_t *error);

// Merges state batches, as a partition leader does after acknowledgements. The answer holds the
// pending acks that were dropped because the start offset passed them.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_write(sharestate_store_t store,
                                     const sharestate_key_t *key,
                                     const sharestate_write_t *write,
                                     sharestate_answer_t *answer,
                                     sharestate_error_t *error);

// As `sharestate_write`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_write_async(sharestate_store_t store,
                                           const sharestate_key_t *key,
                                           const sharestate_write_t *write,
                                           sharestate_callback_t callback,
                                           void *user_data,
                                           sharestate_call_t *call,
                                           sharestate_error_t *error);

// Reads the whole state as a partition leader; a leader epoch above the fence is durable before
// the answer and fences older leaders. With `accepts_pending` 0 a share partition that has pending
// acks is `SHARESTATE_REJECTED` with Kafka's code 35: hidden ones would look like gaps and be
// delivered again.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_read(sharestate_store_t store,
                                    const sharestate_key_t *key,
                                    int32_t leader_epoch,
                                    uint8_t accepts_pending,
                                    sharestate_answer_t *answer,
                                    sharestate_error_t *error);

// As `sharestate_read`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_read_async(sharestate_store_t store,
                                          const sharestate_key_t *key,
                                          int32_t leader_epoch,
                                          uint8_t accepts_pending,
                                          sharestate_callback_t callback,
                                          void *user_data,
                                          sharestate_call_t *call,
                                          sharestate_error_t *error);

// Reads epochs, start offset and count; never changes anything. A share partition that is not
// initialised answers 0, 0, -1, -1.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_summary(sharestate_store_t store,
                                       const sharestate_key_t *key,
                                       sharestate_answer_t *answer,
                                       sharestate_error_t *error);

// As `sharestate_summary`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_summary_async(sharestate_store_t store,
                                             const sharestate_key_t *key,
                                             sharestate_callback_t callback,
                                             void *user_data,
                                             sharestate_call_t *call,
                                             sharestate_error_t *error);

// Drops a share partition; dropping what is not there succeeds. The answer holds the pending acks
// that went with it.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_delete(sharestate_store_t store,
                                      const sharestate_key_t *key,
                                      sharestate_answer_t *answer,
                                      sharestate_error_t *error);

// As `sharestate_delete`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_delete_async(sharestate_store_t store,
                                            const sharestate_key_t *key,
                                            sharestate_callback_t callback,
                                            void *user_data,
                                            sharestate_call_t *call,
                                            sharestate_error_t *error);

// Deletes all share partitions of a group, one by one: not one atomic act. After an error a
// repeated call continues.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_delete_group(sharestate_store_t store,
                                            sharestate_text_t group_id,
                                            sharestate_answer_t *answer,
                                            sharestate_error_t *error);

// As `sharestate_delete_group`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_delete_group_async(sharestate_store_t store,
                                                  sharestate_text_t group_id,
                                                  sharestate_callback_t callback,
                                                  void *user_data,
                                                  sharestate_call_t *call,
                                                  sharestate_error_t *error);

// Deletes all share partitions of a topic in all groups, one by one, as `sharestate_delete_group`.
// `topic_id` points to 16 bytes.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_delete_topic(sharestate_store_t store,
                                            const uint8_t *topic_id,
                                            sharestate_answer_t *answer,
                                            sharestate_error_t *error);

// As `sharestate_delete_topic`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_delete_topic_async(sharestate_store_t store,
                                                  const uint8_t *topic_id,
                                                  sharestate_callback_t callback,
                                                  void *user_data,
                                                  sharestate_call_t *call,
                                                  sharestate_error_t *error);

// Stages acks inside a producer's transaction: from then on they are prepared, and only the
// transaction's marker, or an operator, ends that. All or nothing. The answer holds the ranges
// that are newly staged; an identical repeated call succeeds with none. After
// `SHARESTATE_POISONED` the outcome is unknown.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_stage(sharestate_store_t store,
                                     const sharestate_key_t *key,
                                     const sharestate_stage_t *stage,
                                     sharestate_answer_t *answer,
                                     sharestate_error_t *error);

// As `sharestate_stage`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_stage_async(sharestate_store_t store,
                                           const sharestate_key_t *key,
                                           const sharestate_stage_t *stage,
                                           sharestate_callback_t callback,
                                           void *user_data,
                                           sharestate_call_t *call,
                                           sharestate_error_t *error);

// Takes a transaction marker: one atomic entry that resolves whatever the producer staged anywhere
// in the store. Repeating it is harmless. The answer holds what was resolved.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_marker(sharestate_store_t store,
                                      const sharestate_marker_t *marker,
                                      sharestate_answer_t *answer,
                                      sharestate_error_t *error);

// As `sharestate_marker`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_marker_async(sharestate_store_t store,
                                            const sharestate_marker_t *marker,
                                            sharestate_callback_t callback,
                                            void *user_data,
                                            sharestate_call_t *call,
                                            sharestate_error_t *error);

// Ends one open epoch of a producer by hand, as its own marker would (`commit` 1) or as an abort
// (0); logged as an operator's act.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_force_resolve(sharestate_store_t store,
                                             int64_t producer_id,
                                             int16_t producer_epoch,
                                             uint8_t commit,
                                             sharestate_answer_t *answer,
                                             sharestate_error_t *error);

// As `sharestate_force_resolve`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_force_resolve_async(sharestate_store_t store,
                                                   int64_t producer_id,
                                                   int16_t producer_epoch,
                                                   uint8_t commit,
                                                   sharestate_callback_t callback,
                                                   void *user_data,
                                                   sharestate_call_t *call,
                                                   sharestate_error_t *error);

// Counts all prepared acks.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_pending_totals(sharestate_store_t store,
                                              sharestate_answer_t *answer,
                                              sharestate_error_t *error);

// As `sharestate_pending_totals`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_pending_totals_async(sharestate_store_t store,
                                                    sharestate_callback_t callback,
                                                    void *user_data,
                                                    sharestate_call_t *call,
                                                    sharestate_error_t *error);

// Folds everything accepted so far into the snapshot. Never needed: the store does so by itself.
//
// # Safety
// Every pointer is null or points to what its type says, texts and arrays as long as they say.
sharestate_status_t sharestate_checkpoint(sharestate_store_t store,
                                          sharestate_answer_t *answer,
                                          sharestate_error_t *error);

// As `sharestate_checkpoint`, with a callback.
//
// # Safety
// As of the other; `callback` may be called with `user_data` once, on another thread.
sharestate_status_t sharestate_checkpoint_async(sharestate_store_t store,
                                                sharestate_callback_t callback,
                                                void *user_data,
                                                sharestate_call_t *call,
                                                sharestate_error_t *error);

// The status that the call with this error had; `SHARESTATE_INVALID_HANDLE` if the handle is none.
sharestate_status_t sharestate_error_status(sharestate_error_t error);

// Kafka's error code of it; `SHARESTATE_NO_KAFKA_CODE` where there is none, or the handle is none.
int16_t sharestate_error_kafka_code(sharestate_error_t error);

// What is wrong, as text that ends in a zero byte. Valid until the error is freed. Never null: of
// a handle that is none it says so.
const char *sharestate_error_message(sharestate_error_t error);

// Frees an error. Answers `SHARESTATE_INVALID_HANDLE` if it is none, or freed already.
sharestate_status_t sharestate_error_free(sharestate_error_t error);

// Takes a callback back, for a caller that goes away. After `SHARESTATE_OK` the callback will not
// run and its `user_data` may be freed. `SHARESTATE_TOO_LATE`: it has run and has returned; if it
// is running on another thread, this waits until it has returned; called from within the callback
// itself, this answers at once. `SHARESTATE_INVALID_HANDLE`: it has run, or the call is none.
//
// The command itself is not taken back: it may have been carried out.
sharestate_status_t sharestate_cancel(sharestate_call_t call);

// Fills options with their defaults.
//
// # Safety
// `options` is null or valid for a write.
void sharestate_options_init(sharestate_options_t *options);

// Opens the store in the directory `path`, recovering what a crash left, and puts its handle into
// `*store`. `options` may be null for the defaults. Blocks on file work.
//
// A second open of a directory that is open, by this process or another, is
// `SHARESTATE_RETRIABLE` and changes nothing; so does any other failure but for want of space.
//
// # Safety
// `path` is as its length says; `options`, `store` and `error` are null or point to one.
sharestate_status_t sharestate_open(sharestate_text_t path,
                                    const sharestate_options_t *options,
                                    sharestate_store_t *store,
                                    sharestate_error_t *error);

// Closes a store: answers what was called, takes a last checkpoint, waits until every callback has
// returned, and makes the handle none. Calls that other threads begin meanwhile fail. After it no
// callback of the store runs, whatever it answers; everything answered before is on disk, also
// when it fails.
//
// Called from a callback of the same store it would wait for itself: that is
// `SHARESTATE_REJECTED`, and the store stays open. Closing again is `SHARESTATE_INVALID_HANDLE`.
//
// # Safety
// `error` is null or valid for a write.
sharestate_status_t sharestate_close(sharestate_store_t store, sharestate_error_t *error);

// What opening found and did.
//
// # Safety
// `recovery` is null or valid for a write.
sharestate_status_t sharestate_recovery(sharestate_store_t store, sharestate_recovery_t *recovery);

// What is durable and what is in the snapshot.
//
// # Safety
// `progress` is null or valid for a write.
sharestate_status_t sharestate_progress(sharestate_store_t store, sharestate_progress_t *progress);

// The store's identity: puts 16 bytes into `uuid`.
//
// # Safety
// `uuid` is null or valid for a write of 16 bytes.
sharestate_status_t sharestate_uuid(sharestate_store_t store, uint8_t *uuid);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHARESTATE_H */
