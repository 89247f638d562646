/* SPDX-License-Identifier: MIT */
/*
 * Collectives that combine data: by the core's reducer where that has the operator for the elements, else by a gather
 * whose items are combined in the order of ranks.
 *
 * All nodes of a call must choose the same way. So the choice depends on operator, elements and count, which MPI
 * requires to be equal, and not on addresses or on holes between elements: where these matter, data are copied.
 */
#include "mpi/comm/spc_mpi_collective.h"

#include "comm/spc_collect.h"
#include "comm/spc_comm.h"
#include "reduce/spc_layout.h"

enum { SHORT_BYTES = 256 }; /* values up to this size are combined on the stack, in one step */

/* ---- arguments ---- */

static int set_counts(spc_mpi_collective_t *call, const spc_mpi_counts_t *counts, MPI_Count count) {
    const spc_mpi_comm_t *comm = call->comm;
    if (counts == NULL) {
        call->recv.count = count;
        call->send.count = call->kind == SPC_MPI_REDUCE_SCATTER ? count * comm->size : count;
        return count >= 0 ? MPI_SUCCESS
                          : spc_mpi_fail(comm, MPI_ERR_COUNT, "count=%lld: a count cannot be negative",
                                         (long long)count);
    }
    if (counts->at == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_ARG, "recvcounts is NULL; it has an entry for each rank");
    }
    call->recv.is_listed = true;
    call->recv.counts = *counts;
    for (int rank = 0; rank < comm->size; rank++) {
        const MPI_Count one = spc_mpi_count(*counts, rank);
        if (one < 0) {
            return spc_mpi_fail(comm, MPI_ERR_COUNT, "recvcounts[%d]=%lld: a count cannot be negative", rank,
                                (long long)one);
        }
        call->send.count += one;
    }
    return MPI_SUCCESS;
}

static int check_length(const spc_mpi_collective_t *call) {
    const spc_mpi_type_t *type = call->send.type;
    const MPI_Count extent = type->extent < 0 ? -type->extent : type->extent;
    const MPI_Count item = type->size + extent + type->true_extent + 1;
    return call->send.count < (MPI_Count)(PTRDIFF_MAX / 4) / item
               ? MPI_SUCCESS
               : spc_mpi_fail(call->comm, MPI_ERR_COUNT, "%lld items of %s do not fit into any memory",
                              (long long)call->send.count, type->name);
}

/* The result of this node: in a Reduce_scatter its own part of all. */
static spc_mpi_part_t result_of(const spc_mpi_collective_t *call) {
    const spc_mpi_side_t *recv = &call->recv;
    const MPI_Count count = recv->is_listed ? spc_mpi_count(recv->counts, call->comm->rank) : recv->count;
    return (spc_mpi_part_t){recv->buffer, count, recv->type};
}

static int check_buffers(const spc_mpi_collective_t *call) {
    const spc_mpi_side_t *send = &call->send;
    if (send->is_used) {
        SPC_MPI_TRY(spc_mpi_check_buffer(call->comm, "sendbuf", send->buffer, send->count, send->type));
    }
    const bool has_result = call->recv.is_used && !(call->kind == SPC_MPI_EXSCAN && call->comm->rank == 0);
    const spc_mpi_part_t result = result_of(call);
    return has_result ? spc_mpi_check_buffer(call->comm, "recvbuf", result.at, result.count, result.type)
                      : MPI_SUCCESS;
}

