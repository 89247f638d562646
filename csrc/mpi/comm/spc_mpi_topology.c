/* SPDX-License-Identifier: MIT */
/*
 * Topologies: Cartesian grids, graphs, distributed graphs. Ranks are never reordered.
 */
#include "mpi/comm/spc_mpi_topology.h"

/* ---- objects ---- */

/* Room for this many numbers, which `carve` hands out. NULL: no memory. */
static spc_mpi_topology_t *create(int kind, size_t numbers) {
    spc_mpi_topology_t *made = calloc(1, sizeof(*made) + sizeof(int) * numbers);
    if (made != NULL) {
        atomic_init(&made->references, 1);
        made->kind = kind;
    }
    return made;
}

/* The next `count` numbers, copied from a list that may be NULL. */
static int *carve(int **next, int count, const int *from) {
    int *list = *next;
    if (from != NULL && count > 0) {
        memcpy(list, from, sizeof(int) * (size_t)count);
    }
    *next += count;
    return list;
}

/* Relaxed: the caller has a communicator with it. */
spc_mpi_topology_t *spc_mpi_topology_copy(const spc_mpi_topology_t *from) {
    spc_mpi_topology_t *shared = (spc_mpi_topology_t *)from;
    if (shared != NULL) {
        atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    }
    return shared;
}

/* Acquire and release pair with the other owners' frees: the last one sees all uses as over. */
void spc_mpi_topology_free(spc_mpi_topology_t *topology) {
    if (topology != NULL && atomic_fetch_sub_explicit(&topology->references, 1, memory_order_acq_rel) == 1) {
        free(topology);
    }
}

static int no_memory(const spc_mpi_comm_t *comm) {
    return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for the topology");
}

/* A communicator of the first `size` ranks; *made is NULL for the others. Collective. */
static int take_first(spc_mpi_comm_t *comm, int64_t size, spc_mpi_comm_t **made) {
    spc_comm_t *core;
    const int color = comm->rank < size ? 0 : -1;
    *made = NULL;
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, color, comm->rank, SPC_NO_DEADLINE, &core)));
    return core != NULL ? spc_mpi_comm_adopt(core, comm, made) : MPI_SUCCESS;
}

/* The topology belongs to `made` from then on; NULL: there was no memory. */
static int publish(spc_mpi_comm_t *made, spc_mpi_topology_t *topology, MPI_Comm *handle) {
    if (topology == NULL) {
        spc_mpi_comm_discard(made);
        return no_memory(NULL);
    }
    made->topology = topology;
    *handle = made->handle;
    return MPI_SUCCESS;
}

static const char *name_of(int kind) {
    return kind == MPI_CART    ? "a grid: MPI_Cart_create makes one"
           : kind == MPI_GRAPH ? "a graph: MPI_Graph_create makes one"
                               : "a distributed graph: MPI_Dist_graph_create makes one";
}

/* MPI_ERR_TOPOLOGY unless the communicator has a topology of this kind. */
static int get_topology(MPI_Comm handle, int kind, spc_mpi_comm_t **comm,
                        const spc_mpi_topology_t **topology) {
    SPC_MPI_TRY(spc_mpi_get_comm(handle, comm));
    *topology = (*comm)->topology;
    if (*topology == NULL || (*topology)->kind != kind) {
        return spc_mpi_fail(*comm, MPI_ERR_TOPOLOGY, "this communicator is not %s", name_of(kind));
    }
    return MPI_SUCCESS;
}

static int check_member(const spc_mpi_comm_t *comm, const char *role, int rank) {
    return rank >= 0 && rank < comm->size
               ? MPI_SUCCESS
               : spc_mpi_fail(comm, MPI_ERR_RANK,
                              "%s=%d: there is no rank %d; this communicator has %d (0 to %d)", role, rank,
                              rank, comm->size, comm->size - 1);
}

/* For the length of a list that the caller gives or wants filled. */
static int check_length(const spc_mpi_comm_t *comm, const char *role, int length, int least) {
    return length >= least ? MPI_SUCCESS
                           : spc_mpi_fail(comm, MPI_ERR_ARG, "%s=%d: %d are needed", role, length, least);
}

