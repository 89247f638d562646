/* SPDX-License-Identifier: MIT */
/*
 * Collectives of neighbours: messages between the nodes that a topology puts beside each other.
 *
 * Every node sends to its destinations in their order, then receives from its sources in theirs. So the items of
 * several edges between two nodes keep the order of the edges. In a periodic dimension of one or two nodes both
 * neighbours are the same node: there the tag is the receiver's number of the neighbour. What is sent down arrives from
 * above.
 *
 * Nonblocking ones send as well, and post a receive for each source: their request is done when all of these are.
 */
#include "mpi/comm/spc_mpi_topology.h"
#include "mpi/message/spc_mpi_request.h"

/* The buffers of one direction, with one item for each neighbour. */
typedef struct items {
    void *buffer;
    MPI_Count count; /* of each, if there are no `counts` */
    MPI_Datatype type;
    spc_mpi_counts_t counts;
    spc_mpi_counts_t displs;   /* in elements; none: one item after the other */
    const MPI_Aint *offsets;   /* in bytes, instead of displs */
    const MPI_Datatype *types; /* instead of `type` */
    bool is_one;               /* every neighbour gets the same item */
} items_t;

typedef struct exchange {
    items_t sent;
    items_t received;
    MPI_Comm comm;
} exchange_t;

typedef struct item {
    void *at;
    MPI_Count count;
    spc_mpi_type_t *type;
} item_t;

static int find_item(const spc_mpi_comm_t *comm, const items_t *items, int index, item_t *item) {
    SPC_MPI_TRY(
        spc_mpi_get_type(comm, items->types != NULL ? items->types[index] : items->type, &item->type));
    item->count = items->counts.at != NULL ? spc_mpi_count(items->counts, index) : items->count;
    if (item->count < 0) {
        return spc_mpi_fail(comm, MPI_ERR_COUNT, "count=%lld for neighbour %d: a count cannot be negative",
                            (long long)item->count, index);
    }
    if (items->offsets != NULL) {
        item->at = (char *)items->buffer + items->offsets[index];
        return MPI_SUCCESS;
    }
    MPI_Count first = items->is_one ? 0 : index * item->count;
    if (items->displs.at != NULL) {
        first = spc_mpi_count(items->displs, index);
    }
    item->at = spc_mpi_item(items->buffer, first, item->type);
    return MPI_SUCCESS;
}

/* ---- one neighbour ---- */

static int send_item(spc_mpi_comm_t *comm, int destination, int tag, const item_t *item) {
    spc_mpi_payload_t payload;
    const int32_t to = destination;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, item->at, item->count, item->type, &payload));
    return spc_mpi_payload_send(comm, &to, 1, tag, &payload);
}

static int receive_item(spc_mpi_comm_t *comm, int source, int tag, const item_t *item) {
    const MPI_Count room = item->count * item->type->size;
    spc_message_t message;
    SPC_MPI_TRY(spc_mpi_check(
        comm, spc_comm_recv(comm->core, SPC_CONTEXT_INTERNAL, source, tag, SPC_NO_DEADLINE, &message)));
    const MPI_Count bytes = (MPI_Count)spc_message_data_bytes(&message);
    spc_mpi_type_unpack(spc_message_data(&message), bytes < room ? bytes : room, item->at, item->count,
                        item->type);
    spc_message_release(comm->core, &message);
    if (bytes > room) {
        return spc_mpi_fail(comm, MPI_ERR_TRUNCATE,
                            "rank %d, a neighbour, gives %lld bytes, and there is room for %lld; both give "
                            "the same number of elements",
                            source, (long long)bytes, (long long)room);
    }
    return MPI_SUCCESS;
}

/* ---- all of them ---- */

/* `number`: of a persistent exchange, from 1 on; else 0. */
static int tag_of(const spc_mpi_topology_t *topology, int number, int index) {
    return SPC_MPI_TAGS_NEIGHBOR + (number << 10) + (topology->kind == MPI_CART ? index : 0);
}

