// Callbacks: exactly once or, cancelled, never; none after close; a caller that goes away.

#include <pthread.h>

#include "check.h"

#define LATE 100000

static sharestate_store_t store;

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int entered, open, left;
};

static void pass(struct gate *gate, int *what) {
    pthread_mutex_lock(&gate->lock);
    *what = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void await(struct gate *gate, const int *what) {
    pthread_mutex_lock(&gate->lock);
    while (!*what) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static void release(sharestate_answer_t answer, sharestate_error_t error) {
    CHECK((answer == 0) != (error == 0));
    if (answer) {
        CHECK(sharestate_answer_free(answer) == SHARESTATE_OK);
    } else {
        CHECK(sharestate_error_free(error) == SHARESTATE_OK);
    }
}

// Holds the callback thread until the gate opens.
static void hold(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                 sharestate_error_t error) {
    struct gate *gate = user_data;
    CHECK(status == SHARESTATE_OK);
    release(answer, error);
    pass(gate, &gate->entered);
    await(gate, &gate->open);
    pass(gate, &gate->left);
}

static void never(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                  sharestate_error_t error) {
    (void)status, (void)answer, (void)error;
    *(volatile int *)user_data = 1; // the caller has freed it
    CHECK(!"a cancelled callback");
}

static void *open_later(void *user_data) {
    struct gate *gate = user_data;
    usleep(LATE);
    pass(gate, &gate->open);
    return NULL;
}

// Whoever cancels may free what the callback would use.
static void cancelled_ones_never_run(void) {
    sharestate_key_t of = key(0);
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    sharestate_call_t held, calls[100];
    void *memory[100];
    CHECK(sharestate_summary_async(store, &of, hold, &gate, &held, NULL) == SHARESTATE_OK);
    await(&gate, &gate.entered);
    for (int i = 0; i < 100; i++) {
        memory[i] = malloc(sizeof(int));
        CHECK(sharestate_initialize_async(store, &of, i + 2, 0, never, memory[i], &calls[i], NULL) ==
              SHARESTATE_OK);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(sharestate_cancel(calls[i]) == SHARESTATE_OK);
        CHECK(sharestate_cancel(calls[i]) == SHARESTATE_TOO_LATE);
        free(memory[i]);
    }
    // The callback that runs cannot be cancelled: cancel waits until it has returned.
    pthread_t later;
    CHECK(pthread_create(&later, NULL, open_later, &gate) == 0);
    CHECK(!gate.left);
    CHECK(sharestate_cancel(held) == SHARESTATE_TOO_LATE && gate.left);
    CHECK(pthread_join(later, NULL) == 0);

    // Their commands are not taken back: the last initialize has happened.
    sharestate_answer_t answer;
    CHECK(sharestate_summary(store, &of, &answer, NULL) == SHARESTATE_OK);
    sharestate_partition_t partition;
    CHECK(sharestate_answer_partition(answer, &partition) == SHARESTATE_OK);
    CHECK(partition.state_epoch == 101);
    sharestate_answer_free(answer);
    for (int i = 0; i < 100; i++) {
        sharestate_status_t status = sharestate_cancel(calls[i]);
        CHECK(status == SHARESTATE_TOO_LATE || status == SHARESTATE_INVALID_HANDLE);
    }
}

struct inside {
    struct gate gate;
    sharestate_call_t self;
};

// May call anything but the close of its own store.
static void calls_from_inside(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                              sharestate_error_t error) {
    struct inside *inside = user_data;
    CHECK(status == SHARESTATE_OK);
    release(answer, error);
    sharestate_key_t of = key(3);
    CHECK(sharestate_initialize(store, &of, 1, 0, NULL, NULL) == SHARESTATE_OK);
    CHECK(sharestate_summary(store, &of, &answer, NULL) == SHARESTATE_OK);
    CHECK(sharestate_answer_free(answer) == SHARESTATE_OK);
    CHECK(sharestate_cancel(inside->self) == SHARESTATE_TOO_LATE);
    status = sharestate_close(store, &error);
    expect(status, error, SHARESTATE_REJECTED, 42, "from one of its own callbacks");
    pass(&inside->gate, &inside->gate.left);
}

static atomic_int begun, told;

static void count(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                  sharestate_error_t error) {
    (void)user_data;
    CHECK(status == SHARESTATE_OK || status == SHARESTATE_RETRIABLE);
    release(answer, error);
    atomic_fetch_add(&told, 1);
}

// Calls until the store is closed under it.
static void *caller(void *user_data) {
    int32_t partition = (int32_t)(intptr_t)user_data;
    sharestate_key_t of = key(partition);
    for (int epoch = 2;; epoch++) {
        sharestate_error_t error;
        sharestate_status_t status = sharestate_initialize_async(store, &of, epoch, 0, count, NULL, NULL, &error);
        if (status == SHARESTATE_OK) {
            atomic_fetch_add(&begun, 1);
        } else {
            expect(status, error, SHARESTATE_INVALID_HANDLE, 6, "closed");
            return NULL;
        }
        status = sharestate_summary(store, &of, NULL, NULL);
        if (status != SHARESTATE_OK) {
            CHECK(status == SHARESTATE_RETRIABLE || status == SHARESTATE_INVALID_HANDLE);
        }
    }
}

// However long a callback takes, close lets it return and runs all that are to come.
static void close_waits(const char *path) {
    store = open_store(path);
    start(store, 0);
    sharestate_key_t of = key(0);
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    CHECK(sharestate_summary_async(store, &of, hold, &gate, NULL, NULL) == SHARESTATE_OK);
    await(&gate, &gate.entered);
    int before = atomic_load(&told);
    for (int i = 0; i < 200; i++) {
        CHECK(sharestate_summary_async(store, &of, count, NULL, NULL, NULL) == SHARESTATE_OK);
    }
    pthread_t later;
    CHECK(pthread_create(&later, NULL, open_later, &gate) == 0);
    close_store(store);
    CHECK(gate.left && atomic_load(&told) == before + 200);
    CHECK(pthread_join(later, NULL) == 0);
}

int main(int argc, char **argv) {
    (void)argc;
    store = open_store(directory(argv, "callbacks"));
    start(store, 0);
    cancelled_ones_never_run();

    struct inside inside = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0}, 0};
    sharestate_key_t of = key(0);
    CHECK(sharestate_summary_async(store, &of, calls_from_inside, &inside, &inside.self, NULL) ==
          SHARESTATE_OK);
    await(&inside.gate, &inside.gate.left);

    // Close under load: whatever began is told once, and nothing after close has returned.
    pthread_t callers[4];
    for (intptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&callers[i], NULL, caller, (void *)(i + 10)) == 0);
    }
    while (atomic_load(&told) < 40) {
        usleep(100);
    }
    close_store(store);
    int at_close = atomic_load(&told);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(callers[i], NULL) == 0);
    }
    CHECK(atomic_load(&told) == at_close);
    CHECK(atomic_load(&begun) == at_close);
    printf("callbacks: begun=%d told=%d after-close=0\n", atomic_load(&begun), at_close);

    close_waits(directory(argv, "callbacks-close"));
    return done("callbacks");
}
