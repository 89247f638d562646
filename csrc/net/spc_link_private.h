/* SPDX-License-Identifier: MIT */
/*
 * spc_link_private: the inside of a link, for its files only: spc_link.c (life, channels, time), spc_link_queue.c
 * (frames that wait, or are kept), spc_link_write.c and spc_link_read.c (bytes out and in).
 *
 * What is kept is one list, by number: first … (written, not acknowledged) … unsent … last. Greetings and
 * acknowledgements are not in it: there is one place for one of them, `control`, written when the channel takes it, so
 * that it says what is true then.
 */
#ifndef SPC_LINK_PRIVATE_H
#define SPC_LINK_PRIVATE_H

#include "net/spc_link.h"

enum {
    SPC_LINK_ACKNOWLEDGE_BYTES = 1 << 19, /* received and not acknowledged: do it at once */
    SPC_LINK_ACKNOWLEDGE_FRAMES = 512,
    SPC_LINK_TAKE_ALONG_BYTES = 1 << 14, /* the same, when something is being written anyway */
    SPC_LINK_TAKE_ALONG_FRAMES = 32,
};

typedef struct spc_link_entry {
    struct spc_link_entry *next;
    uint64_t sequence;
    spc_link_body_t *shared; /* what follows `own`; or NULL */
    uint32_t own_bytes;      /* the header and what was copied */
    unsigned char own[];
} spc_link_entry_t;

struct spc_link {
    spc_link_options_t options;
    unsigned char *own_buffer; /* NULL: the buffer is the owner's */
    spc_pool_t own_pool;
    spc_link_counts_t counts;

    /* The channel: all of this begins anew with each. */
    spc_channel_t *channel;
    spc_frame_parser_t *parser;
    bool is_greeted;  /* the other's HELLO has come */
    bool has_greeted; /* ours is in `control`, or written */
    bool is_full;     /* the channel took less than there was; until spc_link_write */
    bool is_suspect;
    uint64_t attached_ns;

    /* Why the last one ended, and whether the link has. */
    bool is_dead;
    int reason, system_error;

    /* Sending. */
    spc_link_entry_t *first, *last, *unsent;
    size_t unsent_at;       /* bytes of `unsent` that are written */
    uint64_t sequence;      /* of the last frame queued */
    uint64_t written;       /* the largest whose bytes were all taken by some channel */
    uint64_t acknowledged;  /* by the other end */
    unsigned char control[SPC_FRAME_HEADER_BYTES];
    size_t control_at;
    bool has_control;
    bool owes_acknowledge; /* write one as soon as there is room */
    bool is_finished;

    /* Receiving. */
    bool is_feeding; /* inside the parser, which must stay */
    bool has_ended;
    int refused; /* what `deliver` returned */
    uint64_t received; /* the last number */
    uint64_t untold_frames, untold_bytes, untold_since_ns;

    /* Time. */
    bool has_started;
    uint64_t heard_ns, wrote_ns;
};

static inline size_t spc_link_entry_bytes(const spc_link_entry_t *entry) {
    return entry->own_bytes + (entry->shared != NULL ? spc_link_body_length(entry->shared) : 0);
}

/* The channel is over; the link goes on. */
void spc_link_break(spc_link_t *link, int reason, int system_error);

/* The link is over: nothing is kept any longer. */
void spc_link_die(spc_link_t *link, int reason);

/* Frees what the other end has, up to this number. False: it cannot have that. */
bool spc_link_forget_acknowledged(spc_link_t *link, uint64_t sequence);
void spc_link_forget_all(spc_link_t *link);

/* spc_link_write, unless the channel is known to be full. */
void spc_link_flush(spc_link_t *link);

#endif
