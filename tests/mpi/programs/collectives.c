/* SPDX-License-Identifier: MIT */
// Collectives in C, in their forms for int and for MPI_Count, against values that a node computes alone.
#include <mpi.h>
#include <stdio.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "rank %d, line %d: %s is false\n", rank, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
        }                                                                                   \
    } while (0)

enum { MOST = 16 };

static int rank, size;

// Each gives every peer p its rank + 1 copies of 100 * rank + p: so counts and places are different everywhere.
static void alltoallv(void) {
    int sent[MOST * MOST], got[MOST * MOST] = {0}, counts[MOST], places[MOST], from_counts[MOST],
                                      from_places[MOST];
    MPI_Count wide[MOST], from_wide[MOST];
    MPI_Aint at[MOST], from_at[MOST];
    int given = 0, taken = 0;
    for (int peer = 0; peer < size; peer++) {
        wide[peer] = counts[peer] = rank + 1;
        at[peer] = places[peer] = given;
        for (int i = 0; i <= rank; i++) {
            sent[given++] = 100 * rank + peer;
        }
        from_wide[peer] = from_counts[peer] = peer + 1;
        from_at[peer] = from_places[peer] = taken;
        taken += peer + 1;
    }
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        if (is_wide) {
            MPI_Alltoallv_c(sent, wide, at, MPI_INT, got, from_wide, from_at, MPI_INT, MPI_COMM_WORLD);
        } else {
            MPI_Alltoallv(sent, counts, places, MPI_INT, got, from_counts, from_places, MPI_INT,
                          MPI_COMM_WORLD);
        }
        for (int peer = 0; peer < size; peer++) {
            for (int i = 0; i <= peer; i++) {
                CHECK(got[from_places[peer] + i] == 100 * peer + rank);
                got[from_places[peer] + i] = -1;
            }
        }
    }
}

// A row of a matrix for each peer, which arrives as a column: displacements are in bytes, and each peer has a type.
static void alltoallw(void) {
    int matrix[MOST * MOST], turned[MOST * MOST] = {0}, counts[MOST], ones[MOST], rows[MOST], columns[MOST];
    MPI_Count wide[MOST], wide_ones[MOST];
    MPI_Aint row_at[MOST], column_at[MOST];
    MPI_Datatype types[MOST], column;
    MPI_Datatype column_types[MOST];
    MPI_Type_vector(size, 1, size, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int peer = 0; peer < size; peer++) {
        wide[peer] = counts[peer] = size;
        wide_ones[peer] = ones[peer] = 1;
        row_at[peer] = rows[peer] = peer * size * (int)sizeof(int);
        column_at[peer] = columns[peer] = peer * (int)sizeof(int);
        types[peer] = MPI_INT;
        column_types[peer] = column;
        for (int i = 0; i < size; i++) {
            matrix[peer * size + i] = 10000 * rank + 100 * peer + i;
        }
    }
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        if (is_wide) {
            MPI_Alltoallw_c(matrix, wide, row_at, types, turned, wide_ones, column_at, column_types,
                            MPI_COMM_WORLD);
        } else {
            MPI_Alltoallw(matrix, counts, rows, types, turned, ones, columns, column_types, MPI_COMM_WORLD);
        }
        for (int peer = 0; peer < size; peer++) {
            for (int i = 0; i < size; i++) {
                CHECK(turned[i * size + peer] == 10000 * peer + 100 * rank + i);
                turned[i * size + peer] = -1;
            }
        }
    }
    MPI_Type_free(&column);
}

static void gathered(void) {
    int mine[MOST], all[MOST * MOST], counts[MOST], places[MOST], back[MOST] = {0};
    MPI_Count wide[MOST];
    MPI_Aint at[MOST];
    int total = 0;
    for (int peer = 0; peer < size; peer++) {
        wide[peer] = counts[peer] = peer + 1;
        at[peer] = places[peer] = total;
        total += peer + 1;
        mine[peer] = 10 * rank + peer;
    }
    const int root = size - 1;
    MPI_Allgatherv_c(mine, rank + 1, MPI_INT, all, wide, at, MPI_INT, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) {
        CHECK(all[places[peer]] == 10 * peer && all[places[peer] + peer] == 11 * peer);
        all[places[peer]] = -1;
    }
    MPI_Gatherv_c(mine, rank + 1, MPI_INT, all, wide, at, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Scatterv_c(all, wide, at, MPI_INT, back, rank + 1, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(back[0] == 10 * rank && back[rank] == 11 * rank);
    MPI_Gather_c(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast_c(all, size, MPI_INT, 0, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) {
        CHECK(all[peer] == peer);
    }
    MPI_Alltoall_c(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) {
        CHECK(all[peer] == 10 * peer + rank);
    }
}

static void reductions(void) {
    long mine[MOST], sum[MOST] = {0}, own = 0;
    MPI_Count wide[MOST];
    for (int i = 0; i < size; i++) {
        mine[i] = rank + i;
        wide[i] = 1;
    }
    const long ranks = (long)size * (size - 1) / 2;
    MPI_Allreduce_c(mine, sum, size, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum[0] == ranks && sum[size - 1] == ranks + (long)size * (size - 1));
    MPI_Reduce_scatter_c(mine, &own, wide, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == ranks + (long)size * rank);
    MPI_Reduce_scatter_block_c(mine, &own, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == ranks + (long)size * rank);
    MPI_Scan_c(mine, &own, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == (long)rank * (rank + 1) / 2);
    own = -7;
    MPI_Exscan(mine, &own, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == (rank == 0 ? -7 : (long)rank * (rank - 1) / 2));
    own = -7;
    MPI_Exscan_c(mine, &own, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == (rank == 0 ? -7 : (long)rank * (rank - 1) / 2));
}

// The value, and the lowest rank that has it.
static void places_of_extremes(void) {
    struct {
        double value;
        int rank;
    } mine = {(rank + 1) / 2, rank}, least, most;
    struct {
        int value, rank;
    } pair = {-(rank / 2), rank}, lowest = {0, 0};
    MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK(least.value == 0 && least.rank == 0);
    MPI_Allreduce_c(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(most.value == size / 2 && most.rank == (size / 2 == 0 ? 0 : 2 * (size / 2) - 1));
    MPI_Reduce(&pair, &lowest, 1, MPI_2INT, MPI_MINLOC, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || (lowest.value == -((size - 1) / 2) && lowest.rank == 2 * ((size - 1) / 2)));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    alltoallv();
    alltoallw();
    gathered();
    reductions();
    places_of_extremes();
    MPI_Finalize();
    return 0;
}
