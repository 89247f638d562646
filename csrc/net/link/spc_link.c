/* SPDX-License-Identifier: MIT */
/*
 * Kept frames form one list, by number: first … (written, not acknowledged) … unsent … last. Greetings and
 * acknowledgements are not in it: `control` has room for one of them, and is filled when the channel takes it, so that
 * its contents are true then.
 */
#include "net/link/spc_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

enum {
    SPC_LINK_ACKNOWLEDGE_BYTES = 1 << 19, /* received and not acknowledged: send an acknowledgement at once */
    SPC_LINK_ACKNOWLEDGE_FRAMES = 512,
    SPC_LINK_TAKE_ALONG_BYTES = 1 << 14, /* the same, when another frame is being written anyway */
    SPC_LINK_TAKE_ALONG_FRAMES = 32,
};

typedef struct spc_link_entry {
    struct spc_link_entry *next;
    uint64_t sequence;
    spc_link_body_t *shared; /* body that follows `own`; or NULL */
    uint32_t own_bytes; /* the header and copied bytes */
    unsigned char own[];
} spc_link_entry_t;

struct spc_link {
    spc_link_options_t options;
    unsigned char *own_buffer; /* NULL: the buffer is the owner's */
    spc_pool_t own_pool;
    spc_link_counts_t counts;

    /* State of the channel: begins anew with each. */
    spc_channel_t *channel;
    spc_frame_parser_t *parser;
    bool is_greeted; /* the other's HELLO has come */
    bool has_greeted; /* ours is in `control`, or written */
    bool is_full; /* the channel took less than it was offered; until spc_link_write */
    bool is_suspect;
    uint64_t attached_ns;

    /* Why the last channel ended, and whether the link has. */
    bool is_dead;
    int reason, system_error;

    /* Sending. */
    spc_link_entry_t *first, *last, *unsent;
    size_t unsent_at; /* bytes of `unsent` that are written */
    uint64_t sequence; /* of the last frame queued */
    uint64_t written; /* the largest number whose bytes were all taken by some channel */
    uint64_t acknowledged; /* by the other end */
    unsigned char control[SPC_FRAME_HEADER_BYTES];
    size_t control_at;
    bool has_control;
    bool owes_acknowledge; /* write one as soon as there is room */
    bool is_finished;

    /* Receiving. */
    bool is_feeding; /* inside the parser, which must not be freed */
    bool has_ended;
    int refused; /* status of `deliver` */
    uint64_t received; /* the last number received */
    uint64_t untold_frames, untold_bytes, untold_since_ns;

    /* Time. */
    bool has_started;
    uint64_t heard_ns, wrote_ns;
};

static inline size_t entry_bytes(const spc_link_entry_t *entry) {
    return entry->own_bytes + (entry->shared != NULL ? spc_link_body_length(entry->shared) : 0);
}

/* ---- shared bodies */

struct spc_link_body {
    spc_pool_t *pool;
    uint32_t users;
    size_t length_bytes;
    _Alignas(16) unsigned char bytes[];
};

int spc_link_body_create(spc_pool_t *pool, size_t length_bytes, spc_link_body_t **body) {
    spc_link_body_t *made = spc_pool_take(pool, sizeof *made + length_bytes);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->pool = pool;
    made->users = 1;
    made->length_bytes = length_bytes;
    *body = made;
    return SPC_OK;
}

unsigned char *spc_link_body_start(spc_link_body_t *body) {
    return body->bytes;
}

size_t spc_link_body_length(const spc_link_body_t *body) {
    return body->length_bytes;
}

static spc_link_body_t *retain(spc_link_body_t *body) {
    body->users++;
    return body;
}

void spc_link_body_release(spc_link_body_t *body) {
    if (body != NULL && --body->users == 0) {
        spc_pool_give(body->pool, body, sizeof *body + body->length_bytes);
    }
}

/* ---- the list */

static void free_entry(spc_link_t *link, spc_link_entry_t *entry) {
    link->counts.retained_bytes -= entry_bytes(entry);
    spc_link_body_release(entry->shared);
    spc_pool_give(link->options.pool, entry, sizeof *entry + entry->own_bytes);
}