static int get_neighbors(MPI_Comm handle, spc_mpi_comm_t **comm, const spc_mpi_topology_t **topology) {
    SPC_MPI_TRY(spc_mpi_get_intra(handle, comm));
    *topology = (*comm)->topology;
    return *topology != NULL
               ? MPI_SUCCESS
               : spc_mpi_fail(*comm, MPI_ERR_TOPOLOGY,
                              "this communicator has no topology, so no node has neighbours; MPI_Cart_create "
                              "and MPI_Dist_graph_create_adjacent make communicators that have one");
}

/* The item of an edge: of the destinations, then of the sources. `kept`: those of a persistent exchange; or NULL. */
static int item_of(const spc_mpi_comm_t *comm, const exchange_t *exchange, const item_t *kept, int i,
                   item_t *item) {
    const int out = comm->topology->destination_count;
    if (kept != NULL) {
        *item = kept[i];
        return MPI_SUCCESS;
    }
    return i < out ? find_item(comm, &exchange->sent, i, item)
                   : find_item(comm, &exchange->received, i - out, item);
}

static int give(spc_mpi_comm_t *comm, const exchange_t *exchange, const item_t *kept, int number) {
    const spc_mpi_topology_t *topology = comm->topology;
    item_t item;
    for (int i = 0; i < topology->destination_count; i++) {
        if (topology->destinations[i] != MPI_PROC_NULL) {
            SPC_MPI_TRY(item_of(comm, exchange, kept, i, &item));
            SPC_MPI_TRY(send_item(comm, topology->destinations[i], tag_of(topology, number, i ^ 1), &item));
        }
    }
    return MPI_SUCCESS;
}

static int get(spc_mpi_comm_t *comm, const exchange_t *exchange) {
    const spc_mpi_topology_t *topology = comm->topology;
    item_t item;
    for (int i = 0; i < topology->source_count; i++) {
        if (topology->sources[i] != MPI_PROC_NULL) {
            SPC_MPI_TRY(find_item(comm, &exchange->received, i, &item));
            SPC_MPI_TRY(receive_item(comm, topology->sources[i], tag_of(topology, 0, i), &item));
        }
    }
    return MPI_SUCCESS;
}

static int carry_out(const exchange_t *exchange) {
    spc_mpi_comm_t *comm;
    const spc_mpi_topology_t *topology;
    SPC_MPI_TRY(get_neighbors(exchange->comm, &comm, &topology));
    SPC_MPI_TRY(give(comm, exchange, NULL, 0));
    return get(comm, exchange);
}

/* ---- those that return a request ---- */

/* Behind a request: a receive for each source, or NULL; and of a persistent one its items, which hold references to
 * their types. */
typedef struct kept {
    int number; /* for its tags */
    item_t *items;
    spc_mpi_request_t *receives[];
} kept_t;

static void release(spc_mpi_request_t *request) {
    const spc_mpi_topology_t *topology = request->comm->topology;
    kept_t *kept = request->arguments;
    for (int i = 0; i < topology->source_count; i++) {
        if (kept->receives[i] != NULL) {
            spc_mpi_request_destroy(kept->receives[i]);
        }
    }
    for (int i = 0; kept->items != NULL && i < topology->destination_count + topology->source_count; i++) {
        if (kept->items[i].type != NULL) {
            spc_mpi_type_release(kept->items[i].type);
        }
    }
    free(kept->items);
}

/* Completes all receives, even if one fails. */
static int finish(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    int code = MPI_SUCCESS;
    for (int i = 0; i < request->comm->topology->source_count; i++) {
        MPI_Request handle;
        if (kept->receives[i] != NULL) {
            const int one = spc_mpi_complete(kept->receives[i], &handle, MPI_STATUS_IGNORE);
            code = code != MPI_SUCCESS ? code : one;
            kept->receives[i] = NULL;
        }
    }
    return code;
}

static int post(spc_mpi_comm_t *comm, int number, int index, const item_t *item, spc_mpi_request_t **made) {
    SPC_MPI_TRY(spc_mpi_request_create(comm, item->type, 0, made));
    (*made)->is_reported = true; /* if the program never completes it, its own request is */
    (*made)->buffer = item->at;
    (*made)->count = item->count;
    (*made)->peer = comm->topology->sources[index];
    (*made)->wanted_tag = 0;
    (*made)->core.tag = SPC_ANY_TAG;
    (*made)->core.next_part = NULL;
    return spc_mpi_post(SPC_CONTEXT_INTERNAL, tag_of(comm->topology, number, index), *made);
}

