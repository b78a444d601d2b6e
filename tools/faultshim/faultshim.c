/*
 * Makes file calls fail, below everything that goes through the C library: sharestate itself and
 * the RocksDB inside it. Loaded with LD_PRELOAD.
 *
 *   FAULTSHIM_DIR   only files below this absolute path are touched
 *   FAULTSHIM_PLAN  rules, separated by commas: KIND:ERROR@K    the K-th call of the kind fails
 *                                               KIND:ERROR@K+   and all later ones
 *                                               KIND:ERROR%N    one in N calls fails, at random
 *                   KIND  open read write sync allocate truncate rename unlink
 *                   ERROR EIO ENOSPC EACCES EMFILE EINTR SHORT (half of what was asked is done)
 *   FAULTSHIM_SEED  of what is drawn (default 1)
 *   FAULTSHIM_LOG   a file, outside of the directory, that gets a line for every failed call and,
 *                   at a regular exit, one with the number of calls of every kind
 *
 * A failed call does nothing at all. A failed sync leaves the page cache as it is.
 * Calls that bypass the C library are not seen: io_uring, and fallocate of sharestate's own files,
 * which rustix issues directly.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, SYNC, ALLOCATE, TRUNCATE, RENAME, UNLINK, KINDS };

static const char *const NAMES[KINDS] = {
    "open", "read", "write", "sync", "allocate", "truncate", "rename", "unlink",
};

#define SHORT_CALL (-1)
#define RULES_MAX 32
#define FDS_MAX 65536

struct rule {
    enum kind kind;
    int error; /* errno, or SHORT_CALL */
    uint64_t at;
    int sticky;
    uint64_t one_in;
};

static struct rule rules[RULES_MAX];
static int rule_count;
static atomic_uint_fast64_t calls[KINDS];
static atomic_uint_fast64_t draws;
static uint64_t seed = 1;
static char dir[4096];
static size_t dir_len;
static int log_fd = -1;
static atomic_uchar watched[FDS_MAX];

static void fatal(const char *what, const char *detail) {
    dprintf(2, "faultshim: %s: %s\n", what, detail);
    _exit(125);
}

static int error_of(const char *name) {
    static const struct { const char *name; int error; } ERRORS[] = {
        { "EIO", EIO }, { "ENOSPC", ENOSPC }, { "EACCES", EACCES }, { "EMFILE", EMFILE },
        { "EINTR", EINTR }, { "SHORT", SHORT_CALL },
    };
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (strcmp(ERRORS[i].name, name) == 0)
            return ERRORS[i].error;
    fatal("unknown error", name);
    return 0;
}

static void parse_rule(const char *text) {
    char kind[16], error[16], how, plus = 0;
    unsigned long long number;
    int fields = sscanf(text, "%15[a-z]:%15[A-Z]%c%llu%c", kind, error, &how, &number, &plus);
    if (fields < 4 || number == 0 || (how != '@' && how != '%') || (plus && plus != '+'))
        fatal("bad rule", text);
    if (rule_count == RULES_MAX)
        fatal("too many rules", text);
    struct rule *rule = &rules[rule_count++];
    for (rule->kind = 0; rule->kind < KINDS; rule->kind++)
        if (strcmp(NAMES[rule->kind], kind) == 0)
            break;
    if (rule->kind == KINDS)
        fatal("unknown kind of call", text);
    rule->error = error_of(error);
    rule->sticky = plus == '+';
    if (how == '@')
        rule->at = number;
    else
        rule->one_in = number;
}

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("FAULTSHIM_DIR");
    if (!text || text[0] != '/' || strlen(text) >= sizeof dir)
        fatal("FAULTSHIM_DIR", "must be an absolute path");
    strcpy(dir, text);
    dir_len = strlen(dir);
    if ((text = getenv("FAULTSHIM_SEED")))
        seed = strtoull(text, NULL, 10);
    if ((text = getenv("FAULTSHIM_LOG"))) {
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, text,
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log_fd < 0)
            fatal("cannot open the log", text);
    }
    char plan[4096], *rest = plan, *rule;
    if ((text = getenv("FAULTSHIM_PLAN"))) {
        if (strlen(text) >= sizeof plan)
            fatal("FAULTSHIM_PLAN", "is too long");
        strcpy(plan, text);
        while ((rule = strsep(&rest, ",")))
            if (*rule)
                parse_rule(rule);
    }
}

__attribute__((destructor)) static void finish(void) {
    char line[256];
    int at = snprintf(line, sizeof line, "calls");
    for (int kind = 0; kind < KINDS; kind++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %s=%llu", NAMES[kind],
                       (unsigned long long)atomic_load(&calls[kind]));
    line[at++] = '\n';
    if (log_fd >= 0)
        (void)!syscall(SYS_write, log_fd, line, (size_t)at);
}

/* SplitMix64 of the seed and a running number. */
static uint64_t draw(void) {
    uint64_t bits = seed + 0x9e3779b97f4a7c15u * (atomic_fetch_add(&draws, 1) + 1);
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* 0, an errno, or SHORT_CALL. Counts the call. */
static int judge(enum kind kind) {
    uint64_t number = atomic_fetch_add(&calls[kind], 1) + 1;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (rule->kind != kind)
            continue;
        int hit = rule->one_in ? draw() % rule->one_in == 0
                               : number == rule->at || (rule->sticky && number > rule->at);
        if (!hit)
            continue;
        if (log_fd >= 0) {
            char line[96];
            int size = snprintf(line, sizeof line, "fault %s call %llu errno %d\n", NAMES[kind],
                                (unsigned long long)number, rule->error);
            (void)!syscall(SYS_write, log_fd, line, (size_t)size);
        }
        return rule->error;
    }
    return 0;
}