static void forget_all(spc_link_t *link) {
    while (link->first != NULL) {
        spc_link_entry_t *entry = link->first;
        link->first = entry->next;
        free_entry(link, entry);
    }
    link->last = link->unsent = NULL;
    link->unsent_at = 0;
}

/* Frees the frames that the other end has received, up to this number. False: it cannot have that number. */
static bool forget_acknowledged(spc_link_t *link, uint64_t sequence) {
    if (sequence < link->acknowledged || sequence > link->written
        || (link->unsent != NULL && sequence >= link->unsent->sequence)) {
        return false;
    }
    link->acknowledged = sequence;
    while (link->first != NULL && link->first->sequence <= sequence) {
        spc_link_entry_t *entry = link->first;
        link->first = entry->next;
        free_entry(link, entry);
    }
    if (link->first == NULL) {
        link->last = NULL;
    }
    return true;
}

static void append(spc_link_t *link, spc_link_entry_t *entry) {
    if (link->last != NULL) {
        link->last->next = entry;
    } else {
        link->first = entry;
    }
    link->last = entry;
    if (link->unsent == NULL) {
        link->unsent = entry;
    }
    link->counts.retained_bytes += entry_bytes(entry);
    if (link->counts.retained_bytes > link->counts.retained_bytes_worst) {
        link->counts.retained_bytes_worst = link->counts.retained_bytes;
    }
}

/* Completes header, copies and sums: the bytes are then final, the same however often they are sent. */
static int make_entry(spc_link_t *link, const spc_frame_t *given, const spc_frame_piece_t *pieces,
                      uint32_t count, spc_link_body_t *shared, size_t copied_bytes) {
    spc_link_entry_t *entry =
        spc_pool_take(link->options.pool, sizeof *entry + SPC_FRAME_HEADER_BYTES + copied_bytes);
    if (entry == NULL) {
        return SPC_ENOMEM;
    }
    unsigned char *copies = entry->own + SPC_FRAME_HEADER_BYTES, *at = copies;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes > 0) { /* an empty piece may have no address */
            memcpy(at, pieces[i].start, pieces[i].length_bytes);
            at += pieces[i].length_bytes;
        }
    }
    entry->next = NULL;
    entry->sequence = ++link->sequence;
    entry->shared = shared != NULL ? retain(shared) : NULL;
    entry->own_bytes = (uint32_t)(SPC_FRAME_HEADER_BYTES + copied_bytes);

    spc_frame_t frame = *given;
    frame.job = link->options.job;
    frame.sequence = entry->sequence;
    spc_frame_piece_t body[2] = {{copies, copied_bytes}, {NULL, 0}};
    if (shared != NULL) {
        body[1] = (spc_frame_piece_t){spc_link_body_start(shared), spc_link_body_length(shared)};
    }
    frame.length_bytes = (uint32_t)(copied_bytes + body[1].length_bytes);
    spc_frame_write_header(&frame, body, shared != NULL ? 2 : 1, entry->own);
    append(link, entry);
    link->counts.sent[frame.kind % SPC_LINK_KINDS].frames++;
    link->counts.sent[frame.kind % SPC_LINK_KINDS].bytes += SPC_FRAME_HEADER_BYTES + frame.length_bytes;
    return SPC_OK;
}

/* ---- life */

#define MS UINT64_C(1000000)

enum { BUFFER_BYTES = 65536, RETAINED_MAX = 1 << 24 };

static void lower(uint64_t *time_ns, uint64_t to_ns) {
    *time_ns = *time_ns < to_ns ? *time_ns : to_ns;
}

spc_link_limits_t spc_link_limits(uint64_t timeout_ns) {
    spc_link_limits_t limits = {1000 * MS, 5000 * MS, 10000 * MS, timeout_ns, 40 * MS};
    lower(&limits.heartbeat_ns, timeout_ns / 30);
    lower(&limits.suspect_ns, timeout_ns / 6);
    lower(&limits.broken_ns, timeout_ns / 3);
    return limits;
}

static void set_default(uint64_t *value, uint64_t otherwise) {
    *value = *value != 0 ? *value : otherwise;
}

