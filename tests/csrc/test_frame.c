/* SPDX-License-Identifier: MIT */
/* Frames: the bytes of a header, what is refused, and the same frames whatever the pieces they come in. */
#include "check.h"

#include "base/spc_error.h"
#include "net/wire/spc_crc32c.h"
#include "net/wire/spc_frame.h"

enum { HEADER = SPC_FRAME_HEADER_BYTES, AT_HEADER_SUM = 60, BODY = 16 };

static const unsigned char BODY_BYTES[BODY] = "123456789";
static const spc_frame_t FRAME = {
    .kind = SPC_FRAME_MESSAGE,
    .format = 0x25,
    .flags = SPC_FRAME_PART | SPC_FRAME_OTHERS,
    .job = 0x04030201,
    .source = 0x0605,
    .destination = 0x0807,
    .tag = -2,
    .context = 0x0a09,
    .meta_bytes = 0x0c0b,
    .count = 4,
    .sequence = UINT64_C(0x14131211100f0e0d),
    .total_bytes = UINT64_C(0x1c1b1a1918171615),
    .offset = UINT64_C(0x24232221201f1e1d),
    .length_bytes = BODY,
};
/* Made by another program from the contract. */
static const unsigned char WRITTEN[HEADER] = {
    0x73, 0x70, 0x63, 0x66, 0x0b, 0x03, 0x09, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
    0xfe, 0xff, 0xff, 0xff, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14,
    0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24,
    0x10, 0x00, 0x00, 0x00, 0x25, 0x00, 0x04, 0x00, 0x68, 0x5c, 0xbb, 0x2d, 0x3e, 0x6b, 0x72, 0x63,
};

static void write_frame(const spc_frame_t *frame, const void *body, unsigned char *header) {
    const spc_frame_piece_t piece = {body, frame->length_bytes};
    spc_frame_write_header(frame, &piece, 1, header);
}

/* As if a writer had written these bytes: the sum is right, what it is the sum of need not be. */
static void repair(unsigned char *header) {
    uint32_t sum = spc_crc32c(0, header, AT_HEADER_SUM);
    for (int i = 0; i < 4; i++) {
        header[AT_HEADER_SUM + i] = (unsigned char)(sum >> 8 * i);
    }
}

/* ---- headers */

static void check_same(const spc_frame_t *found, const spc_frame_t *expected) {
    CHECK_EQ(found->kind, expected->kind);
    CHECK_EQ(found->format, expected->format);
    CHECK_EQ(found->flags, expected->flags);
    CHECK_EQ_U(found->job, expected->job);
    CHECK_EQ(found->source, expected->source);
    CHECK_EQ(found->destination, expected->destination);
    CHECK_EQ(found->tag, expected->tag);
    CHECK_EQ(found->context, expected->context);
    CHECK_EQ(found->meta_bytes, expected->meta_bytes);
    CHECK_EQ(found->count, expected->count);
    CHECK_EQ_U(found->sequence, expected->sequence);
    CHECK_EQ_U(found->total_bytes, expected->total_bytes);
    CHECK_EQ_U(found->offset, expected->offset);
    CHECK_EQ_U(found->length_bytes, expected->length_bytes);
}

TEST(bytes_of_a_header) {
    unsigned char header[HEADER];
    spc_frame_t frame;
    uint32_t body_sum;

    memset(header, 0xee, sizeof header);
    write_frame(&FRAME, BODY_BYTES, header);
    CHECK_MEM(header, WRITTEN, HEADER);
    CHECK_OK(spc_frame_read_header(WRITTEN, &frame, &body_sum));
    check_same(&frame, &FRAME);
    CHECK_OK(spc_frame_check_body(BODY_BYTES, BODY, body_sum));
    CHECK_EQ(spc_frame_check_body(BODY_BYTES, BODY - 1, body_sum), SPC_EINVAL);
}

TEST(a_body_in_pieces) {
    unsigned char header[HEADER];
    for (size_t cut = 0; cut <= BODY; cut++) {
        const spc_frame_piece_t pieces[] = {{BODY_BYTES, cut}, {NULL, 0}, {BODY_BYTES + cut, BODY - cut}};
        spc_frame_write_header(&FRAME, pieces, 3, header);
        CHECK_MEM(header, WRITTEN, HEADER);
    }
}

