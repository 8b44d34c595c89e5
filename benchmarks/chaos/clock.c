/* The time of day, so many seconds beside the true one: preloaded into a process, by the number that the file TOUCHSTONE_CLOCK holds.
   Clocks that only run forward are not touched. See clock.py. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <dlfcn.h>

static const volatile int64_t *beside;
static int (*next)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TOUCHSTONE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *beside, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) beside = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = next ? next(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && beside && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *beside;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return (time_t)-1;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
