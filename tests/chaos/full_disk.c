/* A disk that is full from a certain write on, for one process: LD_PRELOAD=full_disk.so.

   CHAOS_DISK_LOG names a file. The process writes into it the time of the first write that failed (seconds of
   CLOCK_MONOTONIC), or in the end how many writes there were. CHAOS_DISK_WRITES is the number of writes that
   succeed. Only regular files count, without standard output and error. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long writes;
static long allowed = -1;
static int log_file = -1;

static void report(const char *format, double number) {
    char line[64];
    int size = snprintf(line, sizeof line, format, number);
    if (log_file >= 0 && syscall(SYS_write, log_file, line, size) < 0) {
        abort();
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CHAOS_DISK_LOG"), *number = getenv("CHAOS_DISK_WRITES");
    allowed = number ? atol(number) : -1;
    log_file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600) : -1;
}

__attribute__((destructor)) static void end(void) { report("writes %.0f\n", (double)writes); }

static int is_full(int file) {
    struct stat found;
    if (log_file < 0 || file <= 2 || fstat(file, &found) || !S_ISREG(found.st_mode)) {
        return 0;
    }
    long number = atomic_fetch_add(&writes, 1);
    if (allowed < 0 || number < allowed) {
        return 0;
    }
    if (number == allowed) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        report("full %.6f\n", now.tv_sec + now.tv_nsec / 1e9);
    }
    errno = ENOSPC;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t size) {
    return is_full(file) ? -1 : NEXT(write)(file, bytes, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return is_full(file) ? -1 : NEXT(writev)(file, parts, count);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t place) {
    return is_full(file) ? -1 : NEXT(pwrite)(file, bytes, size, place);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t place) {
    return is_full(file) ? -1 : NEXT(pwrite64)(file, bytes, size, place);
}

int fallocate(int file, int mode, off_t place, off_t size) {
    return is_full(file) ? -1 : NEXT(fallocate)(file, mode, place, size);
}

int posix_fallocate(int file, off_t place, off_t size) {
    return is_full(file) ? ENOSPC : NEXT(posix_fallocate)(file, place, size);
}
