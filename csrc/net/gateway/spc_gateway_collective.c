/* SPDX-License-Identifier: MIT */
/*
 * Arrivals at the phases of communicators that have members in several boxes, and members that leave them.
 *
 * When all members here have arrived at a phase, the gateway sends what they contribute, all in one frame if it fits.
 * When that of the other boxes has come, it arrives for their members: so it is the last, combines, and releases the
 * phase, with the same values along the same tree as the gateways of the other boxes.
 *
 * A node that ends, or closes the communicator, may have arrived where others have not: then its contribution is sent
 * by itself, and the server forwards it at once (SPC_FRAME_URGENT), so that the node is known to have arrived when its
 * end becomes known (area_flush).
 *
 * On the wire: the boxes that take part, a bit each, then a contribution after the other, in the byte order of the
 * machines, which is the same for all of a run (spc_handshake).
 */
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/gateway/spc_gateway_private.h"

typedef struct contribution_head {
    spc_signature_t signature;
    uint32_t member;
    uint32_t stamp;        /* of the row of counts that follows; 0: none does */
    uint64_t length_bytes; /* of the value; it is padded to a multiple of 8 */
} contribution_head_t;

_Static_assert(sizeof(contribution_head_t) == 40, "contribution_head_t travels between machines");

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

/* False, and nothing was added: there is no room. */
static bool add_contribution(const spc_gateway_area_t *area, uint32_t member, uint64_t phase,
                             arrivals_t *arrivals) {
    const uint32_t before = arrivals->length_bytes;
    spc_contribution_t contribution;
    uint64_t counts[SPC_NODES_MAX];
    if (!spc_reduce_read(area->reduce[member], phase, &contribution)) {
        return true; /* it has gone on already: cannot be, see spc_reduce.h */
    }
    contribution_head_t head = {
        .signature = contribution.signature, .member = member, .length_bytes = contribution.length_bytes};
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
        .offset = phase,
    };
    spc_gateway_send(gateway, &frame, arrivals->body, arrivals->length_bytes);
    arrivals->length_bytes = sizeof(area->boxes);
}

/* What members here (all, or this one) contribute to the phase and was not sent yet. */
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
            (void)add_contribution(area, i, phase,
                                   &arrivals); /* one fits: spc_config_complete sees to that */
        }
        area->phase[i] = phase;
    }
    send_arrivals(gateway, area, phase, only == area->size ? SPC_FRAME_LAST : SPC_FRAME_URGENT, &arrivals);
    free(arrivals.body);
}

/* ---- what comes */

/* One contribution; *at goes behind it. SPC_EINVAL: it makes no sense. */
static int take_contribution(spc_gateway_t *gateway, spc_gateway_area_t *area, uint64_t phase,
                             const unsigned char *body, uint32_t length_bytes, uint32_t *at) {
    contribution_head_t head;
    if (length_bytes - *at < sizeof(head)) {
        return SPC_EINVAL;
    }
    memcpy(&head, body + *at, sizeof(head));
    *at += sizeof(head);
    if (head.member >= area->size || !spc_gateway_is_elsewhere(gateway, area->members[head.member])
        || head.signature.field_count > SPC_FIELDS_MAX || head.length_bytes > area->area.scratch_bytes
        || area->phase[head.member] + 1 != phase) {
        return SPC_EINVAL;
    }
    const spc_field_t *fields = (const spc_field_t *)(const void *)(body + *at);
    const bool combines = head.signature.field_count != 0;
    const uint64_t fields_bytes = combines ? head.signature.field_count * sizeof(*fields) : 0;
    const uint64_t row_bytes = head.stamp != 0 ? area->size * sizeof(uint64_t) : 0;
    const uint64_t value_bytes = spc_round_up(head.length_bytes, 8);
    if (fields_bytes + row_bytes + value_bytes > length_bytes - *at) {
        return SPC_EINVAL;
    }
    if (row_bytes != 0) {
        spc_coordinated_write_row(area->area.coordinated, head.member, area->size, head.stamp,
                                  (const uint64_t *)(const void *)(body + *at + fields_bytes));
    }
    uint64_t started;
    int status = spc_reduce_start(area->reduce[head.member], &head.signature, combines ? fields : NULL,
                                  body + *at + fields_bytes + row_bytes, head.length_bytes, &started);
    area->phase[head.member] = phase;
    *at += (uint32_t)(fields_bytes + row_bytes + value_bytes);
    return status;
}

