/* SPDX-License-Identifier: MIT */
/*
 * spc_format: the parts of a message, independent of its route.
 *
 * An envelope has the source, the tag and the format. The payload is [meta][data]: meta describes the data
 * where the format needs that (an array's dtype and shape), data are the bytes. Senders give both as pointers and the
 * core copies them once. Receivers get a spc_message_t on their own stack: it holds up to SPC_INLINE_BYTES bytes, and
 * longer payloads stay in place (ring, arena, heap) until spc_message_release (spc_comm.h).
 */
#ifndef SPC_FORMAT_H
#define SPC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPC_INLINE_BYTES 40 /* payload that fits into a slot beside its envelope */
#define SPC_META_MAX 65535

#define SPC_ANY_SOURCE (-1)
#define SPC_ANY_TAG (-1)
#define SPC_TAG_MAX INT32_MAX

/* X(name, number). The data of each, little-endian unless the meta says otherwise:
 *   RAW     bytes that a C program sent; Python sees `bytes`      BYTES   Python's bytes
 *   NONE    nothing                                               BOOL    one byte, 0 or 1
 *   INT64   8 bytes                                               FLOAT64 8 bytes
 *   STR     UTF-8 (surrogates pass)                               TUPLE   items, each [format u8][length u32][data]
 *   SIMTIME 24 bytes: a double, four int32 (spcomm/simtime.h)
 *   ARRAY   the elements; meta: spc_array_meta_t, shape, dtype    PICKLE  Python's pickle, protocol 5
 *   LIST    items as in a TUPLE                                   DICT    key, value, key, value … as in a TUPLE */
#define SPC_FORMATS(X) \
    X(RAW, 0)          \
    X(BYTES, 1)        \
    X(NONE, 2)         \
    X(BOOL, 3)         \
    X(INT64, 4)        \
    X(FLOAT64, 5)      \
    X(STR, 6)          \
    X(SIMTIME, 7)      \
    X(ARRAY, 8)        \
    X(TUPLE, 9)        \
    X(PICKLE, 10)      \
    X(LIST, 11)        \
    X(DICT, 12)

typedef enum spc_format {
#define SPC_FORMAT_ENUM(name, number) SPC_FORMAT_##name = (number),
    SPC_FORMATS(SPC_FORMAT_ENUM)
#undef SPC_FORMAT_ENUM
} spc_format_t;

/* The meta of an ARRAY: this, then `dimensions` int64 lengths, then, if dtype_length is not 0, the dtype's pickle (for
 * dtypes that a kind and a size do not describe: structured ones, datetime units). Padding may follow, so that large
 * data start at a multiple of 64 bytes. */
typedef struct spc_array_meta {
    char byte_order;       /* '<' or '>': of the elements, for an item of one byte '|' */
    char kind;             /* NumPy's dtype.kind */
    uint8_t dimensions;    /* 0 to 64 */
    uint8_t fortran;       /* 1: the first index runs fastest */
    uint16_t dtype_length; /* bytes of the description after the shape */
    uint16_t reserved;
    uint32_t item_bytes;
    uint32_t type_number;  /* NumPy's, a hint for the fast path; 0xffffffff: use the description */
} spc_array_meta_t;

_Static_assert(sizeof(spc_array_meta_t) == 16, "spc_array_meta_t travels between machines");

/* The meta of a PICKLE with separate buffers (arrays, mostly): this, then `count` lengths in bytes. The data are the
 * pickle, then the buffers, each at a multiple of SPC_BUFFER_ALIGNMENT from the start of the payload. Without meta the
 * pickle holds everything. */
typedef struct spc_pickle_meta {
    uint64_t pickle_bytes;
    uint32_t count;
    uint32_t reserved;
} spc_pickle_meta_t;

_Static_assert(sizeof(spc_pickle_meta_t) == 16, "spc_pickle_meta_t travels between machines");

#define SPC_BUFFER_ALIGNMENT 64

typedef struct spc_extent {
    const void *start;
    uint64_t length_bytes;
} spc_extent_t;

/* A sender's payload. */
typedef struct spc_payload {
    const void *meta;
    const void *data;
    uint64_t data_bytes;
    uint16_t meta_bytes;
    uint8_t format;
    const spc_extent_t *extents; /* NULL, or the data in pieces, data_bytes in all; then `data` is void */
} spc_payload_t;

typedef enum spc_storage {
    SPC_STORED_INLINE, /* in the message itself */
    SPC_STORED_RING, /* in the sender's ring, until released */
    SPC_STORED_ARENA, /* in a block that this node has pinned */
    SPC_STORED_HEAP, /* in malloc'ed memory that the message owns */
} spc_storage_t;

/* A receiver's message. `bytes` is [meta][data]; with INLINE it points into this structure, so spc_message_move copies
 * it. */
typedef struct spc_message {
    unsigned char *bytes;
    uint64_t length_bytes; /* meta and data */
    uint64_t arrival; /* running number at the receiver: its place if it is put back */
    void *handle; /* ring header, block or heap memory, by storage */
    int32_t source;
    int32_t tag;
    uint16_t context;
    uint16_t meta_bytes;
    uint8_t format;
    uint8_t storage;
    uint8_t sole; /* ARENA: not 0 if no other node has it, so it may be written */
    uint8_t reserved;
    uint32_t sender; /* the rank whose ring or arena holds it */
    uint32_t number; /* number on its route, from that sender to this node: the first is 1; modulo 2³² */
    unsigned char inlined[SPC_INLINE_BYTES];
} spc_message_t;

/* The receiver's place for the data of a message that is just as it expects: of this format, meta and length. */
typedef struct spc_sink {
    void *data;
    uint64_t data_bytes;
    const void *meta;
    uint16_t meta_bytes;
    uint8_t format;
    bool filled; /* the data are there, and only there */
} spc_sink_t;

/* The request of a receive. */
typedef struct spc_match {
    int32_t source; /* or SPC_ANY_SOURCE */
    int32_t tag;    /* or SPC_ANY_TAG */
    uint16_t context;
    struct spc_posted *posted; /* NULL, or the posted place for the data: message/spc_inbox.h */
} spc_match_t;

/* Copies [meta][data] from byte `from` on, `length_bytes` of it. */
void spc_payload_copy(const spc_payload_t *payload, uint64_t from, uint64_t length_bytes, void *to);

/* Copies all of it into a block. A payload for one receiver, which keeps the block, need not be in the cache; several
 * receivers copy it at once. */
void spc_payload_fill(const spc_payload_t *payload, uint32_t receivers, void *to);

/* Copies a message, and corrects its pointer into itself. `from` is void afterwards. */
void spc_message_move(spc_message_t *to, const spc_message_t *from);

static inline unsigned char *spc_message_data(const spc_message_t *message) {
    return message->bytes + message->meta_bytes;
}

static inline uint64_t spc_message_data_bytes(const spc_message_t *message) {
    return message->length_bytes - message->meta_bytes;
}

#endif
