/* SPDX-License-Identifier: MIT */
/*
 * spc_frame: the unit on a connection between a gateway and the server: a header of 64 bytes, then
 * `length_bytes` bytes of body.
 *
 * The header is little-endian on every machine, and has two sums (CRC-32C): one of itself, one of the body. So a reader
 * verifies that a length is the one that the writer wrote, before it trusts it; and every length is bounded
 * (SPC_FRAME_BODY_MAX) before anything is allocated for it. The body's own byte order is its sender's, declared when
 * the connection was made; this floor and the gateways write their own parts of bodies in little-endian.
 *
 * The parser is fed bytes, in pieces of any size, and hands out whole frames. It knows no sockets, so it can be fuzzed.
 * Once it has refused something it refuses everything: a connection with wrong bytes is closed, and replaced.
 *
 * One thread at a time for each parser; the other functions are pure.
 */
#ifndef SPC_FRAME_H
#define SPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPC_FRAME_HEADER_BYTES 64
#define SPC_FRAME_BODY_MAX (UINT32_C(1) << 18) /* longer messages go in parts */
#define SPC_FRAME_VERSION 11
#define SPC_FRAME_FROM_SERVER \
    UINT16_MAX /* source of an ARRIVE whose value the server has combined, or of its own FAIL */

/* X(name, number, purpose). */
#define SPC_FRAME_KINDS(X)                                                                  \
    X(HELLO, 1, "the first frame of each connection: what has been received so far")        \
    X(ACKNOWLEDGE, 2, "what has been received so far; also shows that the sender is there") \
    X(MESSAGE, 3, "a message, or a part of one, for the ranks at the start of its body")    \
    X(CREDIT, 4, "how much more may be sent to a rank")                                     \
    X(ARRIVE, 5, "what nodes contribute to a phase")                                        \
    X(RECEIPT, 6, "a message of an ssend was taken")                                        \
    X(STATUS, 7, "a node is there, has finished, has died, is gone")                        \
    X(LEFT, 8, "a node has closed a communicator")                                          \
    X(BOARD, 9, "what the nodes of a box wait for")                                         \
    X(FAIL, 10, "the job ends, and why")                                                    \
    X(NOTE, 11, "what a node has noted: where it ended, its line in a mismatch")            \
    X(ROUTE, 12, "where a gateway can be reached, whether two relay, that one leaves")      \
    X(LENT, 13, "what a node keeps of a sender's messages beyond its share")                \
    X(SHUTDOWN, 14, "no more messages come from a box")

typedef enum spc_frame_kind {
#define SPC_FRAME_ENUM(name, number, purpose) SPC_FRAME_##name = (number),
    SPC_FRAME_KINDS(SPC_FRAME_ENUM)
#undef SPC_FRAME_ENUM
} spc_frame_kind_t;

enum { /* flags, a mask */
       SPC_FRAME_PART =
           1,  /* MESSAGE: one of several parts; `offset` is its beginning, `total_bytes` its end */
       SPC_FRAME_ASKS = 2,  /* MESSAGE: the sender wants a receipt */
       /* ARRIVE: all members of the box have arrived now; without it more follows. MESSAGE: none, but SPC_SLOT_LAST */
       SPC_FRAME_LAST = 4,
       SPC_FRAME_OTHERS = 8, /* for all other boxes of the job, not only for box `destination` */
       SPC_FRAME_URGENT = 16, /* ARRIVE: this phase and those before it are forwarded at once */
       SPC_FRAME_FORWARD = 32, /* ARRIVE: for box `destination` as it is; the server does not collect it */
       SPC_FRAME_ANSWER = 64, /* MESSAGE, with ASKS: the receipt is to be a message */
};

/* A header as a program sees it. Fields that a kind does not use are 0. On the wire: 64 bytes, in this order,
 * little-endian: magic u32, version u8, kind u8, flags u16, job u32, source u16, destination u16, tag u32, context
 * u16, meta_bytes u16, sequence u64, total_bytes u64, offset u64, length_bytes u32, format u8, zero u8, count u16,
 * body sum u32, header sum u32. */
