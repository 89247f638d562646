/* SPDX-License-Identifier: MIT */
/*
 * Collectives that return a request.
 *
 * Each call sends this node's contribution to the nodes that need it, and posts a receive for each part that this node
 * needs. So no call waits for another node, and parts arrive during any wait of the node. A reduction receives the
 * values themselves; the thread that completes its request combines them, in the order of ranks. In a barrier every
 * node sends an empty message to every other: a fuzzy barrier of the core would take fewer messages, but at most
 * SPC_FUZZY_MAX of them can be open.
 *
 * Messages of one communicator are matched in the order of its collectives. A persistent one has a tag of its own,
 * because nodes make them in the same order but may start them in any. Each message names its call, so mismatched calls
 * are found where it arrives.
 */
#include "mpi/comm/spc_mpi_collective.h"
#include "mpi/message/spc_mpi_request.h"

/* ---- the call and its parts ---- */

/* Each message of a call begins with it. */
typedef struct header {
    int32_t kind;
    int32_t root;     /* its rank in its own group */
    int32_t operator; /* the core's; -1: it has none */
} header_t;

/* A part of the result, which a peer gives. */
typedef struct part {
    spc_request_t core; /* first: the core gives it back to `deliver` */
    const spc_mpi_collective_t *call;
    spc_mpi_part_t to;
    bool is_of_call; /* the message is of this call, and its data are there */
    MPI_Count bytes;
    uint8_t format; /* of elements of another type; 0: they are as expected */
} part_t;

/* The call, which holds references to types and operator. Behind the parts lie copies of its lists. */
typedef struct kept {
    spc_mpi_collective_t call;
    spc_mpi_items_t *items; /* of a reduction: what the peers give, and behind it what this node gives */
    bool is_finished;
    int code;       /* with which it was */
    part_t parts[]; /* by peer */
} kept_t;

static bool is_reduction(const spc_mpi_collective_t *call) {
    return call->kind >= SPC_MPI_REDUCE;
}

static bool is_from_root(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_BCAST || call->kind == SPC_MPI_SCATTER;
}

static bool is_to_root(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_GATHER || call->kind == SPC_MPI_REDUCE;
}

static bool is_prefix(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_SCAN || call->kind == SPC_MPI_EXSCAN;
}

static bool gives_to(const spc_mpi_collective_t *call, int peer) {
    const bool is_other = call->comm->remote != NULL || peer != call->comm->rank;
    return is_other
           && (is_from_root(call) ? spc_mpi_is_root(call)
               : is_to_root(call) ? peer == call->root
                                  : !is_prefix(call) || call->comm->rank < peer);
}

static bool gets_from(const spc_mpi_collective_t *call, int peer) {
    const bool is_other = call->comm->remote != NULL || peer != call->comm->rank;
    return is_other
           && (is_from_root(call) ? peer == call->root
               : is_to_root(call) ? spc_mpi_is_root(call)
                                  : !is_prefix(call) || peer < call->comm->rank);
}

static header_t header_of(const spc_mpi_collective_t *call) {
    const bool is_root_of_two = call->comm->remote != NULL && call->root == MPI_ROOT;
    return (header_t){.kind = (int32_t)call->kind,
                      .root = is_root_of_two ? call->comm->rank : call->root,
                      .operator = is_reduction(call) ? call->core_op : -1};
}

/* ---- giving ---- */

static int send_to(const spc_mpi_collective_t *call, const int32_t *to, uint32_t count, spc_mpi_part_t part) {
    const header_t header = header_of(call);
    const spc_mpi_comm_t *comm = call->comm;
    spc_mpi_payload_t payload;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, part.at, part.count, part.type, &payload));
    payload.core.meta = &header;
    payload.core.meta_bytes = sizeof(header);
    return spc_mpi_payload_send(comm, to, count, call->tag, &payload);
}