static int check_not_negative(const spc_mpi_comm_t *comm, const char *role, int value) {
    return value >= 0 ? MPI_SUCCESS
                      : spc_mpi_fail(comm, MPI_ERR_ARG, "%s=%d: it cannot be negative", role, value);
}

static void copy_out(int to[], const int *from, int count) {
    if (count > 0) {
        memcpy(to, from, sizeof(int) * (size_t)count);
    }
}

int spc_mpi_topo_test(MPI_Comm comm, int *status) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    *status = found->topology != NULL ? found->topology->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* ---- grids ---- */

static void find_coords(const spc_mpi_topology_t *grid, int rank, int coords[]) {
    for (int d = grid->dim_count; d-- > 0;) {
        coords[d] = rank % grid->dims[d];
        rank /= grid->dims[d];
    }
}

/* The coordinate on the grid; -1: beyond its edge. */
static int wrap(const spc_mpi_topology_t *grid, int d, int64_t coord) {
    const int64_t size = grid->dims[d];
    if (grid->periods[d] != 0) {
        return (int)((coord % size + size) % size);
    }
    return coord >= 0 && coord < size ? (int)coord : -1;
}

static int rank_beside(const spc_mpi_topology_t *grid, int direction, int64_t distance) {
    int rank = 0;
    for (int d = 0; d < grid->dim_count; d++) {
        const int coord = wrap(grid, d, grid->coords[d] + (d == direction ? distance : 0));
        if (coord < 0) {
            return MPI_PROC_NULL;
        }
        rank = rank * grid->dims[d] + coord;
    }
    return rank;
}

static spc_mpi_topology_t *make_grid(int rank, int count, const int dims[], const int periods[]) {
    spc_mpi_topology_t *made = create(MPI_CART, (size_t)count * 7);
    if (made == NULL) {
        return NULL;
    }
    int *next = made->numbers;
    made->dim_count = count;
    made->dims = carve(&next, count, dims);
    made->periods = carve(&next, count, periods);
    made->coords = carve(&next, count, NULL);
    made->source_count = made->destination_count = 2 * count;
    made->sources = carve(&next, 2 * count, NULL);
    made->destinations = carve(&next, 2 * count, NULL);
    find_coords(made, rank, made->coords);
    for (int d = 0; d < count; d++) {
        made->periods[d] = made->periods[d] != 0;
        made->sources[2 * d] = made->destinations[2 * d] = rank_beside(made, d, -1);
        made->sources[2 * d + 1] = made->destinations[2 * d + 1] = rank_beside(made, d, 1);
    }
    return made;
}

/* The number of nodes that the grid needs; MPI_ERR_ARG if there are fewer. */
static int count_places(const spc_mpi_comm_t *comm, int ndims, const int dims[], int64_t *places) {
    *places = 1;
    if (ndims < 0) {
        return spc_mpi_fail(comm, MPI_ERR_DIMS, "ndims=%d: a grid has 0 dimensions or more", ndims);
    }
    for (int d = 0; d < ndims; d++) {
        if (dims[d] <= 0) {
            return spc_mpi_fail(comm, MPI_ERR_DIMS, "dims[%d]=%d: a dimension is 1 or more", d, dims[d]);
        }
        *places *= dims[d];
        if (*places > comm->size) {
            return spc_mpi_fail(comm, MPI_ERR_ARG,
                                "the grid has %s%lld places, and there are %d nodes; MPI_Dims_create chooses "
                                "dimensions",
                                d < ndims - 1 ? "at least " : "", (long long)*places, comm->size);
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
                        MPI_Comm *comm_cart) {
    spc_mpi_comm_t *found, *made;
    int64_t places;
    (void)reorder;
    *comm_cart = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm_old, &found));
    SPC_MPI_TRY(count_places(found, ndims, dims, &places));
    SPC_MPI_TRY(take_first(found, places, &made));
    return made != NULL ? publish(made, make_grid(made->rank, ndims, dims, periods), comm_cart) : MPI_SUCCESS;
}

