/* SPDX-License-Identifier: MIT */
/* The measuring loop of the programs here: as in `driver.py`, batches whose size is found first. */
#ifndef BATCHES_H
#define BATCHES_H

#include <stdio.h>
#include <time.h>

#define WARM_UP 0.2 /* seconds; finding the size takes at least that long, and does not count */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Seconds per operation of each batch. `run(what, count)` does `operations` operations count times. `repetitions` make
 * a batch; 0: as many as fit into the time. */
static void measure_into(double *times, void (*run)(void *what, long count), void *what, int operations,
                         double seconds, int batches, double warm_up, long repetitions) {
    long count = 1;
    double begin = now(), spent;
    do {
        double start = now();
        run(what, count);
        spent = now() - start;
        double wanted = (double)count * (seconds / batches) / (spent > 1e-9 ? spent : 1e-9);
        count = wanted < 1 ? 1 : wanted > 16.0 * (double)count ? 16 * count : (long)wanted;
    } while (now() - begin < warm_up);
    count = repetitions > 0 ? repetitions : count;
    for (int i = 0; i < batches; i++) {
        double start = now();
        run(what, count);
        times[i] = (now() - start) / (double)count / operations;
    }
}

#ifndef NO_PRINTING
/* Prints them, a line for each batch. */
static void measure(void (*run)(void *what, long count), void *what, int operations, double seconds,
                    int batches) {
    double times[batches];
    measure_into(times, run, what, operations, seconds, batches, WARM_UP, 0);
    for (int i = 0; i < batches; i++) {
        printf("%.9g\n", times[i]);
    }
}
#endif

#endif
