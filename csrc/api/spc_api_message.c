/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/spc_api_private.h"
#include "base/spc_process.h"

/* ---- data: spcomm_data_t to a payload, a received message to spcomm_message_t */

#define LARGE_BYTES 4096  /* from this length on, data are aligned in place, and need no further copy */
#define ALIGNMENT 64      /* of large data, within a message */
#define DESCRIBED UINT32_MAX

/* The public numbers equal the core's. */
#define SAME_FORMAT(public, core) \
    _Static_assert((int)SPCOMM_FORMAT_##public == (int)SPC_FORMAT_##core, #public);
SAME_FORMAT(RAW, RAW)
SAME_FORMAT(BYTES, BYTES)
SAME_FORMAT(NONE, NONE)
SAME_FORMAT(BOOL, BOOL)
SAME_FORMAT(INT64, INT64)
SAME_FORMAT(FLOAT64, FLOAT64)
SAME_FORMAT(STRING, STR)
SAME_FORMAT(SIMTIME, SIMTIME)
SAME_FORMAT(ARRAY, ARRAY)
SAME_FORMAT(TUPLE, TUPLE)
SAME_FORMAT(PICKLE, PICKLE)
SAME_FORMAT(LIST, LIST)
SAME_FORMAT(DICT, DICT)
#undef SAME_FORMAT
_Static_assert(SPCOMM_DESTINATION_RANKS >= SPC_NODES_MAX, "every node can be in a destination");
_Static_assert(SPCOMM_FUZZY_MAX == SPC_FUZZY_MAX, "one limit");

/* "a pickled object", for sentences. */
static const char *format_name(int format) {
    static const char *const names[] = {"raw bytes",
                                        "bytes",
                                        "None",
                                        "a bool",
                                        "an int",
                                        "a float",
                                        "a string",
                                        "a SimTime",
                                        "an array",
                                        "a Python tuple",
                                        "a pickled Python object",
                                        "a Python list",
                                        "a Python dict"};
    int count = (int)(sizeof(names) / sizeof(names[0]));
    return format >= 0 && format < count ? names[format] : "something of an unknown format";
}

/* ---- data: out */

static char native_order(void) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1 ? '<' : '>';
}

/* NumPy's type number, which spares the receiver a look-up. The numbers are the same wherever long has 64 bits. */
static uint32_t numpy_number(char kind, uint32_t bytes) {
    static const struct {
        char kind;
        uint8_t bytes;
        uint8_t number;
    } known[] = {{'b', 1, 0},  {'i', 1, 1},  {'u', 1, 2},  {'i', 2, 3}, {'u', 2, 4},
                 {'i', 4, 5},  {'u', 4, 6},  {'i', 8, 7},  {'u', 8, 8}, {'f', 4, 11},
                 {'f', 8, 12}, {'c', 8, 14}, {'c', 16, 15}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && sizeof(long) == 8; i++) {
        if (known[i].kind == kind && known[i].bytes == bytes) {
            return known[i].number;
        }
    }
    return DESCRIBED;
}

static bool is_item(char kind, uint32_t bytes) {
    switch (kind) {
    case 'b':
        return bytes == 1;
    case 'i':
    case 'u':
        return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f':
        return bytes == 2 || bytes == 4 || bytes == 8 || bytes == sizeof(long double);
    case 'c':
        return bytes == 8 || bytes == 16 || bytes == 2 * sizeof(long double);
    case 'U':
        return bytes % 4 == 0;
    case 'S':
    case 'V':
        return bytes < UINT32_MAX; /* as spcomm_array gives more than 32 bits */
    default:
        return false;
    }
}

/* Bytes of all elements; false if the shape is impossible. */
static bool count_bytes(uint64_t item_bytes, const int64_t *shape, uint32_t dimensions, uint64_t *bytes) {
    *bytes = item_bytes;
    bool empty = item_bytes == 0;
    for (uint32_t i = 0; i < dimensions; i++) {
        empty = empty || shape[i] == 0;
    }
    for (uint32_t i = 0; i < dimensions; i++) {
        if (shape[i] < 0) {
            return false;
        }
        if (!empty && *bytes > (uint64_t)INT64_MAX / (uint64_t)shape[i]) {
            return false;
        }
        *bytes *= (uint64_t)shape[i];
    }
    return true;
}