/* Sends the items, and posts the receives. */
static int begin(spc_mpi_request_t *request, const exchange_t *exchange) {
    spc_mpi_comm_t *comm = request->comm;
    const spc_mpi_topology_t *topology = comm->topology;
    kept_t *kept = request->arguments;
    spc_request_t *first = NULL, **end = &first;
    item_t item;
    int code = give(comm, exchange, kept->items, kept->number);
    for (int i = 0; i < topology->source_count && code == MPI_SUCCESS; i++) {
        if (topology->sources[i] == MPI_PROC_NULL) {
            continue;
        }
        code = item_of(comm, exchange, kept->items, topology->destination_count + i, &item);
        code = code != MPI_SUCCESS ? code : post(comm, kept->number, i, &item, &kept->receives[i]);
        if (code == MPI_SUCCESS) {
            *end = &kept->receives[i]->core;
            end = &kept->receives[i]->core.next_part;
        }
    }
    spc_request_all(comm->core, first, &request->core);
    request->core.name = spc_mpi_call_word(request->made_by);
    return code;
}

static int start(spc_mpi_request_t *request) {
    return begin(request, NULL);
}

static int create(const exchange_t *exchange, spc_mpi_request_t **request) {
    spc_mpi_comm_t *comm;
    const spc_mpi_topology_t *topology;
    SPC_MPI_TRY(get_neighbors(exchange->comm, &comm, &topology));
    const size_t receives = (size_t)topology->source_count * sizeof(spc_mpi_request_t *);
    SPC_MPI_TRY(spc_mpi_request_create(comm, NULL, sizeof(kept_t) + receives, request));
    (*request)->release = release;
    (*request)->start = start;
    (*request)->finish = finish;
    return MPI_SUCCESS;
}

static int carry_out_later(const exchange_t *exchange, MPI_Request *request) {
    spc_mpi_request_t *made = NULL;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(create(exchange, &made));
    const int code = begin(made, exchange);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *request = made->handle;
    return MPI_SUCCESS;
}

static int keep_items(const spc_mpi_comm_t *comm, const exchange_t *exchange, item_t *items) {
    const int count = comm->topology->destination_count + comm->topology->source_count;
    for (int i = 0; i < count; i++) {
        item_t found;
        SPC_MPI_TRY(item_of(comm, exchange, NULL, i, &found));
        spc_mpi_type_retain(found.type);
        items[i] = found;
    }
    return MPI_SUCCESS;
}

static int keep(const exchange_t *exchange, MPI_Request *request) {
    spc_mpi_request_t *made = NULL;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(create(exchange, &made));
    const spc_mpi_topology_t *topology = made->comm->topology;
    kept_t *kept = made->arguments;
    const size_t count = (size_t)topology->destination_count + (size_t)topology->source_count;
    kept->items = calloc(count + 1, sizeof(*kept->items));
    const int code = kept->items != NULL
                         ? keep_items(made->comm, exchange, kept->items)
                         : spc_mpi_fail(made->comm, MPI_ERR_NO_MEM, "there is no memory for a list of items");
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    kept->number = 1 + spc_mpi_next_persistent(made->comm) % SPC_MPI_TAGS_NEIGHBOR_MAX;
    made->is_persistent = true;
    made->is_active = false;
    *request = made->handle;
    return MPI_SUCCESS;
}

/* ---- the calls' arguments ---- */

static items_t same_for_all(const void *buffer, MPI_Count count, MPI_Datatype type) {
    return (items_t){.buffer = (void *)buffer, .count = count, .type = type, .is_one = true};
}

static items_t one_each(const void *buffer, MPI_Count count, MPI_Datatype type) {
    return (items_t){.buffer = (void *)buffer, .count = count, .type = type};
}

static items_t of_lengths(const void *buffer, spc_mpi_counts_t counts, spc_mpi_counts_t displs,
                          MPI_Datatype type) {
    return (items_t){.buffer = (void *)buffer, .counts = counts, .displs = displs, .type = type};
}

