/* SPDX-License-Identifier: MIT */
/*
 * Collectives that return a request.
 *
 * MPI_Ibarrier is a fuzzy barrier of the core: it is entered now, and completed by other nodes' entries. All others are
 * carried out when they are called, so their requests are done at once; MPI_Start carries out persistent ones.
 */
#include "mpi/spc_mpi_collective.h"
#include "mpi/spc_mpi_request.h"

static int no_memory(const spc_mpi_comm_t *comm) {
    return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a request");
}

/* ---- barriers ---- */

static pthread_mutex_t barriers_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_open(const spc_mpi_open_barrier_t *barrier) {
    const spc_mpi_request_t *request = barrier->request;
    return request != NULL && request->is_used && request->core.kind == SPC_REQUEST_BARRIER
           && request->core.phase == barrier->phase
           && !atomic_load_explicit(&request->core.done, memory_order_acquire); /* pairs with complete */
}

/* There is room: at most SPC_FUZZY_MAX are open. */
static void note_barrier(spc_mpi_comm_t *comm, spc_mpi_request_t *request) {
    pthread_mutex_lock(&barriers_lock);
    int place = 0;
    while (place < SPC_FUZZY_MAX - 1 && is_open(&comm->barriers[place])) {
        place++;
    }
    comm->barriers[place] = (spc_mpi_open_barrier_t){request, request->core.phase};
    pthread_mutex_unlock(&barriers_lock);
}

static spc_mpi_request_t *find_oldest(spc_mpi_comm_t *comm) {
    const spc_mpi_open_barrier_t *oldest = NULL;
    pthread_mutex_lock(&barriers_lock);
    for (int place = 0; place < SPC_FUZZY_MAX; place++) {
        const spc_mpi_open_barrier_t *barrier = &comm->barriers[place];
        if (is_open(barrier) && (oldest == NULL || barrier->phase < oldest->phase)) {
            oldest = barrier;
        }
    }
    pthread_mutex_unlock(&barriers_lock);
    return oldest != NULL ? oldest->request : NULL;
}

/* The core has room for SPC_FUZZY_MAX open barriers: one more waits for the oldest, whose request is done then. */
static int enter_barrier(spc_mpi_request_t *request) {
    spc_mpi_comm_t *comm = request->comm;
    int status = spc_request_barrier(comm->core, &request->core);
    while (status == SPC_ELIMIT) {
        spc_mpi_request_t *oldest = find_oldest(comm);
        if (oldest == NULL) {
            break;
        }
        SPC_MPI_TRY(spc_mpi_request_wait(oldest));
        status = spc_request_barrier(comm->core, &request->core);
    }
    SPC_MPI_TRY(spc_mpi_check(comm, status));
    note_barrier(comm, request);
    return MPI_SUCCESS;
}

int spc_mpi_ibarrier(MPI_Comm comm, MPI_Request *request) {
    spc_mpi_comm_t *found;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    spc_mpi_request_t *made = spc_mpi_request_create(found, NULL);
    if (made == NULL) {
        return no_memory(found);
    }
    const int code = enter_barrier(made);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *request = made->handle;
    return MPI_SUCCESS;
}

/* ---- carried out when called ---- */

static int run_now(spc_mpi_collective_t *call, MPI_Request *request) {
    spc_mpi_comm_t *comm = call->comm;
    SPC_MPI_TRY(spc_mpi_collective_once(call));
    return spc_mpi_request_done(comm, request);
}

/* ---- persistent ---- */

/* The call, with copies of its lists behind it; it holds references to types and operator. */
typedef struct kept {
    spc_mpi_collective_t call;
    MPI_Count numbers[];
} kept_t;

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
}

static int start_kept(spc_mpi_request_t *request) {
    const kept_t *kept = request->arguments;
    if (kept->call.kind == SPC_MPI_BARRIER) {
        return enter_barrier(request);
    }
    atomic_store_explicit(&request->core.done, true, memory_order_relaxed); /* nobody waits for it */
    return spc_mpi_collective_run(&kept->call);
}

/* Makes the call's request, which takes over the call. */
static int keep(spc_mpi_collective_t *call, MPI_Request *handle) {
    const int count = entries(call);
    spc_mpi_request_t *made = spc_mpi_request_create(call->comm, NULL);
    kept_t *kept = malloc(sizeof(*kept) + 4 * (size_t)count * sizeof(MPI_Count));
    if (made == NULL || kept == NULL) {
        free(kept);
        if (made != NULL) {
            spc_mpi_request_destroy(made);
        }
        const int code = no_memory(call->comm);
        spc_mpi_collective_end(call);
        return code;
    }
    kept->call = *call;
    MPI_Count *end = copy_counts(&kept->call.send.counts, count, kept->numbers);
    end = copy_counts(&kept->call.send.displacements, count, end);
    end = copy_counts(&kept->call.recv.counts, count, end);
    (void)copy_counts(&kept->call.recv.displacements, count, end);
    use_types(call, &call->send, spc_mpi_type_retain);
    use_types(call, &call->recv, spc_mpi_type_retain);
    spc_mpi_op_retain(call->op);
    made->is_persistent = true;
    made->is_active = false;
    made->start = start_kept;
    made->arguments = kept;
    made->release = release_kept;
    *handle = made->handle;
    return MPI_SUCCESS;
}

/* ---- MPI functions: carried out when they are called ---- */

int spc_mpi_ibcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                   MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_bcast(&call, buffer, count, datatype, root, comm));
    return run_now(&call, request);
}

int spc_mpi_igather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                    MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                       SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return run_now(&call, request);
}

int spc_mpi_igatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype, int root,
                     MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                       SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), root, comm));
    return run_now(&call, request);
}

