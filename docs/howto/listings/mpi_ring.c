/* SPDX-License-Identifier: MIT */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, theirs;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;

    MPI_Recv(&theirs, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    printf("rank %d got %d\n", rank, theirs);
    MPI_Finalize();
    return 0;
}