static int encode_array(const char *call, const spcomm_data_t *data, spc_api_encoded_t *encoded) {
    const spcomm_array_t *array = &data->array;
    uint64_t bytes;
    if (array->dimensions > SPCOMM_DIMENSIONS_MAX || (array->dimensions != 0 && array->shape == NULL)) {
        return spc_api_refuse(SPC_EINVAL,
                              "%s: an array has 0 to %d dimensions, and a shape with as many lengths", call,
                              SPCOMM_DIMENSIONS_MAX);
    }
    if (!is_item(array->kind, array->item_bytes)) {
        return spc_api_refuse(
            SPC_EINVAL,
            "%s: there is no array of kind '%c' with items of %u bytes; kinds are i, u (1, 2, 4, 8 "
            "bytes), f (2, 4, 8), c (8, 16), b (1), S, U and V (fewer than 4294967295)",
            call, array->kind >= ' ' && array->kind <= '~' ? array->kind : '?', array->item_bytes);
    }
    if (!count_bytes(array->item_bytes, array->shape, array->dimensions, &bytes)) {
        return spc_api_refuse(SPC_EINVAL,
                              "%s: a length in the array's shape is negative, or all are too much", call);
    }
    spc_array_meta_t meta = {
        .byte_order = array->byte_order != 0 ? array->byte_order : native_order(),
        .kind = array->kind,
        .dimensions = array->dimensions,
        .fortran = array->fortran != 0,
        .item_bytes = array->item_bytes,
        .type_number = numpy_number(array->kind, array->item_bytes),
    };
    if (array->item_bytes == 1 || array->kind == 'S' || array->kind == 'V') {
        meta.byte_order = '|';
    }
    size_t length = sizeof(meta) + 8 * (size_t)array->dimensions;
    memcpy(encoded->meta, &meta, sizeof(meta));
    if (array->dimensions != 0) {
        memcpy(encoded->meta + sizeof(meta), array->shape, 8 * (size_t)array->dimensions);
    }
    if (bytes >= LARGE_BYTES) {
        size_t padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        memset(encoded->meta + length, 0, padded - length);
        length = padded;
    }
    encoded->payload.meta = encoded->meta;
    encoded->payload.meta_bytes = (uint16_t)length;
    encoded->payload.data_bytes = bytes;
    return SPC_OK;
}

int spc_api_encode(const char *call, const spcomm_data_t *data, spc_api_encoded_t *encoded) {
    spc_payload_t *payload = &encoded->payload;
    *payload =
        (spc_payload_t){.data = data->data, .data_bytes = data->bytes, .format = (uint8_t)data->format};
    int status = SPC_OK;
    switch (data->format) {
    case SPCOMM_FORMAT_INT64:
    case SPCOMM_FORMAT_FLOAT64:
        payload->data = &data->value;
        payload->data_bytes = 8;
        return SPC_OK;
    case SPCOMM_FORMAT_SIMTIME:
        payload->data = &data->value;
        payload->data_bytes = sizeof(spcomm_simtime_t);
        return SPC_OK;
    case SPCOMM_FORMAT_ARRAY:
        status = encode_array(call, data, encoded);
        break;
    case SPCOMM_FORMAT_NONE:
        payload->data_bytes = 0;
        return SPC_OK;
    case SPCOMM_FORMAT_RAW:
    case SPCOMM_FORMAT_BYTES:
    case SPCOMM_FORMAT_STRING:
        break;
    default:
        return spc_api_refuse(SPC_EINVAL,
                              "%s: data of format %d cannot be sent from C; use spcomm_raw, spcomm_int64, "
                              "spcomm_float64, spcomm_string, spcomm_simtime, spcomm_array or spcomm_none",
                              call, data->format);
    }
    if (status == SPC_OK && payload->data == NULL && payload->data_bytes != 0) {
        return spc_api_refuse(SPC_EINVAL, "%s: the data are NULL, and should be %llu byte%s", call,
                              (unsigned long long)payload->data_bytes, payload->data_bytes == 1 ? "" : "s");
    }
    if (status == SPC_OK && payload->data_bytes > (uint64_t)INT64_MAX) {
        return spc_api_refuse(SPC_EINVAL, "%s: the length is negative, or far too much", call);
    }
    return status;
}

/* ---- data: in */

/* spcomm_message_t.owner points to this. The shape follows it, and the data if they were copied. */
typedef struct owner {
    spcomm_t *root;
    void *handle; /* of the memory that still holds the data; NULL: they were copied */
    int storage;
    int64_t rest[];
} owner_t;

