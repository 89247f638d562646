/* SPDX-License-Identifier: MIT */
#include "message/spc_outbox_queue.h"

#include <stdlib.h>

#include "base/spc_error.h"

void spc_outbox_queue_init(spc_outbox_queue_t *queue) {
    *queue = (spc_outbox_queue_t){.tail = &queue->head};
}

int spc_outbox_queue_push(spc_outbox_queue_t *queue, const spc_waiting_t *waiting, spc_queue_total_t *total) {
    spc_waiting_t *item = malloc(sizeof(*item));
    if (item == NULL) {
        return SPC_ENOMEM;
    }
    *item = *waiting;
    item->next = NULL;
    *queue->tail = item;
    queue->tail = &item->next;
    queue->length++;
    total->waiting++;
    total->bytes += sizeof(*item);
    if (item->copy != NULL) {
        queue->copies++;
        item->copy->users++;
    }
    return SPC_OK;
}

void spc_outbox_queue_pop(spc_outbox_queue_t *queue, spc_queue_total_t *total) {
    spc_waiting_t *item = queue->head;
    queue->head = item->next;
    if (queue->head == NULL) {
        queue->tail = &queue->head;
    }
    queue->length--;
    total->waiting--;
    total->bytes -= sizeof(*item);
    queue->copies -= item->copy != NULL;
    spc_copy_release(item->copy, total);
    free(item);
}

spc_copy_t *spc_copy_make(const spc_payload_t *payload, uint64_t from, spc_queue_total_t *total) {
    uint64_t bytes = payload->meta_bytes + payload->data_bytes - from;
    spc_copy_t *copy = malloc(sizeof(*copy) + bytes);
    if (copy != NULL) {
        copy->users = 1;
        copy->from = from;
        copy->bytes = bytes;
        spc_payload_copy(payload, from, bytes, copy->data);
        total->bytes += sizeof(*copy) + bytes;
    }
    return copy;
}

void spc_copy_release(spc_copy_t *copy, spc_queue_total_t *total) {
    if (copy != NULL && --copy->users == 0) {
        total->bytes -= sizeof(*copy) + copy->bytes;
        free(copy);
    }
}
