// Null, wrong, made up and stale handles, calls after close, and freeing twice: errors, never undefined
// behaviour.

#include "check.h"

static void never(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                  sharestate_error_t error) {
    (void)user_data, (void)status, (void)answer, (void)error;
    CHECK(!"a callback of a call that has not begun");
}

// Every call on a handle that is no store.
static void no_store(sharestate_store_t store) {
    sharestate_key_t of = key(0);
    sharestate_write_t write = {.state_epoch = 1, .start_offset = -1};
    sharestate_stage_t stage = {0};
    sharestate_marker_t marker = {0};
    uint8_t topic[16] = {7};
    sharestate_answer_t answer = 99;
    sharestate_call_t call = 99;
    const char *text_of = "handle is none";
#define REFUSED(call) EXPECT(call, SHARESTATE_INVALID_HANDLE, 6, text_of)
#define REFUSED_BOTH(function, ...)                                        \
    REFUSED(sharestate_##function(__VA_ARGS__, &answer, &error));          \
    CHECK(answer == 0);                                                    \
    REFUSED(sharestate_##function##_async(__VA_ARGS__, never, NULL, &call, &error)); \
    CHECK(call == 0)
    REFUSED_BOTH(initialize, store, &of, 1, 0);
    REFUSED_BOTH(write, store, &of, &write);
    REFUSED_BOTH(read, store, &of, 0, 1);
    REFUSED_BOTH(summary, store, &of);
    REFUSED_BOTH(delete, store, &of);
    REFUSED_BOTH(delete_group, store, text("g"));
    REFUSED_BOTH(delete_topic, store, topic);
    REFUSED_BOTH(stage, store, &of, &stage);
    REFUSED_BOTH(marker, store, &marker);
    REFUSED_BOTH(force_resolve, store, 7, 0, 1);
    REFUSED_BOTH(pending_totals, store);
    REFUSED_BOTH(checkpoint, store);
    REFUSED(sharestate_close(store, &error));
    CHECK(sharestate_recovery(store, NULL) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_progress(store, NULL) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_uuid(store, NULL) == SHARESTATE_INVALID_HANDLE);
}

static void no_answer(sharestate_answer_t answer) {
    const sharestate_batch_t *batches;
    const sharestate_range_t *ranges;
    size_t count;
    uint64_t number;
    uint8_t flag;
    sharestate_partition_t partition;
    sharestate_pending_t pending;
    sharestate_pending_totals_t totals;
    sharestate_key_t of;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_batches(answer, &batches, &count) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_staged(answer, &ranges, &count) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_pending_count(answer, &count) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_pending(answer, 0, &pending) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_resolved_count(answer, &count) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_resolved(answer, 0, &of, &ranges, &count) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_marker(answer, &flag, &flag) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_deleted(answer, &number, &number) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_pending_totals(answer, &totals) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_lsn(answer, &number) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_answer_free(answer) == SHARESTATE_INVALID_HANDLE);
}

static void no_error(sharestate_error_t error) {
    CHECK(sharestate_error_status(error) == SHARESTATE_INVALID_HANDLE);
    CHECK(sharestate_error_kafka_code(error) == SHARESTATE_NO_KAFKA_CODE);
    CHECK(strcmp(sharestate_error_message(error), "not an error handle") == 0);
    CHECK(sharestate_error_free(error) == SHARESTATE_INVALID_HANDLE);
}

static void null_pointers(sharestate_store_t store) {
    sharestate_key_t of = key(0);
#define NULL_IS(what, call) EXPECT(call, SHARESTATE_INVALID_ARGUMENT, 42, what " is null")
    NULL_IS("key", sharestate_initialize(store, NULL, 1, 0, NULL, &error));
    NULL_IS("key", sharestate_summary(store, NULL, NULL, &error));
    NULL_IS("write", sharestate_write(store, &of, NULL, NULL, &error));
    NULL_IS("stage", sharestate_stage(store, &of, NULL, NULL, &error));
    NULL_IS("marker", sharestate_marker(store, NULL, NULL, &error));
    NULL_IS("topic_id", sharestate_delete_topic(store, NULL, NULL, &error));
    NULL_IS("callback", sharestate_summary_async(store, &of, NULL, NULL, NULL, &error));
    NULL_IS("store", sharestate_open(text("/nowhere"), NULL, NULL, &error));
    sharestate_write_t write = {.state_epoch = 1, .batch_count = 3};
    NULL_IS("batches", sharestate_write(store, &of, &write, NULL, &error));
    sharestate_stage_t stage = {.ack_count = 3};
    NULL_IS("acks", sharestate_stage(store, &of, &stage, NULL, &error));
    of.group_id = (sharestate_text_t){NULL, 3};
    NULL_IS("group_id", sharestate_summary(store, &of, NULL, &error));
    // Nobody has to want the error, the answer or the call.
    CHECK(sharestate_summary(store, NULL, NULL, NULL) == SHARESTATE_INVALID_ARGUMENT);
    of = key(0);
    CHECK(sharestate_summary(store, &of, NULL, NULL) == SHARESTATE_OK);
    sharestate_options_init(NULL);
}

int main(int argc, char **argv) {
    (void)argc;
    sharestate_store_t store = open_store(directory(argv, "handles"));
    start(store, 0);
    sharestate_key_t of = key(0);
    sharestate_answer_t answer;
    sharestate_error_t error;
    CHECK(sharestate_summary(store, &of, &answer, &error) == SHARESTATE_OK);
    sharestate_error_t other;
    CHECK(sharestate_read(store, &of, -1, 1, NULL, &other) == SHARESTATE_REJECTED && other != 0);

    uint64_t none[] = {0, 1u << 31, UINT64_MAX, (uint64_t)(uintptr_t)&of, answer, other};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        no_store(none[i]);
        CHECK(sharestate_cancel(none[i]) == SHARESTATE_INVALID_HANDLE);
    }
    for (size_t i = 0; i < 4; i++) {
        no_answer(none[i]);
        no_error(none[i]);
    }
    // Handles of one kind are none of another.
    no_answer(other);
    no_answer(store);
    no_error(answer);
    no_error(store);
    CHECK(sharestate_cancel(store) == SHARESTATE_INVALID_HANDLE);

    // Freed is freed, and only once.
    CHECK(sharestate_answer_free(answer) == SHARESTATE_OK);
    no_answer(answer);
    CHECK(sharestate_error_free(other) == SHARESTATE_OK);
    no_error(other);
    null_pointers(store);

    // An answer outlives its store.
    CHECK(sharestate_read(store, &of, 0, 1, &answer, &error) == SHARESTATE_OK);
    close_store(store);
    no_store(store);
    sharestate_partition_t partition;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_OK && partition.state_epoch == 1);
    CHECK(sharestate_answer_free(answer) == SHARESTATE_OK);

    // A handle is never given out again.
    sharestate_store_t again = open_store(directory(argv, "handles"));
    CHECK(again != store);
    no_store(store);
    close_store(again);
    return done("handles");
}
