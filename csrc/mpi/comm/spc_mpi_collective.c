/* SPDX-License-Identifier: MIT */
/*
 * Collectives that move data. Within one group each is a collective of the core, which compares operation and root
 * before any data arrive.
 */
#include "mpi/comm/spc_mpi_collective.h"

#include "comm/spc_comm.h"
#include "mpi/message/spc_mpi_diagnose.h"

/* ---- arguments ---- */

static int check_count(const spc_mpi_comm_t *comm, const char *role, MPI_Count count) {
    return count >= 0 ? MPI_SUCCESS
                      : spc_mpi_fail(comm, MPI_ERR_COUNT, "%scount=%lld: a count cannot be negative", role,
                                     (long long)count);
}

int spc_mpi_check_root(const spc_mpi_comm_t *comm, int root) {
    const bool is_rank = root >= 0 && root < spc_mpi_peers(comm);
    if (is_rank || (comm->remote != NULL && (root == MPI_ROOT || root == MPI_PROC_NULL))) {
        return MPI_SUCCESS;
    }
    if (comm->remote == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_ROOT,
                            "root=%d: there is no rank %d; this communicator has %d (0 to %d)", root, root,
                            comm->size, comm->size - 1);
    }
    return spc_mpi_fail(
        comm, MPI_ERR_ROOT,
        "root=%d: between two groups it is a rank of the other group (0 to %d), or in the root's own "
        "group MPI_ROOT at the root and MPI_PROC_NULL elsewhere",
        root, comm->remote->size - 1);
}

/* MPI_IN_PLACE is allowed where this node's data are in the other buffer. */
int spc_mpi_check_in_place(const spc_mpi_collective_t *call, bool is_allowed) {
    if (!call->is_in_place || (is_allowed && call->comm->remote == NULL)) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(
        call->comm, MPI_ERR_BUFFER,
        call->comm->remote != NULL
            ? "MPI_IN_PLACE is no buffer between two groups"
            : "MPI_IN_PLACE is no buffer here; of a collective with a root only the root may give it");
}

/* Types of Alltoallw, one for each peer; the list is the call's. */
static int set_types(spc_mpi_side_t *side, const spc_mpi_comm_t *comm, const MPI_Datatype *types) {
    if (types == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_TYPE,
                            "the list of datatypes is NULL; it has an entry for each rank");
    }
    for (int peer = 0; peer < spc_mpi_peers(comm); peer++) {
        SPC_MPI_TRY(spc_mpi_get_committed(comm, types[peer], &side->types[peer]));
    }
    return MPI_SUCCESS;
}

static int set_lists(spc_mpi_side_t *side, const spc_mpi_comm_t *comm, const char *role,
                     const spc_mpi_given_t *given) {
    if (given->counts->at == NULL || given->displacements->at == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_ARG, "the list of %s is NULL; it has an entry for each rank",
                            given->counts->at == NULL ? "counts" : "displacements");
    }
    side->is_listed = true;
    side->counts = *given->counts;
    side->displacements = *given->displacements;
    for (int peer = 0; peer < spc_mpi_peers(comm); peer++) {
        const MPI_Count count = spc_mpi_count(side->counts, peer);
        if (count < 0) {
            return spc_mpi_fail(comm, MPI_ERR_COUNT, "%scounts[%d]=%lld: a count cannot be negative", role,
                                peer, (long long)count);
        }
        const spc_mpi_part_t part = spc_mpi_part(side, peer);
        SPC_MPI_TRY(spc_mpi_check_buffer(comm, "a buffer", part.at, part.count, part.type));
    }
    return MPI_SUCCESS;
}

/* `role`: "send", "recv" or "". */
static int set_side(spc_mpi_side_t *side, const spc_mpi_comm_t *comm, const char *role,
                    const spc_mpi_given_t *given) {
    side->is_used = true;
    side->buffer = (void *)(uintptr_t)given->buffer;
    side->count = given->count;
    if (side->types != NULL) {
        SPC_MPI_TRY(set_types(side, comm, given->types));
    } else {
        SPC_MPI_TRY(spc_mpi_get_committed(comm, given->type, &side->type));
    }
    if (given->counts != NULL) {
        return set_lists(side, comm, role, given);
    }
    SPC_MPI_TRY(check_count(comm, role, given->count));
    return spc_mpi_check_buffer(comm, "a buffer", side->buffer, side->count, side->type);
}