static int is_inside(const char *path) {
    return path && dir_len && strncmp(path, dir, dir_len) == 0
        && (path[dir_len] == 0 || path[dir_len] == '/');
}

static int is_watched(int fd) {
    return fd >= 0 && fd < FDS_MAX && atomic_load_explicit(&watched[fd], memory_order_relaxed);
}

static void watch(int fd, int on) {
    if (fd >= 0 && fd < FDS_MAX)
        atomic_store_explicit(&watched[fd], (unsigned char)on, memory_order_relaxed);
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAIL_IF(kind, applies, failed)                                                             \
    do {                                                                                           \
        int error_ = (applies) ? judge(kind) : 0;                                                  \
        if (error_ > 0) {                                                                          \
            errno = error_;                                                                        \
            return failed;                                                                         \
        }                                                                                          \
    } while (0)

/* As FAIL_IF, for calls that move bytes: half of them, at least one. */
#define FAIL_OR_SHORTEN(kind, fd, size)                                                            \
    do {                                                                                           \
        int error_ = is_watched(fd) ? judge(kind) : 0;                                             \
        if (error_ > 0) {                                                                          \
            errno = error_;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        if (error_ == SHORT_CALL && size > 1)                                                      \
            size /= 2;                                                                             \
    } while (0)

#define OPEN_LIKE(name, params, call)                                                              \
    int name params {                                                                              \
        REAL(name);                                                                                \
        int inside = is_inside(path);                                                              \
        mode_t mode = 0;                                                                           \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                       \
            va_list rest;                                                                          \
            va_start(rest, flags);                                                                 \
            mode = va_arg(rest, mode_t);                                                           \
            va_end(rest);                                                                          \
        }                                                                                          \
        FAIL_IF(OPEN, inside, -1);                                                                 \
        int fd = real call;                                                                        \
        watch(fd, inside);                                                                         \
        return fd;                                                                                 \
    }

OPEN_LIKE(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN_LIKE(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN_LIKE(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN_LIKE(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))

#define FOPEN_LIKE(name)                                                                           \
    FILE *name(const char *path, const char *mode) {                                               \
        REAL(name);                                                                                \
        FAIL_IF(OPEN, is_inside(path), NULL);                                                      \
        return real(path, mode);                                                                   \
    }

FOPEN_LIKE(fopen)
FOPEN_LIKE(fopen64)

int close(int fd) {
    REAL(close);
    watch(fd, 0);
    return real(fd);
}

ssize_t read(int fd, void *bytes, size_t size) {
    REAL(read);
    FAIL_OR_SHORTEN(READ, fd, size);
    return real(fd, bytes, size);
}

#define PREAD_LIKE(name, offset_type)                                                              \
    ssize_t name(int fd, void *bytes, size_t size, offset_type offset) {                           \
        REAL(name);                                                                                \
        FAIL_OR_SHORTEN(READ, fd, size);                                                           \
        return real(fd, bytes, size, offset);                                                      \
    }

PREAD_LIKE(pread, off_t)
PREAD_LIKE(pread64, off64_t)

ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(write);
    FAIL_OR_SHORTEN(WRITE, fd, size);
    return real(fd, bytes, size);
}

#define PWRITE_LIKE(name, offset_type)                                                             \
    ssize_t name(int fd, const void *bytes, size_t size, offset_type offset) {                     \
        REAL(name);                                                                                \
        FAIL_OR_SHORTEN(WRITE, fd, size);                                                          \
        return real(fd, bytes, size, offset);                                                      \
    }

PWRITE_LIKE(pwrite, off_t)
PWRITE_LIKE(pwrite64, off64_t)

/* A short one writes the first buffer only. */
#define PWRITEV_LIKE(name, offset_type)                                                            \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset) {               \
        REAL(name);                                                                                \
        FAIL_OR_SHORTEN(WRITE, fd, count);                                                         \
        return real(fd, parts, count, offset);                                                     \
    }

PWRITEV_LIKE(pwritev, off_t)
PWRITEV_LIKE(pwritev64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    FAIL_OR_SHORTEN(WRITE, fd, count);
    return real(fd, parts, count);
}

int fsync(int fd) {
    REAL(fsync);
    FAIL_IF(SYNC, is_watched(fd), -1);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    FAIL_IF(SYNC, is_watched(fd), -1);
    return real(fd);
}

int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
    REAL(sync_file_range);
    FAIL_IF(SYNC, is_watched(fd), -1);
    return real(fd, offset, size, flags);
}

#define FALLOCATE_LIKE(name, offset_type)                                                          \
    int name(int fd, int mode, offset_type offset, offset_type size) {                             \
        REAL(name);                                                                                \
        FAIL_IF(ALLOCATE, is_watched(fd), -1);                                                     \
        return real(fd, mode, offset, size);                                                       \
    }

FALLOCATE_LIKE(fallocate, off_t)
FALLOCATE_LIKE(fallocate64, off64_t)

#define FTRUNCATE_LIKE(name, offset_type)                                                          \
    int name(int fd, offset_type size) {                                                           \
        REAL(name);                                                                                \
        FAIL_IF(TRUNCATE, is_watched(fd), -1);                                                     \
        return real(fd, size);                                                                     \
    }

FTRUNCATE_LIKE(ftruncate, off_t)
FTRUNCATE_LIKE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(rename);
    FAIL_IF(RENAME, is_inside(from) || is_inside(to), -1);
    return real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    FAIL_IF(UNLINK, is_inside(path), -1);
    return real(path);
}
