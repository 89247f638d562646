/* SPDX-License-Identifier: MIT */
/*
 * MPI_Comm_idup does not wait: each node receives a message that the next one sends before its own call.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                             \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static int rank, size;

static void use(MPI_Comm made, int number) {
    int found = -1, total = 0;
    MPI_Sendrecv(&number, 1, MPI_INT, (rank + 1) % size, 0, &found, 1, MPI_INT, (rank + size - 1) % size, 0,
                 made, MPI_STATUS_IGNORE);
    EXPECT(found == number);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, made);
    EXPECT(total == size * (size - 1) / 2);
}

int main(int argc, char **argv) {
    MPI_Comm made[3];
    MPI_Request requests[3];
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Info_create(&info);
    if (rank > 0) {
        MPI_Send(NULL, 0, MPI_INT, rank - 1, 1, MPI_COMM_WORLD);
    }
    MPI_Comm_idup(MPI_COMM_WORLD, &made[0], &requests[0]);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &made[1], &requests[1]);
    MPI_Comm_idup(MPI_COMM_WORLD, &made[2], &requests[2]);
    MPI_Info_free(&info);
    if (rank < size - 1) {
        MPI_Recv(NULL, 0, MPI_INT, rank + 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    use(made[2], 2);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    use(made[0], 0);
    use(made[1], 1);
    for (int i = 0; i < 3; i++) {
        EXPECT(requests[i] == MPI_REQUEST_NULL);
        MPI_Comm_free(&made[i]);
    }
    MPI_Finalize();
    return 0;
}
