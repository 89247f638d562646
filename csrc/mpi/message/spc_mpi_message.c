/* SPDX-License-Identifier: MIT */
/*
 * Messages: sending, receiving, probing, the elements of a received one, persistent ones.
 *
 * A standard send copies and returns, at every size, unless the run was started with --rendezvous. So an MPI_Isend is
 * complete when it returns, and so are buffered and ready sends.
 */
#include "mpi/message/spc_mpi_diagnose.h"
#include "mpi/message/spc_mpi_request.h"

#include "comm/spc_comm_perturb.h"

#define STREAM_BYTES ((MPI_Count)1 << 18) /* shorter ones gain nothing from a place known in advance */

static int check_tag(const spc_mpi_comm_t *comm, int tag, bool any_is_allowed) {
    if (tag >= 0 || (any_is_allowed && tag == MPI_ANY_TAG)) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(comm, MPI_ERR_TAG, "tag=%d: a tag is 0 or more%s", tag,
                        any_is_allowed ? ", or MPI_ANY_TAG" : "");
}

/* ---- sending ---- */

typedef enum way { STANDARD, AHEAD, SYNCHRONOUS } way_t;

typedef struct outgoing {
    spc_mpi_comm_t *comm;
    spc_mpi_type_t *type;
    spc_mpi_payload_t payload;
    spc_block_shared_t *block; /* of this node's arena, which has the data; NULL: `payload` has them */
    int32_t destination;       /* rank of the core */
    int tag;
} outgoing_t;

/* Packs many items with holes between them once, into the memory that becomes the message. False: there is no room for
 * it now, or an option of the run changes how messages travel. */
static bool pack_into_block(const void *buf, MPI_Count count, outgoing_t *send) {
    const spc_mpi_type_t *type = send->type;
    spc_comm_t *core = send->comm->core;
    if (type->is_dense || buf == NULL || count <= 0 || type->size <= 0 || count > INT64_MAX / type->size
        || count * type->size <= SPC_EAGER_BYTES || core->config->perturb != 0
        || spc_comm_take_block(core, (uint64_t)(count * type->size), &send->block) != SPC_OK) {
        send->block = NULL;
        return false;
    }
    const MPI_Count bytes = spc_mpi_type_pack(buf, count, type, spc_block_payload(send->block));
    send->payload.core = (spc_payload_t){.data_bytes = (uint64_t)bytes, .format = spc_mpi_format(type)};
    return true;
}

/* MPI_PROC_NULL: there is nothing to send, and `payload` is empty. */
static int prepare_send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                        MPI_Comm comm, way_t way, outgoing_t *send) {
    send->payload.copy = NULL;
    send->block = NULL;
    send->tag = tag;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &send->comm));
    SPC_MPI_TRY(spc_mpi_get_committed(send->comm, datatype, &send->type));
    SPC_MPI_TRY(spc_mpi_check_rank(send->comm, "dest", dest, false));
    SPC_MPI_TRY(check_tag(send->comm, tag, false));
    send->destination = spc_mpi_to_core(send->comm, dest);
    if (dest != MPI_PROC_NULL
        && __builtin_expect(atomic_load_explicit(&spc_mpi_sends_left, memory_order_relaxed) != 0, 0)) {
        spc_mpi_note_send(send->comm, send->destination, tag, spc_mpi_format(send->type));
    }
    if (dest == MPI_PROC_NULL || (way != SYNCHRONOUS && pack_into_block(buf, count, send))) {
        return MPI_SUCCESS;
    }
    return spc_mpi_payload_begin(send->comm, buf, count, send->type, &send->payload);
}

static int send_block(outgoing_t *send) {
    spc_comm_t *core = send->comm->core;
    const int status = spc_comm_move_block(core, send->destination, SPC_CONTEXT_USER, send->tag,
                                           &send->payload.core, SPC_NO_DEADLINE, &send->block);
    if (send->block != NULL) {
        spc_comm_release_block(core, send->block);
    }
    return spc_mpi_check(send->comm, status);
}

