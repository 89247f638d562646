/* SPDX-License-Identifier: MIT */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        double sent = 1.5;
        MPI_Send(&sent, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    } else {
        float received[2] = {0, 0};
        MPI_Recv(received, 2, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%g\n", received[0]);
    }
    MPI_Finalize();
    return 0;
}