static int begin(spc_mpi_collective_t *call, spc_mpi_collective_kind_t kind, int root, MPI_Comm comm) {
    memset(call, 0, sizeof(*call));
    call->kind = kind;
    call->root = root;
    return spc_mpi_get_comm(comm, &call->comm);
}

int spc_mpi_prepare_barrier(spc_mpi_collective_t *call, MPI_Comm comm) {
    const spc_mpi_given_t nothing = {.type = MPI_BYTE};
    SPC_MPI_TRY(begin(call, SPC_MPI_BARRIER, 0, comm));
    SPC_MPI_TRY(set_side(&call->send, call->comm, "", &nothing));
    return set_side(&call->recv, call->comm, "", &nothing);
}

/* The buffer is on both sides: which of them is used depends on the root. */
int spc_mpi_prepare_bcast(spc_mpi_collective_t *call, void *buffer, MPI_Count count, MPI_Datatype datatype,
                          int root, MPI_Comm comm) {
    const spc_mpi_given_t given = {.buffer = buffer, .count = count, .type = datatype};
    SPC_MPI_TRY(begin(call, SPC_MPI_BCAST, root, comm));
    SPC_MPI_TRY(spc_mpi_check_root(call->comm, root));
    if (call->comm->remote != NULL && root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    call->is_in_place = buffer == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, false));
    return set_side(spc_mpi_is_root(call) ? &call->send : &call->recv, call->comm, "", &given);
}

int spc_mpi_prepare_gather(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                           const spc_mpi_given_t *recv, int root, MPI_Comm comm) {
    SPC_MPI_TRY(begin(call, SPC_MPI_GATHER, root, comm));
    SPC_MPI_TRY(spc_mpi_check_root(call->comm, root));
    const bool is_root = spc_mpi_is_root(call), is_inter = call->comm->remote != NULL;
    const bool gives = is_inter ? root >= 0 : true;
    call->is_in_place = gives && send->buffer == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, is_root));
    if (gives && !call->is_in_place) {
        SPC_MPI_TRY(set_side(&call->send, call->comm, "send", send));
    }
    return is_root ? set_side(&call->recv, call->comm, "recv", recv) : MPI_SUCCESS;
}

int spc_mpi_prepare_allgather(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                              const spc_mpi_given_t *recv, MPI_Comm comm) {
    SPC_MPI_TRY(begin(call, SPC_MPI_ALLGATHER, 0, comm));
    call->is_in_place = send->buffer == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, true));
    if (!call->is_in_place) {
        SPC_MPI_TRY(set_side(&call->send, call->comm, "send", send));
    }
    return set_side(&call->recv, call->comm, "recv", recv);
}

int spc_mpi_prepare_scatter(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                            const spc_mpi_given_t *recv, int root, MPI_Comm comm) {
    SPC_MPI_TRY(begin(call, SPC_MPI_SCATTER, root, comm));
    SPC_MPI_TRY(spc_mpi_check_root(call->comm, root));
    const bool is_root = spc_mpi_is_root(call), is_inter = call->comm->remote != NULL;
    const bool gets = is_inter ? root >= 0 : true;
    call->is_in_place = gets && recv->buffer == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, is_root));
    if (gets && !call->is_in_place) {
        SPC_MPI_TRY(set_side(&call->recv, call->comm, "recv", recv));
    }
    return is_root ? set_side(&call->send, call->comm, "send", send) : MPI_SUCCESS;
}

int spc_mpi_prepare_alltoall(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                             const spc_mpi_given_t *recv, MPI_Comm comm) {
    SPC_MPI_TRY(begin(call, SPC_MPI_ALLTOALL, 0, comm));
    call->is_in_place = send->buffer == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, true));
    if (recv->types != NULL) {
        const size_t peers = (size_t)spc_mpi_peers(call->comm);
        spc_mpi_type_t **types = calloc(2 * peers, sizeof(*types));
        if (types == NULL) {
            return spc_mpi_fail(call->comm, MPI_ERR_NO_MEM, "there is no memory for lists of datatypes");
        }
        call->lists = types;
        call->send.types = types;
        call->recv.types = types + peers;
    }
    int code = call->is_in_place ? MPI_SUCCESS : set_side(&call->send, call->comm, "send", send);
    code = code != MPI_SUCCESS ? code : set_side(&call->recv, call->comm, "recv", recv);
    if (code != MPI_SUCCESS) {
        spc_mpi_collective_end(call);
    }
    return code;
}

void spc_mpi_collective_end(spc_mpi_collective_t *call) {
    free(call->lists);
    call->lists = NULL;
}

