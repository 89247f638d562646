/* SPDX-License-Identifier: MIT */
// A window in C: its attributes, a counter of all nodes, and a lock that one holds at a time.
#include <mpi.h>
#include <stdio.h>

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                    \
        }                                                                    \
    } while (0)

enum { ROUNDS = 100 };

static void check_attributes(MPI_Win window, const void *base) {
    void *found;
    int flag;
    MPI_Win_get_attr(window, MPI_WIN_BASE, &found, &flag);
    CHECK(flag && found == base);
    MPI_Win_get_attr(window, MPI_WIN_SIZE, &found, &flag);
    CHECK(flag && *(MPI_Aint *)found == 2 * (MPI_Aint)sizeof(long));
    MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &found, &flag);
    CHECK(flag && *(int *)found == (int)sizeof(long));
    MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &found, &flag);
    CHECK(flag && *(int *)found == MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_get_attr(window, MPI_WIN_MODEL, &found, &flag);
    CHECK(flag && *(int *)found == MPI_WIN_UNIFIED);
}

/* A node without memory has no address of it. */
static void check_empty(int rank, int size) {
    MPI_Win window;
    long *memory;
    const MPI_Aint bytes = rank % 2 == 0 ? (MPI_Aint)sizeof(long) : 0;
    MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int node = 0; node < size; node++) {
        MPI_Aint there;
        int unit;
        MPI_Win_shared_query(window, node, &there, &unit, &memory);
        CHECK((there != 0) == (node % 2 == 0) && (memory != NULL) == (node % 2 == 0));
    }
    MPI_Win_free(&window);
}

int main(void) {
    int size, rank;
    long *memory, one = 1;
    MPI_Win window;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    check_attributes(window, memory);
    MPI_Win_fence(0, window);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Accumulate(&one, 1, MPI_LONG, size - 1, 0, 1, MPI_LONG, MPI_SUM, window);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    for (int i = 0; i < ROUNDS; i++) {
        long seen;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window);
        MPI_Get(&seen, 1, MPI_LONG, size - 1, 1, 1, MPI_LONG, window);
        MPI_Win_flush(size - 1, window);
        seen++;
        MPI_Put(&seen, 1, MPI_LONG, size - 1, 1, 1, MPI_LONG, window);
        MPI_Win_unlock(size - 1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        CHECK(memory[0] == (long)ROUNDS * size);
        CHECK(memory[1] == (long)ROUNDS * size);
    }
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    int error_class;
    MPI_Error_class(MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window), &error_class);
    CHECK(error_class == MPI_ERR_RMA_SYNC);
    MPI_Win_free(&window);
    CHECK(window == MPI_WIN_NULL);
    check_empty(rank, size);
    MPI_Finalize();
    return 0;
}
