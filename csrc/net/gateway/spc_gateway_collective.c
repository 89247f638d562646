/* SPDX-License-Identifier: MIT */
/*
 * Arrivals at the phases of communicators with members in several boxes, and members that leave these.
 *
 * When all members here have arrived at a phase, the gateway sends their contributions, all in one frame if they fit.
 * When the contributions of the other boxes have come, it arrives for their members: so it is the last, combines, and
 * releases the phase, with the same values along the same tree as the gateways of the other boxes. Where the server has
 * combined, one arrival stands for all members, with the total: then the gateway arrives with that total for the
 * members elsewhere.
 *
 * A node that ends, or closes the communicator, may have arrived where others have not. Then the gateway sends its
 * contribution alone, and the server forwards it at once (SPC_FRAME_URGENT), so that other boxes know of its arrival
 * when they learn of its end (area_flush).
 *
 * Wire format: net/wire/spc_arrival.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/gateway/spc_gateway_private.h"
#include "net/wire/spc_arrival.h"

/* ---- sending */

typedef struct arrivals {
    unsigned char *body;
    uint32_t length_bytes;
    uint32_t room_bytes;
} arrivals_t;

static bool add(arrivals_t *arrivals, const void *bytes, uint64_t length_bytes) {
    const uint64_t padded = spc_round_up(length_bytes, 8);
    if (padded > arrivals->room_bytes - arrivals->length_bytes) {
        return false;
    }
    if (length_bytes != 0) {
        memcpy(arrivals->body + arrivals->length_bytes, bytes, length_bytes);
        memset(arrivals->body + arrivals->length_bytes + length_bytes, 0, padded - length_bytes);
    }
    arrivals->length_bytes += (uint32_t)padded;
    return true;
}

/* False if there is no room; then nothing was added. */
static bool add_contribution(const spc_gateway_area_t *area, uint32_t member, uint64_t phase,
                             arrivals_t *arrivals) {
    const uint32_t before = arrivals->length_bytes;
    spc_contribution_t contribution;
    uint64_t counts[SPC_NODES_MAX];
    if (!spc_reduce_read(area->reduce[member], phase, &contribution)) {
        return true; /* the phase has moved on already: impossible, see spc_reduce.h */
    }
    spc_arrival_head_t head = {.signature = contribution.signature,
                               .first = member,
                               .span = 1,
                               .length_bytes = (uint32_t)contribution.length_bytes};
    if (contribution.signature.operation == SPC_OPERATION_COORDINATED) {
        head.stamp = spc_coordinated_read_row(area->area.coordinated, member, area->size, counts);
    }
    const uint64_t fields_bytes =
        contribution.fields == NULL ? 0 : contribution.signature.field_count * sizeof(spc_field_t);
    if (add(arrivals, &head, sizeof(head)) && add(arrivals, contribution.fields, fields_bytes)
        && (head.stamp == 0 || add(arrivals, counts, area->size * sizeof(counts[0])))
        && add(arrivals, contribution.value, contribution.length_bytes)) {
        return true;
    }
    arrivals->length_bytes = before;
    return false;
}

static void send_arrivals(spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase,
                          uint16_t flags, arrivals_t *arrivals) {
    const spc_frame_t frame = {
        .kind = SPC_FRAME_ARRIVE,
        .flags = flags,
        .source = (uint16_t)gateway->box,
        .tag = (int32_t)area->members[0],
        .context = (uint16_t)area->number,
        .total_bytes = area->generation,
        .offset = phase,
    };
    spc_gateway_send(gateway, &frame, arrivals->body, arrivals->length_bytes);
    arrivals->length_bytes = sizeof(area->boxes);
}

