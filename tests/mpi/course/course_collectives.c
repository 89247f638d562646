/* SPDX-License-Identifier: MIT */
/* Collectives and algorithms that use them. */
#include "course.h"

void course_pi(int rank, int size) {
    int steps = rank == 0 ? 1000 : 0;
    double sum = 0, total = 0;
    MPI_Bcast(&steps, 1, MPI_INT, 0, WORLD);
    for (int i = rank; i < steps; i += size) {
        const double x = (i + 0.5) / steps;
        sum += 4 / (1 + x * x) / steps;
    }
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, WORLD);
    say("%.9f", total);
}

void course_trapezoids(int rank, int size) {
    const int n = 1024;
    double area = 0;
    for (int i = n * rank / size; i < n * (rank + 1) / size; i++) {
        const double a = 3.0 * i / n, b = 3.0 * (i + 1) / n;
        area += (a * a + b * b) / 2 * (b - a);
    }
    MPI_Allreduce(MPI_IN_PLACE, &area, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    say_all("%.8f", area);
}

void course_matrix_vector(int rank, int size) {
    enum { ROWS = 2 };
    double x[ROWS * 16], mine[ROWS] = {rank, rank + 0.5};
    for (int step = 0; step < 3; step++) {
        MPI_Allgather(mine, ROWS, MPI_DOUBLE, x, ROWS, MPI_DOUBLE, WORLD);
        for (int row = 0; row < ROWS; row++) {
            mine[row] = 0;
            for (int column = 0; column < ROWS * size; column++) {
                mine[row] += (rank * ROWS + row + 2 * column) % 5 * x[column] / 8;
            }
        }
    }
    say_all("%.6g %.6g", mine[0], mine[1]);
}

void course_uneven_parts(int rank, int size) {
    int counts[16], places[16], all[17], mine[17], next = 0;
    for (int node = 0; node < size; node++) {
        counts[node] = 17 / size + (node < 17 % size);
        places[node] = next;
        next += counts[node];
    }
    for (int i = 0; i < 17; i++) {
        all[i] = rank == 0 ? i : -1;
    }
    MPI_Scatterv(all, counts, places, MPI_INT, mine, counts[rank], MPI_INT, 0, WORLD);
    for (int i = 0; i < counts[rank]; i++) {
        mine[i] *= mine[i];
    }
    MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, places, MPI_INT, 0, WORLD);
    say("%s", ints(all, 17));
}

/* Pairs of long doubles have holes. */
void course_minimum_at(int rank, int size) {
    struct {
        double value;
        int at;
    } pair = {(rank * 3 + 1) % 5, rank}, least;
    struct {
        long double value;
        int at;
    } wide[3] = {{rank, rank}, {-rank, rank}, {1, rank}}, wides[3] = {{0, 0}, {0, 0}, {0, 0}};
    MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, WORLD);
    MPI_Reduce(wide, wides, 3, MPI_LONG_DOUBLE_INT, MPI_MINLOC, 0, WORLD);
    say("%.0Lf %d, %.0Lf %d, %.0Lf %d", wides[0].value, wides[0].at, wides[1].value, wides[1].at,
        wides[2].value, wides[2].at);
    say_all("%.0f %d", least.value, least.at);
    (void)size;
}

typedef struct best {
    long double value;
    int at[3];
} best_t;

static void keep_best(void *in, void *inout, int *count, MPI_Datatype *type) {
    const best_t *from = in;
    best_t *to = inout;
    for (int i = 0; i < *count; i++) {
        if (from[i].value > to[i].value) {
            to[i] = from[i]; /* with its holes */
        }
    }
    (void)type;
}