/* ---- parts ---- */

static MPI_Count bytes_of(spc_mpi_part_t part) {
    return part.count * part.type->size;
}

int spc_mpi_check_part(const spc_mpi_comm_t *comm, int source, MPI_Count bytes, uint8_t format,
                       spc_mpi_part_t part, bool is_exact) {
    if (bytes > bytes_of(part) || (is_exact && bytes < bytes_of(part))) {
        return spc_mpi_fail(
            comm, MPI_ERR_TRUNCATE,
            "rank %d gave %lld bytes, and there is room for %lld: counts and datatypes of the two "
            "do not match",
            source, (long long)bytes, (long long)bytes_of(part));
    }
    if (bytes < bytes_of(part)) {
        SPC_MPI_TRY(spc_mpi_note_short(comm, source, bytes, bytes_of(part)));
    }
    return format == 0 ? MPI_SUCCESS
                       : spc_mpi_note_mismatch(&(spc_mpi_mismatch_t){
                             .comm = comm, .type = part.type, .source = source, .tag = -1, .format = format});
}

int spc_mpi_take_part(const spc_mpi_comm_t *comm, const spc_message_t *message, int source,
                      spc_mpi_part_t part) {
    const MPI_Count bytes = (MPI_Count)spc_message_data_bytes(message), room = bytes_of(part);
    spc_mpi_type_unpack(spc_message_data(message), bytes < room ? bytes : room, part.at, part.count,
                        part.type);
    return spc_mpi_check_part(comm, source, bytes, spc_mpi_unexpected(message, part.type, false), part,
                              false);
}

int spc_mpi_copy_part(const spc_mpi_comm_t *comm, spc_mpi_part_t from, spc_mpi_part_t to) {
    const MPI_Count given = bytes_of(from), room = bytes_of(to), bytes = given < room ? given : room;
    spc_mpi_payload_t payload;
    if (from.type->is_dense) {
        spc_mpi_type_unpack(from.at, bytes, to.at, to.count, to.type);
    } else {
        SPC_MPI_TRY(spc_mpi_payload_begin(comm, from.at, from.count, from.type, &payload));
        spc_mpi_type_unpack(payload.core.data, bytes, to.at, to.count, to.type);
        spc_mpi_payload_end(&payload);
    }
    if (given > room) {
        return spc_mpi_fail(comm, MPI_ERR_TRUNCATE,
                            "this rank gives itself %lld bytes, and there is room for %lld", (long long)given,
                            (long long)room);
    }
    return given == room ? MPI_SUCCESS : spc_mpi_note_short(comm, comm->rank, given, room);
}

/* ---- within one group ---- */

int spc_mpi_gathering(const spc_mpi_comm_t *comm, spc_gathering_t *gathering) {
    int status = spc_comm_gathering_poll(comm->core, gathering);
    if (status == SPC_EAGAIN) {
        status = spc_comm_gathering(comm->core, gathering, SPC_NO_DEADLINE);
    }
    if (status != SPC_OK) {
        spc_comm_gathering_end(comm->core, gathering);
    }
    return spc_mpi_check(comm, status);
}

/* This node's data, for the core. */
typedef struct outgoing {
    spc_mpi_payload_t *payloads;
    spc_payload_t *cores;
    uint32_t count;
    spc_mpi_payload_t one;
} outgoing_t;

static void outgoing_end(outgoing_t *outgoing) {
    for (uint32_t i = 0; i < outgoing->count; i++) {
        spc_mpi_payload_end(&outgoing->payloads[i]);
    }
    if (outgoing->payloads != &outgoing->one) {
        free(outgoing->payloads);
        free(outgoing->cores);
    }
}

static int begin_one(const spc_mpi_comm_t *comm, spc_mpi_part_t part, outgoing_t *outgoing) {
    outgoing->payloads = &outgoing->one;
    outgoing->cores = &outgoing->one.core;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, part.at, part.count, part.type, &outgoing->one));
    outgoing->count = 1;
    return MPI_SUCCESS;
}

