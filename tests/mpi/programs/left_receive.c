/* SPDX-License-Identifier: MIT */
/* A receive that is never completed; its message has come when MPI_Finalize is called, and no call before. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = atoi(argv[1]);
    char *data = calloc((size_t)count, 1);
    if (rank == 0) {
        data[0] = 1;
        if (mkfifo("sent", 0600) != 0) {
            return 1;
        }
    } else {
        MPI_Request request;
        MPI_Irecv(data, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(data, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    }
    const int sent = open("sent", rank == 0 ? O_WRONLY : O_RDONLY); /* returns when both have opened it */
    MPI_Finalize();
    close(sent);
    if (rank == 1 && data[0] != 0) {
        printf("the buffer was written\n");
    }
    free(data);
    return 0;
}