int spc_mpi_prepare_reduction(spc_mpi_collective_t *call, spc_mpi_collective_kind_t kind, const void *sendbuf,
                              void *recvbuf, MPI_Count count, const spc_mpi_counts_t *counts,
                              MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
    memset(call, 0, sizeof(*call));
    call->kind = kind;
    call->root = root;
    call->op = op;
    const bool is_prefix = kind == SPC_MPI_SCAN || kind == SPC_MPI_EXSCAN;
    SPC_MPI_TRY(is_prefix ? spc_mpi_get_intra(comm, &call->comm) : spc_mpi_get_comm(comm, &call->comm));
    if (kind == SPC_MPI_REDUCE) {
        SPC_MPI_TRY(spc_mpi_check_root(call->comm, root));
    }
    if (call->comm->remote != NULL && kind == SPC_MPI_REDUCE && root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    const bool has_input = call->comm->remote == NULL || kind != SPC_MPI_REDUCE || root >= 0;
    call->is_in_place = has_input && sendbuf == MPI_IN_PLACE;
    SPC_MPI_TRY(spc_mpi_check_in_place(call, kind != SPC_MPI_REDUCE || spc_mpi_is_root(call)));
    SPC_MPI_TRY(spc_mpi_get_type(call->comm, datatype, &call->send.type));
    call->core_op = spc_mpi_core_op(op, call->send.type);
    if (call->core_op < 0) {
        SPC_MPI_TRY(spc_mpi_check_operands(call->comm, op, call->send.type));
    }
    SPC_MPI_TRY(set_counts(call, counts, count));
    call->send.is_used = has_input;
    call->recv.is_used = kind != SPC_MPI_REDUCE || spc_mpi_is_root(call);
    call->send.buffer = call->is_in_place ? recvbuf : (void *)(uintptr_t)sendbuf;
    call->recv.buffer = recvbuf;
    call->recv.type = call->send.type;
    SPC_MPI_TRY(check_length(call));
    return check_buffers(call);
}

/* ---- by the core ---- */

static spc_operation_t operation_of(spc_mpi_collective_kind_t kind) {
    switch (kind) {
    case SPC_MPI_REDUCE:
        return SPC_OPERATION_ARRAY_REDUCE;
    case SPC_MPI_REDUCE_SCATTER:
        return SPC_OPERATION_ARRAY_REDUCE_SCATTER;
    case SPC_MPI_SCAN:
        return SPC_OPERATION_ARRAY_SCAN;
    case SPC_MPI_EXSCAN:
        return SPC_OPERATION_ARRAY_EXSCAN;
    default:
        return SPC_OPERATION_ARRAY_ALLREDUCE;
    }
}

static spc_collect_call_t describe(const spc_mpi_collective_t *call) {
    const spc_mpi_type_t *type = call->send.type;
    const uint64_t elements = (uint64_t)call->send.count * (uint64_t)(type->size / type->element->size);
    const uint32_t core = spc_mpi_core_type(type);
    const uint64_t hash = spc_layout_mix(spc_layout_mix(0, SPC_KIND_ARRAY), core);
    return (spc_collect_call_t){.operation = operation_of(call->kind),
                                .operator = (spc_operator_t)call->core_op,
                                .type = core,
                                .root = call->kind == SPC_MPI_REDUCE ? (uint32_t)call->root : 0,
                                .count = elements,
                                .kind = SPC_KIND_ARRAY,
                                .hash = spc_layout_mix_shape(hash, 1, (int64_t[]){(int64_t)elements})};
}

/* In one step, with copies on the stack, which are aligned and padded to a multiple of 8 bytes. */
static int combine_short(const spc_mpi_collective_t *call, const spc_collect_call_t *described) {
    const spc_mpi_comm_t *comm = call->comm;
    const spc_mpi_part_t result = result_of(call);
    uint64_t value[SHORT_BYTES / 8] = {0};
    spc_signature_t signature;
    spc_field_t field;
    spc_collect_describe_short(described, &signature, &field);
    const MPI_Count length = spc_mpi_type_pack(call->send.buffer, call->send.count, call->send.type, value);
    const uint64_t bytes = spc_fields_bytes(&field, 1);
    const bool has_result = spc_collect_has_result(described, (uint32_t)comm->rank);
    int status = spc_comm_collective_poll(comm->core, &signature, &field, value, bytes, value);
    if (status == SPC_EAGAIN) {
        status = spc_comm_collective(comm->core, &signature, &field, value, bytes, value, SPC_NO_DEADLINE);
    }
    if (status == SPC_OK && has_result) {
        spc_mpi_type_unpack(value, length, result.at, result.count, result.type);
    }
    return spc_mpi_check(comm, status);
}

static int run_collect(const spc_mpi_collective_t *call, const spc_collect_call_t *described,
                       spc_mpi_part_t dense) {
    const spc_mpi_comm_t *comm = call->comm;
    spc_collect_t *collect;
    SPC_MPI_TRY(spc_mpi_check(comm, spc_collect_create(comm->core, described, &collect)));
    int status = spc_collect_run(collect, SPC_NO_DEADLINE);
    if (status == SPC_ENOMEM) {
        spc_collect_use_no_blocks(collect, described->memory);
        status = spc_collect_run(collect, SPC_NO_DEADLINE);
    }
    if (status == SPC_OK) {
        spc_block_shared_t *block = NULL;
        const void *made = spc_collect_take_result(collect, &block);
        if (made != NULL && made != dense.at) {
            memcpy(dense.at, made, (size_t)(dense.count * dense.type->size));
        }
        if (block != NULL) {
            spc_comm_release_block(comm->core, block);
        }
    }
    spc_collect_destroy(collect);
    return spc_mpi_check(comm, status);
}

static bool is_direct(spc_mpi_part_t part) {
    return part.type->is_dense && ((uintptr_t)part.at & 7) == 0;
}

/* The core writes the result in place, or into memory from which it is unpacked. */
static int combine_long(const spc_mpi_collective_t *call, spc_collect_call_t *described) {
    const spc_mpi_comm_t *comm = call->comm;
    const spc_mpi_part_t input = spc_mpi_whole(&call->send), result = result_of(call);
    const bool has_result = spc_collect_has_result(described, (uint32_t)comm->rank);
    const size_t item = (size_t)input.type->size;
    void *given = is_direct(input) ? NULL : malloc((size_t)input.count * item + 8);
    void *got = !has_result || is_direct(result) ? NULL : malloc((size_t)input.count * item + 8);
    int code = MPI_SUCCESS;
    if ((given == NULL && !is_direct(input)) || (got == NULL && has_result && !is_direct(result))) {
        code =
            spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for %lld items", (long long)input.count);
    }
    if (code == MPI_SUCCESS && given != NULL) {
        (void)spc_mpi_type_pack(input.at, input.count, input.type, given);
    }
    if (code == MPI_SUCCESS) {
        spc_mpi_part_t dense = {got != NULL ? got : result.at, result.count, result.type};
        described->input = given != NULL ? given : input.at;
        described->memory = has_result ? dense.at : NULL;
        code = run_collect(call, described, dense);
    }
    if (code == MPI_SUCCESS && got != NULL) {
        spc_mpi_type_unpack(got, result.count * result.type->size, result.at, result.count, result.type);
    }
    free(given);
    free(got);
    return code;
}

static int combine_in_core(const spc_mpi_collective_t *call) {
    spc_collect_call_t described = describe(call);
    const uint64_t bytes = described.count * spc_type_size(described.type);
    const bool is_whole = call->kind == SPC_MPI_REDUCE || call->kind == SPC_MPI_ALLREDUCE;
    if (is_whole && bytes <= SHORT_BYTES && bytes <= spc_comm_scratch_bytes(call->comm->core)) {
        return combine_short(call, &described);
    }
    if (call->kind != SPC_MPI_REDUCE_SCATTER) {
        return combine_long(call, &described);
    }
    uint64_t *counts = malloc(sizeof(*counts) * (size_t)call->comm->size);
    if (counts == NULL) {
        return spc_mpi_fail(call->comm, MPI_ERR_NO_MEM, "there is no memory for a list of counts");
    }
    const uint64_t per_item = described.count / (uint64_t)call->send.count;
    for (int rank = 0; rank < call->comm->size; rank++) {
        const MPI_Count one =
            call->recv.is_listed ? spc_mpi_count(call->recv.counts, rank) : call->recv.count;
        counts[rank] = (uint64_t)one * per_item;
    }
    described.counts = counts;
    const int code = combine_long(call, &described);
    free(counts);
    return code;
}

/* ---- in the order of ranks ---- */

int spc_mpi_items_create(const spc_mpi_comm_t *comm, MPI_Count count, const spc_mpi_type_t *type,
                         spc_mpi_items_t *items) {
    const MPI_Count distance = count > 0 ? (count - 1) * type->extent : 0;
    /* Includes the holes at both ends of an item: an operator of the program may copy whole structs. */
    const MPI_Count lb = type->lb < type->true_lb ? type->lb : type->true_lb;
    const MPI_Count ub = type->lb + type->extent, true_ub = type->true_lb + type->true_extent;
    const MPI_Count low = lb + (distance < 0 ? distance : 0);
    const MPI_Count length = (ub > true_ub ? ub : true_ub) - lb + (distance < 0 ? -distance : distance);
    items->memory = calloc(1, (size_t)length + 1);
    if (items->memory == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for %lld items", (long long)count);
    }
    items->part = (spc_mpi_part_t){(void *)((uintptr_t)items->memory - (uintptr_t)low), count, type};
    return MPI_SUCCESS;
}

/* The data of `rank`. */
static int load(const spc_mpi_collective_t *call, const spc_gathering_t *gathering, int rank,
                spc_mpi_part_t to) {
    return rank == call->comm->rank ? spc_mpi_copy_part(call->comm, spc_mpi_whole(&call->send), to)
                                    : spc_mpi_take_part(call->comm, &gathering->messages[rank], rank, to);
}

/* total = v[0] op (v[1] op (... op v[last])) */
static int fold_to(const spc_mpi_collective_t *call, const spc_gathering_t *gathering, int last,
                   const spc_mpi_items_t *left, const spc_mpi_items_t *total) {
    const spc_mpi_part_t part = total->part;
    SPC_MPI_TRY(load(call, gathering, last, part));
    for (int rank = last - 1; rank >= 0; rank--) {
        SPC_MPI_TRY(load(call, gathering, rank, left->part));
        SPC_MPI_TRY(spc_mpi_combine(call->comm, call->op, left->part.at, part.at, part.count, part.type));
    }
    return MPI_SUCCESS;
}

/* The part of the total that this node gets. */
static spc_mpi_part_t own_part(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    if (call->kind != SPC_MPI_REDUCE_SCATTER) {
        return total;
    }
    MPI_Count first = 0;
    for (int rank = 0; rank < call->comm->rank; rank++) {
        first += call->recv.is_listed ? spc_mpi_count(call->recv.counts, rank) : call->recv.count;
    }
    return (spc_mpi_part_t){spc_mpi_item(total.at, first, total.type), result_of(call).count, total.type};
}

int spc_mpi_take_total(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    return spc_mpi_copy_part(call->comm, own_part(call, total), result_of(call));
}

static int fold(const spc_mpi_collective_t *call, const spc_gathering_t *gathering) {
    const spc_mpi_comm_t *comm = call->comm;
    const int last = call->kind == SPC_MPI_SCAN     ? comm->rank
                     : call->kind == SPC_MPI_EXSCAN ? comm->rank - 1
                                                    : comm->size - 1;
    spc_mpi_items_t left = {.memory = NULL}, total = {.memory = NULL};
    if (last < 0) {
        return MPI_SUCCESS; /* the first node of an exclusive scan gets nothing */
    }
    int code = spc_mpi_items_create(comm, call->send.count, call->send.type, &left);
    code = code != MPI_SUCCESS ? code : spc_mpi_items_create(comm, call->send.count, call->send.type, &total);
    code = code != MPI_SUCCESS ? code : fold_to(call, gathering, last, &left, &total);
    code = code != MPI_SUCCESS ? code : spc_mpi_take_total(call, total.part);
    free(left.memory);
    free(total.memory);
    return code;
}

static int combine_here(const spc_mpi_collective_t *call) {
    const spc_mpi_comm_t *comm = call->comm;
    const bool is_reduce = call->kind == SPC_MPI_REDUCE;
    spc_mpi_payload_t payload;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, call->send.buffer, call->send.count, call->send.type, &payload));
    spc_gathering_t gathering = {.operation =
                                     is_reduce ? SPC_OPERATION_DATA_GATHER : SPC_OPERATION_DATA_ALLGATHER,
                                 .root = is_reduce ? (uint32_t)call->root : 0,
                                 .payloads = &payload.core,
                                 .payload_count = 1};
    int code = comm->size > 1 ? spc_mpi_gathering(comm, &gathering) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        code = call->recv.is_used ? fold(call, &gathering) : MPI_SUCCESS;
        spc_comm_gathering_end(comm->core, &gathering);
    }
    spc_mpi_payload_end(&payload);
    return code;
}

