/* SPDX-License-Identifier: MIT */
/*
 * Communicators that have members in several boxes: how this agent comes to know them, and how they end.
 *
 * None is unknown here because it is new: whoever is back from spc_comm_split has heard that every box has its memory,
 * and a box says so after its agent has got it. So what comes for a communicator that is not known here concerns one
 * that all members here have left, or that has none here, and nobody needs it.
 */
#include <stdlib.h>

#include "base/spc_error.h"
#include "net/spc_agent_private.h"

/* ---- life ---- */

static void destroy_area(spc_agent_t *agent, spc_agent_area_t *area) {
    for (uint32_t i = 0; area->reduce != NULL && i < area->size; i++) {
        spc_reduce_destroy(area->reduce[i]);
    }
    if (area->block != NULL) {
        const uint32_t owner = area->block->owner;
        spc_block_unpin(area->block, agent->nodes);
        spc_event_notify(&agent->events[owner], agent->config->features);
    }
    while (area->ahead != NULL) {
        spc_agent_ahead_t *ahead = area->ahead;
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

static int create_halves(spc_agent_t *agent, spc_agent_area_t *area) {
    for (uint32_t i = 0; i < area->size; i++) {
        const spc_reduce_options_t options = {
            .shared = area->area.reduce,
            .base = agent->segment.base,
            .scratch = area->area.scratch + i * area->area.scratch_stride,
            .scratch_bytes = area->area.scratch_bytes,
            .rank = i,
            .nodes = area->size,
            .fanin = agent->config->fanin,
            .events = agent->events,
            .members = area->members,
            .features = agent->config->features,
            .here = area->here,
        };
        int status = spc_reduce_create(&options, &area->reduce[i]);
        if (status != SPC_OK) {
            return status;
        }
        area->boxes |= UINT64_C(1) << spc_segment_box(&agent->segment, area->members[i]);
    }
    return SPC_OK;
}

/* `member`: NULL, or its members; of the run, all are. */
static int create_area(spc_agent_t *agent, uint32_t number, uint32_t size, const uint16_t *member,
                       const spc_comm_area_t *memory, spc_agent_area_t **result) {
    spc_agent_area_t *area = calloc(1, sizeof(*area));
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
            area->here += spc_agent_is_here(agent, area->members[i]);
        }
        status = create_halves(agent, area);
    }
    if (status != SPC_OK) {
        destroy_area(agent, area);
        return status;
    }
    *result = area;
    return SPC_OK;
}

int spc_agent_areas_create(spc_agent_t *agent) {
    const spc_comm_area_t memory = spc_comm_area_of_run(&agent->segment);
    return create_area(agent, 0, agent->nodes, NULL, &memory, &agent->areas);
}

void spc_agent_areas_destroy(spc_agent_t *agent) {
    while (agent->areas != NULL) {
        spc_agent_area_t *area = agent->areas;
        agent->areas = area->next;
        destroy_area(agent, area);
    }
}

spc_agent_area_t *spc_agent_find_area(const spc_agent_t *agent, uint32_t number, uint32_t first) {
    spc_agent_area_t *area = agent->areas;
    while (area != NULL && (area->number != number || area->members[0] != first)) {
        area = area->next;
    }
    return area;
}

int spc_agent_add_area(spc_agent_t *agent, uint32_t number, spc_block_shared_t *block) {
    const spc_comm_table_t *table = spc_block_payload(block);
    unsigned char *memory = (unsigned char *)spc_block_payload(block) + spc_comm_table_bytes(table->size);
    const spc_comm_area_t area = spc_comm_area_in(agent->config, table->size, memory);
    spc_agent_area_t *made;
    int status = create_area(agent, number, table->size, table->member, &area, &made);
    if (status != SPC_OK) {
        return status;
    }
    made->block = block;
    made->next = agent->areas->next;
    agent->areas->next = made;
    return SPC_OK;
}

/* ---- nodes that close them ---- */

int spc_agent_take_left(spc_agent_t *agent, const spc_frame_t *frame) {
    spc_agent_area_t *area = spc_agent_find_area(agent, frame->context, (uint32_t)frame->tag);
    for (uint32_t i = 0; area != NULL && area->block != NULL && i < area->size; i++) {
        area->leaves[i] = area->leaves[i] || area->members[i] == frame->source;
    }
    return SPC_OK;
}

/* Once all that it has sent is in the rows of its receivers. */
static void make_left_known(spc_agent_t *agent, spc_agent_area_t *area, uint32_t member, bool *moved) {
    if (!area->leaves[member] || area->has_left[member]
        || !spc_agent_source_is_empty(agent, area->members[member])) {
        return;
    }
    /* Release: what it announced here is seen with it. Pairs with spc_comm_has_left. */
    atomic_store_explicit(&area->area.left[member], 1, memory_order_release);
    spc_status_news(agent->status, agent->events, agent->nodes + 1, agent->config->features);
    area->has_left[member] = true;
    *moved = true;
}

static void tell_left(spc_agent_t *agent, spc_agent_area_t *area, uint32_t member) {
    const spc_frame_t frame = {.kind = SPC_FRAME_LEFT,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)area->members[member],
                               .tag = (int32_t)area->members[0],
                               .context = (uint16_t)area->number};
    spc_agent_send(agent, &frame, NULL, 0);
    area->has_left[member] = true;
}

/* True: all members here have closed it, or have ended, and that has been told. */
static bool pump_left(spc_agent_t *agent, spc_agent_area_t *area, bool *moved) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < area->size; i++) {
        const uint32_t rank = area->members[i];
        if (!spc_agent_is_here(agent, rank)) {
            make_left_known(agent, area, i, moved);
            continue;
        }
        /* Acquire: what it has sent before is seen. Pairs with spc_comm_close. */
        const bool has = atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0;
        if (has && !area->has_left[i] && spc_agent_rows_are_empty(agent, rank)) {
            spc_agent_area_flush(agent, area, i);
            tell_left(agent, area, i);
            *moved = true;
        }
        left += area->has_left[i] || agent->told_gone[rank];
    }
    return left == area->here;
}

bool spc_agent_is_leaving(const spc_agent_t *agent, uint32_t rank) {
    for (const spc_agent_area_t *area = agent->areas->next; area != NULL; area = area->next) {
        for (uint32_t i = 0; i < area->size; i++) {
            if (area->members[i] != rank || area->has_left[i]) {
                continue;
            }
            /* Acquire: as in pump_left. */
            if (area->leaves[i] || atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0) {
                return true;
            }
        }
    }
    return false;
}

bool spc_agent_areas_pump(spc_agent_t *agent) {
    bool moved = false;
    spc_agent_area_t **at = &agent->areas->next;
    while (*at != NULL) {
        spc_agent_area_t *area = *at;
        if (pump_left(agent, area, &moved)) {
            /* What they have arrived at meanwhile; else the server would wait for it for ever. */
            spc_agent_area_note(agent, area);
            (void)spc_agent_area_pump(agent, area);
            *at = area->next;
            destroy_area(agent, area);
        } else {
            at = &area->next;
        }
    }
    return moved;
}
