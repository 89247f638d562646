/* SPDX-License-Identifier: MIT */
/*
 * Communicators with members in several boxes, and how this gateway learns of them.
 *
 * No communicator is unknown here because it is new: spc_comm_split returns only after every box has reported that it
 * has its memory, and a box reports so after its gateway has received that memory. So frames for an unknown
 * communicator concern one that all members here have left, or that has none here. The gateway drops them.
 *
 * A number is used again as soon as no node can get a message of its former communicator (spc_numbers.h). Frames about
 * that one, and its area, may still be there: its members leave one by one, and their gateways announce it when they
 * can. So the generation, too, names a communicator here.
 */
#include "net/gateway/spc_gateway_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

/* ---- life */

void spc_gateway_destroy_area(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    for (uint32_t i = 0; area->reduce != NULL && i < area->size; i++) {
        spc_reduce_destroy(area->reduce[i]);
    }
    if (area->block != NULL) {
        const uint32_t owner = area->block->owner;
        spc_block_unpin(area->block, gateway->nodes);
        spc_event_notify(&gateway->events[owner], gateway->config->features);
    }
    while (area->ahead != NULL) {
        spc_gateway_ahead_t *ahead = area->ahead;
        area->ahead = ahead->next;
        free(ahead);
    }
    free(area->members);
    free(area->reduce);
    free(area->phase);
    free(area->has_left);
    free(area->leaves);
    free(area);
}

static int create_halves(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    for (uint32_t i = 0; i < area->size; i++) {
        const spc_reduce_options_t options = {
            .shared = area->area.reduce,
            .base = gateway->segment.base,
            .scratch = area->area.scratch + i * area->area.scratch_stride,
            .scratch_bytes = area->area.scratch_bytes,
            .rank = i,
            .nodes = area->size,
            .fanin = gateway->config->fanin,
            .events = gateway->events,
            .members = area->members,
            .features = gateway->config->features,
            .here = area->here,
        };
        int status = spc_reduce_create(&options, &area->reduce[i]);
        if (status != SPC_OK) {
            return status;
        }
        area->boxes |= UINT64_C(1) << spc_segment_box(&gateway->segment, area->members[i]);
    }
    return SPC_OK;
}

/* `member`: NULL, or its members; the run's communicator has all nodes. */
static int create_area(spc_gateway_t *gateway, uint32_t number, uint32_t size, const uint16_t *member,
                       const spc_comm_area_t *memory, spc_gateway_area_t **result) {
    spc_gateway_area_t *area = calloc(1, sizeof(*area));
    if (area == NULL) {
        return SPC_ENOMEM;
    }
    area->number = number;
    area->size = size;
    area->area = *memory;
    area->members = calloc(size, sizeof(*area->members));
    area->reduce = calloc(size, sizeof(*area->reduce));
    area->phase = calloc(size, sizeof(*area->phase));
    area->has_left = calloc(size, sizeof(*area->has_left));
    area->leaves = calloc(size, sizeof(*area->leaves));
    int status = SPC_ENOMEM;
    if (area->members != NULL && area->reduce != NULL && area->phase != NULL && area->has_left != NULL
        && area->leaves != NULL) {
        for (uint32_t i = 0; i < size; i++) {
            area->members[i] = member == NULL ? i : member[i];
            area->here += spc_gateway_is_here(gateway, area->members[i]);
        }
        status = create_halves(gateway, area);
    }
    if (status != SPC_OK) {
        spc_gateway_destroy_area(gateway, area);
        return status;
    }
    *result = area;
    return SPC_OK;
}

int spc_gateway_areas_create(spc_gateway_t *gateway) {
    const spc_comm_area_t memory = spc_comm_area_of_run(&gateway->segment);
    return create_area(gateway, 0, gateway->nodes, NULL, &memory, &gateway->areas);
}

void spc_gateway_areas_destroy(spc_gateway_t *gateway) {
    while (gateway->areas != NULL) {
        spc_gateway_area_t *area = gateway->areas;
        gateway->areas = area->next;
        spc_gateway_destroy_area(gateway, area);
    }
}

spc_gateway_area_t *spc_gateway_find_area(const spc_gateway_t *gateway, const spc_frame_t *frame) {
    spc_gateway_area_t *area = gateway->areas;
    while (area != NULL
           && (area->number != frame->context || area->members[0] != (uint32_t)frame->tag
               || area->generation != frame->total_bytes)) {
        area = area->next;
    }
    return area;
}

int spc_gateway_add_area(spc_gateway_t *gateway, uint32_t number, spc_block_shared_t *block) {
    const spc_comm_table_t *table = spc_block_payload(block);
    unsigned char *memory = (unsigned char *)spc_block_payload(block) + spc_comm_table_bytes(table->size);
    const spc_comm_area_t area = spc_comm_area_in(gateway->config, table->size, memory);
    spc_gateway_area_t *made;
    int status = create_area(gateway, number, table->size, table->member, &area, &made);
    if (status != SPC_OK) {
        return status;
    }
    made->block = block;
    made->generation = table->generation;
    made->next = gateway->areas->next;
    gateway->areas->next = made;
    return SPC_OK;
}

bool spc_gateway_arrivals_are_taken(const spc_gateway_t *gateway) {
    const spc_gateway_area_t *area = gateway->areas;
    while (area != NULL && area->ahead == NULL) {
        area = area->next;
    }
    return area == NULL;
}
