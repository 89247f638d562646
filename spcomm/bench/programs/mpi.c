/* SPDX-License-Identifier: MIT */
/*
 * An MPI program, the same for every library of it; with_mpi4py.py has its works in Python.
 *
 *   mpi RESULTS SECONDS REPETITIONS [KEY WORK SIZE]…
 *
 * appends a line of JSON for each work to RESULTS: its key, and seconds per operation for each batch. REPETITIONS
 * operations make a batch; 0: as many as fit into its part of SECONDS. Each batch ends with a barrier.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define NO_PRINTING
#include "batches.h"

enum { BATCHES = 15, WINDOW = 64 };

#define WORLD MPI_COMM_WORLD
#define NO_STATUS MPI_STATUS_IGNORE

static int rank, nodes, size;
static char *source, *target;

static void check(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "%s: rank %d has received something else\n", what, rank);
        MPI_Abort(WORLD, 1);
    }
}

/* The first and the last byte tell the batches apart. */
static void mark(char *data, long count) {
    data[0] = data[size - 1] = (char)count;
}

static void check_mark(const char *data, long count, const char *what) {
    check(data[0] == (char)count && data[size - 1] == (char)count, what);
}

static void pingpong(long count) {
    mark(source, count);
    for (long i = 0; i < count && rank < 2; i++) {
        if (rank == 0) {
            MPI_Send(source, size, MPI_BYTE, 1, 0, WORLD);
            MPI_Recv(target, size, MPI_BYTE, 1, 0, WORLD, NO_STATUS);
        } else {
            MPI_Recv(target, size, MPI_BYTE, 0, 0, WORLD, NO_STATUS);
            MPI_Send(source, size, MPI_BYTE, 0, 0, WORLD);
        }
    }
    if (rank < 2) {
        check_mark(target, count, "pingpong");
    }
}

/* Messages one way, WINDOW of them before an answer. */
static void stream(long count) {
    MPI_Request requests[WINDOW];
    mark(source, count);
    for (long i = 0; i < count && rank < 2; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (rank == 0) {
                MPI_Isend(source, size, MPI_BYTE, 1, 0, WORLD, &requests[k]);
            } else {
                MPI_Irecv(target, size, MPI_BYTE, 0, 0, WORLD, &requests[k]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(target, 1, MPI_BYTE, 1, 1, WORLD, NO_STATUS);
        } else {
            MPI_Send(target, 1, MPI_BYTE, 0, 1, WORLD);
            check_mark(target, count, "stream");
        }
    }
}

/* From the left, to the right; with two nodes both are the other one. */
static void exchange(long count) {
    const int right = (rank + 1) % nodes, left = (rank + nodes - 1) % nodes;
    MPI_Request requests[2];
    mark(source, count);
    for (long i = 0; i < count; i++) {
        MPI_Irecv(target, size, MPI_BYTE, left, 0, WORLD, &requests[0]);
        MPI_Isend(source, size, MPI_BYTE, right, 0, WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    check_mark(target, count, "exchange");
}

static void ring(long count) {
    const int right = (rank + 1) % nodes, left = (rank + nodes - 1) % nodes;
    mark(source, count);
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(source, size, MPI_BYTE, right, 0, WORLD);
            MPI_Recv(target, size, MPI_BYTE, left, 0, WORLD, NO_STATUS);
        } else {
            MPI_Recv(target, size, MPI_BYTE, left, 0, WORLD, NO_STATUS);
            MPI_Send(target, size, MPI_BYTE, right, 0, WORLD);
        }
    }
    check_mark(target, count, "ring");
}

static void allreduce(long count) {
    const int doubles = size / (int)sizeof(double);
    const double *sums = (const double *)(void *)target, sum = nodes * (nodes - 1) / 2;
    for (int i = 0; i < doubles; i++) {
        ((double *)(void *)source)[i] = rank;
    }
    for (long i = 0; i < count; i++) {
        MPI_Allreduce(source, target, doubles, MPI_DOUBLE, MPI_SUM, WORLD);
    }
    check(sums[0] == sum && sums[doubles - 1] == sum, "allreduce");
}

static void broadcast(long count) {
    if (rank == 0) {
        mark(target, count);
    }
    for (long i = 0; i < count; i++) {
        MPI_Bcast(target, size, MPI_BYTE, 0, WORLD);
    }
    check_mark(target, count, "broadcast");
}

static void barrier(long count) {
    for (long i = 0; i < count; i++) {
        MPI_Barrier(WORLD);
    }
}

/* Each counts as `operations` operations; 0: as many as there are nodes. */
static const struct work {
    const char *name;
    void (*run)(long count);
    int operations;
} works[] = {
    {"pingpong", pingpong, 2},   {"stream", stream, WINDOW},  {"exchange", exchange, 1}, {"ring", ring, 0},
    {"allreduce", allreduce, 1}, {"broadcast", broadcast, 1}, {"barrier", barrier, 1},
};

/* The part of rank 0; the others hear how many times. */
static void batch(void *what, long count) {
    const struct work *work = what;
    MPI_Bcast(&count, 1, MPI_LONG, 0, WORLD);
    if (count > 0) {
        work->run(count);
        MPI_Barrier(WORLD);
    }
}

static void follow(const struct work *work) {
    long count;
    do {
        MPI_Bcast(&count, 1, MPI_LONG, 0, WORLD);
        if (count > 0) {
            work->run(count);
            MPI_Barrier(WORLD);
        }
    } while (count > 0);
}

static void append(const char *path, const char *key, const double *times) {
    FILE *file = fopen(path, "a");
    check(file != NULL, path);
    fprintf(file, "{\"%s\": [", key);
    for (int i = 0; i < BATCHES; i++) {
        fprintf(file, "%s%.9g", i > 0 ? ", " : "", times[i]);
    }
    fprintf(file, "]}\n");
    fclose(file);
}

static const struct work *find(const char *name) {
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        if (strcmp(works[i].name, name) == 0) {
            return &works[i];
        }
    }
    check(0, name);
    return NULL;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &nodes);
    for (int i = 4; i + 2 < argc; i += 3) {
        const struct work *work = find(argv[i + 1]);
        size = atoi(argv[i + 2]) > 0 ? atoi(argv[i + 2]) : 1;
        source = calloc((size_t)size + sizeof(double), 1);
        target = calloc((size_t)size + sizeof(double), 1);
        if (rank == 0) {
            double times[BATCHES];
            const int operations = work->operations > 0 ? work->operations : nodes;
            measure_into(times, batch, (void *)work, operations, atof(argv[2]), BATCHES, i > 4 ? 0 : WARM_UP,
                         atol(argv[3]));
            batch((void *)work, 0);
            append(argv[1], argv[i], times);
        } else {
            follow(work);
        }
        free(source);
        free(target);
    }
    MPI_Finalize();
    return 0;
}
