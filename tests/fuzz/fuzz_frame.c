/* SPDX-License-Identifier: MIT */
/*
 * Any bytes to the parser of frames. The first byte of the input says how it is made, the second how it is cut into
 * pieces; the rest is the stream. A fuzzer cannot guess sums, so they can be put right before the stream is fed.
 *
 * The same must come out in one piece, in any pieces, and by reading header for header; nothing after an error.
 */
#include "fuzz.h"

#include "base/spc_error.h"
#include "net/wire/spc_crc32c.h"
#include "net/wire/spc_frame.h"

enum { HEADER = SPC_FRAME_HEADER_BYTES, AT_LENGTH = 48, AT_BODY_SUM = 56, AT_HEADER_SUM = 60 };
enum { REPAIR_START = 1, REPAIR_BODY_SUMS = 2, REPAIR_HEADER_SUMS = 4, SMALL_BODIES = 8, REFUSE = 16 };
#define ONE(name, number, purpose) +1
enum { REFUSED = -1000, SMALL_BODY_MAX = 100, KINDS = 0 SPC_FRAME_KINDS(ONE) };

typedef struct run {
    const unsigned char *stream;
    size_t length_bytes, at; /* where the next frame begins */
    uint32_t body_max;
    int frames, refuse_at; /* the frame that is answered by REFUSED; -1: none */
    int status;
} run_t;

static void put_32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static uint32_t get_32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void repair(unsigned char *stream, size_t length_bytes, int how) {
    for (size_t at = 0; length_bytes - at >= HEADER;) {
        unsigned char *header = stream + at;
        uint32_t body_bytes = get_32(header + AT_LENGTH);
        if (how & REPAIR_START) {
            memcpy(header, (unsigned char[]){'s', 'p', 'c', 'f', SPC_FRAME_VERSION}, 5);
        }
        if (body_bytes > length_bytes - at - HEADER) {
            body_bytes = 0;
        } else if (how & REPAIR_BODY_SUMS) {
            put_32(header + AT_BODY_SUM, spc_crc32c(0, header + HEADER, body_bytes));
        }
        if (how & REPAIR_HEADER_SUMS) {
            put_32(header + AT_HEADER_SUM, spc_crc32c(0, header, AT_HEADER_SUM));
        }
        at += HEADER + body_bytes;
    }
}

static int deliver(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    run_t *run = argument;
    unsigned char header[HEADER];
    const spc_frame_piece_t piece = {body, frame->length_bytes};

    MUST((uintptr_t)body % 16 == 0);
    MUST(frame->length_bytes <= run->body_max && run->body_max <= SPC_FRAME_BODY_MAX);
    MUST(frame->kind >= 1 && frame->kind <= KINDS && frame->flags < 128);
    MUST(((uint32_t)frame->count * 2 + 7) / 8 * 8 <= frame->length_bytes);
    MUST(run->length_bytes - run->at >= HEADER + (size_t)frame->length_bytes);
    spc_frame_write_header(frame, &piece, 1, header);
    MUST(memcmp(header, run->stream + run->at, HEADER) == 0);
    MUST(memcmp(body, run->stream + run->at + HEADER, frame->length_bytes) == 0);
    run->at += HEADER + frame->length_bytes;
    return run->frames++ == run->refuse_at ? REFUSED : SPC_OK;
}

/* Read where the parser wants it, or into a buffer of exactly that size. */
static int feed_piece(run_t *run, spc_frame_parser_t *parser, const unsigned char *bytes, size_t *size,
                      bool in_place) {
    size_t room_bytes = 0;
    unsigned char *room = in_place ? spc_frame_parser_room(parser, &room_bytes) : NULL;
    if (room != NULL) {
        MUST(room_bytes <= SPC_FRAME_BODY_MAX);
        *size = *size < room_bytes ? *size : room_bytes;
        memcpy(room, bytes, *size);
        return spc_frame_parser_feed(parser, room, *size, deliver, run);
    }
    unsigned char *piece = exactly(bytes, *size);
    int status = spc_frame_parser_feed(parser, piece, *size, deliver, run);
    free(piece);
    return status;
}

/* In pieces whose sizes come from the seed; 0: in one. */
static void feed(run_t *run, uint64_t seed) {
    spc_frame_parser_t *parser;
    uint64_t random = seed, most = seed % 2 ? 20 : 300;
    MUST(spc_frame_parser_create(run->body_max, &parser) == SPC_OK);
    for (size_t at = 0, size; at < run->length_bytes; at += size) {
        size_t left = run->length_bytes - at;
        size = seed != 0 ? next_random(&random) % most : left;
        size = size < left ? size : left;
        int status = feed_piece(run, parser, run->stream + at, &size, seed % 3 != 0);
        MUST(run->status == SPC_OK || run->status == status);
        run->status = status;
    }
    if (run->status != SPC_OK) { /* for ever */
        unsigned char valid[HEADER];
        const spc_frame_t frame = {.kind = SPC_FRAME_ACKNOWLEDGE};
        int before = run->frames;
        spc_frame_write_header(&frame, NULL, 0, valid);
        MUST(spc_frame_parser_feed(parser, valid, HEADER, deliver, run) == run->status);
        MUST(run->frames == before);
    }
    spc_frame_parser_destroy(parser);
}

/* The result that the parser should have. */
static void expect(run_t *run) {
    while (run->status == SPC_OK && run->length_bytes - run->at >= HEADER) {
        spc_frame_t frame;
        uint32_t sum;
        run->status = spc_frame_read_header(run->stream + run->at, &frame, &sum);
        if (run->status == SPC_OK && frame.length_bytes > run->body_max) {
            run->status = SPC_EINVAL;
        }
        if (run->status != SPC_OK || frame.length_bytes > run->length_bytes - run->at - HEADER) {
            return;
        }
        run->status = spc_frame_check_body(run->stream + run->at + HEADER, frame.length_bytes, sum);
        if (run->status == SPC_OK) {
            run->at += HEADER + frame.length_bytes;
            run->status = run->frames++ == run->refuse_at ? REFUSED : SPC_OK;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length_bytes) {
    input_t input = {data, length_bytes};
    int how = input_byte(&input);
    uint64_t cuts = input_byte(&input);
    unsigned char *stream = exactly(input.next, input.left_bytes);
    repair(stream, input.left_bytes, how);
    const run_t start = {
        .stream = stream,
        .length_bytes = input.left_bytes,
        .body_max = how & SMALL_BODIES ? SMALL_BODY_MAX : SPC_FRAME_BODY_MAX,
        .refuse_at = how & REFUSE ? how >> 5 : -1,
    };
    run_t expected = start, whole = start, pieces = start;
    expect(&expected);
    feed(&whole, 0);
    feed(&pieces, cuts + 1);
    MUST(whole.status == expected.status && whole.frames == expected.frames);
    MUST(pieces.status == expected.status && pieces.frames == expected.frames);
    free(stream);
    return 0;
}
