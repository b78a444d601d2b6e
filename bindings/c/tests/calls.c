// Every call, waiting and with a callback, and what their answers hold.

#include <pthread.h>

#include "check.h"

// What a callback was told, for a caller that waits for it.
struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int times;
    pthread_t thread;
    sharestate_status_t status;
    sharestate_answer_t answer;
    sharestate_error_t error;
};

static void on_answer(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                      sharestate_error_t error) {
    struct told *told = user_data;
    pthread_mutex_lock(&told->lock);
    told->times++;
    told->thread = pthread_self();
    told->status = status;
    told->answer = answer;
    told->error = error;
    pthread_cond_signal(&told->changed);
    pthread_mutex_unlock(&told->lock);
}

static void wait_for(struct told *told) {
    pthread_mutex_lock(&told->lock);
    while (told->times == 0) {
        pthread_cond_wait(&told->changed, &told->lock);
    }
    CHECK(told->times == 1);
    CHECK(!pthread_equal(told->thread, pthread_self()));
    pthread_mutex_unlock(&told->lock);
}

// Makes a call both ways; the answers must satisfy the same function.
#define BOTH(look, function, ...)                                                                \
    do {                                                                                         \
        sharestate_answer_t answer = 0;                                                          \
        sharestate_error_t error = 99;                                                           \
        CHECK(sharestate_##function(__VA_ARGS__, &answer, &error) == SHARESTATE_OK);             \
        CHECK(error == 0 && answer != 0);                                                        \
        look(answer, 0);                                                                         \
        CHECK(sharestate_answer_free(answer) == SHARESTATE_OK);                                  \
        CHECK(sharestate_answer_free(answer) == SHARESTATE_INVALID_HANDLE);                      \
        struct told told = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0}; \
        sharestate_call_t call = 0;                                                              \
        CHECK(sharestate_##function##_async(__VA_ARGS__, on_answer, &told, &call, &error) ==     \
              SHARESTATE_OK);                                                                    \
        CHECK(error == 0 && call != 0);                                                          \
        wait_for(&told);                                                                         \
        CHECK(told.status == SHARESTATE_OK && told.error == 0 && told.answer != 0);              \
        look(told.answer, 1);                                                                    \
        CHECK(sharestate_answer_free(told.answer) == SHARESTATE_OK);                             \
    } while (0)

static void look_at_nothing(sharestate_answer_t answer, int again) {
    (void)again;
    size_t count = 9;
    CHECK(sharestate_answer_pending_count(answer, &count) == SHARESTATE_OK && count == 0);
    sharestate_partition_t partition;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_INVALID_ARGUMENT);
    sharestate_pending_totals_t totals;
    CHECK(sharestate_answer_pending_totals(answer, &totals) == SHARESTATE_INVALID_ARGUMENT);
}

static void look_at_staged(sharestate_answer_t answer, int again) {
    const sharestate_range_t *ranges;
    size_t count;
    CHECK(sharestate_answer_staged(answer, &ranges, &count) == SHARESTATE_OK);
    CHECK(count == (again ? 0 : 2)); // a repeated stage stages nothing new
    if (count == 2) {
        CHECK(ranges[0].first_offset == 20 && ranges[0].last_offset == 24);
        CHECK(ranges[1].first_offset == 30 && ranges[1].last_offset == 30);
    }
}

static void look_at_state(sharestate_answer_t answer, int again) {
    (void)again;
    sharestate_partition_t partition;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_OK);
    CHECK(partition.state_epoch == 1 && partition.leader_epoch == 3);
    CHECK(partition.start_offset == 5 && partition.delivery_complete_count == 5);
    const sharestate_batch_t *batches;
    size_t count;
    CHECK(sharestate_answer_batches(answer, &batches, &count) == SHARESTATE_OK && count == 1);
    CHECK(batches[0].first_offset == 5 && batches[0].last_offset == 9);
    CHECK(batches[0].delivery_state == 2 && batches[0].delivery_count == 1);
    CHECK(sharestate_answer_pending_count(answer, &count) == SHARESTATE_OK && count == 2);
    sharestate_pending_t ack;
    CHECK(sharestate_answer_pending(answer, 1, &ack) == SHARESTATE_OK);
    CHECK(ack.first_offset == 30 && ack.ack_type == 3 && ack.commit_target == 4 && ack.abort_target == 0);
    CHECK(ack.producer_id == 7 && ack.producer_epoch == 2 && ack.two_phase == 1 && ack.stage_time_ms > 0);
    CHECK(ack.transactional_id.length == 3 && memcmp(ack.transactional_id.data, "t\0x", 3) == 0);
    CHECK(ack.member_id.length == 6 && memcmp(ack.member_id.data, "member", 6) == 0);
    CHECK(sharestate_answer_pending(answer, 2, &ack) == SHARESTATE_INVALID_ARGUMENT);
}