int spc_mpi_cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank) {
    spc_mpi_comm_t *found;
    int64_t places;
    (void)periods;
    SPC_MPI_TRY(spc_mpi_get_intra(comm, &found));
    SPC_MPI_TRY(count_places(found, ndims, dims, &places));
    *newrank = found->rank < places ? found->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int spc_mpi_cartdim_get(MPI_Comm comm, int *ndims) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *grid;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    *ndims = grid->dim_count;
    return MPI_SUCCESS;
}

int spc_mpi_cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *grid;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    SPC_MPI_TRY(check_length(found, "maxdims", maxdims, grid->dim_count));
    copy_out(dims, grid->dims, grid->dim_count);
    copy_out(periods, grid->periods, grid->dim_count);
    copy_out(coords, grid->coords, grid->dim_count);
    return MPI_SUCCESS;
}

int spc_mpi_cart_rank(MPI_Comm comm, const int coords[], int *rank) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *grid;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    int at = 0;
    for (int d = 0; d < grid->dim_count; d++) {
        const int coord = wrap(grid, d, coords[d]);
        if (coord < 0) {
            return spc_mpi_fail(found, MPI_ERR_ARG,
                                "coords[%d]=%d: the grid has 0 to %d there, and is not periodic", d,
                                coords[d], grid->dims[d] - 1);
        }
        at = at * grid->dims[d] + coord;
    }
    *rank = at;
    return MPI_SUCCESS;
}

int spc_mpi_cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *grid;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    SPC_MPI_TRY(check_member(found, "rank", rank));
    SPC_MPI_TRY(check_length(found, "maxdims", maxdims, grid->dim_count));
    find_coords(grid, rank, coords);
    return MPI_SUCCESS;
}

int spc_mpi_cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *grid;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    if (direction < 0 || direction >= grid->dim_count) {
        return spc_mpi_fail(found, MPI_ERR_DIMS, "direction=%d: the grid has %d dimensions (0 to %d)",
                            direction, grid->dim_count, grid->dim_count - 1);
    }
    *rank_source = rank_beside(grid, direction, -(int64_t)disp);
    *rank_dest = rank_beside(grid, direction, disp);
    return MPI_SUCCESS;
}

/* Nodes whose other coordinates agree belong together. */
int spc_mpi_cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm) {
    spc_mpi_comm_t *found, *made;
    const spc_mpi_topology_t *grid;
    spc_comm_t *core;
    int color = 0, key = 0, count = 0;
    *newcomm = MPI_COMM_NULL;
    SPC_MPI_TRY(get_topology(comm, MPI_CART, &found, &grid));
    int *kept = malloc(sizeof(int) * 2 * ((size_t)grid->dim_count + 1));
    if (kept == NULL) {
        return no_memory(found);
    }
    int *periods = kept + grid->dim_count + 1;
    for (int d = 0; d < grid->dim_count; d++) {
        int *number = remain_dims[d] != 0 ? &key : &color;
        *number = *number * grid->dims[d] + grid->coords[d];
        if (remain_dims[d] != 0) {
            kept[count] = grid->dims[d];
            periods[count++] = grid->periods[d];
        }
    }
    int code = spc_mpi_check(found, spc_comm_split(found->core, color, key, SPC_NO_DEADLINE, &core));
    if (code == MPI_SUCCESS) {
        code = spc_mpi_comm_adopt(core, found, &made);
    }
    if (code == MPI_SUCCESS) {
        code = publish(made, make_grid(made->rank, count, kept, periods), newcomm);
    }
    free(kept);
    return code;
}

/* ---- choosing dimensions ---- */

/* The search for `count` factors in descending order whose first and last differ least; of several, the one with the
 * smallest first factor, and so on. */
typedef struct search {
    const int *divisors; /* of the product, ascending */
    int divisor_count;
    int count;
    int *current;
    int *best;
    int spread; /* of the best; INT_MAX: none yet */
} search_t;

/* The largest number whose `count`-th power is at most the product: the last of `count` factors cannot be larger. */
static int root_of(int product, int count) {
    int root = 1;
    for (;;) {
        int64_t power = 1;
        for (int i = 0; i < count && power <= product; i++) {
            power *= root + 1;
        }
        if (power > product) {
            return root;
        }
        root++;
    }
}

