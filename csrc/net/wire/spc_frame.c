/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_frame.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/wire/spc_crc32c.h"

enum {
    BODY_ALIGNMENT = 16,
    RANK_BYTES = 2,
    RANKS_ALIGNMENT = 8,
    ROOM_LEAST = 1 << 14, /* a shorter read is not worth the copy that it saves */
};

static const unsigned char MAGIC[4] = {'s', 'p', 'c', 'f'};

/* Offsets of the fields of a header. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_KIND = 5,
    AT_FLAGS = 6,
    AT_JOB = 8,
    AT_SOURCE = 12,
    AT_DESTINATION = 14,
    AT_TAG = 16,
    AT_CONTEXT = 20,
    AT_META_BYTES = 22,
    AT_SEQUENCE = 24,
    AT_TOTAL_BYTES = 32,
    AT_OFFSET = 40,
    AT_LENGTH_BYTES = 48,
    AT_FORMAT = 52,
    AT_ZERO = 53,
    AT_COUNT = 54,
    AT_BODY_SUM = 56,
    AT_HEADER_SUM = 60, /* of all bytes before it */
};

enum {
    KNOWN_FLAGS = SPC_FRAME_PART | SPC_FRAME_ASKS | SPC_FRAME_LAST | SPC_FRAME_OTHERS | SPC_FRAME_URGENT
    | SPC_FRAME_FORWARD | SPC_FRAME_ANSWER
};

/* ---- little-endian on every machine */