/* To each its own part. In place, an alltoall gives what lies where it gets. */
static int give_each(const spc_mpi_collective_t *call) {
    const spc_mpi_side_t *side =
        call->is_in_place && call->kind == SPC_MPI_ALLTOALL ? &call->recv : &call->send;
    for (int peer = 0; peer < spc_mpi_peers(call->comm); peer++) {
        if (gives_to(call, peer)) {
            const int32_t to = spc_mpi_to_core(call->comm, peer);
            SPC_MPI_TRY(send_to(call, &to, 1, spc_mpi_part(side, peer)));
        }
    }
    return MPI_SUCCESS;
}

/* The same to all: one message, which is copied once. */
static int give_same(const spc_mpi_collective_t *call) {
    const bool is_in_recv = call->is_in_place && !is_reduction(call);
    int32_t to[SPC_NODES_MAX];
    uint32_t count = 0;
    for (int peer = 0; peer < spc_mpi_peers(call->comm); peer++) {
        if (gives_to(call, peer)) {
            to[count++] = spc_mpi_to_core(call->comm, peer);
        }
    }
    return count == 0 ? MPI_SUCCESS
                      : send_to(call, to, count,
                                is_in_recv ? spc_mpi_part(&call->recv, call->comm->rank)
                                           : spc_mpi_whole(&call->send));
}

static int give(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_SCATTER || call->kind == SPC_MPI_ALLTOALL ? give_each(call)
                                                                           : give_same(call);
}

/* ---- getting ---- */

/* spc_request_deliver_t: with the node's lock. Errors are explained at completion. */
static void deliver(spc_request_t *core, spc_message_t *message) {
    part_t *part = (part_t *)core;
    const header_t expected = header_of(part->call);
    const MPI_Count room = part->to.count * part->to.type->size;
    part->is_of_call =
        message->meta_bytes == sizeof(expected) && memcmp(message->bytes, &expected, sizeof(expected)) == 0;
    part->bytes = (MPI_Count)spc_message_data_bytes(message);
    part->format = spc_mpi_unexpected(message, part->to.type, true);
    if (part->is_of_call) {
        spc_mpi_type_unpack(spc_message_data(message), part->bytes < room ? part->bytes : room, part->to.at,
                            part->to.count, part->to.type);
    }
}

static spc_mpi_part_t place_for(const kept_t *kept, int peer) {
    const spc_mpi_collective_t *call = &kept->call;
    return is_reduction(call)   ? kept->items[peer].part
           : is_from_root(call) ? spc_mpi_whole(&call->recv)
                                : spc_mpi_part(&call->recv, peer);
}

/* Whether this node's own values are among those that it combines. */
static bool has_own(const spc_mpi_collective_t *call) {
    return call->comm->remote == NULL && call->kind != SPC_MPI_EXSCAN;
}

static int create_items(kept_t *kept) {
    const spc_mpi_collective_t *call = &kept->call;
    const int peers = spc_mpi_peers(call->comm);
    kept->items = calloc((size_t)peers + 1, sizeof(*kept->items));
    if (kept->items == NULL) {
        return spc_mpi_fail(call->comm, MPI_ERR_NO_MEM, "there is no memory for the values of %d ranks",
                            peers);
    }
    for (int peer = 0; peer < peers; peer++) {
        if (gets_from(call, peer)) {
            SPC_MPI_TRY(
                spc_mpi_items_create(call->comm, call->send.count, call->send.type, &kept->items[peer]));
        }
    }
    if (!has_own(call)) {
        return MPI_SUCCESS;
    }
    /* Copied now: mpi4py 4.1 does not keep the array of a nonblocking reduction until that is complete. */
    SPC_MPI_TRY(spc_mpi_items_create(call->comm, call->send.count, call->send.type, &kept->items[peers]));
    return spc_mpi_copy_part(call->comm, spc_mpi_whole(&call->send), kept->items[peers].part);
}

