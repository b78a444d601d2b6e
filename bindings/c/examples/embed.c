// A broker in C: opens a store, acknowledges records from a callback, stages acks inside a transaction,
// "crashes", opens the store again and takes the transaction's marker.
//
//   cc embed.c $(pkg-config --cflags --libs sharestate) -o embed && ./embed DIR

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sharestate.h>

static sharestate_text_t text(const char *string) {
    sharestate_text_t text = {string, strlen(string)};
    return text;
}

static sharestate_key_t key(int32_t partition) {
    sharestate_key_t key = {.group_id = text("billing"), .topic_id = {1, 2, 3}, .partition = partition};
    return key;
}

// Ends the program if a call failed, with what the error says.
static void check(const char *what, sharestate_status_t status, sharestate_error_t error) {
    if (status == SHARESTATE_OK) {
        return;
    }
    fprintf(stderr, "%s: %s (class %d, Kafka code %d)\n", what, sharestate_error_message(error), status,
            sharestate_error_kafka_code(error));
    sharestate_error_free(error);
    exit(1);
}

static sharestate_store_t open_store(const char *dir) {
    sharestate_store_t store;
    sharestate_error_t error;
    sharestate_status_t status = sharestate_open(text(dir), NULL, &store, &error);
    check("open", status, error);
    sharestate_recovery_t recovery;
    sharestate_recovery(store, &recovery);
    printf("opened: incarnation %llu, %llu entries replayed\n", (unsigned long long)recovery.incarnation,
           (unsigned long long)recovery.replayed);
    return store;
}

// Counts the answers of calls with callbacks.
struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int answered;
};

static void on_written(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                       sharestate_error_t error) {
    check("write", status, error);
    sharestate_answer_free(answer);
    struct tally *tally = user_data;
    pthread_mutex_lock(&tally->lock);
    tally->answered++;
    pthread_cond_signal(&tally->changed);
    pthread_mutex_unlock(&tally->lock);
}

static void print_state(sharestate_store_t store, int32_t partition, int32_t leader_epoch) {
    sharestate_key_t of = key(partition);
    sharestate_answer_t answer;
    sharestate_error_t error;
    sharestate_status_t status = sharestate_read(store, &of, leader_epoch, 1, &answer, &error);
    check("read", status, error);
    const sharestate_batch_t *batches;
    size_t count;
    sharestate_answer_batches(answer, &batches, &count);
    printf("partition %d:", partition);
    for (size_t i = 0; i < count; i++) {
        printf(" %lld-%lld state %d count %d;", (long long)batches[i].first_offset,
               (long long)batches[i].last_offset, batches[i].delivery_state, batches[i].delivery_count);
    }
    sharestate_answer_pending_count(answer, &count);
    for (size_t i = 0; i < count; i++) {
        sharestate_pending_t ack;
        sharestate_answer_pending(answer, i, &ack);
        printf(" %lld-%lld pending in %.*s;", (long long)ack.first_offset, (long long)ack.last_offset,
               (int)ack.transactional_id.length, ack.transactional_id.data);
    }
    printf("\n");
    sharestate_answer_free(answer);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: embed DIR\n");
        return 2;
    }
    if (!sharestate_abi_compatible(SHARESTATE_ABI_VERSION)) {
        fprintf(stderr, "the library is of another version\n");
        return 1;
    }
    printf("sharestate %s\n", sharestate_version());
    sharestate_store_t store = open_store(argv[1]);
    sharestate_error_t error;
    sharestate_status_t status;

    enum { PARTITIONS = 4 };
    for (int32_t partition = 0; partition < PARTITIONS; partition++) {
        sharestate_key_t of = key(partition);
        status = sharestate_initialize(store, &of, 1, 0, NULL, &error);
        check("initialize", status, error);
    }

    // Writes of all partitions at once share the disk's syncs.
    struct tally tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    for (int32_t partition = 0; partition < PARTITIONS; partition++) {
        sharestate_key_t of = key(partition);
        sharestate_batch_t batch = {.first_offset = 0, .last_offset = 9, .delivery_state = 2, .delivery_count = 1};
        sharestate_write_t write = {.state_epoch = 1,
                                    .start_offset = -1,
                                    .delivery_complete_count = 10,
                                    .batches = &batch,
                                    .batch_count = 1};
        status = sharestate_write_async(store, &of, &write, on_written, &tally, NULL, &error);
        check("write", status, error);
    }
    pthread_mutex_lock(&tally.lock);
    while (tally.answered < PARTITIONS) {
        pthread_cond_wait(&tally.changed, &tally.lock);
    }
    pthread_mutex_unlock(&tally.lock);
    printf("%d writes are durable\n", tally.answered);

    sharestate_key_t of = key(0);
    sharestate_ack_t ack = {.first_offset = 10, .last_offset = 12, .delivery_count = 1, .ack_type = 1, .commit_target = 2};
    sharestate_stage_t stage = {.state_epoch = 1,
                                .producer_id = 4711,
                                .transaction_version = 2,
                                .transactional_id = text("payments-7"),
                                .member_id = text("consumer-1"),
                                .acks = &ack,
                                .ack_count = 1};
    status = sharestate_stage(store, &of, &stage, NULL, &error);
    check("stage", status, error);
    print_state(store, 0, 1);

    status = sharestate_close(store, &error);
    check("close", status, error);
    store = open_store(argv[1]);
    print_state(store, 0, 2);

    // A leader of an older epoch is refused, and told so in Kafka's code.
    sharestate_write_t late = {.state_epoch = 1, .leader_epoch = 1, .start_offset = -1};
    status = sharestate_write(store, &of, &late, NULL, &error);
    printf("an old leader: class %d, Kafka code %d, %s\n", status, sharestate_error_kafka_code(error),
           sharestate_error_message(error));
    sharestate_error_free(error);

    sharestate_marker_t marker = {
        .producer_id = 4711, .producer_epoch = 1, .coordinator_epoch = 3, .commit = 1, .transaction_version = 2};
    sharestate_answer_t answer;
    status = sharestate_marker(store, &marker, &answer, &error);
    check("marker", status, error);
    size_t resolved;
    sharestate_answer_resolved_count(answer, &resolved);
    printf("the marker resolved acks in %zu share partition(s)\n", resolved);
    sharestate_answer_free(answer);
    print_state(store, 0, 2);
    status = sharestate_close(store, &error);
    check("close", status, error);
    return 0;
}
