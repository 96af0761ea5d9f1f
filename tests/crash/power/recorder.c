/* Preloaded into servers (LD_PRELOAD): records, in their order, all changes that their processes make to files below
 * ROWPLANE_RECORD_ROOT, and their syncs, in the file ROWPLANE_RECORD. `record.rs` reads it.
 *
 * A change and its record are made under one lock, so that the records stand in the order of the changes. All processes
 * share the lock, since those of a PostgreSQL share their files; it is in a file beside the record. A sync has two
 * records, since what is changed while it runs may be missing from it.
 *
 * Two things are not seen, and both are done without after a crash. Memory maps: SQLite maps only the log's index
 * (-shm), and PostgreSQL nothing in its directory. Streams of the C library: PostgreSQL writes its statistics and its cache
 * of the catalog so, and forgets both when it recovers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum op { WRITE = 1, TRUNCATE, CREATE, RENAME, UNLINK, MAKE_DIRECTORY, LINK, SYNC_BEGINS, SYNC_ENDS };

/* In the machine's byte order; followed by both paths and the data. `at` is an offset, a length, or a sync's number. */
struct record {
    uint32_t op, path_length, other_length, zero;
    uint64_t file, at, data_length;
};

/* What all recorded processes share. */
struct shared {
    pthread_mutex_t lock;
    uint64_t syncs;
};

static struct shared *shared;
static int record_fd = -1;
static char root[PATH_MAX];
static size_t root_length;

/* The first process makes what is shared. Its lock outlives a process that ends while it holds it. */
static void share(const char *record) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.shared", record);
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat about;
    if (fd < 0 || flock(fd, LOCK_EX) || fstat(fd, &about)) abort();
    if (!about.st_size && syscall(SYS_ftruncate, fd, sizeof *shared)) abort();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) abort();
    if (!about.st_size) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&shared->lock, &kind);
    }
    /* The mapping would keep the lock of the file. */
    flock(fd, LOCK_UN);
    syscall(SYS_close, fd);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ROWPLANE_RECORD"), *below = getenv("ROWPLANE_RECORD_ROOT");
    if (!path || !below || !realpath(below, root)) return;
    root_length = strlen(root);
    share(path);
    record_fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (record_fd < 0) abort();
}

static void lock(void) {
    if (shared && pthread_mutex_lock(&shared->lock) == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
}

static void unlock(void) {
    if (shared) pthread_mutex_unlock(&shared->lock);
}

static int is_below(const char *path) {
    return record_fd >= 0 && !strncmp(path, root, root_length) && path[root_length] == '/';
}

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t put = syscall(SYS_write, record_fd, at, length);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) abort();
        at += put;
        length -= put;
    }
}

static void record(enum op op, uint64_t file, uint64_t at, const char *path, const char *other, const void *data,
                   size_t length) {
    int error = errno;
    struct record head = {op, path ? strlen(path) : 0, other ? strlen(other) : 0, 0, file, at, length};
    /* One write, so that a reader who sees the file's length sees whole records up to it. */
    size_t size = sizeof head + head.path_length + head.other_length + length;
    char *whole = malloc(size), *end = whole;
    if (!whole) abort();
    end = mempcpy(end, &head, sizeof head);
    end = mempcpy(end, path ? path : "", head.path_length);
    end = mempcpy(end, other ? other : "", head.other_length);
    if (length) memcpy(end, data, length);
    put(whole, size);
    free(whole);
    errno = error;
}

/* Whether the descriptor is of a file or directory below the root. Gives its path and number. */
static int is_watched(int fd, char *path, uint64_t *file) {
    if (record_fd < 0) return 0;
    int error = errno;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    struct stat about;
    int found = length > 0 && (path[length] = 0, is_below(path) || !strcmp(path, root)) && !fstat(fd, &about);
    if (found) *file = about.st_ino;
    errno = error;
    return found;
}

/* The path without links in its directories; 0 if it is not below the root. */
static int resolve(int directory, const char *path, char *resolved) {
    if (record_fd < 0 || !path) return 0;
    int error = errno, found = 0;
    char whole[PATH_MAX * 2], parent[PATH_MAX * 2];
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char base[PATH_MAX];
        char link[64] = "/proc/self/cwd";
        if (directory != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length <= 0) goto out;
        base[length] = 0;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    strcpy(parent, whole);
    char *last = strrchr(parent, '/');
    if (last && last[1]) {
        char name[NAME_MAX + 1], real[PATH_MAX];
        snprintf(name, sizeof name, "%s", last + 1);
        *last = 0;
        if (realpath(parent[0] ? parent : "/", real)) {
            int length = snprintf(resolved, PATH_MAX, "%s/%s", real, name);
            found = length > 0 && length < PATH_MAX && is_below(resolved);
        }
    }
out:
    errno = error;
    return found;
}


static ssize_t written(int fd, const struct iovec *parts, int count, off_t offset, int positioned) {
    char path[PATH_MAX];
    uint64_t file;
    if (!is_watched(fd, path, &file)) {
        return positioned ? syscall(SYS_pwritev, fd, parts, (long)count, (long)offset, 0L)
                          : syscall(SYS_writev, fd, parts, (long)count);
    }
    lock();
    if (!positioned) {
        struct stat about;
        offset = fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &about) ? about.st_size : lseek(fd, 0, SEEK_CUR);
    }
    ssize_t length = positioned ? syscall(SYS_pwritev, fd, parts, (long)count, (long)offset, 0L)
                                : syscall(SYS_writev, fd, parts, (long)count);
    if (length > 0) {
        char *data = malloc(length), *end = data;
        if (!data) abort();
        for (int n = 0; n < count && end < data + length; n++) {
            size_t left = data + length - end;
            end = mempcpy(end, parts[n].iov_base, parts[n].iov_len < left ? parts[n].iov_len : left);
        }
        record(WRITE, file, offset, path, NULL, data, length);
        free(data);
    }
    unlock();
    return length;
}