static void search_from(search_t *search, int depth, int product, int most) {
    const int left = search->count - depth;
    if (left == 1) {
        if (product <= most && search->current[0] - product < search->spread) {
            search->current[depth] = product;
            search->spread = search->current[0] - product;
            memcpy(search->best, search->current, sizeof(int) * (size_t)search->count);
        }
        return;
    }
    const int root = left <= 31 && product > 1 ? root_of(product, left) : 1;
    for (int i = 0; i < search->divisor_count && search->divisors[i] <= most; i++) {
        const int factor = search->divisors[i];
        if (factor < root || product % factor != 0) {
            continue;
        }
        if ((depth > 0 ? search->current[0] : factor) - root >= search->spread) {
            return;
        }
        search->current[depth] = factor;
        search_from(search, depth + 1, product / factor, factor);
    }
}

static int ascending(const void *left, const void *right) {
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* `divisors` has room for all: an int has at most 1600 (2095133040 has). */
static int list_divisors(int number, int divisors[]) {
    int count = 0;
    for (int64_t low = 1; low * low <= number; low++) {
        if (number % low == 0) {
            divisors[count++] = (int)low;
            if (low * low != number) {
                divisors[count++] = number / (int)low;
            }
        }
    }
    qsort(divisors, (size_t)count, sizeof(int), ascending);
    return count;
}

/* More factors than this are all 1: a product has at most 30 others. */
enum { FACTORS = 32, DIVISORS = 1600 };

/* Fills the entries that are 0. */
static int choose_dims(int product, int count, int ndims, int dims[]) {
    int divisors[DIVISORS], current[FACTORS], best[FACTORS];
    search_t search = {
        .divisors = divisors, .count = count, .current = current, .best = best, .spread = INT_MAX};
    search.count = count < FACTORS ? count : FACTORS;
    search.divisor_count = list_divisors(product, divisors);
    search_from(&search, 0, product, product);
    for (int d = 0, next = 0; d < ndims; d++) {
        if (dims[d] == 0) {
            dims[d] = next < search.count ? best[next] : 1;
            next++;
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_dims_create(int nnodes, int ndims, int dims[]) {
    int64_t given = 1;
    int open = 0;
    if (nnodes <= 0) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "nnodes=%d: a grid has 1 node or more", nnodes);
    }
    if (ndims < 0) {
        return spc_mpi_fail(NULL, MPI_ERR_DIMS, "ndims=%d: a grid has 0 dimensions or more", ndims);
    }
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 0) {
            return spc_mpi_fail(NULL, MPI_ERR_DIMS,
                                "dims[%d]=%d: a dimension is 1 or more, or 0 for MPI to choose", d, dims[d]);
        }
        open += dims[d] == 0;
        given *= dims[d] == 0 || given > nnodes ? 1 : dims[d];
    }
    if (ndims > 0 && (nnodes % given != 0 || (open == 0 && given != nnodes))) {
        return spc_mpi_fail(NULL, MPI_ERR_DIMS,
                            "nnodes=%d is not %s the product of the given dimensions, %lld", nnodes,
                            open > 0 ? "a multiple of" : "", (long long)given);
    }
    return open > 0 ? choose_dims(nnodes / (int)given, open, ndims, dims) : MPI_SUCCESS;
}

/* ---- graphs ---- */

static int first_edge(const spc_mpi_topology_t *graph, int rank) {
    return rank > 0 ? graph->ends[rank - 1] : 0;
}

static int check_graph(const spc_mpi_comm_t *comm, int nnodes, const int ends[], const int edges[]) {
    if (nnodes < 0 || nnodes > comm->size) {
        return spc_mpi_fail(comm, MPI_ERR_ARG, "nnodes=%d: this communicator has %d", nnodes, comm->size);
    }
    for (int node = 0, before = 0; node < nnodes; before = ends[node++]) {
        if (ends[node] < before) {
            return spc_mpi_fail(
                comm, MPI_ERR_ARG,
                "index[%d]=%d: it counts the edges of nodes 0 to %d, and cannot be less than %d", node,
                ends[node], node, before);
        }
    }
    for (int i = 0; nnodes > 0 && i < ends[nnodes - 1]; i++) {
        if (edges[i] < 0 || edges[i] >= nnodes) {
            return spc_mpi_fail(comm, MPI_ERR_ARG, "edges[%d]=%d: the graph has nodes 0 to %d", i, edges[i],
                                nnodes - 1);
        }
    }
    return MPI_SUCCESS;
}

