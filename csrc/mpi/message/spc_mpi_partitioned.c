/* SPDX-License-Identifier: MIT */
/*
 * Partitioned messages: a persistent request whose data several threads fill, each its partitions.
 *
 * All partitions travel as one message when the last one is ready, as the standard allows; so the receiver may divide
 * the data differently, and all of its partitions arrive at once. These messages never match others, since they have a
 * context of the library's own. The first request of MPI_Psend_init belongs to the first request of MPI_Precv_init with
 * the same communicator and tag, and so on: both nodes count them, and the number is part of the tag.
 */
#include "mpi/message/spc_mpi_request.h"

enum { TAGS = 0x6000000, NUMBERS = 16 }; /* their product and SPC_MPI_TAGS_PARTITIONED end below 2^31 */

/* Requests of one kind that have been made for a peer and a tag. */
struct spc_mpi_channel {
    bool receives;
    int peer, tag;
    unsigned made;
    struct spc_mpi_channel *next;
};

typedef struct partitions {
    int tag; /* of the message */
    int count;
    _Atomic int missing; /* acq_rel: the thread of the last partition sends what the others have written */
    _Atomic bool ready[];
} partitions_t;

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;

/* The number of this request among those of its kind, peer and tag. False: no memory. */
static bool count_request(spc_mpi_comm_t *comm, bool receives, int peer, int tag, unsigned *number) {
    pthread_mutex_lock(&channels_lock);
    spc_mpi_channel_t *found = comm->channels;
    while (found != NULL && (found->receives != receives || found->peer != peer || found->tag != tag)) {
        found = found->next;
    }
    if (found == NULL && (found = malloc(sizeof(*found))) != NULL) {
        *found = (spc_mpi_channel_t){receives, peer, tag, 0, comm->channels};
        comm->channels = found;
    }
    *number = found != NULL ? found->made++ : 0;
    pthread_mutex_unlock(&channels_lock);
    return found != NULL;
}

void spc_mpi_channels_free(spc_mpi_channel_t *channels) {
    while (channels != NULL) {
        spc_mpi_channel_t *next = channels->next;
        free(channels);
        channels = next;
    }
}

/* ---- starting ---- */

static int send_all(spc_mpi_request_t *request) {
    const spc_mpi_comm_t *comm = request->comm;
    const partitions_t *partitions = request->arguments;
    const int32_t to = spc_mpi_to_core(comm, request->peer);
    spc_mpi_payload_t payload;
    int code = MPI_SUCCESS;
    if (request->peer != MPI_PROC_NULL) {
        SPC_MPI_TRY(spc_mpi_payload_begin(comm, request->buffer, request->count, request->type, &payload));
        code = spc_mpi_payload_send(comm, &to, 1, partitions->tag, &payload);
    }
    spc_request_finish(&request->core);
    return code;
}

/* Relaxed: the program hands the request to its threads after this. */
static int start_send(spc_mpi_request_t *request) {
    partitions_t *partitions = request->arguments;
    atomic_store_explicit(&request->core.done, false, memory_order_relaxed);
    for (int i = 0; i < partitions->count; i++) {
        atomic_store_explicit(&partitions->ready[i], false, memory_order_relaxed);
    }
    atomic_store_explicit(&partitions->missing, partitions->count, memory_order_relaxed);
    return partitions->count == 0 ? send_all(request) : MPI_SUCCESS;
}

static int start_receive(spc_mpi_request_t *request) {
    const partitions_t *partitions = request->arguments;
    atomic_store_explicit(&request->core.done, false, memory_order_relaxed); /* nobody waits for it */
    request->core.tag = request->wanted_tag; /* which reports show */
    return spc_mpi_post(SPC_CONTEXT_INTERNAL, partitions->tag, request);
}

static int check(const spc_mpi_comm_t *comm, int partitions, MPI_Count count, int peer, int tag) {
    if (partitions < 0 || count < 0 || (partitions > 0 && count > INT64_MAX / partitions)) {
        return spc_mpi_fail(comm, MPI_ERR_COUNT,
                            "partitions=%d, count=%lld: neither can be negative, nor their product too large",
                            partitions, (long long)count);
    }
    if (peer == MPI_ANY_SOURCE) {
        return spc_mpi_fail(comm, MPI_ERR_RANK, "a partitioned message has one source, not MPI_ANY_SOURCE");
    }
    return tag >= 0 && tag < TAGS
               ? MPI_SUCCESS
               : spc_mpi_fail(comm, MPI_ERR_TAG, "tag=%d: partitioned messages have tags from 0 to %d", tag,
                              TAGS - 1);
}