static bool read_array(const spc_message_t *found, spcomm_message_t *message, int64_t *shape) {
    spc_array_meta_t meta;
    uint64_t bytes;
    if (found->meta_bytes < sizeof(meta)) {
        return false;
    }
    memcpy(&meta, found->bytes, sizeof(meta));
    if (meta.dimensions > SPCOMM_DIMENSIONS_MAX
        || found->meta_bytes < sizeof(meta) + 8u * meta.dimensions + meta.dtype_length) {
        return false;
    }
    memcpy(shape, found->bytes + sizeof(meta), 8u * meta.dimensions);
    message->array = (spcomm_array_t){
        .item_bytes = meta.item_bytes,
        .dimensions = meta.dimensions,
        .kind = meta.kind,
        .byte_order = meta.byte_order,
        .fortran = (char)meta.fortran,
    };
    return count_bytes(meta.item_bytes, shape, meta.dimensions, &bytes)
           && bytes == spc_message_data_bytes(found);
}

static bool has_length_of_its_format(const spc_message_t *found) {
    uint64_t bytes = spc_message_data_bytes(found);
    switch (found->format) {
    case SPC_FORMAT_NONE:
        return bytes == 0;
    case SPC_FORMAT_BOOL:
        return bytes == 1;
    case SPC_FORMAT_INT64:
    case SPC_FORMAT_FLOAT64:
        return bytes == 8;
    case SPC_FORMAT_SIMTIME:
        return bytes == sizeof(spcomm_simtime_t);
    default:
        return true;
    }
}

/* Whether the program may take over the memory of the message: no other node reads it, it is aligned, and no 0 is
 * missing at its end. */
static bool can_stay(const spc_message_t *found) {
    bool own = found->storage == SPC_STORED_HEAP || (found->storage == SPC_STORED_ARENA && found->sole);
    return own && spc_message_data_bytes(found) >= LARGE_BYTES && found->format != SPC_FORMAT_STR
           && (uintptr_t)spc_message_data(found) % _Alignof(max_align_t) == 0;
}

int spc_api_decode(spcomm_t *comm, spc_message_t *found, bool any, spcomm_message_t *message) {
    int64_t shape[SPCOMM_DIMENSIONS_MAX];
    spcomm_message_t made = {.source = found->source, .tag = found->tag, .format = found->format};
    bool is_array = found->format == SPC_FORMAT_ARRAY;
    bool readable = found->format <= SPC_FORMAT_ARRAY && has_length_of_its_format(found)
                    && (!is_array || read_array(found, &made, shape));
    if (!readable && !any) {
        return SPC_EFORMAT;
    }
    bool stays = can_stay(found);
    made.bytes = spc_message_data_bytes(found);
    size_t start = (sizeof(owner_t) + 8u * made.array.dimensions + 15) / 16 * 16;
    owner_t *owner = malloc(start + (stays ? 0 : made.bytes + 1));
    if (owner == NULL) {
        return SPC_ENOMEM;
    }
    *owner = (owner_t){.root = comm->root};
    memcpy(owner->rest, shape, 8u * made.array.dimensions);
    made.array.shape = is_array && readable ? owner->rest : NULL;
    made.owner = owner;
    if (stays) {
        owner->handle = found->handle;
        owner->storage = found->storage;
        made.data = spc_message_data(found);
    } else {
        made.data = (unsigned char *)owner + start;
        memcpy(made.data, spc_message_data(found), made.bytes);
        ((unsigned char *)made.data)[made.bytes] = 0;
        spc_message_release(comm->core, found);
    }
    *message = made;
    return SPC_OK;
}

void spcomm_message_free(spcomm_message_t *message) {
    if (message == NULL || message->owner == NULL) {
        return;
    }
    owner_t *owner = message->owner;
    if (owner->handle != NULL) {
        /* The node's first communicator exists as long as the process. */
        spc_comm_release_stored(owner->root->core, (spc_storage_t)owner->storage, owner->handle);
    }
    free(owner);
    *message = (spcomm_message_t){.source = message->source, .tag = message->tag, .format = message->format};
}

