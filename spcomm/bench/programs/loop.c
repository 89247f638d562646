/* SPDX-License-Identifier: MIT */
/*
 * What barriers and hops cost that do nothing else: processes that share memory, and atomics.
 *
 *   loop barrier|ring PROCESSES SECONDS BATCHES
 *
 * prints seconds per barrier, or per hop of a number that goes round all processes, a line for each batch. A process
 * that waits polls and then lets others go on: after a few polls where there are fewer cores than processes.
 *
 * Compiled by `spcomm bench`; no part of spcomm.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batches.h"

enum { LINE = 64, FEW = 10, MANY = 10000 };

struct line {
    _Alignas(LINE) atomic_uint value;
};

/* In memory that all processes share. */
struct shared {
    struct line arrived, generation; /* of the barrier: how many wait, and how often all have met */
    struct line count; /* repetitions in the next batch, 0 for the end; written before a barrier */
    struct line laps[]; /* of each process: the last lap in which its neighbour has reached it */
};

static struct shared *shared;
static unsigned rank, processes, lap;
static int polls; /* before a process that waits lets others go on */

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Until the release store of `wanted` in `barrier` or `pass` is seen. */
static void wait_for(struct line *line, unsigned wanted) {
    for (int left = polls; atomic_load_explicit(&line->value, memory_order_acquire) != wanted; left--) {
        if (left <= 0) {
            sched_yield();
            left = 1;
        }
    }
}

/* Each arrival releases what came before it to the last one, which releases all of it to who waits. */
static void barrier(void) {
    unsigned next = atomic_load_explicit(&shared->generation.value, memory_order_relaxed) + 1;
    if (atomic_fetch_add_explicit(&shared->arrived.value, 1, memory_order_acq_rel) + 1 < processes) {
        wait_for(&shared->generation, next);
    } else {
        atomic_store_explicit(&shared->arrived.value, 0, memory_order_relaxed);
        atomic_store_explicit(&shared->generation.value, next, memory_order_release);
    }
}

static void pass(void) {
    atomic_store_explicit(&shared->laps[(rank + 1) % processes].value, lap, memory_order_release);
}

static void go_round(void) {
    lap++;
    if (rank == 0) {
        pass();
    }
    wait_for(&shared->laps[rank], lap);
    if (rank != 0) {
        pass();
    }
}

static void repeat(void (*work)(void), long count) {
    for (long i = 0; i < count; i++) {
        work();
    }
}

/* Process 0 says how often, the barrier makes it known, and all of them do it. */
static void batch(void *what, long count) {
    atomic_store_explicit(&shared->count.value, (unsigned)count, memory_order_relaxed);
    barrier();
    repeat(*(void (**)(void))what, count);
}

static void follow(void (*work)(void)) {
    unsigned count;
    do {
        barrier();
        count = atomic_load_explicit(&shared->count.value, memory_order_relaxed);
        repeat(work, count);
    } while (count > 0);
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "loop barrier|ring PROCESSES SECONDS BATCHES\n");
        return 2;
    }
    cpu_set_t cores;
    bool ring = strcmp(argv[1], "ring") == 0;
    void (*work)(void) = ring ? go_round : barrier;
    processes = (unsigned)atoi(argv[2]);
    size_t size = sizeof *shared + processes * sizeof shared->laps[0];
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || sched_getaffinity(0, sizeof cores, &cores) != 0) {
        fail("shared memory");
    }
    polls = (unsigned)CPU_COUNT(&cores) < processes ? FEW : MANY;
    for (unsigned other = 1; other < processes; other++) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            rank = other;
            follow(work);
        }
    }
    measure(batch, &work, ring ? (int)processes : 1, atof(argv[3]), atoi(argv[4]));
    batch(&work, 0);
    while (wait(NULL) > 0) {
    }
    return 0;
}