/* The contributions of one frame. */
static int take_contributions(spc_gateway_t *gateway, spc_gateway_area_t *area, const spc_frame_t *frame,
                              const unsigned char *body) {
    uint32_t at = sizeof(area->boxes);
    int status = SPC_OK;
    while (status == SPC_OK && at < frame->length_bytes) {
        status = take_contribution(gateway, area, frame->offset, body, frame->length_bytes, &at);
    }
    return status;
}

/* The bank of the phase is free. The nodes of one box see to that themselves (spc_reduce.h), since they have completed
 * the phase that is asked for. Where boxes have links of their own, another one may have completed it earlier. */
static bool has_bank(const spc_gateway_area_t *area, uint64_t phase) {
    return phase <= SPC_FUZZY_MAX + 1 || spc_reduce_test(area->reduce[0], phase - SPC_FUZZY_MAX - 1);
}

/* A member contributes a value to at most one of the phases that have no bank yet: its other open phases are fuzzy
 * barriers. */
static uint64_t ahead_max_bytes(const spc_gateway_area_t *area) {
    const uint64_t value_bytes =
        area->area.scratch_bytes + SPC_REDUCE_FIELDS_BYTES + area->size * sizeof(uint64_t);
    const uint64_t heads_bytes = (SPC_FUZZY_MAX + 1) * (sizeof(area->boxes) + sizeof(contribution_head_t));
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
        status = take_contributions(gateway, area, &ahead->frame, ahead->body);
        free(ahead);
    }
    return status;
}

int spc_gateway_on_arrive(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_area_t *area = spc_gateway_find_area(gateway, frame->context, (uint32_t)frame->tag);
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
    return has_bank(area, frame->offset) ? take_contributions(gateway, area, frame, body)
                                         : keep_ahead(area, frame, body);
}

/* ---- what is to be done */

/* Up to which phase have all members here arrived, from the one that comes next on? */
static bool have_arrived(const spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase) {
    for (uint32_t i = 0; i < area->size; i++) {
        if (spc_gateway_is_here(gateway, area->members[i]) && area->phase[i] < phase
            && !spc_reduce_arrived(area->reduce[i], phase, i)) {
            return false;
        }
    }
    return true;
}

static uint32_t first_here(const spc_gateway_t *gateway, const spc_gateway_area_t *area) {
    uint32_t i = 0;
    while (!spc_gateway_is_here(gateway, area->members[i])) {
        i++;
    }
    return i;
}

/* The same, of one communicator. */
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

/* ---- nodes that close them */

int spc_gateway_on_left(spc_gateway_t *gateway, const spc_frame_t *frame) {
    spc_gateway_area_t *area = spc_gateway_find_area(gateway, frame->context, (uint32_t)frame->tag);
    for (uint32_t i = 0; area != NULL && area->block != NULL && i < area->size; i++) {
        area->leaves[i] = area->leaves[i] || area->members[i] == frame->source;
    }
    return SPC_OK;
}

/* Once all that it has sent is in the rows of its receivers. */
static void make_left_known(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member, bool *moved) {
    if (!area->leaves[member] || area->has_left[member]
        || !spc_gateway_source_is_empty(gateway, area->members[member])) {
        return;
    }
    /* Release: what it announced here is seen with it. Pairs with spc_comm_has_left. */
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
                               .context = (uint16_t)area->number};
    spc_gateway_send(gateway, &frame, NULL, 0);
    area->has_left[member] = true;
}

/* True: all members here have closed it, or have ended, and that has been told. */
static bool progress_left(spc_gateway_t *gateway, spc_gateway_area_t *area, bool *moved) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < area->size; i++) {
        const uint32_t rank = area->members[i];
        if (!spc_gateway_is_here(gateway, rank)) {
            make_left_known(gateway, area, i, moved);
            continue;
        }
        /* Acquire: what it has sent before is seen. Pairs with spc_comm_close. */
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
            /* What they have arrived at meanwhile; else the server would wait for it for ever. */
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