/* spc_api_decode, with its failure handled: the message goes back to its place, with a sentence. */
static int hand_over(spcomm_t *comm, const char *call, spc_message_t *found, bool any,
                     spcomm_message_t *message) {
    int32_t source = found->source;
    const char *name = format_name(found->format);
    char tag[24] = "";
    if (found->context % SPC_CONTEXT_KINDS == SPC_CONTEXT_USER) {
        snprintf(tag, sizeof(tag), " (tag %d)", found->tag);
    }
    int status = spc_api_decode(comm, found, any, message);
    if (status == SPC_OK) {
        return SPC_OK;
    }
    int back = spc_comm_put_back(comm->core, found);
    if (back != SPC_OK) {
        spc_message_release(comm->core, found);
        return spc_api_fail(comm, back, "%s: the message from node %d%s is lost", call, source, tag);
    }
    if (status == SPC_ENOMEM) {
        return spc_api_fail(comm, status, "%s", call);
    }
    return spc_api_refuse(
        status,
        "%s: the message from node %d%s is %s, which C cannot read; it stays queued. Send bytes, a "
        "number, a string, a SimTime or an array, or take it with the function that ends in _any",
        call, source, tag, name);
}

static int check_tag(const char *call, int32_t tag) {
    return tag >= 0 ? SPC_OK
                    : spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d", call, tag,
                                     SPCOMM_TAG_MAX);
}

/* ---- handlers of active messages
 *
 * The core files their messages under a context of their own (spc_comm_handle). The call that finds them takes them
 * here and passes them to the program, without any lock. */

/* With the lock; NULL: there is none. */
static spc_api_handler_t *find(const spcomm_t *comm, int32_t tag) {
    const uint32_t count = atomic_load_explicit(&comm->handler_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (comm->handlers[i].tag == tag) {
            return &comm->handlers[i];
        }
    }
    return NULL;
}

static bool has_handlers(const spcomm_t *comm) {
    /* Relaxed: the lock, taken next, orders the reads of the list; a handler that is being registered may be missed. */
    return atomic_load_explicit(&comm->handler_count, memory_order_relaxed) != 0;
}

static bool has_handler(spcomm_t *comm, int32_t tag) {
    if (!has_handlers(comm)) {
        return false;
    }
    pthread_mutex_lock(&comm->lock);
    const bool found = find(comm, tag) != NULL;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

/* ---- handlers: registering */

/* With the lock. A handler is in place before any message is filed for it. */
static int add_handler(spcomm_t *comm, const spc_api_handler_t *handler) {
    spc_api_handler_t *known = find(comm, handler->tag);
    if (known != NULL) {
        *known = *handler;
        return SPC_OK;
    }
    const uint32_t count = atomic_load_explicit(&comm->handler_count, memory_order_relaxed);
    spc_api_handler_t *grown = realloc(comm->handlers, (count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return SPC_ENOMEM;
    }
    grown[count] = *handler;
    comm->handlers = grown;
    atomic_store_explicit(&comm->handler_count, count + 1, memory_order_relaxed);
    const int status = spc_comm_handle(comm->core, handler->tag);
    if (status != SPC_OK) {
        atomic_store_explicit(&comm->handler_count, count, memory_order_relaxed);
    }
    return status;
}

int spcomm_handler(spcomm_t *comm, int32_t tag, spcomm_handler_t *handler, void *argument) {
    static const char call[] = "spcomm_handler()";
    const spc_api_handler_t made = {tag, handler, argument};
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? check_tag(call, tag) : status;
    if (status != SPC_OK) {
        return status;
    }
    if (handler == NULL) {
        return spc_api_refuse(
            SPC_EINVAL, "%s: handler is NULL; it is the function that takes messages of tag %d", call, tag);
    }
    pthread_mutex_lock(&comm->lock);
    status = add_handler(comm, &made);
    pthread_mutex_unlock(&comm->lock);
    return spc_api_fail(comm, status, "%s", call);
}

/* ---- handlers: calling */

/* Takes the next message and finds its handler. False: there is none. Without memory the message stays for the next
 * call. */
static bool take(spcomm_t *comm, spcomm_message_t *message, spc_api_handler_t *handler) {
    spc_message_t found;
    pthread_mutex_lock(&comm->lock);
    bool taken = has_handlers(comm) && spc_comm_take_handled(comm->core, &found) == SPC_OK;
    if (taken) {
        *handler = *find(comm, found.tag);
        taken = spc_api_decode(comm, &found, true, message) == SPC_OK;
        if (!taken) {
            (void)spc_comm_put_back(comm->core, &found);
        }
    }
    pthread_mutex_unlock(&comm->lock);
    return taken;
}

static void record(const spcomm_t *comm, spc_trace_kind_t kind, const spcomm_message_t *message) {
    spc_trace_t *trace = spc_comm_trace(comm->root->core);
    if (trace == NULL) {
        return;
    }
    spc_trace_event_t event = {.kind = (uint8_t)kind};
    if (message != NULL) {
        event.peer = (int32_t)spc_comm_rank_in_run(comm->core, (uint32_t)message->source);
        event.tag = message->tag;
    }
    spc_trace_record(trace, &event);
}

int spc_api_run_handlers(spcomm_t *comm) {
    spcomm_message_t message;
    spc_api_handler_t handler;
    while (has_handlers(comm) && take(comm, &message, &handler)) {
        record(comm, SPC_TRACE_HANDLE, &message);
        const int answer = handler.function(comm, &message, handler.argument);
        record(comm, SPC_TRACE_HANDLED, NULL);
        if (answer != 0) {
            spc_api_last_outcome()->ended_by = handler.tag;
            return SPC_EINTERRUPTED;
        }
    }
    return SPC_OK;
}

#define CALL_BYTES 120

/* ---- sending */

/* A call that sends: to one node, if it has no other destination. */
typedef struct sending {
    const char *name; /* a literal, "spcomm_send()" */
    const spcomm_data_t *data;
    int32_t tag; /* unless coordinated */
    enum { TO_ONE, TO_SET, TO_ALL } to;
    int32_t dest;
    const spcomm_destination_t *set;
    bool coordinated;
    bool ahead; /* the caller receives next, as after coordinated ones */
} sending_t;

typedef struct targets {
    uint32_t count;
    int32_t ranks[SPCOMM_DESTINATION_RANKS];
} targets_t;

static int target_one(const spcomm_t *comm, const char *call, int32_t dest, targets_t *targets) {
    targets->count = dest == SPCOMM_PROC_NULL ? 0 : 1;
    targets->ranks[0] = dest;
    return targets->count == 0 || (dest >= 0 && (uint32_t)dest < comm->size)
               ? SPC_OK
               : spc_api_refuse_rank(comm, call, dest, "", ", and SPCOMM_PROC_NULL");
}

static int target_set(const spcomm_t *comm, const char *call, const spcomm_destination_t *dest,
                      targets_t *targets) {
    if (dest == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: dest is NULL; give a set, which may be empty", call);
    }
    targets->count = (uint32_t)spcomm_destination_to_ranks(dest, targets->ranks, SPCOMM_DESTINATION_RANKS);
    if (targets->count != 0 && (uint32_t)targets->ranks[targets->count - 1] >= comm->size) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: node %d is in the set, and this %s has nodes 0 to %u; nothing was sent",
                              call, targets->ranks[targets->count - 1], spc_api_kind(comm), comm->size - 1);
    }
    return SPC_OK;
}