static int send_now(outgoing_t *send, way_t way) {
    spc_comm_t *core = send->comm->core;
    const spc_payload_t *payload = &send->payload.core;
    spc_send_call_t call;
    int status;
    if (send->block != NULL) {
        return send_block(send);
    }
    if (way == SYNCHRONOUS) {
        status =
            spc_comm_ssend(core, send->destination, SPC_CONTEXT_USER, send->tag, payload, SPC_NO_DEADLINE);
    } else {
        status = spc_comm_try_send(core, &send->destination, 1, SPC_CONTEXT_USER, send->tag, payload, &call);
        if (status == SPC_EAGAIN) {
            status = spc_comm_finish_send(core, &call, way == AHEAD, SPC_NO_DEADLINE);
        }
    }
    spc_mpi_payload_end(&send->payload);
    return spc_mpi_check(send->comm, status);
}

static int send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                way_t way) {
    outgoing_t outgoing;
    SPC_MPI_TRY(prepare_send(buf, count, datatype, dest, tag, comm, way, &outgoing));
    return dest == MPI_PROC_NULL ? MPI_SUCCESS : send_now(&outgoing, way);
}

int spc_mpi_send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send(buf, count, datatype, dest, tag, comm, STANDARD);
}

int spc_mpi_rsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send(buf, count, datatype, dest, tag, comm, STANDARD);
}

int spc_mpi_bsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send(buf, count, datatype, dest, tag, comm, AHEAD);
}

int spc_mpi_ssend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send(buf, count, datatype, dest, tag, comm, SYNCHRONOUS);
}

/* It is complete when the receipt has come. */
static int begin_synchronous(outgoing_t *send, spc_mpi_request_t *request) {
    const int status = spc_request_send(send->comm->core, send->destination, SPC_CONTEXT_USER, send->tag,
                                        &send->payload.core, SPC_NO_DEADLINE, &request->core);
    spc_mpi_payload_end(&send->payload);
    return spc_mpi_check(send->comm, status);
}

/* Where the run makes sends wait for their receivers, the request of a standard one does, too. */
static bool waits_for_receiver(const outgoing_t *send) {
    const spc_config_t *config = send->comm->core->config;
    return __builtin_expect((config->perturb & SPC_PERTURB_RENDEZVOUS) != 0, 0)
           && send->payload.core.data_bytes >= config->rendezvous_bytes
           && (uint32_t)send->destination != send->comm->core->rank;
}

/* With --strict: the data are on their way, but the program must still complete the request. */
static int send_at_once(outgoing_t *send, spc_mpi_request_t *request) {
    atomic_store_explicit(&request->core.done, true, memory_order_relaxed); /* nobody waits for it yet */
    return send_now(send, AHEAD);
}

static int begin_send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, way_t way, MPI_Request *handle) {
    outgoing_t outgoing;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(prepare_send(buf, count, datatype, dest, tag, comm, way, &outgoing));
    const bool waits = way == SYNCHRONOUS || (way == STANDARD && waits_for_receiver(&outgoing));
    if (dest == MPI_PROC_NULL || (!waits && !spc_mpi.is_strict)) {
        SPC_MPI_TRY(dest == MPI_PROC_NULL ? MPI_SUCCESS : send_now(&outgoing, AHEAD));
        *handle = spc_mpi_request_sent.handle;
        return MPI_SUCCESS;
    }
    spc_mpi_request_t *made;
    int code = spc_mpi_request_create(outgoing.comm, spc_mpi.is_strict ? outgoing.type : NULL, 0, &made);
    if (code != MPI_SUCCESS) {
        spc_mpi_payload_end(&outgoing.payload);
        return code;
    }
    if (spc_mpi.is_strict) {
        spc_mpi_request_seal(made, buf, count);
    }
    made->core.tag = tag;
    code = waits ? begin_synchronous(&outgoing, made) : send_at_once(&outgoing, made);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *handle = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_isend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    return begin_send(buf, count, datatype, dest, tag, comm, STANDARD, request);
}

int spc_mpi_irsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    return begin_send(buf, count, datatype, dest, tag, comm, STANDARD, request);
}

