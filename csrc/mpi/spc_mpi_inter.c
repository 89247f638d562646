/* SPDX-License-Identifier: MIT */
/*
 * Collectives between two groups, by messages: each group gets what the other one gives.
 *
 * A reduction combines within each group first, at its rank 0.
 */
#include "mpi/spc_mpi_collective.h"

#include "comm/spc_comm.h"

#define TAG (SPC_MPI_TAGS + 0x100) /* the same for all calls: messages between two nodes keep their order */

static int give(const spc_mpi_comm_t *comm, int peer, spc_mpi_part_t part) {
    const int32_t to = spc_mpi_to_core(comm, peer);
    spc_mpi_payload_t payload;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, part.at, part.count, part.type, &payload));
    const int status =
        spc_comm_send_ahead(comm->core, &to, 1, SPC_CONTEXT_INTERNAL, TAG, &payload.core, SPC_NO_DEADLINE);
    spc_mpi_payload_end(&payload);
    return spc_mpi_check(comm, status);
}

static int get(const spc_mpi_comm_t *comm, int peer, spc_mpi_part_t part) {
    spc_message_t message;
    SPC_MPI_TRY(
        spc_mpi_check(comm, spc_comm_recv(comm->core, SPC_CONTEXT_INTERNAL, spc_mpi_to_core(comm, peer), TAG,
                                          SPC_NO_DEADLINE, &message)));
    const int code = spc_mpi_take_part(comm, &message, peer, part);
    spc_message_release(comm->core, &message);
    return code;
}

/* ---- moving data ---- */

/* Sends to the root alone, or to all peers. */
static int give_all(const spc_mpi_collective_t *call) {
    const bool is_for_each = call->kind == SPC_MPI_SCATTER || call->kind == SPC_MPI_ALLTOALL;
    if (!call->send.is_used) {
        return MPI_SUCCESS;
    }
    if (call->kind == SPC_MPI_GATHER) {
        return give(call->comm, call->root, spc_mpi_whole(&call->send));
    }
    for (int peer = 0; peer < call->comm->remote->size; peer++) {
        SPC_MPI_TRY(give(call->comm, peer,
                         is_for_each ? spc_mpi_part(&call->send, peer) : spc_mpi_whole(&call->send)));
    }
    return MPI_SUCCESS;
}

/* Receives every message, even if one fails. */
static int get_all(const spc_mpi_collective_t *call) {
    int code = MPI_SUCCESS;
    if (!call->recv.is_used) {
        return MPI_SUCCESS;
    }
    if (call->kind == SPC_MPI_BCAST || call->kind == SPC_MPI_SCATTER) {
        return get(call->comm, call->root, spc_mpi_whole(&call->recv));
    }
    for (int peer = 0; peer < call->comm->remote->size; peer++) {
        const int got = get(call->comm, peer, spc_mpi_part(&call->recv, peer));
        code = code != MPI_SUCCESS ? code : got;
    }
    return code;
}

/* ---- combining ---- */

static int combine_locally(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    const spc_mpi_comm_t *local = call->comm->local;
    spc_mpi_collective_t reduce = *call;
    reduce.kind = SPC_MPI_REDUCE;
    reduce.comm = call->comm->local;
    reduce.root = 0;
    reduce.recv = (spc_mpi_side_t){
        .is_used = local->rank == 0, .buffer = total.at, .count = total.count, .type = call->send.type};
    return spc_mpi_collective_run(&reduce);
}

/* Sends the other group's total, which this group's rank 0 has, to all of this group. */
static int share(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    spc_mpi_collective_t shared = *call;
    const bool is_scattered = call->kind == SPC_MPI_REDUCE_SCATTER;
    const bool is_first = call->comm->rank == 0;
    shared.kind = is_scattered ? SPC_MPI_SCATTER : SPC_MPI_BCAST;
    shared.comm = call->comm->local;
    shared.root = 0;
    shared.recv.is_used = is_scattered || !is_first;
    shared.recv.is_listed = false;
    if (call->recv.is_listed) {
        shared.recv.count = spc_mpi_count(call->recv.counts, call->comm->rank);
    }
    shared.send = (spc_mpi_side_t){.is_used = is_first,
                                   .buffer = is_scattered ? total.at : call->recv.buffer,
                                   .count = call->recv.count,
                                   .is_listed = call->recv.is_listed,
                                   .counts = call->recv.counts,
                                   .type = call->recv.type};
    if (!call->recv.is_listed || !is_first) {
        return spc_mpi_collective_run(&shared);
    }
    MPI_Count *places = malloc(sizeof(*places) * (size_t)call->comm->size), first = 0;
    if (places == NULL) {
        return spc_mpi_fail(call->comm, MPI_ERR_NO_MEM, "there is no memory for a list of counts");
    }
    for (int rank = 0; rank < call->comm->size; rank++) {
        places[rank] = first;
        first += spc_mpi_count(call->recv.counts, rank);
    }
    shared.send.displacements = (spc_mpi_counts_t){places, true};
    const int code = spc_mpi_collective_run(&shared);
    free(places);
    return code;
}

/* Exchanges the totals of both groups. */
static int exchange(const spc_mpi_collective_t *call, spc_mpi_part_t own, spc_mpi_part_t other) {
    SPC_MPI_TRY(combine_locally(call, own));
    if (call->comm->rank == 0) {
        SPC_MPI_TRY(give(call->comm, 0, own));
        SPC_MPI_TRY(get(call->comm, 0, other));
    }
    return share(call, other);
}

static int combine_both(const spc_mpi_collective_t *call) {
    const MPI_Count count = call->send.count;
    spc_mpi_items_t own = {.memory = NULL}, other = {.memory = NULL};
    int code = spc_mpi_items_create(call->comm, count, call->send.type, &own);
    code = code != MPI_SUCCESS ? code : spc_mpi_items_create(call->comm, count, call->send.type, &other);
    if (code == MPI_SUCCESS) {
        const bool is_scattered = call->kind == SPC_MPI_REDUCE_SCATTER;
        code =
            exchange(call, own.part,
                     is_scattered ? other.part : (spc_mpi_part_t){call->recv.buffer, count, call->recv.type});
    }
    free(own.memory);
    free(other.memory);
    return code;
}

/* Combines for the root, which is in the other group. */
static int combine_for_root(const spc_mpi_collective_t *call) {
    spc_mpi_items_t total = {.memory = NULL};
    if (call->root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (call->root == MPI_ROOT) {
        return get(call->comm, 0, spc_mpi_whole(&call->recv));
    }
    SPC_MPI_TRY(spc_mpi_items_create(call->comm, call->send.count, call->send.type, &total));
    int code = combine_locally(call, total.part);
    if (code == MPI_SUCCESS && call->comm->rank == 0) {
        code = give(call->comm, call->root, total.part);
    }
    free(total.memory);
    return code;
}

int spc_mpi_inter_run(const spc_mpi_collective_t *call) {
    if (call->kind == SPC_MPI_REDUCE) {
        return combine_for_root(call);
    }
    if (call->kind > SPC_MPI_REDUCE) {
        return combine_both(call);
    }
    SPC_MPI_TRY(give_all(call));
    return get_all(call);
}
