/* SPDX-License-Identifier: MIT */
/*
 * spc_link: one end of a stream of frames that outlives its connections.
 *
 * Each frame gets a number and is kept until the other end has acknowledged it. When a channel breaks, the owner
 * attaches a new one: both ends report in a HELLO the last frame that they received, and go on behind it. So every
 * frame is delivered once and in order, however often connections break; a duplicate is known by its number. A wrong
 * byte, a wrong sum, a gap or a nonsensical greeting end the channel, never the link. Only silence for `timeout_ns`
 * ends the link: then it is dead, and stays dead.
 *
 * No function here waits, or reads any clock but the one given. The owner calls spc_link_read when the channel's
 * descriptor is readable, spc_link_write when it is writable and spc_link_wants_write, and spc_link_tick at
 * spc_link_deadline_ns or later; after each it may look at spc_link_state. One thread at a time for each link (the
 * owner has a lock); `deliver` runs inside spc_link_read and, where the channel has unread bytes or after a long
 * silence, spc_link_tick; it may call spc_link_send and spc_link_queue, of this link too.
 *
 * Channels belong to the link from spc_link_attach on. A link that is down keeps frames to send, up to its limit.
 */
#ifndef SPC_LINK_H
#define SPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spc_clock.h"
#include "net/link/spc_channel.h"
#include "net/wire/spc_frame.h"
#include "net/wire/spc_pool.h"

typedef struct spc_link spc_link_t;

typedef enum spc_link_state {
    SPC_LINK_DOWN,     /* needs a channel: spc_link_attach */
    SPC_LINK_GREETING, /* has one, and waits for the other's HELLO */
    SPC_LINK_UP,
    SPC_LINK_SUSPECT, /* up, but nothing has been heard for suspect_ns */
    SPC_LINK_DEAD,    /* silence for timeout_ns, or `deliver` refused: for ever */
} spc_link_state_t;

/* Called for each new frame, in order; not for HELLO and ACKNOWLEDGE. The body is valid until it returns, and starts at
 * a multiple of 16. A status other than SPC_OK: the link is dead, and spc_link_read returns that status. */
typedef int spc_link_deliver_t(void *argument, const spc_frame_t *frame, const unsigned char *body);

#define SPC_LINK_TIMEOUT_NS UINT64_C(30000000000)

/* A field that is 0 takes the value in brackets. */
typedef struct spc_link_limits {
    uint64_t heartbeat_ns;   /* [1 s] silence after which an ACKNOWLEDGE shows that this end is alive */
    uint64_t suspect_ns;     /* [5 s] nothing heard: SPC_LINK_SUSPECT */
    uint64_t broken_ns;      /* [10 s] nothing heard: the channel counts as broken */
    uint64_t timeout_ns;     /* [30 s] nothing heard: SPC_LINK_DEAD; counts from the first attach on */
    uint64_t acknowledge_ns; /* [40 ms] the longest a received frame goes unacknowledged */
} spc_link_limits_t;

/* The limits of a link that is dead after `timeout_ns`: heartbeat and suspicion come sooner if that is short. */
spc_link_limits_t spc_link_limits(uint64_t timeout_ns);

/* A field that is 0 takes the value in brackets. */
typedef struct spc_link_options {
    uint32_t job;
    spc_clock_fn now_ns; /* [spc_clock_now_ns] */
    spc_link_deliver_t *deliver;
    void *argument;
    spc_link_limits_t limits;
    uint64_t retained_max; /* [16 MiB] bytes of frames not yet acknowledged, headers included */
    unsigned char *buffer; /* reading buffer, free between calls; links of one thread may share it */
    size_t buffer_bytes; /* [64 KiB of the link's own] */
    spc_pool_t *pool; /* [the link's own] memory for long frames; links of one thread may share it */
} spc_link_options_t;

/* SPC_ENOMEM; SPC_EINVAL: no deliver. */
int spc_link_create(const spc_link_options_t *options, spc_link_t **link);
void spc_link_destroy(spc_link_t *link); /* its channel, too; NULL is allowed */

/* ---- channels */

