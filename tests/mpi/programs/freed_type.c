/* SPDX-License-Identifier: MIT */
/* A persistent reduction outlives its datatype and its operator, whose function asks about the datatype. */
#include <mpi.h>
#include <stdio.h>

enum { ITEMS = 3, REPEATS = 2 };

static int calls, failures;

#define EXPECT(condition)                                           \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: " #condition "\n", __LINE__); \
            failures++;                                             \
        }                                                           \
    } while (0)

static void add_pairs(void *in, void *inout, int *len, MPI_Datatype *datatype) {
    const long *left = in;
    long *right = inout;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    MPI_Aint lower, extent;
    int size = 0, integers, addresses, types, combiner = 0, number[1];
    EXPECT(MPI_Type_size(*datatype, &size) == MPI_SUCCESS && size == 2 * (int)sizeof(long));
    EXPECT(MPI_Type_get_extent(*datatype, &lower, &extent) == MPI_SUCCESS && extent == size);
    EXPECT(MPI_Type_get_envelope(*datatype, &integers, &addresses, &types, &combiner) == MPI_SUCCESS);
    EXPECT(combiner == MPI_COMBINER_CONTIGUOUS && integers == 1 && addresses == 0 && types == 1);
    EXPECT(MPI_Type_get_contents(*datatype, 1, 0, 1, number, NULL, &inner) == MPI_SUCCESS);
    EXPECT(number[0] == 2 && inner == MPI_LONG);
    for (int i = 0; i < 2 * *len; i++) {
        right[i] += left[i];
    }
    calls++;
}

int main(int argc, char **argv) {
    int rank, nodes, size;
    long sent[2 * ITEMS], sum[2 * ITEMS];
    MPI_Datatype pair, copy, other;
    MPI_Op add;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nodes);
    MPI_Type_contiguous(2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add_pairs, 1, &add);
    MPI_Allreduce_init(sent, sum, ITEMS, pair, add, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    copy = pair;
    MPI_Type_free(&pair);
    MPI_Op_free(&add);
    EXPECT(pair == MPI_DATATYPE_NULL);
    MPI_Type_contiguous(5, MPI_INT, &other); /* would take the place of a handle that is free */
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (int i = 0; i < 2 * ITEMS; i++) {
            sent[i] = rank + i + repeat;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2 * ITEMS; i++) {
            EXPECT(sum[i] == nodes * (nodes - 1) / 2 + (long)nodes * (i + repeat));
        }
    }
    EXPECT(nodes == 1 || calls != 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT(MPI_Type_size(copy, &size) != MPI_SUCCESS); /* the program has freed it */
    EXPECT(MPI_Type_free(&copy) != MPI_SUCCESS);
    MPI_Request_free(&request);
    EXPECT(MPI_Type_size(copy, &size) != MPI_SUCCESS);
    MPI_Type_free(&other);
    MPI_Finalize();
    return failures != 0;
}