int spc_mpi_ibsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    return begin_send(buf, count, datatype, dest, tag, comm, AHEAD, request);
}

int spc_mpi_issend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    return begin_send(buf, count, datatype, dest, tag, comm, SYNCHRONOUS, request);
}

/* ---- receiving ---- */

static int core_source(const spc_mpi_comm_t *comm, int source) {
    return source == MPI_ANY_SOURCE ? SPC_ANY_SOURCE : spc_mpi_to_core(comm, source);
}

static int core_tag(int tag) {
    return tag == MPI_ANY_TAG ? SPC_ANY_TAG : tag;
}

static int check_receive(const spc_mpi_comm_t *comm, MPI_Count count, int source, int tag) {
    SPC_MPI_TRY(spc_mpi_check_rank(comm, "source", source, true));
    SPC_MPI_TRY(check_tag(comm, tag, true));
    return count >= 0 ? MPI_SUCCESS
                      : spc_mpi_fail(comm, MPI_ERR_COUNT, "count=%lld: a count cannot be negative",
                                     (long long)count);
}

static MPI_Count lesser(MPI_Count a, MPI_Count b) {
    return a < b ? a : b;
}

/* Called with the node's lock, by every wait of the node. Sentences about errors are made later, at completion. */
static void deliver(spc_request_t *core, spc_message_t *message) {
    static uint64_t delivered; /* guarded by the node's lock, which the caller holds */
    spc_mpi_request_t *request = (spc_mpi_request_t *)core;
    request->delivered = ++delivered;
    const MPI_Count room = request->count * request->type->size;
    request->bytes = (MPI_Count)spc_message_data_bytes(message);
    request->source = spc_mpi_from_core(request->comm, message->source);
    request->tag = request->wanted_tag == MPI_ANY_TAG ? message->tag : request->wanted_tag;
    const bool has_data = !core->sink.filled || core->sink.data == NULL;
    request->format = spc_mpi_unexpected(message, request->type, has_data);
    request->error = request->bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    if (has_data) {
        spc_mpi_type_unpack(spc_message_data(message), lesser(request->bytes, room), request->buffer,
                            request->count, request->type);
    }
}

int spc_mpi_post(uint16_t context, int tag, spc_mpi_request_t *request) {
    spc_mpi_comm_t *comm = request->comm;
    const spc_mpi_type_t *type = request->type;
    SPC_MPI_TRY(check_receive(comm, request->count, request->peer, request->wanted_tag));
    if (request->peer == MPI_PROC_NULL) {
        request->source = MPI_PROC_NULL;
        request->tag = MPI_ANY_TAG;
        request->bytes = 0;
        atomic_store_explicit(&request->core.done, true, memory_order_relaxed); /* nobody waits for it yet */
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_check_buffer(comm, "buf", request->buffer, request->count, type));
    const MPI_Count room = request->count * type->size;
    request->core.deliver = deliver;
    request->core.sink = (spc_sink_t){.data_bytes = (uint64_t)room, .format = spc_mpi_format(type)};
    if (room >= STREAM_BYTES && type->is_dense) {
        request->core.sink.data = request->buffer;
    }
    return spc_mpi_check(comm, spc_request_receive(comm->core, context, core_source(comm, request->peer), tag,
                                                   &request->core));
}

int spc_mpi_irecv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    spc_mpi_request_t *made;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_committed(found, datatype, &type));
    SPC_MPI_TRY(spc_mpi_request_create(found, type, 0, &made));
    made->buffer = buf;
    made->count = count;
    made->peer = source;
    made->wanted_tag = tag;
    const int code = spc_mpi_post(SPC_CONTEXT_USER, core_tag(tag), made);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *request = made->handle;
    return MPI_SUCCESS;
}

/* Takes the matching message; its data go to their place directly if that is known. */
static int take(spc_mpi_comm_t *comm, int source, int tag, spc_sink_t *sink, spc_message_t *message) {
    spc_comm_t *core = comm->core;
    const int from = core_source(comm, source), label = core_tag(tag);
    if (sink->data != NULL) {
        return spc_comm_recv_into(core, SPC_CONTEXT_USER, from, label, SPC_NO_DEADLINE, sink, message);
    }
    spc_recv_call_t call;
    const int status = spc_comm_poll_recv(core, SPC_CONTEXT_USER, from, label, message, &call);
    return status == SPC_EAGAIN ? spc_comm_finish_recv(core, &call, SPC_NO_DEADLINE) : status;
}

