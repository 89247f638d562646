/* SPDX-License-Identifier: MIT */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, strips = 1000000;
    double part = 0.0, pi = 0.0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Bcast(&strips, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int strip = rank; strip < strips; strip += size) {
        double x = (strip + 0.5) / strips;
        part += 4.0 / (1.0 + x * x) / strips;
    }
    MPI_Reduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d processes: pi is about %.9f\n", size, pi);
    }
    MPI_Finalize();
    return 0;
}