/* Goes on over this channel; closes one attached before. SPC_ENOMEM; SPC_ETIMEDOUT: the link is dead; SPC_EBUSY: not
 * allowed from `deliver`. If it fails, the channel is still the caller's. */
int spc_link_attach(spc_link_t *link, spc_channel_t *channel);
void spc_link_detach(spc_link_t *link); /* closes it: SPC_LINK_DOWN */

spc_link_state_t spc_link_state(const spc_link_t *link);

/* The attached channel's, or -1. */
int spc_link_descriptor(const spc_link_t *link);

/* Why the last channel ended, or the link: SPC_ESYSTEM (`*system_error` is errno), SPC_EINVAL (wrong bytes),
 * SPC_EVERSION, SPC_ETIMEDOUT (silence), the status of `deliver`; SPC_OK: not yet, or detached. */
int spc_link_reason(const spc_link_t *link, int *system_error);

/* ---- sending: never waits */

/* Queues a frame with this body, which is copied, and writes at once if nothing is queued before it. `job`, `sequence`
 * and `length_bytes` of the frame are set here. SPC_OK also while the link is down. SPC_EAGAIN: retained_max, nothing
 * was queued; SPC_EINVAL: a body beyond SPC_FRAME_BODY_MAX, or a kind of the link's own; SPC_ETIMEDOUT: the link is
 * dead; SPC_ECLOSED: after spc_link_finish; SPC_ENOMEM. A channel that breaks here is no error: check the state. */
int spc_link_send(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                  uint32_t count);

/* The same without writing: for several frames in a row, and one spc_link_write behind them. */
int spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                   uint32_t count);

/* Memory from which several links of one pool may send without copying it. */
typedef struct spc_link_body spc_link_body_t;

int spc_link_body_create(spc_pool_t *pool, size_t length_bytes, spc_link_body_t **body); /* SPC_ENOMEM */
/* At a multiple of 16; written before it is queued. */
unsigned char *spc_link_body_start(spc_link_body_t *body);
size_t spc_link_body_length(const spc_link_body_t *body);
void spc_link_body_release(spc_link_body_t *body); /* the last one frees it; NULL is allowed */

/* Queues a frame whose body is these pieces, copied, and then all of `shared`, of which the link takes a reference. */
int spc_link_queue_shared(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count, spc_link_body_t *shared);

/* Announces that nothing more will be sent. Once spc_link_is_flushed, all frames have arrived, this one too. */
int spc_link_finish(spc_link_t *link);
bool spc_link_is_flushed(const spc_link_t *link); /* all sent frames have been acknowledged */
bool spc_link_has_ended(
    const spc_link_t *link); /* the other end has finished, and all of its frames were delivered */

/* ---- moving bytes */

/* Delivers frames that are there: one read of the channel, a few if they are full. SPC_OK also when nothing was there,
 * and when the channel has broken (check the state); otherwise the status of `deliver`. */
int spc_link_read(spc_link_t *link);

/* Writes until nothing is queued or the channel has no room. */
void spc_link_write(spc_link_t *link);
bool spc_link_wants_write(const spc_link_t *link); /* wait until the descriptor is writable */

/* Sends heartbeats and acknowledgements that are due, and applies the limits of silence. Returns the state. */
spc_link_state_t spc_link_tick(spc_link_t *link, uint64_t now_ns);
uint64_t
spc_link_deadline_ns(const spc_link_t *link); /* when to call it next; SPC_NO_DEADLINE: not by itself */

/* ---- counting */

enum { SPC_LINK_KINDS = 16 }; /* beyond the largest spc_frame_kind_t */

/* Frames and bytes (headers included) by kind. Resent frames and duplicates count in their own fields only. */
typedef struct spc_link_counts {
    struct {
        uint64_t frames, bytes;
    } sent[SPC_LINK_KINDS], received[SPC_LINK_KINDS];
    uint64_t resent, duplicates;
    uint64_t attached, broken; /* channels */
    uint64_t reads, writes; /* calls of the channel that moved bytes */
    uint64_t retained_bytes; /* now */
    uint64_t retained_bytes_worst; /* ever */
} spc_link_counts_t;

void spc_link_count(const spc_link_t *link, spc_link_counts_t *counts);

#endif