typedef struct spc_frame {
    uint8_t kind; /* spc_frame_kind_t */
    uint8_t format; /* MESSAGE: spc_format_t */
    uint16_t flags;
    uint32_t job;
    uint16_t source; /* MESSAGE, RECEIPT, LENT, STATUS, LEFT, NOTE: a rank; else a box */
    uint16_t destination; /* a box, unless SPC_FRAME_OTHERS; MESSAGE: set by the ranks in the body */
    int32_t tag;
    uint16_t context;
    uint16_t meta_bytes;
    uint16_t count; /* MESSAGE: how many ranks (u16 each, padded to a multiple of 8 bytes) begin the body */
    uint64_t sequence; /* of this link and direction: 1, 2, 3 …; 0: not counted, nor repeated */
    /* MESSAGE: of the whole message; ARRIVE, LEFT: the communicator's generation; HELLO, ACKNOWLEDGE: the last sequence
     * received */
    uint64_t total_bytes;
    /* MESSAGE: of this part; ARRIVE: the phase; RECEIPT: the number; ACKNOWLEDGE: the last sequence sent */
    uint64_t offset;
    uint32_t length_bytes; /* of the body */
    uint32_t body_sum; /* of a frame that was read */
    bool keeps_body_sum; /* for spc_frame_write_header: body as read, its sum is known */
} spc_frame_t;

/* Whether an honest box can have sent this: it speaks of itself and of its own ranks. */
bool spc_frame_is_of_box(const spc_frame_t *frame, uint16_t box, const uint16_t *box_of_rank, uint32_t ranks);

/* One of the pieces that make up a body. */
typedef struct spc_frame_piece {
    const void *start;
    size_t length_bytes;
} spc_frame_piece_t;

/* Writes the header for this body; reads the body for its sum unless the frame keeps it: `count` pieces,
 * frame->length_bytes in all. */
void spc_frame_write_header(const spc_frame_t *frame, const spc_frame_piece_t *pieces, uint32_t count,
                            unsigned char header[SPC_FRAME_HEADER_BYTES]);

/* The header alone: SPC_OK; SPC_EINVAL: these bytes are not a header (magic, sum, kind, flags, a length beyond its
 * bound, ranks that do not fit into the body); SPC_EVERSION: of another version of spcomm. A header that was read can
 * be written again to the same bytes. The body's sum is for spc_frame_check_body: SPC_OK or SPC_EINVAL. Not checked
 * here: whether ranks, boxes, tags and contexts exist, and whether a part fits into its message. */
int spc_frame_read_header(const unsigned char header[SPC_FRAME_HEADER_BYTES], spc_frame_t *frame,
                          uint32_t *body_sum);
int spc_frame_check_body(const void *body, uint32_t length_bytes, uint32_t body_sum);

/* ---- bytes to frames */

typedef struct spc_frame_parser spc_frame_parser_t;

/* Takes a whole frame; frame and body are the parser's (or lie in the bytes fed), until this returns. The body starts
 * at a multiple of 16, even if it is empty. Must not call the parser. */
typedef int spc_frame_deliver_t(void *argument, const spc_frame_t *frame, const unsigned char *body);

/* body_max: longer bodies are refused (at most SPC_FRAME_BODY_MAX, else SPC_EINVAL). SPC_ENOMEM. The parser sets aside
 * this much memory for a body that comes in pieces, and allocates none later. */
int spc_frame_parser_create(uint32_t body_max, spc_frame_parser_t **parser);
void spc_frame_parser_destroy(spc_frame_parser_t *parser);

/* Takes all of the bytes. SPC_OK; SPC_EINVAL, SPC_EVERSION: see spc_frame_read_header; or the status of deliver other
 * than SPC_OK. After any of these the parser takes nothing more, and returns the same again. A body that lies whole in
 * these bytes, at a multiple of 16, is delivered from there; any other is copied once. */
int spc_frame_parser_feed(spc_frame_parser_t *parser, const void *bytes, size_t length_bytes,
                          spc_frame_deliver_t *deliver, void *argument);

/* Where the rest of a body belongs when much of it is missing still: a caller that reads up to `*room_bytes` bytes
 * there, and feeds them from there, saves a copy. NULL: so little is missing that it is better read along with the
 * bytes that follow; or the parser has refused something. */
unsigned char *spc_frame_parser_room(const spc_frame_parser_t *parser, size_t *room_bytes);

#endif
