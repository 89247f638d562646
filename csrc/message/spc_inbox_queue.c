/* SPDX-License-Identifier: MIT */
#include "message/spc_inbox_queue.h"

#include <stdlib.h>
#include <string.h>

void spc_inbox_queue_init(spc_inbox_queue_t *queue) {
    memset(queue, 0, sizeof(*queue));
}

void spc_inbox_queue_fini(spc_inbox_queue_t *queue) {
    spc_entry_t *entry = queue->arrivals.first;
    while (entry != NULL) {
        spc_entry_t *next = entry->next;
        if (entry->message.storage == SPC_STORED_HEAP) {
            free(entry->message.handle);
        }
        free(entry);
        entry = next;
    }
    while (queue->spare != NULL) {
        entry = queue->spare;
        queue->spare = entry->next;
        free(entry);
    }
}

spc_entry_t *spc_inbox_queue_make(spc_inbox_queue_t *queue) {
    spc_entry_t *entry = queue->spare;
    if (entry != NULL) {
        queue->spare = entry->next;
    } else {
        entry = malloc(sizeof(*entry));
    }
    if (entry != NULL) {
        entry->posted = NULL;
    }
    return entry;
}

static spc_entry_list_t *bucket_of(spc_inbox_queue_t *queue, const spc_message_t *message) {
    return &queue->tags[((uint32_t)message->tag + message->context) % SPC_TAG_BUCKETS];
}

static void link_by_arrival(spc_entry_list_t *list, spc_entry_t *entry) {
    spc_entry_t *before = list->last;
    while (before != NULL && before->message.arrival > entry->message.arrival) {
        before = before->previous;
    }
    entry->previous = before;
    entry->next = before != NULL ? before->next : list->first;
    *(before != NULL ? &before->next : &list->first) = entry;
    *(entry->next != NULL ? &entry->next->previous : &list->last) = entry;
}

static void link_by_tag(spc_entry_list_t *list, spc_entry_t *entry) {
    spc_entry_t *before = list->last;
    while (before != NULL && before->message.arrival > entry->message.arrival) {
        before = before->tag_previous;
    }
    entry->tag_previous = before;
    entry->tag_next = before != NULL ? before->tag_next : list->first;
    *(before != NULL ? &before->tag_next : &list->first) = entry;
    *(entry->tag_next != NULL ? &entry->tag_next->tag_previous : &list->last) = entry;
}

void spc_inbox_queue_insert(spc_inbox_queue_t *queue, spc_entry_t *entry) {
    link_by_arrival(&queue->arrivals, entry);
    link_by_tag(bucket_of(queue, &entry->message), entry);
    queue->length++;
}

static bool matches(const spc_entry_t *entry, uint16_t context, int32_t source, int32_t tag) {
    return spc_message_matches(&entry->message, context, source, tag) && spc_entry_is_complete(entry);
}

spc_entry_t *spc_inbox_queue_find(const spc_inbox_queue_t *queue, uint16_t context, int32_t source,
                                  int32_t tag) {
    if (tag == SPC_ANY_TAG) {
        spc_entry_t *entry = queue->arrivals.first;
        while (entry != NULL && !matches(entry, context, source, tag)) {
            entry = entry->next;
        }
        return entry;
    }
    spc_entry_t *entry = queue->tags[((uint32_t)tag + context) % SPC_TAG_BUCKETS].first;
    while (entry != NULL && !matches(entry, context, source, tag)) {
        entry = entry->tag_next;
    }
    return entry;
}

static void unlink_by_tag(spc_inbox_queue_t *queue, spc_entry_t *entry) {
    spc_entry_list_t *tags = bucket_of(queue, &entry->message);
    *(entry->tag_previous != NULL ? &entry->tag_previous->tag_next : &tags->first) = entry->tag_next;
    *(entry->tag_next != NULL ? &entry->tag_next->tag_previous : &tags->last) = entry->tag_previous;
}

void spc_inbox_queue_move(spc_inbox_queue_t *queue, spc_entry_t *entry, uint16_t context) {
    unlink_by_tag(queue, entry);
    entry->message.context = context;
    link_by_tag(bucket_of(queue, &entry->message), entry);
}

void spc_inbox_queue_remove(spc_inbox_queue_t *queue, spc_entry_t *entry, spc_message_t *message) {
    unlink_by_tag(queue, entry);
    *(entry->previous != NULL ? &entry->previous->next : &queue->arrivals.first) = entry->next;
    *(entry->next != NULL ? &entry->next->previous : &queue->arrivals.last) = entry->previous;
    queue->length--;
    spc_message_move(message, &entry->message);
    entry->next = queue->spare;
    queue->spare = entry;
}