/* Copies the data of a message to its place, releases it, and fills the status. */
static int open_message(const spc_mpi_comm_t *comm, spc_message_t *message, bool is_filled, void *buf,
                        MPI_Count count, const spc_mpi_type_t *type, MPI_Status *status) {
    const MPI_Count room = count * type->size;
    const MPI_Count bytes = (MPI_Count)spc_message_data_bytes(message);
    const int source = spc_mpi_from_core(comm, message->source);
    const int tag = message->tag;
    const uint8_t format = spc_mpi_unexpected(message, type, !is_filled);
    if (!is_filled) {
        spc_mpi_type_unpack(spc_message_data(message), lesser(bytes, room), buf, count, type);
    }
    spc_mpi_status_set(status, source, tag, bytes, false);
    spc_message_release(comm->core, message);
    if (bytes > room) {
        return spc_mpi_fail(
            comm, MPI_ERR_TRUNCATE,
            "the message of rank %d has %lld bytes, and there is room for %lld; receive more items, or "
            "send fewer",
            source, (long long)bytes, (long long)room);
    }
    return format == 0 ? MPI_SUCCESS
                       : spc_mpi_note_mismatch(&(spc_mpi_mismatch_t){
                             .comm = comm, .type = type, .source = source, .tag = tag, .format = format});
}

int spc_mpi_recv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                 MPI_Status *status) {
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    spc_message_t message;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_committed(found, datatype, &type));
    SPC_MPI_TRY(check_receive(found, count, source, tag));
    if (source == MPI_PROC_NULL) {
        spc_mpi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_check_buffer(found, "buf", buf, count, type));
    const MPI_Count room = count * type->size;
    spc_sink_t sink = {.data_bytes = (uint64_t)room, .format = spc_mpi_format(type)};
    sink.data = room >= STREAM_BYTES && type->is_dense ? buf : NULL;
    SPC_MPI_TRY(spc_mpi_check_receive(found, source, tag, take(found, source, tag, &sink, &message)));
    return open_message(found, &message, sink.filled, buf, count, type, status);
}

/* ---- both at once ---- */

int spc_mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
                     MPI_Comm comm, MPI_Status *status) {
    SPC_MPI_TRY(send(sendbuf, sendcount, sendtype, dest, sendtag, comm, AHEAD));
    return spc_mpi_recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
}

int spc_mpi_sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                             int source, int recvtag, MPI_Comm comm, MPI_Status *status) {
    SPC_MPI_TRY(send(buf, count, datatype, dest, sendtag, comm, AHEAD));
    return spc_mpi_recv(buf, count, datatype, source, recvtag, comm, status);
}

int spc_mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
                      MPI_Comm comm, MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(send(sendbuf, sendcount, sendtype, dest, sendtag, comm, AHEAD));
    return spc_mpi_irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, request);
}

int spc_mpi_isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                              int source, int recvtag, MPI_Comm comm, MPI_Request *request) {
    return spc_mpi_isendrecv(buf, count, datatype, dest, sendtag, buf, count, datatype, source, recvtag, comm,
                             request);
}

/* ---- probing ---- */

int spc_mpi_probe(int source, int tag, MPI_Comm comm, MPI_Status *status) {
    spc_mpi_comm_t *found;
    int32_t from = 0, label = 0;
    uint64_t bytes = 0;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_receive(found, 0, source, tag));
    if (source == MPI_PROC_NULL) {
        spc_mpi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
        return MPI_SUCCESS;
    }
    const int outcome = spc_comm_probe(found->core, SPC_CONTEXT_USER, core_source(found, source),
                                       core_tag(tag), SPC_NO_DEADLINE, &from, &label, &bytes);
    SPC_MPI_TRY(spc_mpi_check_receive(found, source, tag, outcome));
    spc_mpi_status_set(status, spc_mpi_from_core(found, from), label, (MPI_Count)bytes, false);
    return MPI_SUCCESS;
}