/* Whether some node's result is a single node's value. The core would combine it with itself, to 0 or 1; MPI leaves it
 * as it is. */
static bool keeps_logical_values(const spc_mpi_collective_t *call) {
    const bool is_logical = call->core_op == SPC_LOGICAL_AND || call->core_op == SPC_LOGICAL_OR
                            || call->core_op == SPC_LOGICAL_XOR;
    return is_logical
           && (call->comm->size == 1 || call->kind == SPC_MPI_SCAN || call->kind == SPC_MPI_EXSCAN);
}

int spc_mpi_reduction_run(const spc_mpi_collective_t *call) {
    if (call->send.count == 0 || call->send.type->size == 0) {
        return spc_mpi_barrier_inside(call->comm);
    }
    return call->core_op < 0 || keeps_logical_values(call) ? combine_here(call) : combine_in_core(call);
}

/* ---- MPI functions ---- */

int spc_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                   int root, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call, spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE, sendbuf, recvbuf,
                                                                    count, NULL, datatype, op, root, comm));
}

int spc_mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call,
                                   spc_mpi_prepare_reduction(&call, SPC_MPI_ALLREDUCE, sendbuf, recvbuf,
                                                             count, NULL, datatype, op, 0, comm));
}

int spc_mpi_reduce_scatter(const void *sendbuf, void *recvbuf, spc_mpi_counts_t recvcounts,
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call,
                                   spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf,
                                                             0, &recvcounts, datatype, op, 0, comm));
}

int spc_mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call,
                                   spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf,
                                                             recvcount, NULL, datatype, op, 0, comm));
}

int spc_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call, spc_mpi_prepare_reduction(&call, SPC_MPI_SCAN, sendbuf, recvbuf,
                                                                    count, NULL, datatype, op, 0, comm));
}

int spc_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm) {
    spc_mpi_collective_t call;
    return spc_mpi_collective_once(&call, spc_mpi_prepare_reduction(&call, SPC_MPI_EXSCAN, sendbuf, recvbuf,
                                                                    count, NULL, datatype, op, 0, comm));
}
