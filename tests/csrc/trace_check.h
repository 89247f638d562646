/* SPDX-License-Identifier: MIT */
/*
 * trace_check: do the traces of all nodes tell one story? Each message that was taken was sent, once, with the same
 * tag, context and length, by whom the receiver says, and before; and of each pair of nodes the numbers follow each
 * other.
 */
#ifndef TRACE_CHECK_H
#define TRACE_CHECK_H

#include "check.h"

#include "segment/spc_segment.h"
#include "segment/spc_trace.h"

#define TRACE_SLACK_NS UINT64_C(20000) /* two threads' anchors, taken while others had their cores */

static inline spc_trace_reader_t trace_of(const spc_segment_t *segment, uint32_t rank) {
    const spc_trace_shared_t *shared = spc_segment_part(segment, SPC_REGION_TRACE, rank);
    spc_trace_reader_t reader;
    CHECK(shared != NULL);
    spc_trace_look(&reader, shared, spc_segment_stride(segment, SPC_REGION_TRACE));
    CHECK_EQ_U(reader.first, 1); /* else the test is too long for its ring */
    return reader;
}

typedef struct trace_send {
    spc_trace_event_t event;
    uint64_t time_ns;
} trace_send_t;

/* The messages that `source` has sent to `destination`, in order; returns their number. */
static inline uint64_t trace_sends(const spc_segment_t *segment, uint32_t source, uint32_t destination,
                                   trace_send_t **sends) {
    const spc_trace_reader_t reader = trace_of(segment, source);
    uint64_t found = 0;
    *sends = malloc((reader.count + 1) * sizeof **sends);
    CHECK(*sends != NULL);
    for (uint64_t number = 1; number <= reader.count; number++) {
        spc_trace_event_t *event = &(*sends)[found].event;
        CHECK(spc_trace_read(&reader, number, event, &(*sends)[found].time_ns));
        if (event->kind == SPC_TRACE_SEND && event->peer == (int32_t)destination) {
            CHECK_EQ_U(event->number, found + 1);
            found++;
        }
    }
    return found;
}

/* Returns how many messages were taken. */
static inline uint64_t trace_check_pair(const spc_segment_t *segment, uint32_t source, uint32_t destination) {
    trace_send_t *sends;
    spc_trace_event_t event;
    uint64_t time_ns;
    const uint64_t sent = trace_sends(segment, source, destination, &sends);
    const spc_trace_reader_t reader = trace_of(segment, destination);
    uint64_t taken = 0;
    for (uint64_t number = 1; number <= reader.count; number++) {
        CHECK(spc_trace_read(&reader, number, &event, &time_ns));
        if (event.kind != SPC_TRACE_RECEIVE || event.peer != (int32_t)source) {
            continue;
        }
        CHECK(event.number >= 1 && event.number <= sent);
        const spc_trace_event_t *send = &sends[event.number - 1].event;
        CHECK_EQ(event.tag, send->tag);
        CHECK_EQ(event.context, send->context);
        CHECK_EQ_U(event.bytes, send->bytes);
        CHECK(time_ns + TRACE_SLACK_NS >= sends[event.number - 1].time_ns);
        taken++;
    }
    free(sends);
    return taken;
}

static inline uint64_t trace_check(const spc_segment_t *segment) {
    uint64_t taken = 0;
    for (uint32_t source = 0; source < segment->config->nodes; source++) {
        for (uint32_t destination = 0; destination < segment->config->nodes; destination++) {
            taken += trace_check_pair(segment, source, destination);
        }
    }
    return taken;
}

#endif
