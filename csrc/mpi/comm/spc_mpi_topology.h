/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_topology: the topology of a communicator. It never changes once it is made; duplicates of the communicator
 * share it.
 */
#ifndef SPC_MPI_TOPOLOGY_H
#define SPC_MPI_TOPOLOGY_H

#include "mpi/spc_mpi.h"

struct spc_mpi_topology {
    _Atomic int references;
    int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */

    int dim_count; /* CART */
    int *dims;
    int *periods;
    int *coords;

    int node_count; /* GRAPH */
    int edge_count;
    int *ends; /* the index after each node's last edge */
    int *edges;

    bool is_weighted; /* DIST_GRAPH */
    int *source_weights;
    int *destination_weights;

    /* Each kind has this node's neighbours in the order of the collectives; MPI_PROC_NULL beyond the edge of a grid. */
    int source_count;
    int destination_count;
    int *sources;
    int *destinations;

    int numbers[]; /* all of the lists */
};

#endif
