/* SPDX-License-Identifier: MIT */
/* The life of a link: its channels, and what time does to it. */
#include "net/spc_link_private.h"

#include <stdlib.h>

#include "base/spc_error.h"

#define MS UINT64_C(1000000)

enum { BUFFER_BYTES = 65536, RETAINED_MAX = 1 << 24 };

static void set_default(uint64_t *value, uint64_t otherwise) {
    *value = *value != 0 ? *value : otherwise;
}

static void set_defaults(spc_link_options_t *options) {
    options->now_ns = options->now_ns != NULL ? options->now_ns : spc_clock_now_ns;
    set_default(&options->heartbeat_ns, 1000 * MS);
    set_default(&options->suspect_ns, 5000 * MS);
    set_default(&options->broken_ns, 10000 * MS);
    set_default(&options->timeout_ns, 30000 * MS);
    set_default(&options->acknowledge_ns, 40 * MS);
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
        spc_link_forget_all(link);
        spc_pool_fini(&link->own_pool);
        free(link->own_buffer);
        free(link);
    }
}

/* ---- channels */

static void end_channel(spc_link_t *link) {
    spc_channel_destroy(link->channel);
    link->channel = NULL;
    link->is_greeted = link->has_greeted = link->has_control = link->is_full = link->is_suspect = false;
    if (!link->is_feeding) {
        spc_frame_parser_destroy(link->parser);
        link->parser = NULL;
    }
}

void spc_link_break(spc_link_t *link, int reason, int system_error) {
    if (link->channel != NULL) {
        link->counts.broken++;
        link->reason = reason;
        link->system_error = system_error;
        end_channel(link);
    }
}

void spc_link_die(spc_link_t *link, int reason) {
    if (!link->is_dead) {
        end_channel(link);
        spc_link_forget_all(link);
        link->is_dead = true;
        link->reason = reason;
    }
}

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
    link->owes_acknowledge = false; /* the greeting says it */
    link->counts.attached++;
    link->attached_ns = link->wrote_ns = link->options.now_ns();
    if (!link->has_started) {
        link->has_started = true;
        link->heard_ns = link->attached_ns;
    }
    spc_link_flush(link);
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

/* ---- time */

/* From when on silence counts against the channel. */
static uint64_t silent_since_ns(const spc_link_t *link) {
    return link->heard_ns > link->attached_ns ? link->heard_ns : link->attached_ns;
}

static void lower(uint64_t *deadline_ns, uint64_t to_ns) {
    *deadline_ns = *deadline_ns < to_ns ? *deadline_ns : to_ns;
}

/* When the next limit of silence is reached. */
static uint64_t end_of_silence_ns(const spc_link_t *link) {
    uint64_t end_ns = link->heard_ns + link->options.timeout_ns;
    if (link->channel != NULL) {
        bool is_told = link->is_suspect || !link->is_greeted;
        lower(&end_ns,
              silent_since_ns(link) + (is_told ? link->options.broken_ns : link->options.suspect_ns));
    }
    return end_ns;
}

/* What is over a limit of silence. */
static void judge_silence(spc_link_t *link, uint64_t now_ns) {
    if (link->has_started && now_ns >= link->heard_ns + link->options.timeout_ns) {
        spc_link_die(link, SPC_ETIMEDOUT);
    } else if (link->channel != NULL) {
        uint64_t since_ns = silent_since_ns(link);
        if (now_ns >= since_ns + link->options.broken_ns) {
            spc_link_break(link, SPC_ETIMEDOUT, 0);
        } else {
            link->is_suspect = link->is_greeted && now_ns >= since_ns + link->options.suspect_ns;
        }
    }
}

spc_link_state_t spc_link_tick(spc_link_t *link, uint64_t now_ns) {
    if (link->channel != NULL && now_ns >= end_of_silence_ns(link)) {
        spc_link_read(link); /* this end may have slept for long, and what has come waits to be read */
    }
    if (!link->is_dead) {
        judge_silence(link, now_ns);
    }
    if (link->is_greeted) {
        bool is_late =
            link->untold_frames > 0 && now_ns >= link->untold_since_ns + link->options.acknowledge_ns;
        if (is_late || now_ns >= link->wrote_ns + link->options.heartbeat_ns) {
            link->owes_acknowledge = true;
        }
        spc_link_flush(link);
    }
    return spc_link_state(link);
}

uint64_t spc_link_deadline_ns(const spc_link_t *link) {
    if (link->is_dead || !link->has_started) {
        return SPC_NO_DEADLINE;
    }
    uint64_t deadline_ns = end_of_silence_ns(link);
    if (link->is_greeted && !link->is_full) {
        lower(&deadline_ns, link->wrote_ns + link->options.heartbeat_ns);
        if (link->untold_frames > 0) {
            lower(&deadline_ns, link->untold_since_ns + link->options.acknowledge_ns);
        }
    }
    return deadline_ns;
}