int spc_mpi_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    spc_mpi_comm_t *found;
    int32_t from = 0, label = 0;
    uint64_t bytes = 0;
    *flag = 0;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_receive(found, 0, source, tag));
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        spc_mpi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
        return MPI_SUCCESS;
    }
    const int outcome = spc_comm_try_probe(found->core, SPC_CONTEXT_USER, core_source(found, source),
                                           core_tag(tag), &from, &label, &bytes);
    if (outcome == SPC_EAGAIN) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_check(found, outcome));
    *flag = 1;
    spc_mpi_status_set(status, spc_mpi_from_core(found, from), label, (MPI_Count)bytes, false);
    return MPI_SUCCESS;
}

/* A message that a probe has taken out. */
typedef struct matched {
    spc_message_t message;
    spc_mpi_comm_t *comm; /* holds a reference */
} matched_t;

void spc_mpi_message_forget(void *message) {
    matched_t *matched = message;
    spc_message_release(matched->comm->core, &matched->message);
    spc_mpi_comm_release(matched->comm);
    free(matched);
}

static int keep_message(spc_mpi_comm_t *comm, const spc_message_t *message, MPI_Message *handle,
                        MPI_Status *status) {
    matched_t *made = malloc(sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a message");
    }
    spc_message_move(&made->message, message);
    made->comm = comm;
    spc_mpi_comm_retain(comm);
    *handle = (MPI_Message)spc_mpi_handle_create(SPC_MPI_MESSAGE, made);
    spc_mpi_status_set(status, spc_mpi_from_core(comm, made->message.source), made->message.tag,
                       (MPI_Count)spc_message_data_bytes(&made->message), false);
    return MPI_SUCCESS;
}

int spc_mpi_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
    spc_mpi_comm_t *found;
    spc_message_t taken;
    spc_sink_t nowhere = {.data = NULL};
    *message = MPI_MESSAGE_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_receive(found, 0, source, tag));
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        spc_mpi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_check_receive(found, source, tag, take(found, source, tag, &nowhere, &taken)));
    return keep_message(found, &taken, message, status);
}

int spc_mpi_improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status) {
    spc_mpi_comm_t *found;
    spc_message_t taken;
    *message = MPI_MESSAGE_NULL;
    *flag = source == MPI_PROC_NULL;
    if (source == MPI_PROC_NULL) {
        return spc_mpi_mprobe(source, tag, comm, message, status);
    }
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_receive(found, 0, source, tag));
    spc_node_progress(found->core->node);
    const int outcome =
        spc_comm_try_recv(found->core, SPC_CONTEXT_USER, core_source(found, source), core_tag(tag), &taken);
    if (outcome == SPC_EAGAIN) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_check(found, outcome));
    *flag = 1;
    return keep_message(found, &taken, message, status);
}

int spc_mpi_mrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
                  MPI_Status *status) {
    spc_mpi_type_t *type;
    if (*message == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        spc_mpi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
        return MPI_SUCCESS;
    }
    matched_t *matched = spc_mpi_handle_find(SPC_MPI_MESSAGE, (intptr_t)*message);
    if (matched == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_REQUEST,
                            "the message is not a valid handle, or was received already");
    }
    spc_mpi_comm_t *comm = matched->comm;
    SPC_MPI_TRY(spc_mpi_get_committed(comm, datatype, &type));
    SPC_MPI_TRY(check_receive(comm, count, MPI_ANY_SOURCE, MPI_ANY_TAG));
    SPC_MPI_TRY(spc_mpi_check_buffer(comm, "buf", buf, count, type));
    spc_mpi_handle_free(SPC_MPI_MESSAGE, (intptr_t)*message);
    *message = MPI_MESSAGE_NULL;
    const int code = open_message(comm, &matched->message, false, buf, count, type, status);
    spc_mpi_comm_release(comm);
    free(matched);
    return code;
}