static void set_defaults(spc_link_options_t *options) {
    const spc_link_limits_t usual = spc_link_limits(SPC_LINK_TIMEOUT_NS);
    options->now_ns = options->now_ns != NULL ? options->now_ns : spc_clock_now_ns;
    set_default(&options->limits.heartbeat_ns, usual.heartbeat_ns);
    set_default(&options->limits.suspect_ns, usual.suspect_ns);
    set_default(&options->limits.broken_ns, usual.broken_ns);
    set_default(&options->limits.timeout_ns, usual.timeout_ns);
    set_default(&options->limits.acknowledge_ns, usual.acknowledge_ns);
    set_default(&options->retained_max, RETAINED_MAX);
}

int spc_link_create(const spc_link_options_t *options, spc_link_t **link) {
    if (options->deliver == NULL) {
        return SPC_EINVAL;
    }
    spc_link_t *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->options = *options;
    set_defaults(&made->options);
    made->options.pool = options->pool != NULL ? options->pool : &made->own_pool;
    if (options->buffer == NULL) {
        made->own_buffer = malloc(BUFFER_BYTES);
        made->options.buffer = made->own_buffer;
        made->options.buffer_bytes = BUFFER_BYTES;
        if (made->own_buffer == NULL) {
            free(made);
            return SPC_ENOMEM;
        }
    }
    *link = made;
    return SPC_OK;
}

void spc_link_destroy(spc_link_t *link) {
    if (link != NULL) {
        spc_link_detach(link);
        forget_all(link);
        spc_pool_fini(&link->own_pool);
        free(link->own_buffer);
        free(link);
    }
}

/* ---- the end of a channel, and of the link */

static void end_channel(spc_link_t *link) {
    spc_channel_destroy(link->channel);
    link->channel = NULL;
    link->is_greeted = link->has_greeted = link->has_control = link->is_full = link->is_suspect = false;
    if (!link->is_feeding) {
        spc_frame_parser_destroy(link->parser);
        link->parser = NULL;
    }
}

/* Ends the channel; the link goes on. */
static void break_link(spc_link_t *link, int reason, int system_error) {
    if (link->channel != NULL) {
        link->counts.broken++;
        link->reason = reason;
        link->system_error = system_error;
        end_channel(link);
    }
}

/* Ends the link: it keeps no frames any longer. */
static void die(spc_link_t *link, int reason) {
    if (!link->is_dead) {
        end_channel(link);
        forget_all(link);
        link->is_dead = true;
        link->reason = reason;
    }
}

/* ---- bytes out: input of one write, and its result */

enum {
    WRITE_ROUNDS = 16, /* of one spc_link_write: other links want their turn */
    NO_PIECE = UINT32_MAX,
};

/* Bytes offered to one write. */
typedef struct offer {
    spc_frame_piece_t pieces[SPC_CHANNEL_PIECES_MAX];
    uint32_t count;
    uint32_t control; /* which piece is link->control; or NO_PIECE */
    size_t bytes;
} offer_t;

static bool owes_along(const spc_link_t *link) {
    return link->unsent != NULL
           && (link->untold_frames >= SPC_LINK_TAKE_ALONG_FRAMES
               || link->untold_bytes >= SPC_LINK_TAKE_ALONG_BYTES);
}

/* The last frame that precedes the bytes written now. */
static uint64_t last_before(const spc_link_t *link) {
    return link->unsent == NULL ? link->sequence : link->unsent->sequence - (link->unsent_at == 0);
}

/* A greeting or an acknowledgement, if one is due: it covers frames received until now. */
static void make_control(spc_link_t *link) {
    bool acknowledges = link->is_greeted && (link->owes_acknowledge || owes_along(link));
    if (link->has_control || (link->has_greeted && !acknowledges)) {
        return;
    }
    const spc_frame_t frame = {
        .kind = link->has_greeted ? SPC_FRAME_ACKNOWLEDGE : SPC_FRAME_HELLO,
        .job = link->options.job,
        .total_bytes = link->received,
        .offset = link->has_greeted ? last_before(link) : 0,
    };
    spc_frame_write_header(&frame, NULL, 0, link->control);
    link->has_control = link->has_greeted = true;
    link->control_at = 0;
    link->owes_acknowledge = false;
    link->untold_frames = link->untold_bytes = 0;
    link->counts.sent[frame.kind].frames++;
    link->counts.sent[frame.kind].bytes += SPC_FRAME_HEADER_BYTES;
}