static int target_all(const spcomm_t *comm, targets_t *targets) {
    targets->count = comm->size;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        targets->ranks[rank] = (int32_t)rank;
    }
    return SPC_OK;
}

/* SPC_ERANK, SPC_EINVAL with a sentence. */
static int find_targets(const spcomm_t *comm, const sending_t *sending, targets_t *targets) {
    switch (sending->to) {
    case TO_ONE:
        return target_one(comm, sending->name, sending->dest, targets);
    case TO_SET:
        return target_set(comm, sending->name, sending->set, targets);
    default:
        return target_all(comm, targets);
    }
}

/* An empty set begins a cycle of coordinated messages, too: there the core has to be called. */
static int transmit(spcomm_t *comm, const sending_t *sending, const targets_t *targets,
                    uint64_t deadline_ns) {
    spc_api_encoded_t encoded;
    spc_send_call_t send;
    int status = check_tag(sending->name, sending->tag);
    status = status == SPC_OK ? spc_api_encode(sending->name, sending->data, &encoded) : status;
    if (status != SPC_OK || (targets->count == 0 && !sending->coordinated)) {
        return status;
    }
    status = sending->coordinated
                 ? spc_comm_coordinated_try_send(comm->core, targets->ranks, targets->count, &encoded.payload,
                                                 &send)
                 : spc_comm_try_send(comm->core, targets->ranks, targets->count, SPC_CONTEXT_USER,
                                     sending->tag, &encoded.payload, &send);
    if (status == SPC_EAGAIN) {
        status = spc_comm_finish_send(comm->core, &send, sending->ahead || sending->coordinated, deadline_ns);
    }
    return spc_api_fail(comm, status, "%s", sending->name);
}