static int begin_each(const spc_mpi_comm_t *comm, const spc_mpi_side_t *side, outgoing_t *outgoing) {
    int code = MPI_SUCCESS;
    outgoing->payloads = calloc((size_t)comm->size, sizeof(*outgoing->payloads));
    outgoing->cores = calloc((size_t)comm->size, sizeof(*outgoing->cores));
    if (outgoing->payloads == NULL || outgoing->cores == NULL) {
        code = spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for the parts of %d ranks", comm->size);
    }
    for (int peer = 0; peer < comm->size && code == MPI_SUCCESS; peer++) {
        const spc_mpi_part_t part = spc_mpi_part(side, peer);
        code = spc_mpi_payload_begin(comm, part.at, part.count, part.type, &outgoing->payloads[peer]);
        if (code == MPI_SUCCESS) {
            outgoing->cores[peer] = outgoing->payloads[peer].core;
            outgoing->count++;
        }
    }
    if (code != MPI_SUCCESS) {
        outgoing_end(outgoing);
    }
    return code;
}

static bool is_for_each(const spc_mpi_collective_t *call) {
    return call->kind == SPC_MPI_SCATTER || call->kind == SPC_MPI_ALLTOALL;
}

/* In place, this node's own part (in an alltoall, all parts) lies where the received ones go. */
static int begin_outgoing(const spc_mpi_collective_t *call, outgoing_t *outgoing) {
    *outgoing = (outgoing_t){.payloads = &outgoing->one};
    if (call->kind == SPC_MPI_ALLTOALL && call->is_in_place) {
        return begin_each(call->comm, &call->recv, outgoing);
    }
    if (call->is_in_place && call->recv.is_used) {
        return begin_one(call->comm, spc_mpi_part(&call->recv, call->comm->rank), outgoing);
    }
    if (!call->send.is_used) {
        return MPI_SUCCESS;
    }
    return is_for_each(call) ? begin_each(call->comm, &call->send, outgoing)
                             : begin_one(call->comm, spc_mpi_whole(&call->send), outgoing);
}

int spc_mpi_copy_own(const spc_mpi_collective_t *call) {
    if (call->is_in_place || !call->send.is_used || !call->recv.is_used) {
        return MPI_SUCCESS;
    }
    const int rank = call->comm->rank;
    return spc_mpi_copy_part(
        call->comm, is_for_each(call) ? spc_mpi_part(&call->send, rank) : spc_mpi_whole(&call->send),
        call->kind == SPC_MPI_SCATTER ? spc_mpi_whole(&call->recv) : spc_mpi_part(&call->recv, rank));
}

/* Copies all parts, even if one fails. */
static int take_all(const spc_mpi_collective_t *call, const spc_gathering_t *gathering) {
    const spc_mpi_comm_t *comm = call->comm;
    if (!call->recv.is_used) {
        return MPI_SUCCESS;
    }
    if (call->kind == SPC_MPI_BCAST || call->kind == SPC_MPI_SCATTER) {
        return comm->rank == call->root
                   ? MPI_SUCCESS
                   : spc_mpi_take_part(comm, &gathering->messages[0], call->root, spc_mpi_whole(&call->recv));
    }
    int code = MPI_SUCCESS;
    for (int peer = 0; peer < comm->size; peer++) {
        if (peer != comm->rank) {
            const int taken =
                spc_mpi_take_part(comm, &gathering->messages[peer], peer, spc_mpi_part(&call->recv, peer));
            code = code != MPI_SUCCESS ? code : taken;
        }
    }
    return code;
}

static uint32_t operation_of(spc_mpi_collective_kind_t kind) {
    switch (kind) {
    case SPC_MPI_BCAST:
        return SPC_OPERATION_DATA_BCAST;
    case SPC_MPI_GATHER:
        return SPC_OPERATION_DATA_GATHER;
    case SPC_MPI_ALLGATHER:
        return SPC_OPERATION_DATA_ALLGATHER;
    case SPC_MPI_SCATTER:
        return SPC_OPERATION_DATA_SCATTER;
    default:
        return SPC_OPERATION_DATA_ALLTOALL;
    }
}

static int move_data(const spc_mpi_collective_t *call) {
    const spc_mpi_comm_t *comm = call->comm;
    outgoing_t outgoing;
    if (comm->size == 1) {
        return spc_mpi_copy_own(call);
    }
    SPC_MPI_TRY(begin_outgoing(call, &outgoing));
    spc_gathering_t gathering = {.operation = operation_of(call->kind),
                                 .root = (uint32_t)call->root,
                                 .payloads = outgoing.cores,
                                 .payload_count = outgoing.count};
    int code = spc_mpi_gathering(comm, &gathering);
    if (code == MPI_SUCCESS) {
        code = spc_mpi_copy_own(call);
        const int taken = take_all(call, &gathering);
        code = code != MPI_SUCCESS ? code : taken;
        spc_comm_gathering_end(comm->core, &gathering);
    }
    outgoing_end(&outgoing);
    return code;
}

