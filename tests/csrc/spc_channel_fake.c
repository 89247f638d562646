/* SPDX-License-Identifier: MIT */
/* Two ends in one process: a queue of chunks for each direction, each with the time when it is there. */
#include "spc_channel_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

enum { FAKE_ROOM_BYTES = 65536 };

typedef struct fake_chunk {
    struct fake_chunk *next;
    uint64_t there_ns;
    size_t begin, end; /* of the bytes not yet read */
    unsigned char bytes[];
} fake_chunk_t;

typedef struct fake_end {
    spc_channel_t channel; /* first: the two addresses are one */
    struct fake_wire *wire;
    fake_chunk_t *first, *last; /* on their way to this end */
    size_t coming_bytes;
} fake_end_t;

typedef struct fake_wire {
    spc_channel_fake_options_t options;
    uint64_t random;
    bool is_cut, is_blackhole;
    int users;
    fake_end_t ends[2];
} fake_wire_t;

/* xorshift64*: a state other than 0. */
static uint64_t draw(fake_wire_t *wire) {
    uint64_t x = wire->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    wire->random = x;
    return x * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

static bool happens(fake_wire_t *wire, uint32_t per_mille) {
    return per_mille > 0 && draw(wire) % 1000 < per_mille;
}

static fake_end_t *other_of(fake_end_t *end) {
    return end == &end->wire->ends[0] ? &end->wire->ends[1] : &end->wire->ends[0];
}

static void drop_chunks(fake_end_t *end) {
    while (end->first != NULL) {
        fake_chunk_t *chunk = end->first;
        end->first = chunk->next;
        free(chunk);
    }
    end->last = NULL;
    end->coming_bytes = 0;
}

static void cut(fake_wire_t *wire) {
    wire->is_cut = true;
    drop_chunks(&wire->ends[0]);
    drop_chunks(&wire->ends[1]);
}

/* Before each read or write that would move bytes. */
static int meet_fate(fake_wire_t *wire) {
    if (!wire->is_cut && happens(wire, wire->options.cut)) {
        cut(wire);
    }
    if (happens(wire, wire->options.blackhole)) {
        wire->is_blackhole = true;
    }
    if (wire->is_cut) {
        errno = ECONNRESET;
        return SPC_ESYSTEM;
    }
    return SPC_OK;
}

static size_t part_of(fake_wire_t *wire, size_t length_bytes) {
    if (!wire->options.splits || length_bytes < 2 || draw(wire) % 2 == 0) {
        return length_bytes;
    }
    /* Half of them very short: headers are cut as well as bodies. */
    size_t bound = draw(wire) % 2 == 0 && length_bytes > 80 ? 80 : length_bytes;
    return 1 + (size_t)(draw(wire) % bound);
}

static void flip(fake_wire_t *wire, unsigned char *bytes, size_t length_bytes) {
    if (happens(wire, wire->options.flip)) {
        uint64_t bit = draw(wire) % (8 * length_bytes);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void forget_bytes(fake_end_t *end, size_t length_bytes) {
    fake_chunk_t *chunk = end->first;
    chunk->begin += length_bytes;
    end->coming_bytes -= length_bytes;
    if (chunk->begin == chunk->end) {
        end->first = chunk->next;
        end->last = end->first != NULL ? end->last : NULL;
        free(chunk);
    }
}

static int fake_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    fake_end_t *end = (fake_end_t *)channel;
    fake_wire_t *wire = end->wire;
    uint64_t now_ns = wire->options.now_ns();
    if (!wire->is_cut && (end->first == NULL || end->first->there_ns > now_ns || wire->is_blackhole)) {
        return SPC_EAGAIN;
    }
    int status = meet_fate(wire);
    if (status != SPC_OK) {
        return status;
    }
    size_t got = 0, limit = part_of(wire, room_bytes);
    while (got < limit && end->first != NULL && end->first->there_ns <= now_ns) {
        fake_chunk_t *chunk = end->first;
        size_t left = chunk->end - chunk->begin;
        size_t take = left < limit - got ? left : limit - got;
        memcpy((unsigned char *)buffer + got, chunk->bytes + chunk->begin, take);
        got += take;
        forget_bytes(end, take);
    }
    flip(wire, buffer, got);
    *got_bytes = got;
    return SPC_OK;
}

/* Queues the first `take` bytes of the pieces for that end. A chunk that arrives before an earlier one waits for it. */
static int send_bytes(fake_end_t *to, const spc_frame_piece_t *pieces, uint32_t count, size_t take) {
    fake_wire_t *wire = to->wire;
    fake_chunk_t *chunk = malloc(sizeof *chunk + take);
    if (chunk == NULL) {
        return SPC_EAGAIN;
    }
    const uint64_t most_ns = wire->options.delay_max_ns;
    const uint64_t delay_ns = most_ns > 0 ? draw(wire) % most_ns : 0;
    *chunk = (fake_chunk_t){.there_ns = wire->options.now_ns() + delay_ns, .end = take};
    size_t at = 0;
    for (uint32_t i = 0; i < count && at < take; i++) {
        size_t length = pieces[i].length_bytes < take - at ? pieces[i].length_bytes : take - at;
        if (length > 0) { /* an empty piece may have no address */
            memcpy(chunk->bytes + at, pieces[i].start, length);
        }
        at += length;
    }
    if (to->last != NULL) {
        to->last->next = chunk;
    } else {
        to->first = chunk;
    }
    to->last = chunk;
    to->coming_bytes += take;
    return SPC_OK;
}

static int fake_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                      size_t *taken_bytes) {
    fake_end_t *end = (fake_end_t *)channel, *to = other_of(end);
    fake_wire_t *wire = end->wire;
    size_t room =
        wire->options.room_bytes > to->coming_bytes ? wire->options.room_bytes - to->coming_bytes : 0;
    size_t all = 0;
    for (uint32_t i = 0; i < count && i < SPC_CHANNEL_PIECES_MAX; i++) {
        all += pieces[i].length_bytes;
    }
    if (!wire->is_cut && room == 0) {
        return SPC_EAGAIN;
    }
    int status = meet_fate(wire);
    if (status != SPC_OK) {
        return status;
    }
    size_t take = part_of(wire, all < room ? all : room);
    if (!wire->is_blackhole) {
        status = send_bytes(to, pieces, count, take);
    }
    *taken_bytes = take;
    return status;
}

static int fake_descriptor(const spc_channel_t *channel) {
    (void)channel;
    return -1;
}

static void fake_destroy(spc_channel_t *channel) {
    fake_wire_t *wire = ((fake_end_t *)channel)->wire;
    cut(wire);
    if (--wire->users == 0) {
        free(wire);
    }
}

static const spc_channel_methods_t fake_methods = {fake_read,    fake_write, fake_descriptor,
                                                   fake_destroy, NULL,       NULL};

int spc_channel_fake_create(const spc_channel_fake_options_t *options, spc_channel_t *ends[2]) {
    fake_wire_t *wire = calloc(1, sizeof *wire);
    if (wire == NULL) {
        return SPC_ENOMEM;
    }
    wire->options = *options;
    wire->options.room_bytes = options->room_bytes != 0 ? options->room_bytes : FAKE_ROOM_BYTES;
    wire->random = options->seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    wire->users = 2;
    for (int i = 0; i < 2; i++) {
        wire->ends[i].channel.methods = &fake_methods;
        wire->ends[i].wire = wire;
        ends[i] = &wire->ends[i].channel;
    }
    return SPC_OK;
}

void spc_channel_fake_cut(spc_channel_t *end) {
    cut(((fake_end_t *)end)->wire);
}

void spc_channel_fake_blackhole(spc_channel_t *end) {
    ((fake_end_t *)end)->wire->is_blackhole = true;
}

size_t spc_channel_fake_coming(const spc_channel_t *end) {
    return ((const fake_end_t *)end)->coming_bytes;
}