static void offer_piece(offer_t *offer, const unsigned char *start, size_t length_bytes) {
    offer->pieces[offer->count++] = (spc_frame_piece_t){start, length_bytes};
    offer->bytes += length_bytes;
}

static void offer_control(const spc_link_t *link, offer_t *offer) {
    if (link->has_control) {
        offer->control = offer->count;
        offer_piece(offer, link->control + link->control_at, SPC_FRAME_HEADER_BYTES - link->control_at);
    }
}

/* Skips the first `at` bytes. */
static void offer_entry(offer_t *offer, const spc_link_entry_t *entry, size_t at) {
    if (at < entry->own_bytes) {
        offer_piece(offer, entry->own + at, entry->own_bytes - at);
        at = entry->own_bytes;
    }
    size_t all = entry_bytes(entry);
    if (at < all) {
        offer_piece(offer, spc_link_body_start(entry->shared) + (at - entry->own_bytes), all - at);
    }
}

/* Frames never interrupt each other: first a frame that was begun, then control, then the rest. */
static void make_offer(spc_link_t *link, offer_t *offer) {
    offer->count = 0;
    offer->bytes = 0;
    offer->control = NO_PIECE;
    make_control(link);
    const spc_link_entry_t *entry = link->is_greeted ? link->unsent : NULL;
    if (entry != NULL && link->unsent_at > 0) {
        offer_entry(offer, entry, link->unsent_at);
        entry = entry->next;
    }
    offer_control(link, offer);
    for (; entry != NULL && offer->count + 2 <= SPC_CHANNEL_PIECES_MAX; entry = entry->next) {
        offer_entry(offer, entry, 0);
    }
}

static void advance_entry(spc_link_t *link, size_t bytes) {
    spc_link_entry_t *entry = link->unsent;
    link->unsent_at += bytes;
    if (link->unsent_at == entry_bytes(entry)) {
        link->unsent = entry->next;
        link->unsent_at = 0;
        if (entry->sequence > link->written) {
            link->written = entry->sequence;
        } else {
            link->counts.resent++;
        }
    }
}

static void advance(spc_link_t *link, const offer_t *offer, size_t taken_bytes) {
    for (uint32_t i = 0; i < offer->count && taken_bytes > 0; i++) {
        size_t length = offer->pieces[i].length_bytes;
        size_t bytes = length < taken_bytes ? length : taken_bytes;
        taken_bytes -= bytes;
        if (i != offer->control) {
            advance_entry(link, bytes);
        } else {
            link->control_at += bytes;
            link->has_control = link->control_at < SPC_FRAME_HEADER_BYTES;
        }
    }
}

bool spc_link_wants_write(const spc_link_t *link) {
    return link->channel != NULL
           && (link->has_control || !link->has_greeted || spc_channel_holds(link->channel)
               || (link->is_greeted && (link->unsent != NULL || link->owes_acknowledge)));
}

/* spc_link_write, unless the channel is known to be full. */
static void flush_link(spc_link_t *link) {
    for (int round = 0; round < WRITE_ROUNDS && !link->is_full && spc_link_wants_write(link); round++) {
        offer_t offer; /* only the fields that make_offer fills: this is on the path of every small message */
        make_offer(link, &offer);
        size_t taken_bytes = 0;
        int status = spc_channel_write(link->channel, offer.pieces, offer.count, &taken_bytes);
        if (status == SPC_EAGAIN) {
            link->is_full = true;
        } else if (status != SPC_OK) {
            break_link(link, status, errno);
        } else {
            link->counts.writes++;
            link->wrote_ns = link->options.now_ns();
            link->is_full = taken_bytes < offer.bytes || spc_channel_holds(link->channel);
            advance(link, &offer, taken_bytes);
        }
    }
}

void spc_link_write(spc_link_t *link) {
    link->is_full = false;
    flush_link(link);
}