static inline void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static inline uint64_t get(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

/* ---- headers */

void spc_frame_write_header(const spc_frame_t *frame, const spc_frame_piece_t *pieces, uint32_t count,
                            unsigned char header[SPC_FRAME_HEADER_BYTES]) {
    uint32_t body_sum = frame->keeps_body_sum ? frame->body_sum : 0;
    for (uint32_t i = 0; i < count && !frame->keeps_body_sum; i++) {
        body_sum = spc_crc32c(body_sum, pieces[i].start, pieces[i].length_bytes);
    }
    memcpy(header + AT_MAGIC, MAGIC, sizeof MAGIC);
    header[AT_VERSION] = SPC_FRAME_VERSION;
    header[AT_KIND] = frame->kind;
    put(header + AT_FLAGS, frame->flags, 2);
    put(header + AT_JOB, frame->job, 4);
    put(header + AT_SOURCE, frame->source, 2);
    put(header + AT_DESTINATION, frame->destination, 2);
    put(header + AT_TAG, (uint32_t)frame->tag, 4);
    put(header + AT_CONTEXT, frame->context, 2);
    put(header + AT_META_BYTES, frame->meta_bytes, 2);
    put(header + AT_SEQUENCE, frame->sequence, 8);
    put(header + AT_TOTAL_BYTES, frame->total_bytes, 8);
    put(header + AT_OFFSET, frame->offset, 8);
    put(header + AT_LENGTH_BYTES, frame->length_bytes, 4);
    header[AT_FORMAT] = frame->format;
    header[AT_ZERO] = 0;
    put(header + AT_COUNT, frame->count, 2);
    put(header + AT_BODY_SUM, body_sum, 4);
    put(header + AT_HEADER_SUM, spc_crc32c(0, header, AT_HEADER_SUM), 4);
}

static bool is_kind(uint8_t number) {
    switch (number) {
#define CASE(name, number, purpose) case (number):
        SPC_FRAME_KINDS(CASE)
#undef CASE
        return true;
    default:
        return false;
    }
}

static bool ranks_fit(const spc_frame_t *frame) {
    uint32_t bytes = (uint32_t)frame->count * RANK_BYTES;
    return (bytes + RANKS_ALIGNMENT - 1) / RANKS_ALIGNMENT * RANKS_ALIGNMENT <= frame->length_bytes;
}

static void read_fields(const unsigned char *header, spc_frame_t *frame) {
    *frame = (spc_frame_t){
        .kind = header[AT_KIND],
        .format = header[AT_FORMAT],
        .flags = (uint16_t)get(header + AT_FLAGS, 2),
        .job = (uint32_t)get(header + AT_JOB, 4),
        .source = (uint16_t)get(header + AT_SOURCE, 2),
        .destination = (uint16_t)get(header + AT_DESTINATION, 2),
        .tag = (int32_t)(uint32_t)get(header + AT_TAG, 4),
        .context = (uint16_t)get(header + AT_CONTEXT, 2),
        .meta_bytes = (uint16_t)get(header + AT_META_BYTES, 2),
        .count = (uint16_t)get(header + AT_COUNT, 2),
        .sequence = get(header + AT_SEQUENCE, 8),
        .total_bytes = get(header + AT_TOTAL_BYTES, 8),
        .offset = get(header + AT_OFFSET, 8),
        .length_bytes = (uint32_t)get(header + AT_LENGTH_BYTES, 4),
    };
}

int spc_frame_read_header(const unsigned char header[SPC_FRAME_HEADER_BYTES], spc_frame_t *frame,
                          uint32_t *body_sum) {
    if (memcmp(header + AT_MAGIC, MAGIC, sizeof MAGIC) != 0
        || get(header + AT_HEADER_SUM, 4) != spc_crc32c(0, header, AT_HEADER_SUM)) {
        return SPC_EINVAL;
    }
    if (header[AT_VERSION] != SPC_FRAME_VERSION) {
        return SPC_EVERSION;
    }
    read_fields(header, frame);
    *body_sum = (uint32_t)get(header + AT_BODY_SUM, 4);
    if (!is_kind(frame->kind) || (frame->flags & ~KNOWN_FLAGS) != 0 || header[AT_ZERO] != 0
        || frame->length_bytes > SPC_FRAME_BODY_MAX || !ranks_fit(frame)) {
        return SPC_EINVAL;
    }
    return SPC_OK;
}

int spc_frame_check_body(const void *body, uint32_t length_bytes, uint32_t body_sum) {
    return spc_crc32c(0, body, length_bytes) == body_sum ? SPC_OK : SPC_EINVAL;
}

bool spc_frame_is_of_box(const spc_frame_t *frame, uint16_t box, const uint16_t *box_of_rank,
                         uint32_t ranks) {
    uint32_t rank;
    switch (frame->kind) {
    case SPC_FRAME_MESSAGE:
    case SPC_FRAME_STATUS:
    case SPC_FRAME_LEFT:
    case SPC_FRAME_NOTE:
        rank = frame->source;
        break;
    case SPC_FRAME_RECEIPT: /* of a message from `source`, by its receiver */
    case SPC_FRAME_LENT:
        rank = (uint32_t)frame->tag;
        break;
    case SPC_FRAME_CREDIT:
    case SPC_FRAME_ARRIVE:
    case SPC_FRAME_BOARD:
    case SPC_FRAME_ROUTE:
    case SPC_FRAME_SHUTDOWN:
        return frame->source == box;
    default:
        return false;
    }
    return rank < ranks && box_of_rank[rank] == box;
}

/* ---- the parser */

struct spc_frame_parser {
    int status; /* the first that was not SPC_OK, for ever */
    uint32_t body_max;
    uint32_t collected_bytes; /* of the header; once it is whole: of the body */
    bool in_body; /* the header is whole, and `frame` has its fields */
    spc_frame_t frame;
    unsigned char header[SPC_FRAME_HEADER_BYTES];
    unsigned char *body; /* body_max bytes */
};

typedef struct fed {
    const unsigned char *next;
    size_t left_bytes;
} fed_t;

int spc_frame_parser_create(uint32_t body_max, spc_frame_parser_t **parser) {
    if (body_max > SPC_FRAME_BODY_MAX) {
        return SPC_EINVAL;
    }
    /* aligned_alloc requires a multiple of the alignment, and 0 bytes may give NULL. */
    size_t room = ((size_t)body_max / BODY_ALIGNMENT + 1) * BODY_ALIGNMENT;
    spc_frame_parser_t *made = calloc(1, sizeof *made);
    unsigned char *body = aligned_alloc(BODY_ALIGNMENT, room);
    if (made == NULL || body == NULL) {
        free(made);
        free(body);
        return SPC_ENOMEM;
    }
    made->body_max = body_max;
    made->body = body;
    *parser = made;
    return SPC_OK;
}

void spc_frame_parser_destroy(spc_frame_parser_t *parser) {
    if (parser != NULL) {
        free(parser->body);
        free(parser);
    }
}

/* Collects so many bytes: returns where they lie, in the bytes fed or in `collected`; NULL while some are missing. */
static const unsigned char *collect(spc_frame_parser_t *parser, fed_t *fed, unsigned char *collected,
                                    uint32_t length_bytes, size_t alignment) {
    const unsigned char *start = fed->next;
    size_t missing = length_bytes - parser->collected_bytes;
    size_t taken = missing < fed->left_bytes ? missing : fed->left_bytes;
    bool stays = taken == length_bytes && (uintptr_t)start % alignment == 0;

    if (!stays) {
        if (start != collected + parser->collected_bytes) { /* else read there: spc_frame_parser_room */
            memcpy(collected + parser->collected_bytes, start, taken);
        }
        start = collected;
    }
    fed->next += taken;
    fed->left_bytes -= taken;
    parser->collected_bytes += (uint32_t)taken;
    if (parser->collected_bytes < length_bytes) {
        return NULL;
    }
    parser->collected_bytes = 0;
    return start;
}

static int take_header(spc_frame_parser_t *parser, fed_t *fed) {
    const unsigned char *header = collect(parser, fed, parser->header, SPC_FRAME_HEADER_BYTES, 1);
    if (header == NULL) {
        return SPC_OK;
    }
    int status = spc_frame_read_header(header, &parser->frame, &parser->frame.body_sum);
    if (status != SPC_OK) {
        return status;
    }
    parser->in_body = true;
    return parser->frame.length_bytes <= parser->body_max ? SPC_OK : SPC_EINVAL;
}

static int take_body(spc_frame_parser_t *parser, fed_t *fed, spc_frame_deliver_t *deliver, void *argument) {
    const uint32_t length_bytes = parser->frame.length_bytes;
    const unsigned char *body = parser->body;
    if (length_bytes > 0) {
        body = collect(parser, fed, parser->body, length_bytes, BODY_ALIGNMENT);
    }
    if (body == NULL) {
        return SPC_OK;
    }
    parser->in_body = false;
    int status = spc_frame_check_body(body, length_bytes, parser->frame.body_sum);
    return status == SPC_OK ? deliver(argument, &parser->frame, body) : status;
}

int spc_frame_parser_feed(spc_frame_parser_t *parser, const void *bytes, size_t length_bytes,
                          spc_frame_deliver_t *deliver, void *argument) {
    fed_t fed = {bytes, length_bytes};

    while (parser->status == SPC_OK && fed.left_bytes > 0) {
        if (!parser->in_body) {
            parser->status = take_header(parser, &fed);
        }
        /* An empty body is whole as soon as its header is, though nothing is left. */
        if (parser->status == SPC_OK && parser->in_body) {
            parser->status = take_body(parser, &fed, deliver, argument);
        }
    }
    return parser->status;
}

unsigned char *spc_frame_parser_room(const spc_frame_parser_t *parser, size_t *room_bytes) {
    if (parser->status != SPC_OK || !parser->in_body
        || parser->frame.length_bytes - parser->collected_bytes < ROOM_LEAST) {
        return NULL;
    }
    *room_bytes = parser->frame.length_bytes - parser->collected_bytes;
    return parser->body + parser->collected_bytes;
}