/* The message is here, so the request is done at once. */
int spc_mpi_imrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
                   MPI_Request *request) {
    MPI_Status status;
    spc_mpi_comm_t *world;
    spc_mpi_request_t *made;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(MPI_COMM_WORLD, &world));
    SPC_MPI_TRY(spc_mpi_request_create(world, NULL, 0, &made));
    const int code = spc_mpi_mrecv(buf, count, datatype, message, &status);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    made->source = status.MPI_SOURCE;
    made->tag = status.MPI_TAG;
    made->bytes = spc_mpi_status_bytes(&status);
    atomic_store_explicit(&made->core.done, true, memory_order_relaxed); /* nobody waits for it yet */
    *request = made->handle;
    return MPI_SUCCESS;
}

/* ---- elements of a received message ---- */

/* Counts elements of a builtin type, of which a pair has two; the bytes left over are less than one. */
static MPI_Count count_builtin(const spc_mpi_type_t *type, MPI_Count *bytes) {
    const MPI_Count items = *bytes / type->size;
    *bytes %= type->size;
    if (type->value_size == 0) {
        return items;
    }
    const bool has_value = *bytes >= type->value_size;
    *bytes -= has_value ? type->value_size : 0;
    return 2 * items + has_value;
}

/* Counts the builtin elements in the first `bytes` of an item; the bytes left over are less than one. */
static MPI_Count count_elements(const spc_mpi_type_t *type, MPI_Count *bytes) {
    if (type->element != NULL) {
        const MPI_Count there = *bytes < type->size ? *bytes : type->size;
        MPI_Count left = there;
        const MPI_Count count = type->size != 0 ? count_builtin(type->element, &left) : 0;
        *bytes -= there - left;
        return count;
    }
    const spc_mpi_contents_t *contents = &type->contents;
    MPI_Count count = 0;
    if (contents->combiner != MPI_COMBINER_STRUCT) { /* of one type, repeated */
        const spc_mpi_type_t *old = contents->types[0];
        MPI_Count copies = old->size != 0 ? type->size / old->size : 0;
        for (; copies > 0 && *bytes > 0; copies--) {
            count += count_elements(old, bytes);
        }
        return count;
    }
    for (MPI_Count i = 0; i < contents->type_count; i++) {
        for (MPI_Count copy = 0; copy < contents->counts[i + 1] && *bytes > 0; copy++) {
            count += count_elements(contents->types[i], bytes);
        }
    }
    return count;
}

int spc_mpi_get_elements(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    MPI_Count left = spc_mpi_status_bytes(status);
    *count = 0;
    if (type->size == 0) {
        *count = left == 0 ? 0 : MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    if (type->element != NULL && type->element->size != 0) {
        *count = count_builtin(type->element, &left);
        *count = left == 0 ? *count : MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    MPI_Count one = type->size;
    const MPI_Count per_item = count_elements(type, &one);
    *count = left / type->size * per_item;
    left %= type->size;
    if (left > 0) {
        *count += count_elements(type, &left);
    }
    *count = left == 0 ? *count : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int spc_mpi_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count) {
    return spc_mpi_get_elements(status, datatype, count);
}

/* ---- persistent ones ---- */

static int start_receive(spc_mpi_request_t *request) {
    atomic_store_explicit(&request->core.done, false, memory_order_relaxed); /* nobody waits for it */
    return spc_mpi_post(SPC_CONTEXT_USER, core_tag(request->wanted_tag), request);
}

static int start_send(spc_mpi_request_t *request) {
    const way_t way = *(way_t *)request->arguments;
    outgoing_t outgoing = {.comm = request->comm, .type = request->type, .tag = request->wanted_tag};
    atomic_store_explicit(&request->core.done, true, memory_order_relaxed); /* nobody waits for it */
    if (request->peer == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    outgoing.destination = spc_mpi_to_core(request->comm, request->peer);
    SPC_MPI_TRY(spc_mpi_payload_begin(request->comm, request->buffer, request->count, request->type,
                                      &outgoing.payload));
    if (way == SYNCHRONOUS || (way == STANDARD && waits_for_receiver(&outgoing))) {
        return begin_synchronous(&outgoing, request);
    }
    return send_now(&outgoing, AHEAD);
}

static int make_persistent(const void *buf, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                           MPI_Comm comm, int (*start)(spc_mpi_request_t *request), way_t way,
                           MPI_Request *handle) {
    const bool receives = start == start_receive;
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    spc_mpi_request_t *made;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_committed(found, datatype, &type));
    SPC_MPI_TRY(spc_mpi_check_rank(found, receives ? "source" : "dest", peer, receives));
    SPC_MPI_TRY(check_tag(found, tag, receives));
    SPC_MPI_TRY(spc_mpi_request_create(found, type, sizeof(way), &made));
    *(way_t *)made->arguments = way;
    made->is_persistent = true;
    made->is_active = false;
    made->start = start;
    made->buffer = (void *)buf;
    made->count = count;
    made->peer = peer;
    made->wanted_tag = tag;
    *handle = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_send_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Request *request) {
    return make_persistent(buf, count, datatype, dest, tag, comm, start_send, STANDARD, request);
}

int spc_mpi_rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                       MPI_Comm comm, MPI_Request *request) {
    return make_persistent(buf, count, datatype, dest, tag, comm, start_send, STANDARD, request);
}

int spc_mpi_bsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                       MPI_Comm comm, MPI_Request *request) {
    return make_persistent(buf, count, datatype, dest, tag, comm, start_send, AHEAD, request);
}