__attribute__((always_inline)) static inline int send(spcomm_t *comm, const sending_t *sending,
                                                      int64_t timeout_ns) {
    targets_t targets;
    SPC_API_RECORD(comm, sending->name);
    int status = spc_api_check(comm, sending->name);
    status = status == SPC_OK ? find_targets(comm, sending, &targets) : status;
    return status == SPC_OK ? transmit(comm, sending, &targets, spc_clock_deadline_ns(timeout_ns)) : status;
}

int spcomm_send(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    const sending_t sending = {"spcomm_send()", &data, tag, .dest = dest};
    return send(comm, &sending, timeout_ns);
}

int spcomm_send_set(spcomm_t *comm, const spcomm_destination_t *dest, int32_t tag, spcomm_data_t data,
                    int64_t timeout_ns) {
    const sending_t sending = {"spcomm_send_set()", &data, tag, .to = TO_SET, .set = dest};
    return send(comm, &sending, timeout_ns);
}

int spcomm_send_all(spcomm_t *comm, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    const sending_t sending = {"spcomm_send_all()", &data, tag, .to = TO_ALL};
    return send(comm, &sending, timeout_ns);
}

int spcomm_coordinated_send(spcomm_t *comm, int32_t dest, spcomm_data_t data, int64_t timeout_ns) {
    const sending_t sending = {"spcomm_coordinated_send()", &data, .dest = dest, .coordinated = true};
    return send(comm, &sending, timeout_ns);
}

int spcomm_coordinated_send_set(spcomm_t *comm, const spcomm_destination_t *dest, spcomm_data_t data,
                                int64_t timeout_ns) {
    const sending_t sending = {"spcomm_coordinated_send_set()", &data, .to = TO_SET, .set = dest,
                               .coordinated = true};
    return send(comm, &sending, timeout_ns);
}

int spcomm_coordinated_send_all(spcomm_t *comm, spcomm_data_t data, int64_t timeout_ns) {
    const sending_t sending = {"spcomm_coordinated_send_all()", &data, .to = TO_ALL, .coordinated = true};
    return send(comm, &sending, timeout_ns);
}

int spcomm_ssend(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_ssend()";
    targets_t targets;
    spc_api_encoded_t encoded;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? target_one(comm, call, dest, &targets) : status;
    status = status == SPC_OK ? check_tag(call, tag) : status;
    if (status == SPC_OK && (uint32_t)dest == comm->rank && spc_process_threads() == 1) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: node %d is this one, and has no other thread that could receive, so the "
                              "call could never return; use spcomm_send",
                              call, dest);
    }
    status = status == SPC_OK ? spc_api_encode(call, &data, &encoded) : status;
    if (status != SPC_OK || targets.count == 0) {
        return status;
    }
    status = spc_comm_ssend(comm->core, dest, SPC_CONTEXT_USER, tag, &encoded.payload,
                            spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail(comm, status, "%s", call);
}

/* ---- receiving */

typedef struct query {
    const char *name;
    int32_t source; /* as passed by the program */
    int32_t tag;
    int32_t core_source;
    int32_t core_tag;
} query_t;

static void add_number(char *text, const char *name, int32_t number) {
    size_t length = strlen(text);
    if (number == SPCOMM_ANY) {
        snprintf(text + length, CALL_BYTES - length, "%s=SPCOMM_ANY", name);
    } else if (number == SPCOMM_PROC_NULL) {
        snprintf(text + length, CALL_BYTES - length, "%s=SPCOMM_PROC_NULL", name);
    } else {
        snprintf(text + length, CALL_BYTES - length, "%s=%d", name, number);
    }
}

/* "spcomm_recv(source=1, tag=SPCOMM_ANY)": built only when it is needed. */
static const char *describe(const query_t *query, char *text) {
    snprintf(text, CALL_BYTES, "%s(", query->name);
    add_number(text, "source", query->source);
    add_number(text, ", tag", query->tag);
    strncat(text, ")", CALL_BYTES - strlen(text) - 1);
    return text;
}

static int prepare(spcomm_t *comm, query_t *query, const void *result) {
    char call[CALL_BYTES];
    int status = spc_api_check(comm, query->name);
    if (status != SPC_OK) {
        return status;
    }
    if (result == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: message is NULL; it is what the call fills in",
                              describe(query, call));
    }
    const bool is_constant = query->source == SPCOMM_ANY || query->source == SPCOMM_PROC_NULL;
    if (!is_constant && (query->source < 0 || (uint32_t)query->source >= comm->size)) {
        return spc_api_refuse_rank(comm, describe(query, call), query->source, "",
                                   ", and SPCOMM_ANY and SPCOMM_PROC_NULL");
    }
    if (query->tag != SPCOMM_ANY && query->tag < 0) {
        return spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d, and SPCOMM_ANY",
                              describe(query, call), query->tag, SPCOMM_TAG_MAX);
    }
    if (has_handler(comm, query->tag)) {
        return spc_api_refuse(SPC_ETAG, "%s: messages with tag %d are for the handler of that tag",
                              describe(query, call), query->tag);
    }
    query->core_source = query->source == SPCOMM_ANY ? SPC_ANY_SOURCE : query->source;
    query->core_tag = query->tag == SPCOMM_ANY ? SPC_ANY_TAG : query->tag;
    return SPC_OK;
}

