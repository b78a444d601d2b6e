// What the tests share: a check that counts, directories of their own, short requests.
#ifndef CHECK_H
#define CHECK_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sharestate.h>

static atomic_int checks;

#define CHECK(holds)                                                                        \
    do {                                                                                    \
        if (!(holds)) {                                                                     \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds);      \
            abort();                                                                        \
        }                                                                                   \
        atomic_fetch_add(&checks, 1);                                                       \
    } while (0)

static inline sharestate_text_t text(const char *string) {
    sharestate_text_t text = {string, strlen(string)};
    return text;
}

static inline sharestate_key_t key(int32_t partition) {
    sharestate_key_t key = {.group_id = text("g:colon"), .topic_id = {7}, .partition = partition};
    return key;
}

// A new directory below the one that is named on the command line.
static inline const char *directory(char **argv, const char *name) {
    static char path[4096];
    CHECK(argv[1] != NULL);
    snprintf(path, sizeof path, "%s/%s", argv[1], name);
    return path;
}

static inline sharestate_store_t open_store(const char *path) {
    sharestate_store_t store = 99;
    sharestate_error_t error = 99;
    sharestate_status_t status = sharestate_open(text(path), NULL, &store, &error);
    if (status != SHARESTATE_OK) {
        fprintf(stderr, "open %s: %s\n", path, sharestate_error_message(error));
    }
    CHECK(status == SHARESTATE_OK && store != 0 && error == 0);
    return store;
}

static inline void start(sharestate_store_t store, int32_t partition) {
    sharestate_key_t of = key(partition);
    CHECK(sharestate_initialize(store, &of, 1, 0, NULL, NULL) == SHARESTATE_OK);
}

static inline void close_store(sharestate_store_t store) {
    sharestate_error_t error = 99;
    CHECK(sharestate_close(store, &error) == SHARESTATE_OK && error == 0);
}

// Checks class, code and a part of the text of an error, and frees it.
static inline void expect(sharestate_status_t status, sharestate_error_t error, sharestate_status_t class,
                          int16_t code, const char *part) {
    const char *message = sharestate_error_message(error);
    if (status != class || sharestate_error_kafka_code(error) != code || !strstr(message, part)) {
        fprintf(stderr, "status %d code %d: %s\n", status, sharestate_error_kafka_code(error), message);
    }
    CHECK(status == class);
    CHECK(error != 0 && sharestate_error_status(error) == class);
    CHECK(sharestate_error_kafka_code(error) == code);
    CHECK(strstr(message, part) != NULL);
    CHECK(sharestate_error_free(error) == SHARESTATE_OK);
}

// The same of a call that puts its error into `error`. In C the order in which arguments are evaluated is
// open, so `expect(call(&error), error, ...)` would not do.
#define EXPECT(call, class, code, part)              \
    do {                                             \
        sharestate_error_t error = 99;               \
        sharestate_status_t status_of_call = (call); \
        expect(status_of_call, error, class, code, part); \
    } while (0)

static inline int done(const char *name) {
    printf("%s: checks=%d failed=0\n", name, atomic_load(&checks));
    return 0;
}

#endif
