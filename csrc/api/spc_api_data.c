/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "api/spc_api_private.h"

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

/* ---- out */

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

/* ---- in */

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

int spc_api_hand_over(spcomm_t *comm, const char *call, spc_message_t *found, bool any,
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