/* Posts a receive for each part. */
static int get(kept_t *kept, spc_mpi_request_t *request) {
    const spc_mpi_collective_t *call = &kept->call;
    spc_request_t *first = NULL, **end = &first;
    int code = call->recv.is_used && is_reduction(call) ? create_items(kept) : MPI_SUCCESS;
    for (int peer = 0; peer < spc_mpi_peers(call->comm) && code == MPI_SUCCESS; peer++) {
        part_t *part = &kept->parts[peer];
        if (!call->recv.is_used || !gets_from(call, peer)) {
            continue;
        }
        *part = (part_t){
            .core = {.deliver = deliver, .tag = SPC_ANY_TAG}, .call = call, .to = place_for(kept, peer)};
        code = spc_mpi_check(call->comm,
                             spc_request_receive(call->comm->core, SPC_CONTEXT_INTERNAL,
                                                 spc_mpi_to_core(call->comm, peer), call->tag, &part->core));
        if (code == MPI_SUCCESS) {
            *end = &part->core;
            end = &part->core.next_part;
        }
    }
    spc_request_all(call->comm->core, first, &request->core);
    request->core.name = spc_mpi_call_word(request->made_by);
    return code;
}

/* ---- finishing ---- */

static void free_items(kept_t *kept) {
    for (int i = 0; kept->items != NULL && i <= spc_mpi_peers(kept->call.comm); i++) {
        free(kept->items[i].memory);
    }
    free(kept->items);
    kept->items = NULL;
}

static int check_part(const part_t *part, int peer) {
    if (!part->is_of_call) {
        return spc_mpi_fail(
            part->call->comm, MPI_ERR_OTHER,
            "rank %d called another collective than this rank, or gave another root or operator; all "
            "ranks call the same ones in the same order",
            peer);
    }
    return spc_mpi_check_part(part->call->comm, peer, part->bytes, part->format, part->to,
                              is_reduction(part->call));
}

/* total = v[0] op (v[1] op (... op v[last])); between two groups the values are the other group's. */
static int combine(const kept_t *kept) {
    const spc_mpi_collective_t *call = &kept->call;
    spc_mpi_comm_t *comm = call->comm;
    const int peers = spc_mpi_peers(comm);
    const spc_mpi_part_t *total = NULL;
    for (int rank = peers - 1; rank >= 0; rank--) {
        const bool is_own = has_own(call) && rank == comm->rank;
        const spc_mpi_part_t *value = &kept->items[is_own ? peers : rank].part;
        if (!is_own && !gets_from(call, rank)) {
            continue;
        }
        if (total != NULL) {
            SPC_MPI_TRY(spc_mpi_combine(comm, call->op, value->at, total->at, total->count, total->type));
        }
        total = total != NULL ? total : value;
    }
    return total != NULL ? spc_mpi_take_total(call, *total) : MPI_SUCCESS;
}

/* Checks all parts, and combines those of a reduction. */
static int finish(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    const spc_mpi_collective_t *call = &kept->call;
    if (kept->is_finished) {
        return kept->code;
    }
    kept->code = MPI_SUCCESS;
    for (int peer = 0; peer < spc_mpi_peers(call->comm) && call->recv.is_used; peer++) {
        if (gets_from(call, peer)) {
            const int code = check_part(&kept->parts[peer], peer);
            kept->code = kept->code != MPI_SUCCESS ? kept->code : code;
        }
    }
    if (kept->code == MPI_SUCCESS && is_reduction(call) && call->recv.is_used) {
        kept->code = combine(kept);
    }
    free_items(kept);
    kept->is_finished = true;
    return kept->code;
}

static int start(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    kept->is_finished = false;
    SPC_MPI_TRY(give(&kept->call));
    if (!is_reduction(&kept->call) && kept->call.comm->remote == NULL) {
        SPC_MPI_TRY(spc_mpi_copy_own(&kept->call));
    }
    return get(kept, request);
}

/* ---- keeping the call ---- */

static int entries(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_REDUCE_SCATTER ? call->comm->size : spc_mpi_peers(call->comm);
}

typedef void use_type_t(spc_mpi_type_t *type);

static void use_types(const spc_mpi_collective_t *call, const spc_mpi_side_t *side, use_type_t *use) {
    for (int peer = 0; side->types != NULL && peer < entries(call); peer++) {
        if (side->types[peer] != NULL) {
            use(side->types[peer]);
        }
    }
    if (side->types == NULL && side->type != NULL) {
        use(side->type);
    }
}