/* Sends contributions to the phase by members here (all, or this one) that were not sent yet. */
static void send_phase(spc_gateway_t *gateway, spc_gateway_area_t *area, uint64_t phase, uint32_t only) {
    arrivals_t arrivals = {.room_bytes = SPC_FRAME_BODY_MAX, .body = malloc(SPC_FRAME_BODY_MAX)};
    if (arrivals.body == NULL) {
        spc_gateway_fail(gateway, SPC_ENOMEM);
        return;
    }
    (void)add(&arrivals, &area->boxes, sizeof(area->boxes));
    for (uint32_t i = 0; i < area->size; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i]) || area->phase[i] + 1 != phase
            || (only != area->size && only != i)) {
            continue;
        }
        if (!add_contribution(area, i, phase, &arrivals)) {
            send_arrivals(gateway, area, phase, 0, &arrivals);
            (void)add_contribution(area, i, phase, &arrivals); /* spc_config_complete ensures that one fits */
        }
        area->phase[i] = phase;
    }
    send_arrivals(gateway, area, phase, only == area->size ? SPC_FRAME_LAST : SPC_FRAME_URGENT, &arrivals);
    free(arrivals.body);
}

/* ---- arriving contributions */

static uint32_t first_here(const spc_gateway_t *gateway, const spc_gateway_area_t *area) {
    uint32_t i = 0;
    while (!spc_gateway_is_here(gateway, area->members[i])) {
        i++;
    }
    return i;
}

static bool may_arrive(const spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase,
                       uint32_t member) {
    return spc_gateway_is_elsewhere(gateway, area->members[member]) && area->phase[member] + 1 == phase;
}

/* Takes the arrival of one member. SPC_EINVAL: it makes no sense. */
static int take_arrival(spc_gateway_t *gateway, spc_gateway_area_t *area, uint64_t phase,
                        const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    const uint32_t member = head->first;
    if (member >= area->size || !may_arrive(gateway, area, phase, member)
        || head->length_bytes > area->area.scratch_bytes) {
        return SPC_EINVAL;
    }
    if (arrival->row != NULL) {
        spc_coordinated_write_row(area->area.coordinated, member, area->size, head->stamp, arrival->row);
    }
    uint64_t started;
    int status = spc_reduce_start(area->reduce[member], &head->signature, arrival->fields, arrival->value,
                                  head->length_bytes, &started);
    area->phase[member] = phase;
    return status;
}

/* A total meets four conditions: it comes from the server, for no box can speak for all members; all members here have
 * arrived, or else the server could not have their values; the members elsewhere have not arrived here; and it matches
 * the call in which the members here wait. */
static bool is_total(const spc_gateway_t *gateway, const spc_gateway_area_t *area, const spc_frame_t *frame,
                     const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    const uint64_t phase = frame->offset;
    spc_contribution_t own;
    if (frame->source != SPC_FRAME_FROM_SERVER || gateway->peers != NULL || head->first != 0
        || head->span != area->size || !spc_arrival_combines(arrival) || area->sent < phase
        || !spc_reduce_read(area->reduce[first_here(gateway, area)], phase, &own)
        || memcmp(&own.signature, &head->signature, sizeof(own.signature)) != 0
        || own.length_bytes != head->length_bytes) {
        return false;
    }
    for (uint32_t i = 0; i < area->size; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i]) && !may_arrive(gateway, area, phase, i)) {
            return false;
        }
    }
    return true;
}

/* Takes the arrival of all members, which the server has combined. The last member elsewhere brings the total. */
static int take_total(spc_gateway_t *gateway, spc_gateway_area_t *area, const spc_frame_t *frame,
                      const spc_arrival_t *arrival) {
    if (!is_total(gateway, area, frame, arrival)) {
        return SPC_EINVAL;
    }
    uint32_t left = area->size - area->here;
    int status = SPC_OK;
    for (uint32_t i = 0; i < area->size && status == SPC_OK; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i])) {
            const void *total = --left == 0 ? arrival->value : NULL;
            status = spc_reduce_start_combined(area->reduce[i], &arrival->head.signature, arrival->fields,
                                               total, arrival->head.length_bytes);
            area->phase[i] = frame->offset;
        }
    }
    return status;
}

/* Takes the arrivals of one frame. */
static int take_arrivals(spc_gateway_t *gateway, spc_gateway_area_t *area, const spc_frame_t *frame,
                         const unsigned char *body) {
    uint32_t at = sizeof(area->boxes);
    int status = SPC_OK;
    while (status == SPC_OK && at < frame->length_bytes) {
        spc_arrival_t arrival;
        status = spc_arrival_read(body, frame->length_bytes, area->size, &at, &arrival);
        if (status == SPC_OK) {
            status = arrival.head.span == 1 ? take_arrival(gateway, area, frame->offset, &arrival)
                                            : take_total(gateway, area, frame, &arrival);
        }
    }
    return status;
}

