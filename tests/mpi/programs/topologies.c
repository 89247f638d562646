/* SPDX-License-Identifier: MIT */
/* Topologies with the standard's ABI: weights, neighbours beyond the edge, errors of wrong arguments. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

static int class_of(int code) {
    int found;
    MPI_Error_class(code, &found);
    return found;
}

static void check_weights(int rank, int size) {
    int in, out, weighted, source = -1, destination = -1, weight_in = -1, weight_out = -1;
    const int left = (rank + size - 1) % size, right = (rank + 1) % size, seven = 7, nine = 9;
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &seven, 1, &right, &nine, MPI_INFO_NULL, 0,
                                   &ring);
    MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && weighted);
    MPI_Dist_graph_neighbors(ring, 1, &source, &weight_in, 1, &destination, &weight_out);
    CHECK(source == left && destination == right && weight_in == 7 && weight_out == 9);
    MPI_Dist_graph_neighbors(ring, 1, &source, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED);
    MPI_Comm_free(&ring);

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
    CHECK(!weighted);
    const int mine = 100 + rank;
    int theirs = -1;
    MPI_Neighbor_allgather(&mine, 1, MPI_INT, &theirs, 1, MPI_INT, ring);
    CHECK(theirs == 100 + left);
    MPI_Comm_free(&ring);

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
    CHECK(in == 0 && out == 0 && weighted);
    MPI_Comm_free(&ring);
}

/* A line of nodes: beyond its ends nothing is sent or changed. */
static void check_line(int rank, int size) {
    const int dims = size, periods = 0, sent[2] = {10 * rank, 10 * rank + 1};
    int got[2] = {-1, -1}, kind, source, destination;
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 1, &line);
    MPI_Topo_test(line, &kind);
    CHECK(kind == MPI_CART);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    CHECK(kind == MPI_UNDEFINED);
    MPI_Cart_shift(line, 0, 1, &source, &destination);
    CHECK(source == (rank > 0 ? rank - 1 : MPI_PROC_NULL));
    CHECK(destination == (rank < size - 1 ? rank + 1 : MPI_PROC_NULL));
    MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, line);
    CHECK(got[0] == (rank > 0 ? 10 * (rank - 1) + 1 : -1));
    CHECK(got[1] == (rank < size - 1 ? 10 * (rank + 1) : -1));
    /* A persistent exchange outlives the handles of its type and its communicator. */
    int kept[2] = {-1, -1};
    MPI_Datatype number;
    MPI_Request request;
    MPI_Type_contiguous(1, MPI_INT, &number);
    MPI_Type_commit(&number);
    MPI_Neighbor_alltoall_init(sent, 1, number, kept, 1, number, line, MPI_INFO_NULL, &request);
    MPI_Type_free(&number);
    MPI_Comm_free(&line);
    CHECK(line == MPI_COMM_NULL);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(kept[0] == got[0] && kept[1] == got[1]);
    MPI_Request_free(&request);
}

static void check_errors(int size) {
    int number, dims[2] = {0, -1}, two[2] = {2, 1};
    MPI_Comm made = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Dims_create(4, 2, dims)) == MPI_ERR_DIMS);
    CHECK(class_of(MPI_Dims_create(0, 1, dims)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Dims_create(4, -1, dims)) == MPI_ERR_DIMS);
    CHECK(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &number)) == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Cartdim_get(MPI_COMM_NULL, &number)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Cart_create(MPI_COMM_WORLD, -1, two, two, 0, &made)) == MPI_ERR_DIMS);
    CHECK(made == MPI_COMM_NULL);
    CHECK(class_of(MPI_Graph_create(MPI_COMM_WORLD, size + 1, two, two, 0, &made)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Graph_create(MPI_COMM_SELF, -1, two, two, 0, &made)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Neighbor_alltoall(two, 1, MPI_INT, dims, 1, MPI_INT, MPI_COMM_WORLD))
          == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &made)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &made)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_remote_size(MPI_COMM_WORLD, &number)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 0, &made)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_SELF, 0, 0, &made)) == MPI_ERR_RANK);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_weights(rank, size);
    check_line(rank, size);
    check_errors(size);
    return MPI_Finalize();
}