int spc_mpi_iscatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                     MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_scatter(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return run_now(&call, request);
}

int spc_mpi_iscatterv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t displs,
                      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                      int root, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_scatter(&call, SPC_MPI_LISTED(sendbuf, sendcounts, displs, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return run_now(&call, request);
}

int spc_mpi_iallgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                          SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
    return run_now(&call, request);
}

int spc_mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                        MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                          SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), comm));
    return run_now(&call, request);
}

int spc_mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                         SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
    return run_now(&call, request);
}

int spc_mpi_ialltoallv(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                       MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                       spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_LISTED(sendbuf, sendcounts, sdispls, sendtype),
                                         SPC_MPI_LISTED(recvbuf, recvcounts, rdispls, recvtype), comm));
    return run_now(&call, request);
}

int spc_mpi_ialltoallw(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                       const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                       spc_mpi_counts_t rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                       MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_TYPED(sendbuf, sendcounts, sdispls, sendtypes),
                                         SPC_MPI_TYPED(recvbuf, recvcounts, rdispls, recvtypes), comm));
    return run_now(&call, request);
}

int spc_mpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    int root, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE, sendbuf, recvbuf, count, NULL, datatype, op,
                                          root, comm));
    return run_now(&call, request);
}

int spc_mpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_ALLREDUCE, sendbuf, recvbuf, count, NULL, datatype,
                                          op, 0, comm));
    return run_now(&call, request);
}

int spc_mpi_ireduce_scatter(const void *sendbuf, void *recvbuf, spc_mpi_counts_t recvcounts,
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, 0, &recvcounts,
                                          datatype, op, 0, comm));
    return run_now(&call, request);
}

int spc_mpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, recvcount, NULL,
                                          datatype, op, 0, comm));
    return run_now(&call, request);
}

int spc_mpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(
        spc_mpi_prepare_reduction(&call, SPC_MPI_SCAN, sendbuf, recvbuf, count, NULL, datatype, op, 0, comm));
    return run_now(&call, request);
}

int spc_mpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request) {
    spc_mpi_collective_t call;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_EXSCAN, sendbuf, recvbuf, count, NULL, datatype, op,
                                          0, comm));
    return run_now(&call, request);
}

/* ---- MPI functions: persistent ---- */

int spc_mpi_barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_barrier(&call, comm));
    return keep(&call, request);
}

int spc_mpi_bcast_init(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_bcast(&call, buffer, count, datatype, root, comm));
    return keep(&call, request);
}

int spc_mpi_gather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                       SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return keep(&call, request);
}

int spc_mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                         int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_gather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                       SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), root, comm));
    return keep(&call, request);
}

int spc_mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                         MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_scatter(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return keep(&call, request);
}

int spc_mpi_scatterv_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t displs,
                          MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                          int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_scatter(&call, SPC_MPI_LISTED(sendbuf, sendcounts, displs, sendtype),
                                        SPC_MPI_EVEN(recvbuf, recvcount, recvtype), root, comm));
    return keep(&call, request);
}

int spc_mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                           MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                          SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
    return keep(&call, request);
}

int spc_mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                            spc_mpi_counts_t recvcounts, spc_mpi_counts_t displs, MPI_Datatype recvtype,
                            MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_allgather(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                          SPC_MPI_LISTED(recvbuf, recvcounts, displs, recvtype), comm));
    return keep(&call, request);
}

int spc_mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                          MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_EVEN(sendbuf, sendcount, sendtype),
                                         SPC_MPI_EVEN(recvbuf, recvcount, recvtype), comm));
    return keep(&call, request);
}

int spc_mpi_alltoallv_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                           MPI_Datatype sendtype, void *recvbuf, spc_mpi_counts_t recvcounts,
                           spc_mpi_counts_t rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                           MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_LISTED(sendbuf, sendcounts, sdispls, sendtype),
                                         SPC_MPI_LISTED(recvbuf, recvcounts, rdispls, recvtype), comm));
    return keep(&call, request);
}

int spc_mpi_alltoallw_init(const void *sendbuf, spc_mpi_counts_t sendcounts, spc_mpi_counts_t sdispls,
                           const MPI_Datatype sendtypes[], void *recvbuf, spc_mpi_counts_t recvcounts,
                           spc_mpi_counts_t rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                           MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_alltoall(&call, SPC_MPI_TYPED(sendbuf, sendcounts, sdispls, sendtypes),
                                         SPC_MPI_TYPED(recvbuf, recvcounts, rdispls, recvtypes), comm));
    return keep(&call, request);
}

int spc_mpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        int root, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE, sendbuf, recvbuf, count, NULL, datatype, op,
                                          root, comm));
    return keep(&call, request);
}

int spc_mpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_ALLREDUCE, sendbuf, recvbuf, count, NULL, datatype,
                                          op, 0, comm));
    return keep(&call, request);
}

int spc_mpi_reduce_scatter_init(const void *sendbuf, void *recvbuf, spc_mpi_counts_t recvcounts,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, 0, &recvcounts,
                                          datatype, op, 0, comm));
    return keep(&call, request);
}

int spc_mpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                      MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_REDUCE_SCATTER, sendbuf, recvbuf, recvcount, NULL,
                                          datatype, op, 0, comm));
    return keep(&call, request);
}

int spc_mpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(
        spc_mpi_prepare_reduction(&call, SPC_MPI_SCAN, sendbuf, recvbuf, count, NULL, datatype, op, 0, comm));
    return keep(&call, request);
}

int spc_mpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spc_mpi_collective_t call;
    (void)info;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_prepare_reduction(&call, SPC_MPI_EXSCAN, sendbuf, recvbuf, count, NULL, datatype, op,
                                          0, comm));
    return keep(&call, request);
}