/* The bank of the phase is free. The nodes of one box ensure that themselves (spc_reduce.h), since they have completed
 * the phase that is tested here. Where boxes have links of their own, another box may have completed it earlier. */
static bool has_bank(const spc_gateway_area_t *area, uint64_t phase) {
    return phase <= SPC_FUZZY_MAX + 1 || spc_reduce_test(area->reduce[0], phase - SPC_FUZZY_MAX - 1);
}

/* A member contributes a value to at most one of the phases that have no bank yet: its other open phases are fuzzy
 * barriers. */
static uint64_t ahead_max_bytes(const spc_gateway_area_t *area) {
    const uint64_t value_bytes =
        area->area.scratch_bytes + SPC_REDUCE_FIELDS_BYTES + area->size * sizeof(uint64_t);
    const uint64_t heads_bytes = (SPC_FUZZY_MAX + 1) * (sizeof(area->boxes) + sizeof(spc_arrival_head_t));
    return area->size * (value_bytes + heads_bytes);
}

static int keep_ahead(spc_gateway_area_t *area, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->length_bytes > ahead_max_bytes(area) - area->ahead_bytes) {
        return SPC_ELIMIT;
    }
    spc_gateway_ahead_t *ahead = malloc(sizeof(*ahead) + frame->length_bytes);
    if (ahead == NULL) {
        return SPC_ENOMEM;
    }
    ahead->frame = *frame;
    memcpy(ahead->body, body, frame->length_bytes);
    area->ahead_bytes += frame->length_bytes;
    spc_gateway_ahead_t **at = &area->ahead;
    while (*at != NULL && (*at)->frame.offset <= frame->offset) {
        at = &(*at)->next;
    }
    ahead->next = *at;
    *at = ahead;
    return SPC_OK;
}

static int take_ahead(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    int status = SPC_OK;
    while (status == SPC_OK && area->ahead != NULL && has_bank(area, area->ahead->frame.offset)) {
        spc_gateway_ahead_t *ahead = area->ahead;
        area->ahead = ahead->next;
        area->ahead_bytes -= ahead->frame.length_bytes;
        status = take_arrivals(gateway, area, &ahead->frame, ahead->body);
        free(ahead);
    }
    return status;
}

int spc_gateway_on_arrive(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_area_t *area = spc_gateway_find_area(gateway, frame);
    if (frame->length_bytes < sizeof(area->boxes)) {
        return SPC_EINVAL;
    }
    if (area == NULL || frame->length_bytes == sizeof(area->boxes)) {
        return SPC_OK;
    }
    int status = take_ahead(gateway, area);
    if (status != SPC_OK) {
        return status;
    }
    return has_bank(area, frame->offset) ? take_arrivals(gateway, area, frame, body)
                                         : keep_ahead(area, frame, body);
}

/* ---- pending work */

/* Returns the last phase, starting with the next one, at which all members here have arrived. */
static bool have_arrived(const spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase) {
    for (uint32_t i = 0; i < area->size; i++) {
        if (spc_gateway_is_here(gateway, area->members[i]) && area->phase[i] < phase
            && !spc_reduce_arrived(area->reduce[i], phase, i)) {
            return false;
        }
    }
    return true;
}

/* The same for one communicator. */
static void area_note(const spc_gateway_t *gateway, spc_gateway_area_t *area) {
    while (have_arrived(gateway, area, area->noted + 1)) {
        area->noted++;
    }
}

void spc_gateway_collective_note(spc_gateway_t *gateway) {
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        area_note(gateway, area);
    }
}

static bool area_progress(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    const bool sends = area->sent < area->noted;
    while (area->sent < area->noted) {
        send_phase(gateway, area, ++area->sent, area->size);
        spc_reduce_pass(area->reduce[first_here(gateway, area)], area->sent);
    }
    spc_gateway_fail(gateway, take_ahead(gateway, area));
    return sends;
}