/* ---- sending */

int spc_link_queue_shared(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count, spc_link_body_t *shared) {
    size_t copied_bytes = 0, shared_bytes = shared != NULL ? spc_link_body_length(shared) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes > SPC_FRAME_BODY_MAX - copied_bytes) {
            return SPC_EINVAL;
        }
        copied_bytes += pieces[i].length_bytes;
    }
    if (shared_bytes > SPC_FRAME_BODY_MAX - copied_bytes || frame->kind == SPC_FRAME_HELLO
        || frame->kind == SPC_FRAME_ACKNOWLEDGE) {
        return SPC_EINVAL;
    }
    if (link->is_dead) {
        return SPC_ETIMEDOUT;
    }
    if (link->is_finished) {
        return SPC_ECLOSED;
    }
    uint64_t bytes = SPC_FRAME_HEADER_BYTES + copied_bytes + shared_bytes;
    if (link->counts.retained_bytes + bytes > link->options.retained_max) {
        return SPC_EAGAIN;
    }
    return make_entry(link, frame, pieces, count, shared, copied_bytes);
}

int spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                   uint32_t count) {
    return spc_link_queue_shared(link, frame, pieces, count, NULL);
}

int spc_link_send(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                  uint32_t count) {
    int status = spc_link_queue_shared(link, frame, pieces, count, NULL);
    if (status == SPC_OK) {
        flush_link(link);
    }
    return status;
}

int spc_link_finish(spc_link_t *link) {
    if (link->is_dead) {
        return SPC_ETIMEDOUT;
    }
    if (link->is_finished) {
        return SPC_OK;
    }
    /* Beyond retained_max if need be: this frame is one header, and the last. */
    const spc_frame_t frame = {.kind = SPC_FRAME_ACKNOWLEDGE, .flags = SPC_FRAME_LAST};
    int status = make_entry(link, &frame, NULL, 0, NULL, 0);
    if (status == SPC_OK) {
        link->is_finished = true;
        flush_link(link);
    }
    return status;
}

bool spc_link_is_flushed(const spc_link_t *link) {
    return link->first == NULL;
}

/* ---- channels */

int spc_link_attach(spc_link_t *link, spc_channel_t *channel) {
    if (link->is_dead) {
        return SPC_ETIMEDOUT;
    }
    if (link->is_feeding) {
        return SPC_EBUSY;
    }
    spc_frame_parser_t *parser;
    int status = spc_frame_parser_create(SPC_FRAME_BODY_MAX, &parser);
    if (status != SPC_OK) {
        return status;
    }
    spc_link_detach(link);
    link->channel = channel;
    link->parser = parser;
    link->owes_acknowledge = false; /* the greeting carries it */
    link->counts.attached++;
    link->attached_ns = link->wrote_ns = link->options.now_ns();
    if (!link->has_started) {
        link->has_started = true;
        link->heard_ns = link->attached_ns;
    }
    flush_link(link);
    return SPC_OK;
}

void spc_link_detach(spc_link_t *link) {
    if (link->channel != NULL) {
        link->reason = SPC_OK;
        end_channel(link);
    }
}

int spc_link_descriptor(const spc_link_t *link) {
    return link->channel != NULL ? spc_channel_descriptor(link->channel) : -1;
}

spc_link_state_t spc_link_state(const spc_link_t *link) {
    if (link->is_dead) {
        return SPC_LINK_DEAD;
    }
    if (link->channel == NULL) {
        return SPC_LINK_DOWN;
    }
    if (!link->is_greeted) {
        return SPC_LINK_GREETING;
    }
    return link->is_suspect ? SPC_LINK_SUSPECT : SPC_LINK_UP;
}

int spc_link_reason(const spc_link_t *link, int *system_error) {
    *system_error = link->system_error;
    return link->reason;
}

bool spc_link_has_ended(const spc_link_t *link) {
    return link->has_ended;
}

void spc_link_count(const spc_link_t *link, spc_link_counts_t *counts) {
    *counts = link->counts;
}

/* ---- bytes in: frames, in their order, each once */

