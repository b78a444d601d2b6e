// Directories that cannot be opened, requests that are too large, text that is none, a full disk.

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static void refused(const char *path, const sharestate_options_t *options, sharestate_status_t class, int16_t code,
                    const char *part) {
    sharestate_store_t store = 99;
    sharestate_error_t error;
    sharestate_status_t status = sharestate_open(text(path), options, &store, &error);
    CHECK(store == 0);
    expect(status, error, class, code, part);
}

// As another user when it is root, who may write anywhere.
static void unwritable(const char *path) {
    CHECK(mkdir(path, 0500) == 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (geteuid() == 0) {
            CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        }
        refused(path, NULL, SHARESTATE_IO, SHARESTATE_NO_KAFKA_CODE, "ermission denied");
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void options(const char *path) {
    sharestate_options_t options = {0};
    refused(path, &options, SHARESTATE_INVALID_ARGUMENT, 42, "options.size is 0");
    sharestate_options_init(&options);
    CHECK(options.size == sizeof options && options.queue_bytes > 0);
    options.create = 7;
    refused(path, &options, SHARESTATE_INVALID_ARGUMENT, 42, "options.create is 7");
    options.create = 1;
    refused(path, &options, SHARESTATE_REJECTED, SHARESTATE_NO_KAFKA_CODE, "not a sharestate store");
    options.create = 0;
    options.sync = 9;
    refused(path, &options, SHARESTATE_INVALID_ARGUMENT, 42, "options.sync is 9");
    options.sync = 0;
    refused("", NULL, SHARESTATE_INVALID_ARGUMENT, 42, "path is empty");
    refused("/dev/null/store", NULL, SHARESTATE_IO, SHARESTATE_NO_KAFKA_CODE, "/dev/null/store");
    CHECK(access(path, F_OK) != 0); // nothing was made
    options.segment_bytes = 1;
    refused(path, &options, SHARESTATE_REJECTED, SHARESTATE_NO_KAFKA_CODE, "segment");
    close_store(open_store(path)); // what a refused open left does not stop the next one
}

static void requests(sharestate_store_t store) {
    start(store, 0);
    sharestate_key_t of = key(0);
    sharestate_batch_t batch = {.first_offset = 0, .last_offset = 0, .delivery_state = 2, .delivery_count = 1};

    // Counts that cannot be there are refused before anything is looked at.
    size_t counts[] = {65537, SIZE_MAX / 24, SIZE_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sharestate_write_t write = {.state_epoch = 1, .start_offset = -1, .batches = &batch, .batch_count = counts[i]};
        EXPECT(sharestate_write(store, &of, &write, NULL, &error), SHARESTATE_REJECTED, 42, "65536 are allowed");
        sharestate_stage_t stage = {.acks = (const sharestate_ack_t *)&batch, .ack_count = counts[i]};
        EXPECT(sharestate_stage(store, &of, &stage, NULL, &error), SHARESTATE_REJECTED, 42, "65536 are allowed");
    }
    // As many as are allowed, and then larger than the queue.
    sharestate_batch_t *many = calloc(65536, sizeof *many);
    for (int i = 0; i < 65536; i++) {
        many[i] = batch;
        many[i].first_offset = many[i].last_offset = 2 * i;
    }
    sharestate_write_t write = {.state_epoch = 1, .start_offset = -1, .batches = many, .batch_count = 65536};
    EXPECT(sharestate_write(store, &of, &write, NULL, &error), SHARESTATE_REJECTED, 42, "the queue holds");
    write.batch_count = 1000;
    CHECK(sharestate_write(store, &of, &write, NULL, NULL) == SHARESTATE_OK);
    free(many);

    char *long_id = malloc(40000);
    memset(long_id, 'x', 40000);
    of.group_id = (sharestate_text_t){long_id, 32768};
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_REJECTED, 42, "32767 are allowed");
    of.group_id.length = SIZE_MAX;
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_REJECTED, 42, "32767 are allowed");
    of.group_id.length = 32767;
    CHECK(sharestate_summary(store, &of, NULL, NULL) == SHARESTATE_OK);
    free(long_id);
    of.group_id = text("\xff\xfe");
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_INVALID_ARGUMENT, 42, "not UTF-8");
    of.group_id = text("");
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_REJECTED, 42, "group id is empty");
    of = key(-1);
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_REJECTED, 42, "negative");
    of = key(0);
    memset(of.topic_id, 0, 16);
    EXPECT(sharestate_summary(store, &of, NULL, &error), SHARESTATE_REJECTED, 42, "nil");

    sharestate_ack_t ack = {.ack_type = 9};
    sharestate_stage_t stage = {.acks = &ack, .ack_count = 1};
    of = key(0);
    EXPECT(sharestate_stage(store, &of, &stage, NULL, &error), SHARESTATE_REJECTED, 42, "acknowledge type 9");
    sharestate_marker_t marker = {.commit = 2};
    EXPECT(sharestate_marker(store, &marker, NULL, &error), SHARESTATE_INVALID_ARGUMENT, 42, "commit is 2");
}