static spc_mpi_topology_t *make_graph(int rank, int count, const int ends[], const int edges[]) {
    const int edge_count = ends[count - 1];
    spc_mpi_topology_t *made = create(MPI_GRAPH, (size_t)count + (size_t)edge_count);
    if (made == NULL) {
        return NULL;
    }
    int *next = made->numbers;
    made->node_count = count;
    made->edge_count = edge_count;
    made->ends = carve(&next, count, ends);
    made->edges = carve(&next, edge_count, edges);
    made->sources = made->destinations = made->edges + first_edge(made, rank);
    made->source_count = made->destination_count = ends[rank] - first_edge(made, rank);
    return made;
}

int spc_mpi_graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder,
                         MPI_Comm *comm_graph) {
    spc_mpi_comm_t *found, *made;
    (void)reorder;
    *comm_graph = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm_old, &found));
    SPC_MPI_TRY(check_graph(found, nnodes, indx, edges));
    SPC_MPI_TRY(take_first(found, nnodes, &made));
    return made != NULL ? publish(made, make_graph(made->rank, nnodes, indx, edges), comm_graph)
                        : MPI_SUCCESS;
}

int spc_mpi_graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_intra(comm, &found));
    SPC_MPI_TRY(check_graph(found, nnodes, indx, edges));
    *newrank = found->rank < nnodes ? found->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int spc_mpi_graphdims_get(MPI_Comm comm, int *nnodes, int *nedges) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_GRAPH, &found, &graph));
    *nnodes = graph->node_count;
    *nedges = graph->edge_count;
    return MPI_SUCCESS;
}

int spc_mpi_graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_GRAPH, &found, &graph));
    SPC_MPI_TRY(check_length(found, "maxindex", maxindex, graph->node_count));
    SPC_MPI_TRY(check_length(found, "maxedges", maxedges, graph->edge_count));
    copy_out(indx, graph->ends, graph->node_count);
    copy_out(edges, graph->edges, graph->edge_count);
    return MPI_SUCCESS;
}

int spc_mpi_graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_GRAPH, &found, &graph));
    SPC_MPI_TRY(check_member(found, "rank", rank));
    *nneighbors = graph->ends[rank] - first_edge(graph, rank);
    return MPI_SUCCESS;
}

int spc_mpi_graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_GRAPH, &found, &graph));
    SPC_MPI_TRY(check_member(found, "rank", rank));
    const int count = graph->ends[rank] - first_edge(graph, rank);
    SPC_MPI_TRY(check_length(found, "maxneighbors", maxneighbors, count));
    copy_out(neighbors, graph->edges + first_edge(graph, rank), count);
    return MPI_SUCCESS;
}

/* ---- distributed graphs ---- */

/* One end of this node's edges. */
typedef struct side {
    const char *role; /* "sources" */
    int count;
    const int *ranks;
    const int *weights; /* or MPI_UNWEIGHTED, or MPI_WEIGHTS_EMPTY */
} side_t;

/* The list behind `weights`; NULL: there is none. */
static const int *real_weights(const int *weights) {
    return weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY ? NULL : weights;
}

static int check_side(const spc_mpi_comm_t *comm, const side_t *side) {
    SPC_MPI_TRY(check_not_negative(comm, side->role, side->count));
    const int *weights = real_weights(side->weights);
    for (int i = 0; i < side->count; i++) {
        SPC_MPI_TRY(check_member(comm, side->role, side->ranks[i]));
        SPC_MPI_TRY(check_not_negative(comm, "a weight", weights != NULL ? weights[i] : 0));
    }
    return MPI_SUCCESS;
}