enum {
    READ_ROUNDS = 4, /* of one spc_link_read, as long as the buffer fills up: other links want their turn */
    STOP = SPC_EAGAIN, /* status for the parser: this channel is over */
};

/* These bytes come from a stranger to the protocol, or were changed on their way. */
static int refuse(spc_link_t *link) {
    break_link(link, SPC_EINVAL, 0);
    return STOP;
}

/* The first frame of a channel: it names the last frame that the other end has, and so where to go on. */
static int take_hello(spc_link_t *link, const spc_frame_t *frame) {
    spc_link_entry_t *unsent = link->unsent;
    link->unsent = NULL; /* the other end may have frames that the last channel had begun */
    if (link->is_greeted || !forget_acknowledged(link, frame->total_bytes)) {
        link->unsent = unsent;
        return refuse(link);
    }
    link->unsent = link->first;
    link->unsent_at = 0;
    link->is_greeted = true;
    return SPC_OK;
}

/* A new frame, with the right number. */
static int take_new(spc_link_t *link, const spc_frame_t *frame, const unsigned char *body) {
    if (link->has_ended) {
        return refuse(link);
    }
    link->received = frame->sequence;
    if (link->untold_frames++ == 0) {
        link->untold_since_ns = link->heard_ns;
    }
    link->untold_bytes += SPC_FRAME_HEADER_BYTES + frame->length_bytes;
    if (link->untold_bytes >= SPC_LINK_ACKNOWLEDGE_BYTES
        || link->untold_frames >= SPC_LINK_ACKNOWLEDGE_FRAMES) {
        link->owes_acknowledge = true;
    }
    if (frame->kind == SPC_FRAME_ACKNOWLEDGE) { /* spc_link_finish waits for this acknowledgement */
        link->has_ended = true;
        link->owes_acknowledge = true;
        return SPC_OK;
    }
    int status = link->options.deliver(link->options.argument, frame, body);
    if (status != SPC_OK) {
        link->refused = status;
        return STOP;
    }
    return link->channel != NULL ? SPC_OK : STOP; /* `deliver` sent a frame, and the channel broke */
}

static int take_frame(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_link_t *link = argument;
    if (frame->job != link->options.job || link->is_greeted != (frame->kind != SPC_FRAME_HELLO)) {
        return refuse(link);
    }
    bool is_control = frame->kind == SPC_FRAME_HELLO
                      || (frame->kind == SPC_FRAME_ACKNOWLEDGE && (frame->flags & SPC_FRAME_LAST) == 0);
    if (is_control != (frame->sequence == 0)) {
        return refuse(link);
    }
    if (is_control || frame->sequence == link->received + 1) { /* duplicates do not count */
        link->counts.received[frame->kind % SPC_LINK_KINDS].frames++;
        link->counts.received[frame->kind % SPC_LINK_KINDS].bytes +=
            SPC_FRAME_HEADER_BYTES + frame->length_bytes;
    }
    if (frame->kind == SPC_FRAME_HELLO) {
        return take_hello(link, frame);
    }
    if (is_control) {
        if (frame->offset > link->received) {
            return refuse(link); /* frames are missing, and no later frame has come to show it */
        }
        return forget_acknowledged(link, frame->total_bytes) ? SPC_OK : refuse(link);
    }
    if (frame->sequence <= link->received) {
        link->counts.duplicates++;
        link->owes_acknowledge = true; /* the other end does not know it yet */
        return SPC_OK;
    }
    return frame->sequence == link->received + 1 ? take_new(link, frame, body) : refuse(link);
}

static void feed(spc_link_t *link, const unsigned char *bytes, size_t got_bytes, uint64_t heard_before_ns) {
    link->is_feeding = true;
    int status = spc_frame_parser_feed(link->parser, bytes, got_bytes, take_frame, link);
    link->is_feeding = false;
    bool is_noise = status != SPC_OK && status != STOP;
    if (link->refused != SPC_OK) {
        die(link, link->refused);
    } else if (link->channel == NULL) { /* ended during the call; its parser had to stay until now */
        spc_frame_parser_destroy(link->parser);
        link->parser = NULL;
        is_noise = link->reason == SPC_EINVAL;
    } else if (status != SPC_OK) {
        break_link(link, status, 0);
    }
    if (is_noise) {
        link->heard_ns = heard_before_ns; /* no sign of life */
    } else {
        link->is_suspect = false;
    }
}