bool spc_gateway_collective_progress(spc_gateway_t *gateway) {
    bool moved = false;
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        moved = area_progress(gateway, area) || moved;
    }
    return moved;
}

static void area_flush(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member) {
    const uint64_t last = spc_reduce_last(area->reduce[member], member);
    if (spc_reduce_test(area->reduce[member], last)) {
        return;
    }
    const uint64_t next = area->phase[member] + 1;
    for (uint64_t phase = next < last ? next : last; phase <= last; phase++) {
        send_phase(gateway, area, phase, member);
    }
}

void spc_gateway_collective_flush(spc_gateway_t *gateway, uint32_t rank) {
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        for (uint32_t i = 0; i < area->size; i++) {
            if (area->members[i] == rank) {
                area_flush(gateway, area, i);
            }
        }
    }
}

/* ---- nodes that close communicators */

int spc_gateway_on_left(spc_gateway_t *gateway, const spc_frame_t *frame) {
    spc_gateway_area_t *area = spc_gateway_find_area(gateway, frame);
    for (uint32_t i = 0; area != NULL && area->block != NULL && i < area->size; i++) {
        area->leaves[i] = area->leaves[i] || area->members[i] == frame->source;
    }
    return SPC_OK;
}

/* Once all messages that it sent are in the rows of their receivers. */
static void make_left_known(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member, bool *moved) {
    if (!area->leaves[member] || area->has_left[member]
        || !spc_gateway_source_is_empty(gateway, area->members[member])) {
        return;
    }
    /* Release: the messages announced here are visible with it. Pairs with spc_comm_has_left. */
    atomic_store_explicit(&area->area.left[member], 1, memory_order_release);
    spc_status_news(gateway->status, gateway->events, gateway->nodes + 1, gateway->config->features);
    area->has_left[member] = true;
    *moved = true;
}

static void tell_left(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member) {
    const spc_frame_t frame = {.kind = SPC_FRAME_LEFT,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)area->members[member],
                               .tag = (int32_t)area->members[0],
                               .context = (uint16_t)area->number,
                               .total_bytes = area->generation};
    spc_gateway_send(gateway, &frame, NULL, 0);
    area->has_left[member] = true;
}

/* True: all members here have closed it, or have ended, and the other boxes know. */
static bool progress_left(spc_gateway_t *gateway, spc_gateway_area_t *area, bool *moved) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < area->size; i++) {
        const uint32_t rank = area->members[i];
        if (!spc_gateway_is_here(gateway, rank)) {
            make_left_known(gateway, area, i, moved);
            continue;
        }
        /* Acquire: the messages sent before are visible. Pairs with spc_comm_close. */
        const bool has = atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0;
        if (has && !area->has_left[i] && spc_gateway_send_are_empty(gateway, rank)) {
            area_flush(gateway, area, i);
            tell_left(gateway, area, i);
            *moved = true;
        }
        left += area->has_left[i] || gateway->told_gone[rank];
    }
    return left == area->here;
}

bool spc_gateway_is_leaving(const spc_gateway_t *gateway, uint32_t rank) {
    for (const spc_gateway_area_t *area = gateway->areas->next; area != NULL; area = area->next) {
        for (uint32_t i = 0; i < area->size; i++) {
            if (area->members[i] != rank || area->has_left[i]) {
                continue;
            }
            /* Acquire: as in progress_left. */
            if (area->leaves[i] || atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0) {
                return true;
            }
        }
    }
    return false;
}

bool spc_gateway_areas_progress(spc_gateway_t *gateway) {
    bool moved = false;
    spc_gateway_area_t **at = &gateway->areas->next;
    while (*at != NULL) {
        spc_gateway_area_t *area = *at;
        if (progress_left(gateway, area, &moved)) {
            /* Sends the phases at which it arrived meanwhile; else the server would wait for them for ever. */
            area_note(gateway, area);
            (void)area_progress(gateway, area);
            *at = area->next;
            spc_gateway_destroy_area(gateway, area);
        } else {
            at = &area->next;
        }
    }
    return moved;
}