static spc_mpi_topology_t *make_dist_graph(const side_t *in, const side_t *out) {
    spc_mpi_topology_t *made = create(MPI_DIST_GRAPH, 2 * ((size_t)in->count + (size_t)out->count));
    if (made == NULL) {
        return NULL;
    }
    int *next = made->numbers;
    made->is_weighted = in->weights != MPI_UNWEIGHTED && out->weights != MPI_UNWEIGHTED;
    made->source_count = in->count;
    made->sources = carve(&next, in->count, in->ranks);
    made->source_weights = carve(&next, in->count, real_weights(in->weights));
    made->destination_count = out->count;
    made->destinations = carve(&next, out->count, out->ranks);
    made->destination_weights = carve(&next, out->count, real_weights(out->weights));
    return made;
}

static int create_dist_graph(spc_mpi_comm_t *comm, const side_t *in, const side_t *out, MPI_Info info,
                             MPI_Comm *handle) {
    spc_mpi_comm_t *made;
    SPC_MPI_TRY(take_first(comm, comm->size, &made));
    SPC_MPI_TRY(publish(made, make_dist_graph(in, out), handle));
    return spc_mpi_hints_set(spc_mpi_comm_hints, info, &made->info);
}

int spc_mpi_dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                       const int *sourceweights, int outdegree, const int destinations[],
                                       const int *destweights, MPI_Info info, int reorder,
                                       MPI_Comm *comm_dist_graph) {
    const side_t in = {"sources", indegree, sources, sourceweights};
    const side_t out = {"destinations", outdegree, destinations, destweights};
    spc_mpi_comm_t *found;
    (void)reorder;
    *comm_dist_graph = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm_old, &found));
    SPC_MPI_TRY(check_side(found, &in));
    SPC_MPI_TRY(check_side(found, &out));
    return create_dist_graph(found, &in, &out, info, comm_dist_graph);
}

typedef struct edge {
    int from;
    int to;
    int weight;
} edge_t;

/* The edges that all nodes gave, in the order of ranks; the caller frees `*all`. */
static int gather_edges(spc_mpi_comm_t *comm, const edge_t *mine, int count, edge_t **all, int *total) {
    int *counts = malloc(sizeof(int) * (size_t)comm->size);
    *all = NULL;
    if (counts == NULL) {
        return no_memory(comm);
    }
    int code = spc_mpi_allgather_bytes(comm, &count, sizeof(count), counts);
    int64_t sum = 0;
    for (int rank = 0; code == MPI_SUCCESS && rank < comm->size; rank++) {
        sum += counts[rank];
    }
    edge_t *edges =
        code == MPI_SUCCESS && sum <= INT_MAX / 3 ? malloc(sizeof(*edges) * ((size_t)sum + 1)) : NULL;
    if (code == MPI_SUCCESS && edges == NULL) {
        code = no_memory(comm);
    }
    *total = 0;
    for (int rank = 0; code == MPI_SUCCESS && rank < comm->size; rank++) {
        edge_t *part = edges + *total;
        if (rank == comm->rank) {
            memcpy(part, mine, sizeof(*mine) * (size_t)count);
        }
        if (counts[rank] > 0) {
            code = spc_mpi_bcast_bytes(comm, part, sizeof(*part) * (uint64_t)counts[rank], rank);
        }
        *total += counts[rank];
    }
    free(counts);
    if (code != MPI_SUCCESS) {
        free(edges);
        return code;
    }
    *all = edges;
    return MPI_SUCCESS;
}

/* This node's neighbours at one end of the edges; ranks and then weights are written to `numbers`. */
static void select_side(const edge_t *edges, int total, int rank, bool incoming, int *numbers, side_t *side) {
    int *ranks = numbers, *weights = numbers + total;
    side->count = 0;
    for (int i = 0; i < total; i++) {
        if ((incoming ? edges[i].to : edges[i].from) == rank) {
            ranks[side->count] = incoming ? edges[i].from : edges[i].to;
            weights[side->count++] = edges[i].weight;
        }
    }
    side->ranks = ranks;
    side->weights = weights;
}