static MPI_Count *copy_counts(spc_mpi_counts_t *counts, int count, MPI_Count *to) {
    if (counts->at == NULL) {
        return to;
    }
    for (int i = 0; i < count; i++) {
        to[i] = spc_mpi_count(*counts, i);
    }
    *counts = (spc_mpi_counts_t){to, true};
    return to + count;
}

static void release_kept(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    use_types(&kept->call, &kept->call.send, spc_mpi_type_release);
    use_types(&kept->call, &kept->call.recv, spc_mpi_type_release);
    spc_mpi_op_release(kept->call.op);
    spc_mpi_collective_end(&kept->call);
    free_items(kept);
}

/* Makes the call's request, which takes over the call. */
static int keep(spc_mpi_collective_t *call, spc_mpi_request_t **request) {
    const int count = entries(call), peers = spc_mpi_peers(call->comm);
    const size_t lists = 4 * (size_t)count * sizeof(MPI_Count);
    spc_mpi_request_t *made;
    const int code = spc_mpi_request_create(call->comm, NULL,
                                            sizeof(kept_t) + (size_t)peers * sizeof(part_t) + lists, &made);
    if (code != MPI_SUCCESS) {
        spc_mpi_collective_end(call);
        return code;
    }
    kept_t *kept = made->arguments;
    kept->call = *call;
    kept->call.tag = SPC_MPI_TAGS_LATER;
    MPI_Count *end = copy_counts(&kept->call.send.counts, count, (MPI_Count *)&kept->parts[peers]);
    end = copy_counts(&kept->call.send.displacements, count, end);
    end = copy_counts(&kept->call.recv.counts, count, end);
    (void)copy_counts(&kept->call.recv.displacements, count, end);
    use_types(call, &call->send, spc_mpi_type_retain);
    use_types(call, &call->recv, spc_mpi_type_retain);
    spc_mpi_op_retain(call->op);
    made->release = release_kept;
    made->start = start;
    made->finish = finish;
    *request = made;
    return MPI_SUCCESS;
}

/* `prepared`: the result of preparing the call. */
static int keep_for_start(spc_mpi_collective_t *call, int prepared, MPI_Request *handle) {
    spc_mpi_request_t *made;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(prepared);
    SPC_MPI_TRY(keep(call, &made));
    ((kept_t *)made->arguments)->call.tag =
        SPC_MPI_TAGS_LATER + 1 + spc_mpi_next_persistent(made->comm) % SPC_MPI_TAGS_LATER_MAX;
    made->is_persistent = true;
    made->is_active = false;
    *handle = made->handle;
    return MPI_SUCCESS;
}

static int begin(spc_mpi_collective_t *call, int prepared, MPI_Request *handle) {
    spc_mpi_request_t *made;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(prepared);
    SPC_MPI_TRY(keep(call, &made));
    const int code = start(made);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *handle = made->handle;
    return MPI_SUCCESS;
}

/* ---- MPI functions: begun when they are called ---- */

int spc_mpi_ibarrier(MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call, spc_mpi_prepare_barrier(&call, comm), request);
}

int spc_mpi_ibcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                   MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call, spc_mpi_prepare_bcast(&call, buffer, count, datatype, root, comm), request);
}

int spc_mpi_igather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                    MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                 request);
}

int spc_mpi_igatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype, int root,
                     MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                        SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), root, comm),
                 request);
}

int spc_mpi_iscatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                     MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_scatter(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                         SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                 request);
}

int spc_mpi_iscatterv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t displs,
                      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                      int root, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_scatter(&call, SPC_MPI_LISTED(sendbuf, sendcounts, displs, sendtype),
                                         SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                 request);
}

int spc_mpi_iallgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                           SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm),
                 request);
}

int spc_mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                        MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                           SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), comm),
                 request);
}

int spc_mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_alltoall(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                          SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm),
                 request);
}

int spc_mpi_ialltoallv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                       MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                       spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_alltoall(&call, SPC_MPI_LISTED(sendbuf, sendcounts, sdispls, sendtype),
                                          SPC_MPI_LISTED(recvbuf, recvcounts, rdispls, recvtype), comm),
                 request);
}