int spc_mpi_ssend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                       MPI_Comm comm, MPI_Request *request) {
    return make_persistent(buf, count, datatype, dest, tag, comm, start_send, SYNCHRONOUS, request);
}

int spc_mpi_recv_init(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                      MPI_Request *request) {
    return make_persistent(buf, count, datatype, source, tag, comm, start_receive, STANDARD, request);
}

/* ---- buffers for buffered sends: the library copies anyway, and only stores their addresses ---- */

static spc_mpi_buffer_t attached;

int spc_mpi_attach(const spc_mpi_comm_t *comm, spc_mpi_buffer_t *place, void *buffer, MPI_Count size) {
    if (size < 0) {
        return spc_mpi_fail(comm, MPI_ERR_ARG, "size=%lld: a size cannot be negative", (long long)size);
    }
    if (place->memory != NULL) {
        return spc_mpi_fail(comm, MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
    }
    *place = (spc_mpi_buffer_t){buffer, size};
    return MPI_SUCCESS;
}

int spc_mpi_detach(spc_mpi_buffer_t *place, void *buffer_addr, MPI_Count *size) {
    *(void **)buffer_addr = place->memory;
    *size = place->bytes;
    *place = (spc_mpi_buffer_t){0};
    return MPI_SUCCESS;
}

int spc_mpi_buffer_attach(void *buffer, MPI_Count size) {
    return spc_mpi_attach(NULL, &attached, buffer, size);
}

int spc_mpi_buffer_detach(void *buffer_addr, MPI_Count *size) {
    return spc_mpi_detach(&attached, buffer_addr, size);
}

int spc_mpi_buffer_flush(void) {
    return MPI_SUCCESS;
}

int spc_mpi_buffer_iflush(MPI_Request *request) {
    spc_mpi_comm_t *world;
    SPC_MPI_TRY(spc_mpi_get_comm(MPI_COMM_WORLD, &world));
    return spc_mpi_request_done(world, request);
}

int spc_mpi_comm_attach_buffer(MPI_Comm comm, void *buffer, MPI_Count size) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_attach(found, &found->buffer, buffer, size);
}

int spc_mpi_comm_detach_buffer(MPI_Comm comm, void *buffer_addr, MPI_Count *size) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_detach(&found->buffer, buffer_addr, size);
}

int spc_mpi_comm_flush_buffer(MPI_Comm comm) {
    spc_mpi_comm_t *found;
    return spc_mpi_get_comm(comm, &found);
}

int spc_mpi_comm_iflush_buffer(MPI_Comm comm, MPI_Request *request) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_request_done(found, request);
}