/* ---- running ---- */

int spc_mpi_barrier_inside(const spc_mpi_comm_t *comm) {
    static const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    int status = spc_comm_collective_poll(comm->core, &barrier, NULL, NULL, 0, NULL);
    if (status == SPC_EAGAIN) {
        status = spc_comm_collective(comm->core, &barrier, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
    }
    return spc_mpi_check(comm, status);
}

int spc_mpi_collective_run(const spc_mpi_collective_t *call) {
    if (call->kind == SPC_MPI_BARRIER) {
        return spc_mpi_barrier_inside(call->comm);
    }
    if (call->comm->remote != NULL) {
        return spc_mpi_inter_run(call);
    }
    return call->kind >= SPC_MPI_REDUCE ? spc_mpi_reduction_run(call) : move_data(call);
}

int spc_mpi_collective_once(spc_mpi_collective_t *call, int prepared) {
    SPC_MPI_TRY(prepared);
    const int code = spc_mpi_collective_run(call);
    spc_mpi_collective_end(call);
    return code;
}

/* ---- for this library's own use ---- */

int spc_mpi_bcast_bytes(const spc_mpi_comm_t *comm, void *data, uint64_t bytes, int root) {
    const bool is_root = (int)spc_comm_rank(comm->core) == root;
    const spc_payload_t payload = {.data = data, .data_bytes = bytes, .format = SPC_FORMAT_RAW};
    spc_gathering_t gathering = {.operation = SPC_OPERATION_DATA_BCAST,
                                 .root = (uint32_t)root,
                                 .payloads = &payload,
                                 .payload_count = is_root};
    if (spc_comm_size(comm->core) == 1) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_gathering(comm, &gathering));
    if (!is_root) {
        const uint64_t given = spc_message_data_bytes(&gathering.messages[0]);
        memcpy(data, spc_message_data(&gathering.messages[0]), given < bytes ? given : bytes);
    }
    spc_comm_gathering_end(comm->core, &gathering);
    return MPI_SUCCESS;
}

int spc_mpi_allgather_bytes(const spc_mpi_comm_t *comm, const void *mine, uint64_t bytes, void *all) {
    const uint32_t size = spc_comm_size(comm->core), own = spc_comm_rank(comm->core);
    const spc_payload_t payload = {.data = mine, .data_bytes = bytes, .format = SPC_FORMAT_RAW};
    spc_gathering_t gathering = {
        .operation = SPC_OPERATION_DATA_ALLGATHER, .payloads = &payload, .payload_count = 1};
    memmove((char *)all + own * bytes, mine, bytes);
    if (size == 1) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_gathering(comm, &gathering));
    for (uint32_t rank = 0; rank < size; rank++) {
        if (rank != own) {
            const uint64_t given = spc_message_data_bytes(&gathering.messages[rank]);
            memcpy((char *)all + rank * bytes, spc_message_data(&gathering.messages[rank]),
                   given < bytes ? given : bytes);
        }
    }
    spc_comm_gathering_end(comm->core, &gathering);
    return MPI_SUCCESS;
}

/* ---- MPI functions ---- */

int spc_mpi_barrier(MPI_Comm comm) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_barrier_inside(found);
}

int spc_mpi_bcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call, spc_mpi_prepare_bcast(&call, buffer, count, datatype, root, comm));
}

int spc_mpi_gather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                      SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
}

int spc_mpi_gatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype, int root,
                    MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                      SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), root, comm));
}

int spc_mpi_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                         SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
}

int spc_mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                       MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                         SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), comm));
}

int spc_mpi_scatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_scatter(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                       SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
}

int spc_mpi_scatterv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t displs,
                     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int root, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_scatter(&call, SPC_MPI_LISTED(sendbuf, sendcounts, displs, sendtype),
                                       SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
}

int spc_mpi_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_alltoall(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
}

int spc_mpi_alltoallv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                      MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                      spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_alltoall(&call, SPC_MPI_LISTED(sendbuf, sendcounts, sdispls, sendtype),
                                        SPC_MPI_LISTED(recvbuf, recvcounts, rdispls, recvtype), comm));
}

int spc_mpi_alltoallw(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                      const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                      spc_mpi_counts_t rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(
        &call, spc_mpi_prepare_alltoall(&call, SPC_MPI_TYPED(sendbuf, sendcounts, sdispls, sendtypes),
                                        SPC_MPI_TYPED(recvbuf, recvcounts, rdispls, recvtypes), comm));
}
