/* SPDX-License-Identifier: MIT */
/* inbox_box: the inbox of node 0, and the outboxes of all nodes, in one process; for tests of an inbox alone. */
#ifndef INBOX_BOX_H
#define INBOX_BOX_H

#include "check.h"

#include "base/spc_error.h"
#include "comm/spc_comm.h"
#include "message/spc_inbox.h"
#include "message/spc_outbox.h"

#define NODES_MAX 70

typedef struct office { /* node 0 receives; the outboxes of all */
    int descriptor;
    spc_segment_t segment;
    spc_status_shared_t *status;
    spc_event_shared_t *events;
    spc_inbox_t *inbox;
    spc_outbox_t *outbox[NODES_MAX];
} office_t;

static inline void open_office(office_t *office, spc_config_t config) {
    spc_segment_plan_t plan;
    uint64_t size_bytes;
    config.features = spc_platform_features(0);
    config.ring_bytes = config.ring_bytes != 0 ? config.ring_bytes : 8192;
    CHECK_OK(spc_comm_plan(&config, &plan));
    CHECK_OK(spc_segment_create(&plan, &office->descriptor, &size_bytes));
    CHECK_OK(spc_segment_attach(&office->segment, office->descriptor));
    office->status = spc_segment_part(&office->segment, SPC_REGION_STATUS, 0);
    office->events = spc_segment_part(&office->segment, SPC_REGION_EVENT, 0);
    const spc_inbox_options_t inbox = {
        &office->segment, office->status, office->events, 0, NULL, NULL, NULL, NULL};
    CHECK_OK(spc_inbox_create(&inbox, &office->inbox));
    for (uint32_t i = 0; i < config.nodes; i++) {
        const spc_outbox_options_t outbox = {
            &office->segment, office->status, office->events, i, NULL, false, NULL};
        CHECK_OK(spc_outbox_create(&outbox, &office->outbox[i]));
    }
}

static inline void close_office(office_t *office) {
    for (uint32_t i = 0; i < office->segment.config->nodes; i++) {
        spc_outbox_destroy(office->outbox[i]);
    }
    spc_inbox_destroy(office->inbox);
    spc_segment_detach(&office->segment);
    close(office->descriptor);
}

static unsigned char content[100000];

/* Its bytes are all the tag. */
static inline void post(office_t *office, int source, uint16_t context, int32_t tag, uint64_t bytes) {
    const int32_t to = 0;
    const spc_payload_t payload = {.data = content, .data_bytes = bytes};
    memset(content, tag, bytes);
    CHECK_OK(spc_outbox_send(office->outbox[source], &to, 1, context, tag, &payload));
}

static inline int take(office_t *office, uint16_t context, int32_t source, int32_t tag,
                       spc_message_t *message) {
    const spc_match_t match = {source, tag, context, NULL};
    return spc_inbox_take(office->inbox, &match, message);
}

static inline void check_message(const spc_message_t *message, int32_t source, int32_t tag, uint64_t bytes) {
    CHECK_EQ(message->source, source);
    CHECK_EQ(message->tag, tag);
    CHECK_EQ_U(message->length_bytes, bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        CHECK_EQ(message->bytes[i], (unsigned char)tag);
    }
}

#endif