/* This node's own edges, in `edges`, or, if that is NULL, only their number. */
static int list_edges(const spc_mpi_comm_t *comm, const side_t *from, const int degrees[],
                      const int targets[], edge_t *edges, int *count) {
    const int *weights = real_weights(from->weights);
    *count = 0;
    for (int i = 0; i < from->count; i++) {
        SPC_MPI_TRY(check_member(comm, "sources", from->ranks[i]));
        SPC_MPI_TRY(check_not_negative(comm, "degrees", degrees[i]));
        for (int k = 0; k < degrees[i]; k++, ++*count) {
            SPC_MPI_TRY(check_member(comm, "destinations", targets[*count]));
            const int weight = weights != NULL ? weights[*count] : 1;
            SPC_MPI_TRY(check_not_negative(comm, "a weight", weight));
            if (edges != NULL) {
                edges[*count] = (edge_t){from->ranks[i], targets[*count], weight};
            }
        }
    }
    return MPI_SUCCESS;
}

static int create_from_edges(spc_mpi_comm_t *comm, const edge_t *mine, int count, bool weighted,
                             MPI_Info info, MPI_Comm *handle) {
    edge_t *all;
    int total = 0;
    side_t in = {.role = "sources"}, out = {.role = "destinations"};
    SPC_MPI_TRY(gather_edges(comm, mine, count, &all, &total));
    int *numbers = malloc(sizeof(int) * 4 * ((size_t)total + 1));
    int code = numbers != NULL ? MPI_SUCCESS : no_memory(comm);
    if (code == MPI_SUCCESS) {
        select_side(all, total, comm->rank, true, numbers, &in);
        select_side(all, total, comm->rank, false, numbers + 2 * (size_t)total, &out);
        if (!weighted) {
            in.weights = out.weights = MPI_UNWEIGHTED;
        }
        code = create_dist_graph(comm, &in, &out, info, handle);
    }
    free(numbers);
    free(all);
    return code;
}

int spc_mpi_dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                              const int destinations[], const int *weights, MPI_Info info, int reorder,
                              MPI_Comm *comm_dist_graph) {
    const side_t from = {"sources", n, sources, weights};
    spc_mpi_comm_t *found;
    int count;
    (void)reorder;
    *comm_dist_graph = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm_old, &found));
    SPC_MPI_TRY(check_not_negative(found, "n", n));
    SPC_MPI_TRY(list_edges(found, &from, degrees, destinations, NULL, &count));
    edge_t *mine = malloc(sizeof(*mine) * ((size_t)count + 1));
    if (mine == NULL) {
        return no_memory(found);
    }
    int code = list_edges(found, &from, degrees, destinations, mine, &count);
    if (code == MPI_SUCCESS) {
        code = create_from_edges(found, mine, count, weights != MPI_UNWEIGHTED, info, comm_dist_graph);
    }
    free(mine);
    return code;
}

int spc_mpi_dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree, int *weighted) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_DIST_GRAPH, &found, &graph));
    *indegree = graph->source_count;
    *outdegree = graph->destination_count;
    *weighted = graph->is_weighted;
    return MPI_SUCCESS;
}

/* As many as the caller has room for; weights only where the graph has them and the caller wants them. */
int spc_mpi_dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int *sourceweights,
                                 int maxoutdegree, int destinations[], int *destweights) {
    spc_mpi_comm_t *found;
    const spc_mpi_topology_t *graph;
    SPC_MPI_TRY(get_topology(comm, MPI_DIST_GRAPH, &found, &graph));
    const int in = maxindegree < graph->source_count ? maxindegree : graph->source_count;
    const int out = maxoutdegree < graph->destination_count ? maxoutdegree : graph->destination_count;
    copy_out(sources, graph->sources, in);
    copy_out(destinations, graph->destinations, out);
    if (graph->is_weighted && real_weights(sourceweights) != NULL) {
        copy_out(sourceweights, graph->source_weights, in);
    }
    if (graph->is_weighted && real_weights(destweights) != NULL) {
        copy_out(destweights, graph->destination_weights, out);
    }
    return MPI_SUCCESS;
}