static void look_at_summary(sharestate_answer_t answer, int again) {
    (void)again;
    sharestate_partition_t partition;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_OK);
    CHECK(partition.state_epoch == 1 && partition.start_offset == 5);
}

static void look_at_totals(sharestate_answer_t answer, int again) {
    (void)again;
    sharestate_pending_totals_t totals;
    CHECK(sharestate_answer_pending_totals(answer, &totals) == SHARESTATE_OK);
    CHECK(totals.producers == 1 && totals.partitions == 1 && totals.ranges == 2 && totals.offsets == 6);
}

static void look_at_resolved(sharestate_answer_t answer, int again) {
    size_t count;
    CHECK(sharestate_answer_resolved_count(answer, &count) == SHARESTATE_OK && count == (again ? 0 : 1));
    uint8_t contradicts = 9, orphans = 9;
    CHECK(sharestate_answer_marker(answer, &contradicts, &orphans) == SHARESTATE_OK);
    CHECK(contradicts == 0 && orphans == 0);
    sharestate_key_t of;
    const sharestate_range_t *ranges;
    sharestate_status_t status = sharestate_answer_resolved(answer, 0, &of, &ranges, &count);
    CHECK(status == (again ? SHARESTATE_INVALID_ARGUMENT : SHARESTATE_OK));
    if (!again) {
        CHECK(of.group_id.length == 7 && memcmp(of.group_id.data, "g:colon", 7) == 0);
        CHECK(of.partition == 1 && of.topic_id[0] == 7 && count == 2);
        CHECK(ranges[0].first_offset == 20 && ranges[1].last_offset == 30);
    }
}

static void look_at_lsn(sharestate_answer_t answer, int again) {
    (void)again;
    uint64_t lsn = 0;
    CHECK(sharestate_answer_lsn(answer, &lsn) == SHARESTATE_OK && lsn > 0);
}

static void look_at_deleted(sharestate_answer_t answer, int again) {
    uint64_t partitions = 9, dropped = 9;
    CHECK(sharestate_answer_deleted(answer, &partitions, &dropped) == SHARESTATE_OK);
    CHECK(partitions == (again ? 0 : 1) && dropped == 0);
}

