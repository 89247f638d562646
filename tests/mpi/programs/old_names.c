/* SPDX-License-Identifier: MIT */
/* The names of MPI-1 that mpi.h still has. */
#include <mpi.h>
#include <stddef.h>

typedef struct point {
    int number;
    double place[2];
} point_t;

static int errors;

static void count_errors(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    errors++;
}

static int check_types(void) {
    point_t sent = {7, {1.5, 2.5}}, got = {0, {0, 0}};
    int lengths[2] = {1, 2};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, point, rows;
    MPI_Aint places[2], begin, extent, lb, ub;
    MPI_Address(&sent, &begin);
    MPI_Address(&sent.number, &places[0]);
    MPI_Address(sent.place, &places[1]);
    places[0] -= begin;
    places[1] -= begin;
    MPI_Type_struct(2, lengths, places, types, &point);
    MPI_Type_commit(&point);
    MPI_Type_extent(point, &extent);
    MPI_Type_lb(point, &lb);
    MPI_Type_ub(point, &ub);
    MPI_Sendrecv(&sent, 1, point, 0, 1, &got, 1, point, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Type_free(&point);
    MPI_Type_hvector(2, 1, 64, MPI_INT, &rows);
    MPI_Type_ub(rows, &begin);
    MPI_Type_free(&rows);
    return extent == sizeof(point_t) && lb == 0 && ub == extent && begin == 68 && got.number == 7
           && got.place[1] == 2.5;
}

static int check_handlers(void) {
    MPI_Handler_function *function = count_errors;
    MPI_Errhandler handler, found;
    int key, *value = NULL, there = 0, number = 3;
    MPI_Errhandler_create(function, &handler);
    MPI_Errhandler_set(MPI_COMM_WORLD, handler);
    MPI_Errhandler_get(MPI_COMM_WORLD, &found);
    MPI_Send(&number, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
    MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Attr_put(MPI_COMM_WORLD, key, &number);
    MPI_Attr_get(MPI_COMM_WORLD, key, &value, &there);
    return errors == 1 && there && value == &number;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int good = check_types() && check_handlers();
    MPI_Finalize();
    return !good;
}