TEST(no_body) {
    const spc_frame_t frame = {.kind = SPC_FRAME_ACKNOWLEDGE, .total_bytes = UINT64_MAX};
    unsigned char header[HEADER];
    spc_frame_t found;
    uint32_t body_sum;
    spc_frame_write_header(&frame, NULL, 0, header);
    CHECK_OK(spc_frame_read_header(header, &found, &body_sum));
    check_same(&found, &frame);
    CHECK_EQ_U(body_sum, 0);
}

/* Every single bit of a header, and of a body. */
TEST(one_bit_is_wrong) {
    unsigned char bytes[HEADER + BODY];
    spc_frame_t frame;
    uint32_t body_sum;
    for (int bit = 0; bit < 8 * (HEADER + BODY); bit++) {
        memcpy(bytes, WRITTEN, HEADER);
        memcpy(bytes + HEADER, BODY_BYTES, BODY);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int status = spc_frame_read_header(bytes, &frame, &body_sum);
        CHECK_EQ(status, bit < 8 * HEADER ? SPC_EINVAL : SPC_OK);
        if (status == SPC_OK) {
            CHECK_EQ(spc_frame_check_body(bytes + HEADER, BODY, body_sum), SPC_EINVAL);
        }
    }
}

typedef struct change {
    int at; /* the byte */
    unsigned char value;
    int status;
} change_t;

/* The sum is right, and the header says what it may not. */
TEST(wrong_on_purpose) {
    static const change_t CHANGES[] = {
        {0, 'x', SPC_EINVAL},   {3, 'h', SPC_EINVAL}, {4, 0, SPC_EVERSION},  {4, 1, SPC_EVERSION},
        {4, 255, SPC_EVERSION}, {5, 0, SPC_EINVAL},   {5, 15, SPC_EINVAL},   {5, 255, SPC_EINVAL},
        {6, 128, SPC_EINVAL},   {6, 192, SPC_EINVAL}, {7, 1, SPC_EINVAL},    {7, 128, SPC_EINVAL},
        {50, 5, SPC_EINVAL},    {51, 1, SPC_EINVAL},  {51, 128, SPC_EINVAL}, {53, 1, SPC_EINVAL},
        {54, 9, SPC_EINVAL},    {55, 1, SPC_EINVAL},  {48, 7, SPC_EINVAL},   {5, 1, SPC_OK},
        {5, 10, SPC_OK},        {6, 127, SPC_OK},     {50, 4, SPC_EINVAL},   {54, 8, SPC_OK},
        {54, 5, SPC_OK},        {48, 8, SPC_OK},      {48, 17, SPC_OK},
    };
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        unsigned char header[HEADER];
        spc_frame_t frame;
        uint32_t body_sum;
        memcpy(header, WRITTEN, HEADER);
        header[CHANGES[i].at] = CHANGES[i].value;
        repair(header);
        if (spc_frame_read_header(header, &frame, &body_sum) != CHANGES[i].status) {
            CHECK_FAIL("byte %d = %d is not answered by %s", CHANGES[i].at, CHANGES[i].value,
                       spc_error_name(CHANGES[i].status));
        }
    }
}