static items_t of_types(const void *buffer, spc_mpi_counts_t counts, const MPI_Aint *offsets,
                        const MPI_Datatype *types) {
    return (items_t){.buffer = (void *)buffer, .counts = counts, .offsets = offsets, .types = types};
}

/* ---- blocking ones ---- */

int spc_mpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    return carry_out(&exchange);
}

int spc_mpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                void *recvbuf, spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs,
                                MPI_Datatype recvtype, MPI_Comm comm) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 of_lengths(recvbuf, recvcounts, displs, recvtype), comm};
    return carry_out(&exchange);
}

int spc_mpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    const exchange_t exchange = {one_each(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    return carry_out(&exchange);
}

int spc_mpi_neighbor_alltoallv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                               MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                               spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    const exchange_t exchange = {of_lengths(sendbuf, sendcounts, sdispls, sendtype),
                                 of_lengths(recvbuf, recvcounts, rdispls, recvtype), comm};
    return carry_out(&exchange);
}

int spc_mpi_neighbor_alltoallw(const void *sendbuf, spc_mpi_counts_t sendcounts, const MPI_Aint sdispls[],
                               const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                               const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
    const exchange_t exchange = {of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                 of_types(recvbuf, recvcounts, rdispls, recvtypes), comm};
    return carry_out(&exchange);
}

/* ---- nonblocking ones ---- */

int spc_mpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Request *request) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    return carry_out_later(&exchange, request);
}

int spc_mpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs,
                                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 of_lengths(recvbuf, recvcounts, displs, recvtype), comm};
    return carry_out_later(&exchange, request);
}

int spc_mpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                               MPI_Request *request) {
    const exchange_t exchange = {one_each(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    return carry_out_later(&exchange, request);
}

int spc_mpi_ineighbor_alltoallv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                                MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                                spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Request *request) {
    const exchange_t exchange = {of_lengths(sendbuf, sendcounts, sdispls, sendtype),
                                 of_lengths(recvbuf, recvcounts, rdispls, recvtype), comm};
    return carry_out_later(&exchange, request);
}

int spc_mpi_ineighbor_alltoallw(const void *sendbuf, spc_mpi_counts_t sendcounts, const MPI_Aint sdispls[],
                                const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                                const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                                MPI_Request *request) {
    const exchange_t exchange = {of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                 of_types(recvbuf, recvcounts, rdispls, recvtypes), comm};
    return carry_out_later(&exchange, request);
}

/* ---- persistent ones ---- */

int spc_mpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                    MPI_Info info, MPI_Request *request) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    (void)info;
    return keep(&exchange, request);
}

int spc_mpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs,
                                     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                     MPI_Request *request) {
    const exchange_t exchange = {same_for_all(sendbuf, sendcount, sendtype),
                                 of_lengths(recvbuf, recvcounts, displs, recvtype), comm};
    (void)info;
    return keep(&exchange, request);
}

int spc_mpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                   MPI_Info info, MPI_Request *request) {
    const exchange_t exchange = {one_each(sendbuf, sendcount, sendtype),
                                 one_each(recvbuf, recvcount, recvtype), comm};
    (void)info;
    return keep(&exchange, request);
}

int spc_mpi_neighbor_alltoallv_init(const void *sendbuf, spc_mpi_counts_t sendcounts,
                                    spc_mpi_counts_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                    spc_mpi_counts_t recvcounts, spc_mpi_counts_t rdispls,
                                    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                    MPI_Request *request) {
    const exchange_t exchange = {of_lengths(sendbuf, sendcounts, sdispls, sendtype),
                                 of_lengths(recvbuf, recvcounts, rdispls, recvtype), comm};
    (void)info;
    return keep(&exchange, request);
}

int spc_mpi_neighbor_alltoallw_init(const void *sendbuf, spc_mpi_counts_t sendcounts,
                                    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
                                    spc_mpi_counts_t recvcounts, const MPI_Aint rdispls[],
                                    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                    MPI_Request *request) {
    const exchange_t exchange = {of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                 of_types(recvbuf, recvcounts, rdispls, recvtypes), comm};
    (void)info;
    return keep(&exchange, request);
}
