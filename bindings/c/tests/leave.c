// A process that ends without closing its store, with calls outstanding: it ends cleanly, and what was
// answered is there.

#include <sys/wait.h>

#include "check.h"

enum { ANSWERED = 20, OUTSTANDING = 200 };

static void on_answer(void *user_data, sharestate_status_t status, sharestate_answer_t answer,
                      sharestate_error_t error) {
    (void)user_data, (void)status;
    sharestate_answer_free(answer);
    sharestate_error_free(error);
}

static void leave(const char *path) {
    sharestate_store_t store = open_store(path);
    for (int32_t partition = 0; partition < ANSWERED; partition++) {
        start(store, partition);
    }
    for (int32_t partition = 0; partition < OUTSTANDING; partition++) {
        sharestate_key_t of = key(ANSWERED + partition);
        CHECK(sharestate_initialize_async(store, &of, 1, 0, on_answer, NULL, NULL, NULL) == SHARESTATE_OK);
    }
    exit(0);
}

int main(int argc, char **argv) {
    (void)argc;
    const char *path = directory(argv, "leave");
    fflush(stdout);
    pid_t child = fork(); // before the library has a thread
    CHECK(child >= 0);
    if (child == 0) {
        leave(path);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    sharestate_store_t store = open_store(path);
    for (int32_t partition = 0; partition < ANSWERED; partition++) {
        sharestate_key_t of = key(partition);
        CHECK(sharestate_read(store, &of, 0, 1, NULL, NULL) == SHARESTATE_OK);
    }
    close_store(store);
    return done("leave");
}