// The first failed write poisons the store; a fresh open decides what survived.
static void full_disk(const char *path) {
    sharestate_options_t options;
    sharestate_options_init(&options);
    options.segment_bytes = 64 << 10;
    options.reserve_bytes = 0;
    sharestate_store_t store;
    CHECK(sharestate_open(text(path), &options, &store, NULL) == SHARESTATE_OK);
    start(store, 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = before;
    limit.rlim_cur = 1 << 10;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    sharestate_key_t of = key(0);
    sharestate_error_t error = 0;
    sharestate_status_t status = SHARESTATE_OK;
    int64_t written = 0;
    while (status == SHARESTATE_OK) {
        sharestate_batch_t batch = {.first_offset = 2 * written, .last_offset = 2 * written, .delivery_state = 2, .delivery_count = 1};
        sharestate_write_t write = {.state_epoch = 1, .start_offset = -1, .batches = &batch, .batch_count = 1};
        status = sharestate_write(store, &of, &write, NULL, &error);
        written += status == SHARESTATE_OK;
        CHECK(written < 10000);
    }
    expect(status, error, SHARESTATE_POISONED, 56, "outcome is unknown");
    status = sharestate_initialize(store, &of, 5, 0, NULL, &error);
    expect(status, error, SHARESTATE_POISONED, 56, "nothing was logged");
    status = sharestate_close(store, &error);
    expect(status, error, SHARESTATE_POISONED, SHARESTATE_NO_KAFKA_CODE, "failed");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);

    CHECK(sharestate_open(text(path), NULL, &store, &error) == SHARESTATE_OK);
    sharestate_answer_t answer;
    CHECK(sharestate_read(store, &of, 0, 1, &answer, NULL) == SHARESTATE_OK);
    const sharestate_batch_t *batches;
    size_t count;
    CHECK(sharestate_answer_batches(answer, &batches, &count) == SHARESTATE_OK);
    CHECK(count == (size_t)written || count == (size_t)written + 1);
    sharestate_answer_free(answer);
    close_store(store);
    printf("trouble: written-before-full=%lld found=%zu\n", (long long)written, count);
}

int main(int argc, char **argv) {
    (void)argc;
    unwritable(directory(argv, "unwritable"));
    options(directory(argv, "options"));

    char path[4096];
    snprintf(path, sizeof path, "%s", directory(argv, "trouble"));
    sharestate_options_t small;
    sharestate_options_init(&small);
    small.queue_bytes = 1 << 20;
    sharestate_store_t store;
    CHECK(sharestate_open(text(path), &small, &store, NULL) == SHARESTATE_OK);
    refused(path, NULL, SHARESTATE_RETRIABLE, SHARESTATE_NO_KAFKA_CODE, "in use");
    requests(store);
    close_store(store);
    store = open_store(path); // the first one's close has given the directory free
    close_store(store);
    full_disk(directory(argv, "full"));
    return done("trouble");
}
