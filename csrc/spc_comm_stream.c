/* SPDX-License-Identifier: MIT */
/* Sending to a receiver that waits with a place for the data: both copy at once. See spc_outbox_stream.c. */
#include "spc_comm_private.h"

#define STREAM_BYTES (UINT64_C(1) << 19) /* shorter ones gain nothing */
#define PATIENCE_NS UINT64_C(1000000)    /* without any part: the receiver does something else */
#define IDLE_POLLS 64

static bool may_stream(const spc_node_t *node, const spc_send_call_t *call) {
    return !node->config->shared_cores && call->destination_count == 1 && call->block == NULL
           && call->counted_by == NULL && call->payload->data_bytes >= STREAM_BYTES
           && (uint32_t)call->destinations[0] != node->rank;
}

/* The receive may come a little later than the send: a hundredth of what a copy takes is spent on waiting for it. */
static bool begin(spc_node_t *node, const spc_send_call_t *call, spc_stream_t *stream) {
    const uint64_t end_ns = spc_clock_now_ns() + call->payload->data_bytes / 1024;
    for (;;) {
        pthread_mutex_lock(&node->lock);
        spc_outbox_flush(node->outbox);
        int status = spc_outbox_begin_stream(node->outbox, call->destinations[0], call->context, call->tag,
                                             call->payload, stream);
        pthread_mutex_unlock(&node->lock);
        if (status == SPC_OK || spc_clock_now_ns() >= end_ns) {
            return status == SPC_OK;
        }
        spc_cpu_relax();
    }
}

/* Sends parts until the stream is done, or held because its receiver has been slower than a byte a nanosecond. So this
 * takes no longer than a copy may take, and neither signals nor deadlines are looked at, as in a copy. */
static void send_parts(spc_node_t *node, spc_stream_t *stream) {
    const uint64_t start_ns = spc_clock_now_ns();
    uint32_t idle = 0;
    for (bool is_over = false; !is_over;) {
        if (idle >= IDLE_POLLS) {
            spc_platform_yield();
        }
        pthread_mutex_lock(&node->lock);
        const uint64_t before = stream->sent;
        spc_outbox_flush(node->outbox);
        idle = stream->sent != before ? 0 : idle + 1;
        const bool is_slow = idle >= IDLE_POLLS && spc_clock_now_ns() - start_ns > PATIENCE_NS + stream->sent;
        stream->held = !stream->done && is_slow;
        is_over = stream->done || stream->held;
        pthread_mutex_unlock(&node->lock);
        spc_cpu_relax();
    }
}

int spc_comm_stream(spc_node_t *node, const spc_send_call_t *call) {
    spc_stream_t stream;
    if (!may_stream(node, call) || !begin(node, call, &stream)) {
        return SPC_EAGAIN;
    }
    send_parts(node, &stream);
    if (stream.held) { /* only this thread writes that; another one may end the stream meanwhile */
        const uint64_t length = call->payload->meta_bytes + call->payload->data_bytes;
        spc_payload_copy(call->payload, stream.sent, length - stream.sent, spc_block_payload(stream.block));
    }
    pthread_mutex_lock(&node->lock);
    spc_outbox_end_stream(node->outbox, &stream);
    pthread_mutex_unlock(&node->lock);
    return SPC_OK;
}