int spc_mpi_ialltoallw(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                       const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                       spc_mpi_counts_t rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                       MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_alltoall(&call, SPC_MPI_TYPED(sendbuf, sendcounts, sdispls, sendtypes),
                                          SPC_MPI_TYPED(recvbuf, recvcounts, rdispls, recvtypes), comm),
                 request);
}

int spc_mpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    int root, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE, sendbuf, recvbuf, count, NULL, datatype, op,
                                           root, comm),
                 request);
}

int spc_mpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_reduction(&call, SPC_MPI_ALLREDUCE, sendbuf, recvbuf, count, NULL, datatype,
                                           op, 0, comm),
                 request);
}

int spc_mpi_ireduce_scatter(const void *sendbuf, void *recvbuf, spc_mpi_counts_t recvcounts,
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, 0, &recvcounts,
                                           datatype, op, 0, comm),
                 request);
}

int spc_mpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, recvcount, NULL,
                                           datatype, op, 0, comm),
                 request);
}

int spc_mpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(
        &call,
        spc_mpi_prepare_reduction(&call, SPC_MPI_SCAN, sendbuf, recvbuf, count, NULL, datatype, op, 0, comm),
        request);
}

int spc_mpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    return begin(&call,
                 spc_mpi_prepare_reduction(&call, SPC_MPI_EXSCAN, sendbuf, recvbuf, count, NULL, datatype, op,
                                           0, comm),
                 request);
}

/* ---- MPI functions: persistent ---- */

int spc_mpi_barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call, spc_mpi_prepare_barrier(&call, comm), request);
}

int spc_mpi_bcast_init(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call, spc_mpi_prepare_bcast(&call, buffer, count, datatype, root, comm), request);
}

int spc_mpi_gather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                 SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                          request);
}

int spc_mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                         int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                 SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), root,
                                                 comm),
                          request);
}

int spc_mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                         MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_scatter(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                  SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                          request);
}

int spc_mpi_scatterv_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t displs,
                          MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                          int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_scatter(&call,
                                                  SPC_MPI_LISTED(sendbuf, sendcounts, displs, sendtype),
                                                  SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm),
                          request);
}

int spc_mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                           MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                    SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm),
                          request);
}

int spc_mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                            spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                            MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                    SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype),
                                                    comm),
                          request);
}

int spc_mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                          MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_alltoall(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                                   SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm),
                          request);
}

int spc_mpi_alltoallv_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                           MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                           spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                           MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(
        &call,
        spc_mpi_prepare_alltoall(&call, SPC_MPI_LISTED(sendbuf, sendcounts, sdispls, sendtype),
                                 SPC_MPI_LISTED(recvbuf, recvcounts, rdispls, recvtype), comm),
        request);
}

int spc_mpi_alltoallw_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                           const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                           spc_mpi_counts_t rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                           MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(
        &call,
        spc_mpi_prepare_alltoall(&call, SPC_MPI_TYPED(sendbuf, sendcounts, sdispls, sendtypes),
                                 SPC_MPI_TYPED(recvbuf, recvcounts, rdispls, recvtypes), comm),
        request);
}

int spc_mpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE, sendbuf, recvbuf, count, NULL,
                                                    datatype, op, root, comm),
                          request);
}

int spc_mpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_reduction(&call, SPC_MPI_ALLREDUCE, sendbuf, recvbuf, count, NULL,
                                                    datatype, op, 0, comm),
                          request);
}

int spc_mpi_reduce_scatter_init(const void *sendbuf, void *recvbuf, spc_mpi_counts_t recvcounts,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, 0,
                                                    &recvcounts, datatype, op, 0, comm),
                          request);
}

int spc_mpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                      MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf,
                                                    recvcount, NULL, datatype, op, 0, comm),
                          request);
}

int spc_mpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(
        &call,
        spc_mpi_prepare_reduction(&call, SPC_MPI_SCAN, sendbuf, recvbuf, count, NULL, datatype, op, 0, comm),
        request);
}

int spc_mpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    return keep_for_start(&call,
                          spc_mpi_prepare_reduction(&call, SPC_MPI_EXSCAN, sendbuf, recvbuf, count, NULL,
                                                    datatype, op, 0, comm),
                          request);
}