/* Also tells of a message that nearly matches. Not inline: receives that succeed would pay for its registers. */
__attribute__((noinline)) static int fail_receive(spcomm_t *comm, int status, const char *call,
                                                  const query_t *query) {
    (void)spc_api_fail(comm, status, "%s", call);
    const bool may_be_near = status == SPC_ELOST || status == SPC_EFINISHED || status == SPC_ETIMEDOUT;
    char *near =
        may_be_near ? spc_comm_explain_near(comm->core, SPC_CONTEXT_USER, query->core_source, query->core_tag)
                    : NULL;
    char *reason = near != NULL ? strdup(spcomm_last_error()) : NULL;
    if (reason != NULL) {
        const bool has_end = strchr(".)", reason[strlen(reason) - 1]) != NULL;
        (void)spc_api_refuse(status, "%s%s\n%s", reason, has_end ? "" : ".", near);
    }
    free(reason);
    free(near);
    return status;
}

/* Turns the outcome of a core receive into a status. */
static int conclude(spcomm_t *comm, const query_t *query, int status, spc_message_t *found, bool any,
                    spcomm_message_t *message) {
    char call[CALL_BYTES];
    if (status == SPC_EAGAIN) {
        return status;
    }
    if (status == SPC_OK && found->format <= SPC_FORMAT_FLOAT64
        && spc_api_decode(comm, found, any, message) == SPC_OK) {
        return SPC_OK; /* the common case, which needs no text */
    }
    describe(query, call);
    if (status == SPC_OK) {
        return hand_over(comm, call, found, any, message);
    }
    return fail_receive(comm, status, call, query);
}

/* Whether a prepared receive is from no node: then this is its message. Its memory is not written to. */
static bool is_from_nobody(const query_t *query, spcomm_message_t *message) {
    static const max_align_t nothing = {0};
    if (query->source != SPCOMM_PROC_NULL) {
        return false;
    }
    *message = (spcomm_message_t){.data = (void *)(uintptr_t)&nothing,
                                  .source = SPCOMM_PROC_NULL,
                                  .tag = query->tag,
                                  .format = SPCOMM_FORMAT_NONE};
    return true;
}

/* Called after prepare. */
static int receive_until(spcomm_t *comm, const query_t *query, uint64_t deadline_ns, bool any,
                         spcomm_message_t *message) {
    spc_message_t found;
    if (is_from_nobody(query, message)) {
        return SPC_OK;
    }
    int status = spc_api_run_handlers(comm);
    if (status == SPC_OK) {
        status = spc_comm_recv(comm->core, SPC_CONTEXT_USER, query->core_source, query->core_tag, deadline_ns,
                               &found);
    }
    return conclude(comm, query, status, &found, any, message);
}

static int receive(spcomm_t *comm, query_t *query, int64_t timeout_ns, bool any, spcomm_message_t *message) {
    SPC_API_RECORD(comm, query->name);
    int status = prepare(comm, query, message);
    return status == SPC_OK ? receive_until(comm, query, spc_clock_deadline_ns(timeout_ns), any, message)
                            : status;
}

int spcomm_recv(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, spcomm_message_t *message) {
    query_t query = {"spcomm_recv", source, tag, 0, 0};
    return receive(comm, &query, timeout_ns, false, message);
}

int spcomm_recv_any(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns,
                    spcomm_message_t *message) {
    query_t query = {"spcomm_recv_any", source, tag, 0, 0};
    return receive(comm, &query, timeout_ns, true, message);
}

