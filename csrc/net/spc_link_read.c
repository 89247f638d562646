/* SPDX-License-Identifier: MIT */
/* Bytes in: frames, in their order, each once. */
#include "net/spc_link_private.h"

#include <errno.h>

#include "base/spc_error.h"

enum {
    ROUNDS = 4, /* of one spc_link_read, as long as the buffer gets full: others want their turn */
    STOP = SPC_EAGAIN, /* to the parser: this channel is over */
};

/* These bytes come from nobody who knows the protocol, or were changed on their way. */
static int refuse(spc_link_t *link) {
    spc_link_break(link, SPC_EINVAL, 0);
    return STOP;
}

/* The first frame of a channel: what the other end has, and so where to go on. */
static int take_hello(spc_link_t *link, const spc_frame_t *frame) {
    spc_link_entry_t *unsent = link->unsent;
    link->unsent = NULL; /* what the last channel had begun does not limit what the other may have */
    if (link->is_greeted || !spc_link_forget_acknowledged(link, frame->total_bytes)) {
        link->unsent = unsent;
        return refuse(link);
    }
    link->unsent = link->first;
    link->unsent_at = 0;
    link->is_greeted = true;
    return SPC_OK;
}

/* Something new; the number was right. */
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
    if (frame->kind == SPC_FRAME_ACKNOWLEDGE) { /* spc_link_finish: it waits for this */
        link->has_ended = true;
        link->owes_acknowledge = true;
        return SPC_OK;
    }
    int status = link->options.deliver(link->options.argument, frame, body);
    if (status != SPC_OK) {
        link->refused = status;
        return STOP;
    }
    return link->channel != NULL ? SPC_OK
                                 : STOP; /* `deliver` has sent something, and the channel has broken */
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
            return refuse(link); /* frames are missing, and none has come since that would show it */
        }
        return spc_link_forget_acknowledged(link, frame->total_bytes) ? SPC_OK : refuse(link);
    }
    if (frame->sequence <= link->received) {
        link->counts.duplicates++;
        link->owes_acknowledge = true; /* the other end does not know it */
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
        spc_link_die(link, link->refused);
    } else if (link->channel == NULL) { /* ended on the way; its parser had to stay until now */
        spc_frame_parser_destroy(link->parser);
        link->parser = NULL;
        is_noise = link->reason == SPC_EINVAL;
    } else if (status != SPC_OK) {
        spc_link_break(link, status, 0);
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
        spc_link_break(link, status, errno);
        return false;
    }
    link->counts.reads++;
    uint64_t heard_ns = link->heard_ns;
    link->heard_ns = link->options.now_ns();
    feed(link, room, got_bytes, heard_ns);
    return link->channel != NULL && got_bytes == room_bytes;
}

int spc_link_read(spc_link_t *link) {
    for (int round = 0; round < ROUNDS && link->channel != NULL && read_once(link); round++) {
    }
    spc_link_flush(link); /* acknowledgements, and what a greeting has set free */
    return link->refused;
}