ssize_t write(int fd, const void *data, size_t length) {
    struct iovec part = {(void *)data, length};
    return written(fd, &part, 1, 0, 0);
}
ssize_t writev(int fd, const struct iovec *parts, int count) { return written(fd, parts, count, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    struct iovec part = {(void *)data, length};
    return written(fd, &part, 1, offset, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) { return pwrite(fd, data, length, offset); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return written(fd, parts, count, at, 1); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return written(fd, parts, count, at, 1); }

/* What copies within the kernel is refused: callers fall back to reading and writing. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags) {
    (void)in, (void)from, (void)out, (void)to, (void)length, (void)flags;
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile64(int out, int in, off64_t *from, size_t length) {
    char path[PATH_MAX];
    uint64_t file;
    if (is_watched(out, path, &file)) return errno = EINVAL, -1;
    return syscall(SYS_sendfile, out, in, from, length);
}
ssize_t sendfile(int out, int in, off_t *from, size_t length) { return sendfile64(out, in, from, length); }

int ftruncate(int fd, off_t length) {
    char path[PATH_MAX];
    uint64_t file;
    if (!is_watched(fd, path, &file)) return syscall(SYS_ftruncate, fd, length);
    lock();
    int result = syscall(SYS_ftruncate, fd, length);
    if (!result) record(TRUNCATE, file, length, path, NULL, NULL, 0);
    unlock();
    return result;
}
int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }
int truncate(const char *path, off_t length) {
    char resolved[PATH_MAX];
    if (!resolve(AT_FDCWD, path, resolved)) return syscall(SYS_truncate, path, length);
    lock();
    struct stat about;
    int result = syscall(SYS_truncate, path, length);
    if (!result && !stat(resolved, &about)) record(TRUNCATE, about.st_ino, length, resolved, NULL, NULL, 0);
    unlock();
    return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
    char path[PATH_MAX];
    uint64_t file;
    if (is_watched(fd, path, &file)) return errno = EOPNOTSUPP, -1;
    return syscall(SYS_fallocate, fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) { return fallocate(fd, mode, offset, length); }
/* The error is the result here. */
int posix_fallocate(int fd, off_t offset, off_t length) {
    int error = errno, result = fallocate(fd, 0, offset, length) ? errno : 0;
    errno = error;
    return result;
}

/* The machine stays on, so that the real sync would only take its time: a millisecond or two, in which others write. */
static int synced(int fd, long call) {
    char path[PATH_MAX];
    uint64_t file;
    if (!is_watched(fd, path, &file)) return syscall(call, fd);
    lock();
    uint64_t number = ++shared->syncs;
    record(SYNC_BEGINS, file, number, path, NULL, NULL, 0);
    unlock();
    usleep(number * 7919 % 2000);
    lock();
    record(SYNC_ENDS, file, number, path, NULL, NULL, 0);
    unlock();
    return 0;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int opened(int directory, const char *path, int flags, mode_t mode) {
    char resolved[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !resolve(directory, path, resolved))
        return syscall(SYS_openat, directory, path, flags, mode);
    lock();
    int error = errno;
    struct stat about;
    int was_there = !stat(resolved, &about);
    errno = error;
    int fd = syscall(SYS_openat, directory, path, flags, mode);
    if (fd >= 0 && !fstat(fd, &about)) {
        if (!was_there) record(CREATE, about.st_ino, about.st_mode & 07777, resolved, NULL, NULL, 0);
        else if (flags & O_TRUNC) record(TRUNCATE, about.st_ino, 0, resolved, NULL, NULL, 0);
    }
    unlock();
    return fd;
}
#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static int changed(enum op op, int result_of, const char *path, const char *other) {
    if (!result_of) record(op, 0, 0, path, other, NULL, 0);
    return result_of;
}

static int moved(enum op op, long call, int from_in, const char *from, int to_in, const char *to, unsigned flags) {
    char source[PATH_MAX], target[PATH_MAX];
    int known = resolve(from_in, from, source) & resolve(to_in, to, target);
    lock();
    int result = syscall(call, from_in, from, to_in, to, flags);
    if (known) changed(op, result, source, target);
    unlock();
    return result;
}
int rename(const char *from, const char *to) { return moved(RENAME, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return moved(RENAME, SYS_renameat2, a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    return moved(RENAME, SYS_renameat2, a, from, b, to, flags);
}
int link(const char *from, const char *to) { return moved(LINK, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    return moved(LINK, SYS_linkat, a, from, b, to, flags);
}

static int removed(int directory, const char *path, int flags) {
    char resolved[PATH_MAX];
    int known = resolve(directory, path, resolved);
    lock();
    int result = syscall(SYS_unlinkat, directory, path, flags);
    if (known) changed(UNLINK, result, resolved, NULL);
    unlock();
    return result;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return removed(directory, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) { return removed(AT_FDCWD, path, 0); }

int mkdirat(int directory, const char *path, mode_t mode) {
    char resolved[PATH_MAX];
    int known = resolve(directory, path, resolved);
    lock();
    int result = syscall(SYS_mkdirat, directory, path, mode);
    if (known) changed(MAKE_DIRECTORY, result, resolved, NULL);
    unlock();
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