int spcomm_sendrecv(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int32_t source,
                    int32_t recv_tag, int64_t timeout_ns, spcomm_message_t *message) {
    query_t query = {"spcomm_sendrecv", source, recv_tag, 0, 0};
    const uint64_t deadline_ns = spc_clock_deadline_ns(timeout_ns);
    const sending_t sending = {"spcomm_sendrecv()", &data, tag, .dest = dest, .ahead = true};
    targets_t targets;
    SPC_API_RECORD(comm, query.name);
    int status = prepare(comm, &query, message);
    status = status == SPC_OK ? target_one(comm, sending.name, dest, &targets) : status;
    status = status == SPC_OK ? transmit(comm, &sending, &targets, deadline_ns) : status;
    return status == SPC_OK ? receive_until(comm, &query, deadline_ns, false, message) : status;
}

/* A call that never waits: one of the core's. */
static int receive_now(spcomm_t *comm, query_t *query,
                       int (*call)(spc_comm_t *, uint16_t, int32_t, int32_t, spc_message_t *),
                       spcomm_message_t *message) {
    spc_message_t found;
    SPC_API_RECORD(comm, query->name);
    int status = prepare(comm, query, message);
    if (status == SPC_OK && is_from_nobody(query, message)) {
        return SPC_OK;
    }
    status = status == SPC_OK ? spc_api_run_handlers(comm) : status;
    if (status == SPC_EINTERRUPTED) {
        return conclude(comm, query, status, NULL, false, NULL);
    }
    if (status != SPC_OK) {
        return status;
    }
    status = call(comm->core, SPC_CONTEXT_USER, query->core_source, query->core_tag, &found);
    return conclude(comm, query, status, &found, false, message);
}

int spcomm_try_recv(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message) {
    query_t query = {"spcomm_try_recv", source, tag, 0, 0};
    return receive_now(comm, &query, spc_comm_try_recv, message);
}

int spcomm_take(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message) {
    query_t query = {"spcomm_take", source, tag, 0, 0};
    return receive_now(comm, &query, spc_comm_take, message);
}

int spcomm_probe(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, int32_t *found_source,
                 int32_t *found_tag, size_t *bytes) {
    query_t query = {"spcomm_probe", source, tag, 0, 0};
    int32_t from = SPCOMM_PROC_NULL, with = tag;
    uint64_t length = 0;
    SPC_API_RECORD(comm, query.name);
    int status = prepare(comm, &query, &query);
    if (status != SPC_OK) {
        return status;
    }
    status = source == SPCOMM_PROC_NULL ? SPC_OK : spc_api_run_handlers(comm);
    if (status == SPC_OK && source != SPCOMM_PROC_NULL) {
        status = spc_comm_probe(comm->core, SPC_CONTEXT_USER, query.core_source, query.core_tag,
                                spc_clock_deadline_ns(timeout_ns), &from, &with, &length);
    }
    if (status != SPC_OK) {
        return conclude(comm, &query, status, NULL, false, NULL);
    }
    if (found_source != NULL) {
        *found_source = from;
    }
    if (found_tag != NULL) {
        *found_tag = with;
    }
    if (bytes != NULL) {
        *bytes = length;
    }
    return SPC_OK;
}

int spcomm_poll(spcomm_t *comm, uint64_t *waiting) {
    static const char call[] = "spcomm_poll()";
    uint64_t count = 0;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status == SPC_OK) {
        status = spc_api_run_handlers(comm);
        status = status == SPC_OK ? spc_comm_poll(comm->core, SPC_CONTEXT_USER, &count) : status;
        status = spc_api_fail(comm, status, "%s", call);
    }
    if (status == SPC_OK && waiting != NULL) {
        *waiting = count;
    }
    return status;
}

/* ---- coordinated messages: receiving */

static int receive_coordinated(spcomm_t *comm, const char *call, int64_t timeout_ns, bool any,
                               spcomm_message_t *message, int *over) {
    spc_message_t found;
    bool is_over = false;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (message == NULL || over == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s is NULL; it is what the call fills in", call,
                              message == NULL ? "message" : "over");
    }
    status = spc_comm_coordinated_recv(comm->core, spc_clock_deadline_ns(timeout_ns), &found, &is_over);
    if (status == SPC_OK && !is_over) {
        status = hand_over(comm, call, &found, any, message);
        if (status != SPC_OK) {
            return status;
        }
        message->tag = 0; /* the tag was the cycle's number */
    }
    if (status == SPC_OK) {
        *over = is_over;
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_coordinated_recv(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over) {
    return receive_coordinated(comm, "spcomm_coordinated_recv()", timeout_ns, false, message, over);
}

int spcomm_coordinated_recv_any(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over) {
    return receive_coordinated(comm, "spcomm_coordinated_recv_any()", timeout_ns, true, message, over);
}