// Calls of one thread are judged in order, those with callbacks among those that wait.
static void order(sharestate_store_t store) {
    sharestate_key_t of = key(9);
    start(store, 9);
    struct told told[64];
    for (int i = 0; i < 64; i++) {
        told[i] = (struct told){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0};
        CHECK(sharestate_initialize_async(store, &of, 2 * i + 2, 0, on_answer, &told[i], NULL, NULL) ==
              SHARESTATE_OK);
        // Were it judged before the one above, that one would be fenced.
        CHECK(sharestate_initialize(store, &of, 2 * i + 3, 0, NULL, NULL) == SHARESTATE_OK);
    }
    for (int i = 0; i < 64; i++) {
        wait_for(&told[i]);
        CHECK(told[i].status == SHARESTATE_OK);
        sharestate_answer_free(told[i].answer);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    CHECK(sharestate_abi_version() == SHARESTATE_ABI_VERSION);
    CHECK(sharestate_abi_compatible(SHARESTATE_ABI_VERSION) == 1);
    CHECK(sharestate_abi_compatible(SHARESTATE_ABI_VERSION + 1) == 0);
    CHECK(sharestate_abi_compatible(SHARESTATE_ABI_VERSION + 0x10000) == 0);
    CHECK(sharestate_abi_compatible(0) == 0);
    CHECK(strlen(sharestate_version()) > 0);

    sharestate_store_t store = open_store(directory(argv, "calls"));
    sharestate_recovery_t recovery;
    CHECK(sharestate_recovery(store, &recovery) == SHARESTATE_OK && recovery.created == 1);
    uint8_t uuid[16] = {0}, nil[16] = {0};
    CHECK(sharestate_uuid(store, uuid) == SHARESTATE_OK && memcmp(uuid, nil, 16) != 0);

    sharestate_key_t of = key(1);
    BOTH(look_at_nothing, initialize, store, &of, 1, 0);
    sharestate_batch_t batch = {.first_offset = 0, .last_offset = 9, .delivery_count = 1, .delivery_state = 2};
    sharestate_write_t write = {.state_epoch = 1, .start_offset = 5, .delivery_complete_count = 5, .batches = &batch, .batch_count = 1};
    BOTH(look_at_nothing, write, store, &of, &write);
    sharestate_ack_t acks[2] = {
        {.first_offset = 20, .last_offset = 24, .delivery_count = 1, .ack_type = 1, .commit_target = 2},
        {.first_offset = 30, .last_offset = 30, .delivery_count = 1, .ack_type = 3, .commit_target = 4},
    };
    sharestate_stage_t stage = {.state_epoch = 1, .producer_id = 7, .producer_epoch = 2, .transaction_version = 2,
                                .two_phase = 1, .member_epoch = 5, .transactional_id = {"t\0x", 3},
                                .member_id = text("member"), .acks = acks, .ack_count = 2};
    BOTH(look_at_staged, stage, store, &of, &stage);
    BOTH(look_at_state, read, store, &of, 3, 1);
    BOTH(look_at_summary, summary, store, &of);
    BOTH(look_at_totals, pending_totals, store);

    sharestate_answer_t answer = 99;
    sharestate_error_t error;
    sharestate_status_t status = sharestate_read(store, &of, 3, 0, &answer, &error);
    CHECK(answer == 0);
    expect(status, error, SHARESTATE_REJECTED, 35, "pending transactional acknowledgements");
    write.leader_epoch = 2;
    status = sharestate_write(store, &of, &write, NULL, &error);
    expect(status, error, SHARESTATE_REJECTED, 74, "leader epoch 2 is below the fence 3");

    sharestate_marker_t marker = {.producer_id = 7, .producer_epoch = 3, .coordinator_epoch = 1, .commit = 1, .transaction_version = 2};
    BOTH(look_at_resolved, marker, store, &marker);
    status = sharestate_force_resolve(store, 7, 2, 0, NULL, &error);
    expect(status, error, SHARESTATE_REJECTED, SHARESTATE_NO_KAFKA_CODE, "nothing pending");
    BOTH(look_at_lsn, checkpoint, store);
    sharestate_progress_t progress;
    CHECK(sharestate_progress(store, &progress) == SHARESTATE_OK && progress.applied_lsn > 0);

    // What a delete drops is in its answer.
    stage.producer_epoch = 3;
    stage.leader_epoch = 3;
    acks[0].first_offset = 40;
    acks[0].last_offset = 41;
    stage.ack_count = 1;
    CHECK(sharestate_stage(store, &of, &stage, NULL, NULL) == SHARESTATE_OK);
    CHECK(sharestate_delete(store, &of, &answer, &error) == SHARESTATE_OK);
    size_t count;
    CHECK(sharestate_answer_pending_count(answer, &count) == SHARESTATE_OK && count == 1);
    sharestate_answer_free(answer);
    BOTH(look_at_nothing, delete, store, &of);

    start(store, 2);
    BOTH(look_at_deleted, delete_group, store, text("g:colon"));
    start(store, 2);
    uint8_t topic[16] = {7};
    BOTH(look_at_deleted, delete_topic, store, topic);
    order(store);
    close_store(store);

    store = open_store(directory(argv, "calls"));
    CHECK(sharestate_recovery(store, &recovery) == SHARESTATE_OK && recovery.created == 0);
    close_store(store);
    return done("calls");
}
