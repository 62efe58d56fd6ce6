/* Reference: run a command on a pty, wait for its ready marker, type one key, and read and drop the expected number
 * of bytes. Prints bytes, seconds and its own CPU seconds: the limit of the pty for every server. */
#define _GNU_SOURCE
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char READY[] = "@@READY@@\r\n";
static char buffer[65536];

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int wait_until_ready(int master) {
    size_t filled = 0;
    ssize_t n;
    while (filled < sizeof buffer && (n = read(master, buffer + filled, sizeof buffer - filled)) > 0) {
        filled += (size_t)n;
        if (memmem(buffer, filled, READY, sizeof READY - 1)) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    int master;
    if (argc < 3) return 2;
    long long expected = atoll(argv[1]);
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0) return 1;
    if (child == 0) {
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (!wait_until_ready(master)) return 1;

    long long bytes = 0;
    ssize_t n;
    double started = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    if (write(master, "g", 1) != 1) return 1;
    while (bytes < expected && (n = read(master, buffer, sizeof buffer)) > 0) bytes += n;
    double seconds = now(CLOCK_MONOTONIC) - started;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    close(master);
    waitpid(child, NULL, 0);
    printf("%lld %.9f %.9f\n", bytes, seconds, cpu);
    return 0;
}