/* False: there is no more to read for now. */
static bool read_once(spc_link_t *link) {
    size_t got_bytes = 0, room_bytes = link->options.buffer_bytes;
    unsigned char *room = spc_frame_parser_room(link->parser, &room_bytes);
    room = room != NULL ? room : link->options.buffer;
    int status = spc_channel_read(link->channel, room, room_bytes, &got_bytes);
    if (status == SPC_EAGAIN) {
        return false;
    }
    if (status != SPC_OK) {
        break_link(link, status, errno);
        return false;
    }
    link->counts.reads++;
    uint64_t heard_ns = link->heard_ns;
    link->heard_ns = link->options.now_ns();
    feed(link, room, got_bytes, heard_ns);
    return link->channel != NULL && (got_bytes == room_bytes || spc_channel_has_unread(link->channel));
}

int spc_link_read(spc_link_t *link) {
    int round = 0;
    while (link->channel != NULL && (round < READ_ROUNDS || spc_channel_has_unread(link->channel))
           && read_once(link)) {
        round++;
    }
    flush_link(link); /* acknowledgements, and frames that a greeting has freed */
    return link->refused;
}

/* ---- time */

static bool has_unread(const spc_link_t *link) {
    return link->channel != NULL && spc_channel_has_unread(link->channel);
}

/* When silence starts to count against the channel. */
static uint64_t silent_since_ns(const spc_link_t *link) {
    return link->heard_ns > link->attached_ns ? link->heard_ns : link->attached_ns;
}

/* When the next limit of silence is reached. */
static uint64_t end_of_silence_ns(const spc_link_t *link) {
    uint64_t end_ns = link->heard_ns + link->options.limits.timeout_ns;
    if (link->channel != NULL) {
        bool is_told = link->is_suspect || !link->is_greeted;
        lower(&end_ns, silent_since_ns(link)
                           + (is_told ? link->options.limits.broken_ns : link->options.limits.suspect_ns));
    }
    return end_ns;
}

/* Ends the channel or link that exceeds a limit of silence. */
static void judge_silence(spc_link_t *link, uint64_t now_ns) {
    if (link->has_started && now_ns >= link->heard_ns + link->options.limits.timeout_ns) {
        die(link, SPC_ETIMEDOUT);
    } else if (link->channel != NULL) {
        uint64_t since_ns = silent_since_ns(link);
        if (now_ns >= since_ns + link->options.limits.broken_ns) {
            break_link(link, SPC_ETIMEDOUT, 0);
        } else {
            link->is_suspect = link->is_greeted && now_ns >= since_ns + link->options.limits.suspect_ns;
        }
    }
}

spc_link_state_t spc_link_tick(spc_link_t *link, uint64_t now_ns) {
    if (link->channel != NULL && (has_unread(link) || now_ns >= end_of_silence_ns(link))) {
        spc_link_read(link); /* no descriptor shows unread bytes; or this end has slept, while others came */
    }
    if (!link->is_dead) {
        judge_silence(link, now_ns);
    }
    if (link->is_greeted) {
        bool is_late =
            link->untold_frames > 0 && now_ns >= link->untold_since_ns + link->options.limits.acknowledge_ns;
        if (is_late || now_ns >= link->wrote_ns + link->options.limits.heartbeat_ns) {
            link->owes_acknowledge = true;
        }
        flush_link(link);
    }
    return spc_link_state(link);
}

uint64_t spc_link_deadline_ns(const spc_link_t *link) {
    if (link->is_dead || !link->has_started) {
        return SPC_NO_DEADLINE;
    }
    uint64_t deadline_ns = has_unread(link) ? 0 : end_of_silence_ns(link);
    if (link->is_greeted && !link->is_full) {
        lower(&deadline_ns, link->wrote_ns + link->options.limits.heartbeat_ns);
        if (link->untold_frames > 0) {
            lower(&deadline_ns, link->untold_since_ns + link->options.limits.acknowledge_ns);
        }
    }
    return deadline_ns;
}
