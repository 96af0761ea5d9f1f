/* Preloaded into a server (LD_PRELOAD): a disk that is full, fails or is slow while the test says so. Calls on files whose
 * paths begin with ROWPLANE_DISK are struck, each with the same chance. The file ROWPLANE_DISK_CONTROL, which all processes
 * map, holds a `struct control`; `disk.rs` writes it.
 *
 * A sync does nothing else, since the machine stays on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum trouble { NONE, FULL, FAILING, SLOW };

struct control {
    /* An `enum trouble`; one of so many calls is struck; a delay's milliseconds; how many calls have been struck. */
    uint32_t trouble, one_in, delay, struck;
};

static struct control *control;
static const char *prefix;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ROWPLANE_DISK_CONTROL");
    prefix = getenv("ROWPLANE_DISK");
    if (!path || !prefix) return;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) abort();
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED) abort();
    syscall(SYS_close, fd);
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return 1;
}

static int is_ours(const char *path) { return !strncmp(path, prefix, strlen(prefix)); }

/* Whether a descriptor's file is on this disk. */
static int is_here(int fd) {
    char path[PATH_MAX];
    int error = errno, found = control && path_of(fd, path) && is_ours(path);
    errno = error;
    return found;
}

static int by_chance(void) {
    static __thread uint64_t state;
    if (!state) state = (((uint64_t)time(NULL) << 32) ^ getpid() ^ (uintptr_t)&state) | 1;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint32_t one_in = control->one_in;
    return one_in <= 1 || state % one_in == 0;
}

static void wait_a_while(void) {
    struct timespec left = {control->delay / 1000, control->delay % 1000 * 1000000L};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
}

/* What happens to a call that the given troubles can strike: an error, or 0 if it goes on. */
static int strike(int can_be_full) {
    int error = errno;
    uint32_t trouble = control->trouble;
    int struck = trouble != NONE && (trouble != FULL || can_be_full) && by_chance();
    if (struck) __atomic_add_fetch(&control->struck, 1, __ATOMIC_RELAXED);
    if (struck && trouble == SLOW) wait_a_while();
    errno = error;
    if (!struck || trouble == SLOW) return 0;
    return trouble == FULL ? ENOSPC : EIO;
}

/* Whether a write would make the file longer. What is there can be overwritten on a full disk. */
static int extends(int fd, off_t at, size_t length) {
    struct stat about;
    return !fstat(fd, &about) && at + (off_t)length > about.st_size;
}

static ssize_t written(int fd, const struct iovec *parts, int count, off_t at, int positioned) {
    if (is_here(fd)) {
        size_t length = 0;
        for (int n = 0; n < count; n++) length += parts[n].iov_len;
        struct stat about;
        off_t start = positioned ? at : fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &about) ? about.st_size : lseek(fd, 0, SEEK_CUR);
        int error = strike(extends(fd, start, length));
        /* Sometimes the first sectors still find room. */
        size_t some = parts[0].iov_len / 2 / 512 * 512;
        if (error == ENOSPC && some && start / 512 % 2) {
            return positioned ? syscall(SYS_pwrite64, fd, parts[0].iov_base, some, (long)at)
                              : syscall(SYS_write, fd, parts[0].iov_base, some);
        }
        if (error) return errno = error, -1;
    }
    return positioned ? syscall(SYS_pwritev, fd, parts, (long)count, (long)at, 0L)
                      : syscall(SYS_writev, fd, parts, (long)count);
}

ssize_t write(int fd, const void *data, size_t length) {
    struct iovec part = {(void *)data, length};
    return written(fd, &part, 1, 0, 0);
}
ssize_t writev(int fd, const struct iovec *parts, int count) { return written(fd, parts, count, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
    struct iovec part = {(void *)data, length};
    return written(fd, &part, 1, at, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) { return pwrite(fd, data, length, at); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return written(fd, parts, count, at, 1); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return written(fd, parts, count, at, 1); }

/* PostgreSQL takes a log that cannot be read for one that ends, and then recovers less than was committed. So reads of the log
 * are spared. */
static int is_read_of_log(int fd) {
    char path[PATH_MAX];
    return path_of(fd, path) && strstr(path, "/pg_wal/");
}
ssize_t pread(int fd, void *data, size_t length, off_t at) {
    int error = is_here(fd) && !is_read_of_log(fd) ? strike(0) : 0;
    return error ? (errno = error, -1) : syscall(SYS_pread64, fd, data, length, (long)at);
}
ssize_t pread64(int fd, void *data, size_t length, off64_t at) { return pread(fd, data, length, at); }

int ftruncate(int fd, off_t length) {
    int error = is_here(fd) ? strike(extends(fd, length, 0)) : 0;
    return error ? (errno = error, -1) : syscall(SYS_ftruncate, fd, length);
}
int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }
int fallocate(int fd, int mode, off_t at, off_t length) {
    int error = is_here(fd) ? strike(extends(fd, at, length)) : 0;
    return error ? (errno = error, -1) : syscall(SYS_fallocate, fd, mode, at, length);
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) { return fallocate(fd, mode, at, length); }
/* The error is the result here. */
int posix_fallocate(int fd, off_t at, off_t length) {
    int error = errno, result = fallocate(fd, 0, at, length) ? errno : 0;
    errno = error;
    return result;
}

static int synced(int fd, long call) {
    if (!is_here(fd)) return syscall(call, fd);
    int error = strike(0);
    return error ? (errno = error, -1) : 0;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
int sync_file_range(int fd, off64_t at, off64_t length, unsigned flags) {
    if (!is_here(fd)) return syscall(SYS_sync_file_range, fd, at, length, flags);
    int error = strike(0);
    return error ? (errno = error, -1) : 0;
}

/* A name without a file yet, on this disk. PostgreSQL's names are below its working directory. */
static int is_new_here(int directory, const char *path) {
    if (!control || directory != AT_FDCWD) return 0;
    char whole[PATH_MAX * 2];
    int error = errno, length = 0;
    if (path[0] != '/') {
        if (!getcwd(whole, PATH_MAX)) return 0;
        length = strlen(whole);
        whole[length++] = '/';
    }
    snprintf(whole + length, sizeof whole - length, "%s", path);
    struct stat about;
    int found = is_ours(whole) && stat(whole, &about);
    errno = error;
    return found;
}
static int opened(int directory, const char *path, int flags, mode_t mode) {
    int error = flags & O_CREAT && is_new_here(directory, path) ? strike(1) : 0;
    return error ? (errno = error, -1) : syscall(SYS_openat, directory, path, flags, mode);
}
#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) return opened(directory, path, flags, mode); }