/* Makes a persistent request with a start function of this file. */
static int make(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                MPI_Comm comm, bool receives, MPI_Request *handle) {
    spc_mpi_comm_t *found;
    unsigned number;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check(found, partitions, count, peer, tag));
    SPC_MPI_TRY(receives
                    ? spc_mpi_recv_init((void *)buf, partitions * count, datatype, peer, tag, comm, handle)
                    : spc_mpi_send_init(buf, partitions * count, datatype, peer, tag, comm, handle));
    spc_mpi_request_t *made = spc_mpi_handle_find(SPC_MPI_REQUEST, (intptr_t)*handle);
    partitions_t *kept = calloc(1, sizeof(*kept) + sizeof(kept->ready[0]) * (size_t)partitions);
    if (kept == NULL || !count_request(found, receives, peer, tag, &number)) {
        free(kept);
        spc_mpi_request_destroy(made);
        *handle = MPI_REQUEST_NULL;
        return spc_mpi_fail(found, MPI_ERR_NO_MEM, "there is no memory for %d partitions", partitions);
    }
    free(made->arguments);
    made->arguments = kept;
    made->start = receives ? start_receive : start_send;
    kept->tag = SPC_MPI_TAGS_PARTITIONED + (int)(number % NUMBERS) * TAGS + tag;
    kept->count = partitions;
    return MPI_SUCCESS;
}

int spc_mpi_psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
                       int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    (void)info;
    return make(buf, partitions, count, datatype, dest, tag, comm, false, request);
}

int spc_mpi_precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    (void)info;
    return make(buf, partitions, count, datatype, source, tag, comm, true, request);
}

/* ---- partitions ---- */

static int get(MPI_Request handle, bool receives, int low, int high, spc_mpi_request_t **request) {
    spc_mpi_request_t *found = spc_mpi_handle_find(SPC_MPI_REQUEST, (intptr_t)handle);
    *request = found;
    if (found == NULL || !found->is_used || found->start != (receives ? start_receive : start_send)) {
        return spc_mpi_fail(NULL, MPI_ERR_REQUEST, "the request was not made by %s",
                            receives ? "MPI_Precv_init" : "MPI_Psend_init");
    }
    const partitions_t *partitions = found->arguments;
    if (low < 0 || high >= partitions->count) {
        return spc_mpi_fail(found->comm, MPI_ERR_ARG, "partition %d: this request has %d",
                            low < 0 ? low : high, partitions->count);
    }
    if (!receives && !found->is_active) {
        return spc_mpi_fail(found->comm, MPI_ERR_REQUEST, "the request is not started: call MPI_Start first");
    }
    return MPI_SUCCESS;
}

int spc_mpi_pready_range(int partition_low, int partition_high, MPI_Request request) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get(request, false, partition_low, partition_high, &found));
    partitions_t *partitions = found->arguments;
    for (int i = partition_low; i <= partition_high; i++) {
        if (atomic_exchange_explicit(&partitions->ready[i], true, memory_order_relaxed)) {
            return spc_mpi_fail(found->comm, MPI_ERR_ARG,
                                "partition %d is ready already: it is called once for each after MPI_Start",
                                i);
        }
        if (atomic_fetch_sub_explicit(&partitions->missing, 1, memory_order_acq_rel) == 1) {
            SPC_MPI_TRY(send_all(found));
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_pready(int partition, MPI_Request request) {
    return spc_mpi_pready_range(partition, partition, request);
}

int spc_mpi_pready_list(int length, const int array_of_partitions[], MPI_Request request) {
    for (int i = 0; i < length; i++) {
        SPC_MPI_TRY(spc_mpi_pready(array_of_partitions[i], request));
    }
    return MPI_SUCCESS;
}

int spc_mpi_parrived(MPI_Request request, int partition, int *flag) {
    spc_mpi_request_t *found;
    *flag = 0;
    SPC_MPI_TRY(get(request, true, partition, partition, &found));
    return spc_mpi_request_get_status(request, flag, MPI_STATUS_IGNORE);
}