/* Ranks fill multiples of 8 bytes. */
TEST(bounds) {
    static const struct {
        uint16_t count;
        uint32_t length_bytes;
        int status;
    } CASES[] = {
        {0, SPC_FRAME_BODY_MAX, SPC_OK},
        {0, SPC_FRAME_BODY_MAX + 1, SPC_EINVAL},
        {UINT16_MAX, 2 * (UINT16_MAX + 1), SPC_OK},
        {UINT16_MAX, 2 * (UINT16_MAX + 1) - 1, SPC_EINVAL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const spc_frame_t frame = {
            .kind = SPC_FRAME_MESSAGE, .count = CASES[i].count, .length_bytes = CASES[i].length_bytes};
        spc_frame_t found;
        unsigned char header[HEADER];
        uint32_t body_sum;
        spc_frame_write_header(&frame, NULL, 0, header);
        CHECK_EQ(spc_frame_read_header(header, &found, &body_sum), CASES[i].status);
    }
}

/* ---- the parser */

enum { FRAMES = 24, BODY_MAX = 5000, STREAM_MAX = FRAMES * (HEADER + BODY_MAX) };

/* A stream of frames, and what has come out of its parser so far. */
typedef struct stream {
    spc_frame_parser_t *parser;
    unsigned char *bytes; /* a multiple of 16 */
    size_t length_bytes;
    size_t starts[FRAMES + 1];
    spc_frame_t frames[FRAMES];
    int delivered;
    int stop_at;     /* the frame that is answered by SPC_EAGAIN; -1: none */
    int from_stream; /* how many bodies were not copied */
} stream_t;

/* Another parser, from the begin. */
static void stream_restart(stream_t *stream) {
    spc_frame_parser_destroy(stream->parser);
    CHECK_OK(spc_frame_parser_create(BODY_MAX, &stream->parser));
    stream->delivered = 0;
}

static void stream_make(stream_t *stream, uint64_t *random) {
    static const uint32_t LENGTHS[] = {0, 1, 15, 16, 17, 64, 0, 0, 4096, 4999, BODY_MAX, 8};
    *stream = (stream_t){.stop_at = -1, .bytes = aligned_alloc(16, STREAM_MAX)};
    CHECK(stream->bytes != NULL);
    for (int i = 0; i < FRAMES; i++) {
        unsigned char *start = stream->bytes + stream->length_bytes;
        uint32_t length = i < 12 ? LENGTHS[i] : (uint32_t)check_below(random, i < 18 ? 100 : BODY_MAX);
        stream->starts[i] = stream->length_bytes;
        stream->frames[i] = (spc_frame_t){.kind = (uint8_t)(1 + check_below(random, 10)),
                                          .tag = (int32_t)check_random(random),
                                          .sequence = check_random(random),
                                          .length_bytes = length};
        for (uint32_t byte = 0; byte < length; byte++) {
            start[HEADER + byte] = (unsigned char)check_random(random);
        }
        write_frame(&stream->frames[i], start + HEADER, start);
        stream->length_bytes += HEADER + length;
    }
    stream->starts[FRAMES] = stream->length_bytes;
    stream_restart(stream);
}

static void stream_free(stream_t *stream) {
    spc_frame_parser_destroy(stream->parser);
    free(stream->bytes);
}

static int stream_deliver(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    stream_t *stream = argument;
    CHECK(stream->delivered < FRAMES);
    const unsigned char *expected = stream->bytes + stream->starts[stream->delivered] + HEADER;
    check_same(frame, &stream->frames[stream->delivered]);
    CHECK_EQ_U((uintptr_t)body % 16, 0);
    CHECK_MEM(body, expected, frame->length_bytes);
    stream->from_stream += body == expected;
    return stream->delivered++ == stream->stop_at ? SPC_EAGAIN : SPC_OK;
}

/* Feeds memory of exactly the size of the piece, so that a sanitizer sees who reads on. */
static int feed_piece(stream_t *stream, size_t from, size_t length) {
    unsigned char *piece = malloc(length > 0 ? length : 1);
    CHECK(piece != NULL);
    memcpy(piece, stream->bytes + from, length);
    int status = spc_frame_parser_feed(stream->parser, piece, length, stream_deliver, stream);
    memset(piece, 0xee, length);
    free(piece);
    return status;
}

/* A frame is delivered with its last byte, neither before nor after. */
static void feed_good_piece(stream_t *stream, size_t from, size_t length) {
    CHECK_OK(feed_piece(stream, from, length));
    CHECK(from + length >= stream->starts[stream->delivered]);
    CHECK(stream->delivered == FRAMES || from + length < stream->starts[stream->delivered + 1]);
}

TEST(pieces_of_every_size) {
    uint64_t random = check_seed();
    stream_t stream;
    stream_make(&stream, &random);
    for (size_t size = 1; size <= stream.length_bytes; size += size < 200 ? 1 : size / 5) {
        stream_restart(&stream);
        for (size_t at = 0; at < stream.length_bytes; at += size) {
            size_t left = stream.length_bytes - at;
            feed_good_piece(&stream, at, left < size ? left : size);
        }
        CHECK_EQ(stream.delivered, FRAMES);
    }
    stream_free(&stream);
}

TEST(pieces_at_random) {
    uint64_t random = check_seed();
    for (long round = check_scale(400); round > 0; round--) {
        stream_t stream;
        stream_make(&stream, &random);
        size_t most = 1 + check_below(&random, 3 * BODY_MAX);
        for (size_t at = 0, size; at < stream.length_bytes; at += size) {
            size_t left = stream.length_bytes - at;
            size = check_below(&random, most + 1); /* 0, too */
            size = size < left ? size : left;
            feed_good_piece(&stream, at, size);
        }
        CHECK_EQ(stream.delivered, FRAMES);
        stream_free(&stream);
    }
}

/* Bodies that lie whole and at a multiple of 16 in what is fed are not copied. */
TEST(copies_only_what_it_must) {
    uint64_t random = check_seed();
    stream_t stream;
    stream_make(&stream, &random);
    CHECK_OK(
        spc_frame_parser_feed(stream.parser, stream.bytes, stream.length_bytes, stream_deliver, &stream));
    CHECK_EQ(stream.delivered, FRAMES);
    int expected = 0;
    for (int i = 0; i < FRAMES; i++) {
        expected += stream.starts[i] % 16 == 0 && stream.frames[i].length_bytes > 0;
    }
    CHECK(expected >= 3);
    CHECK_EQ(stream.from_stream, expected);
    stream_free(&stream);
}

/* Whatever bit is wrong: what was whole before is delivered, nothing after. */
TEST(nothing_after_a_wrong_bit) {
    uint64_t random = check_seed();
    stream_t stream;
    stream_make(&stream, &random);
    for (size_t at = 0; at < stream.starts[8]; at++) {
        unsigned char mask = (unsigned char)(1 << check_below(&random, 8));
        int before = 0;
        while (stream.starts[before + 1] <= at) {
            before++;
        }
        size_t cut = check_below(&random, stream.length_bytes);
        stream_restart(&stream);
        stream.bytes[at] ^= mask;
        feed_piece(&stream, 0, cut);
        CHECK_EQ(feed_piece(&stream, cut, stream.length_bytes - cut), SPC_EINVAL);
        CHECK_EQ(stream.delivered, before);
        stream.bytes[at] ^= mask;
        CHECK_EQ(feed_piece(&stream, 0, stream.length_bytes), SPC_EINVAL);
        CHECK_EQ(feed_piece(&stream, 0, 0), SPC_EINVAL);
        CHECK_EQ(stream.delivered, before);
    }
    stream_free(&stream);
}

TEST(another_version) {
    uint64_t random = check_seed();
    stream_t stream;
    stream_make(&stream, &random);
    unsigned char *second = stream.bytes + stream.starts[1];
    second[4]++;
    repair(second);
    CHECK_EQ(feed_piece(&stream, 0, stream.starts[4]), SPC_EVERSION);
    CHECK_EQ(feed_piece(&stream, 0, stream.starts[1]), SPC_EVERSION);
    CHECK_EQ(stream.delivered, 1);
    stream_free(&stream);
}

/* An error of the receiver of frames ends the parser, too. */
TEST(refused_by_deliver) {
    uint64_t random = check_seed();
    stream_t stream;
    stream_make(&stream, &random);
    for (stream.stop_at = 0; stream.stop_at < 12; stream.stop_at++) {
        stream_restart(&stream);
        CHECK_EQ(feed_piece(&stream, 0, stream.length_bytes), SPC_EAGAIN);
        CHECK_EQ(feed_piece(&stream, 0, stream.length_bytes), SPC_EAGAIN);
        CHECK_EQ(stream.delivered, stream.stop_at + 1);
    }
    stream_free(&stream);
}

/* A length beyond the parser's own bound is refused with the header, before any of the body has come. */
TEST(too_long_for_this_parser) {
    stream_t stream = {.bytes = malloc(HEADER), .stop_at = -1};
    CHECK(stream.bytes != NULL);
    for (uint32_t more = 0; more <= 1; more++) {
        const spc_frame_t frame = {.kind = SPC_FRAME_BOARD, .length_bytes = BODY_MAX + more};
        stream_restart(&stream);
        spc_frame_write_header(&frame, NULL, 0, stream.bytes);
        CHECK_EQ(feed_piece(&stream, 0, HEADER), more ? SPC_EINVAL : SPC_OK);
    }
    CHECK_EQ(stream.delivered, 0);
    stream_free(&stream);
}

TEST(parsers_that_cannot_be) {
    spc_frame_parser_t *parser = NULL;
    CHECK_EQ(spc_frame_parser_create(SPC_FRAME_BODY_MAX + 1, &parser), SPC_EINVAL);
    CHECK_EQ_PTR(parser, NULL);
    CHECK_OK(spc_frame_parser_create(0, &parser));
    CHECK_OK(spc_frame_parser_feed(parser, NULL, 0, stream_deliver, NULL));
    spc_frame_parser_destroy(parser);
    CHECK_OK(spc_frame_parser_create(SPC_FRAME_BODY_MAX, &parser));
    spc_frame_parser_destroy(parser);
    spc_frame_parser_destroy(NULL);
}

/* ---- reading in place */

enum { LONG = 100000, BEGUN = 1000 };

static int compare_long(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    CHECK_EQ_U(frame->length_bytes, LONG);
    CHECK_MEM(body, *(unsigned char **)argument, LONG);
    *(unsigned char **)argument = NULL; /* delivered */
    return SPC_OK;
}

/* The header and the first bytes come by a buffer, the rest where it belongs, in pieces; `flip`: where a bit is wrong.
 * */
static int read_in_place(const unsigned char *header, unsigned char *body, int flip, uint64_t *random) {
    spc_frame_parser_t *parser;
    unsigned char *expected = body;
    size_t room_bytes, done = BEGUN;
    CHECK_OK(spc_frame_parser_create(SPC_FRAME_BODY_MAX, &parser));
    CHECK(spc_frame_parser_room(parser, &room_bytes) == NULL);
    CHECK_OK(spc_frame_parser_feed(parser, header, HEADER, compare_long, &expected));
    CHECK_OK(spc_frame_parser_feed(parser, body, BEGUN, compare_long, &expected));
    unsigned char *room;
    int status = SPC_OK;
    while (status == SPC_OK && (room = spc_frame_parser_room(parser, &room_bytes)) != NULL) {
        CHECK_EQ_U(room_bytes, LONG - done);
        const size_t piece = 1 + check_below(random, room_bytes);
        memcpy(room, body + done, piece);
        if (flip >= (int)done && flip < (int)(done + piece)) {
            room[(size_t)flip - done] ^= 1;
        }
        done += piece;
        status = spc_frame_parser_feed(parser, room, piece, compare_long, &expected);
    }
    if (status == SPC_OK && done < LONG) {
        status = spc_frame_parser_feed(parser, body + done, LONG - done, compare_long, &expected);
    }
    CHECK_EQ(expected == NULL, status == SPC_OK);
    spc_frame_parser_destroy(parser);
    return status;
}

TEST(in_place) {
    uint64_t random = 7;
    unsigned char header[HEADER], *body = malloc(LONG);
    CHECK(body != NULL);
    for (int i = 0; i < LONG; i++) {
        body[i] = (unsigned char)check_random(&random);
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_MESSAGE, .length_bytes = LONG};
    write_frame(&frame, body, header);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(read_in_place(header, body, -1, &random));
    }
    CHECK_EQ(read_in_place(header, body, BEGUN, &random), SPC_EINVAL);
    free(body);
}

/* A process that hands on a body that was read writes the same header without reading it. */
TEST(the_sum_is_kept) {
    unsigned char header[HEADER];
    spc_frame_t frame;
    uint32_t body_sum;
    CHECK_OK(spc_frame_read_header(WRITTEN, &frame, &body_sum));
    frame.body_sum = body_sum;
    frame.keeps_body_sum = true;
    const spc_frame_piece_t piece = {"not the same body", BODY};
    spc_frame_write_header(&frame, &piece, 1, header);
    CHECK_MEM(header, WRITTEN, HEADER);
    frame.keeps_body_sum = false;
    spc_frame_write_header(&frame, &piece, 1, header);
    CHECK(memcmp(header, WRITTEN, HEADER) != 0);
}

TEST_MAIN()