void course_own_operator(int rank, int size) {
    MPI_Datatype parts[2] = {MPI_LONG_DOUBLE, MPI_INT}, plain, type;
    MPI_Aint places[2] = {0, (MPI_Aint)sizeof(long double)};
    const int lengths[2] = {1, 3};
    MPI_Op op;
    MPI_Type_create_struct(2, lengths, places, parts, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(best_t), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(keep_best, 1, &op);
    best_t mine[2] = {{rank % 3, {rank, 1, 2}}, {rank, {rank, 3, 4}}}, most[2];
    MPI_Allreduce(mine, most, 2, type, op, WORLD);
    MPI_Op_free(&op);
    MPI_Type_free(&plain);
    MPI_Type_free(&type);
    say_all("%.0Lf, %.0Lf %s", most[0].value, most[1].value, ints(most[1].at, 3));
    (void)size;
}

void course_prefix_sums(int rank, int size) {
    int value = rank + 1, upto = 0, before = 0;
    MPI_Scan(&value, &upto, 1, MPI_INT, MPI_SUM, WORLD);
    MPI_Exscan(&value, &before, 1, MPI_INT, MPI_SUM, WORLD);
    say_all("%d %d", upto, rank > 0 ? before : 0);
    (void)size;
}

void course_overlap(int rank, int size) {
    int sum = 0, data[3] = {0}, computed = 0, flag = 0;
    MPI_Request requests[3];
    if (rank == 0) {
        data[0] = 5, data[1] = 6, data[2] = 7;
    }
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, WORLD, &requests[0]);
    MPI_Ibarrier(WORLD, &requests[1]);
    MPI_Ibcast(data, 3, MPI_INT, 0, WORLD, &requests[2]);
    while (!flag) {
        computed++;
        MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    }
    say_all("%d %s %d", sum, ints(data, 3), computed > 0);
    (void)size;
}

void course_to_owners(int rank, int size) {
    int out_counts[16] = {0}, in_counts[16], out_places[16], in_places[16], out[64], in[512], next = 0,
        all = 0;
    for (int owner = 0; owner < size; owner++) {
        out_places[owner] = next;
        for (int number = rank; number < 60; number += size + 1) {
            if (number % size == owner) {
                out[next++] = number;
                out_counts[owner]++;
            }
        }
    }
    MPI_Alltoall(out_counts, 1, MPI_INT, in_counts, 1, MPI_INT, WORLD);
    for (int from = 0; from < size; from++) {
        in_places[from] = all;
        all += in_counts[from];
    }
    MPI_Alltoallv(out, out_counts, out_places, MPI_INT, in, in_counts, in_places, MPI_INT, WORLD);
    say_all("%d: %s", all, ints(in, all < 12 ? all : 12));
}

void course_reduce_scatter(int rank, int size) {
    int data[32], block[2], uneven[16] = {0}, counts[16];
    for (int i = 0; i < 2 * size; i++) {
        data[i] = rank * i;
    }
    MPI_Reduce_scatter_block(data, block, 2, MPI_INT, MPI_SUM, WORLD);
    for (int node = 0; node < size; node++) {
        counts[node] = node % 2 == 0 ? 1 : 0;
    }
    MPI_Reduce_scatter(data, uneven, counts, MPI_INT, MPI_MAX, WORLD);
    say_all("%s, %d", ints(block, 2), counts[rank] ? uneven[0] : -1);
}

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

void course_odd_even_sort(int rank, int size) {
    enum { N = 5 };
    int mine[2 * N];
    for (int i = 0; i < N; i++) {
        mine[i] = (rank * 53 + i * 71) % 100;
    }
    qsort(mine, N, sizeof(int), by_value);
    for (int phase = 0; phase < size; phase++) {
        const int partner = (rank + phase) % 2 == 0 ? rank + 1 : rank - 1;
        if (partner < 0 || partner >= size) {
            continue;
        }
        MPI_Sendrecv(mine, N, MPI_INT, partner, 1, mine + N, N, MPI_INT, partner, 1, WORLD, IGNORE);
        qsort(mine, 2 * N, sizeof(int), by_value);
        if (rank > partner) {
            memcpy(mine, mine + N, N * sizeof(int));
        }
    }
    say_all("%s", ints(mine, N));
}

void course_sieve(int rank, int size) {
    const int low = 400 * rank / size, high = 400 * (rank + 1) / size;
    char composite[400] = {0};
    int count = 0, total, last = 0;
    for (int prime = 2; prime * prime < 400; prime++) {
        for (int i = 2 * prime; i < 400; i += prime) {
            composite[i] = 1;
        }
    }
    for (int i = low > 2 ? low : 2; i < high; i++) {
        count += !composite[i];
        last = composite[i] ? last : i;
    }
    MPI_Reduce(&count, &total, 1, MPI_INT, MPI_SUM, 0, WORLD);
    say("%d", rank == 0 ? total : 0);
    say_all("%d %d", count, last);
}
