/* SPDX-License-Identifier: MIT */
/* any_frame: frames that a parser lets through, and that no box would send that keeps the protocol. */
#ifndef ANY_FRAME_H
#define ANY_FRAME_H

#include "check.h"
#include "net/wire/spc_arrival.h"
#include "net/wire/spc_frame.h"

enum { ANY_FRAME_BYTES = 1 << 17 };

/* Small where that may mean something, now and then anything. */
static inline uint64_t any_number(uint64_t *state, uint64_t usual) {
    return check_random(state) % 4 != 0 ? check_random(state) % usual
                                        : check_random(state) >> check_random(state) % 64;
}

/* Members that contribute to the same sum, or to something else, or nothing that makes sense. */
static inline uint32_t any_arrivals(uint64_t *state, unsigned char *body) {
    uint32_t at = 8;
    memset(body, 0, at);
    body[0] = (unsigned char)(check_random(state) % 8 != 0 ? 3 : check_random(state) % 8);
    for (uint64_t left = check_random(state) % 3; left > 0; left--) {
        const bool is_usual = check_random(state) % 8 != 0;
        spc_field_t fields[2] = {{SPC_TYPE_INT, 1}};
        spc_arrival_head_t head = {
            .signature = {.operation = SPC_OPERATION_REDUCE, .field_count = 1},
            .first = (uint32_t)(is_usual ? check_random(state) % 3 : any_number(state, 4)),
            .span = (uint32_t)(check_random(state) % 8 != 0 ? 1 : any_number(state, 5)),
        };
        if (!is_usual) {
            head.signature.operation = (uint8_t)any_number(state, SPC_OPERATION_COUNT);
            head.signature.operator = (uint8_t)any_number(state, 2);
            head.signature.field_count = (uint8_t)(check_random(state) % 3);
            head.stamp = (uint32_t)(check_random(state) % 4 == 0);
            for (int i = 0; i < 2; i++) {
                fields[i] = (spc_field_t){(uint32_t)any_number(state, SPC_TYPE_COUNT),
                                          (uint32_t)any_number(state, 4)};
            }
        }
        const uint32_t fields_bytes = head.signature.field_count * (uint32_t)sizeof *fields;
        const uint64_t bytes = spc_fields_bytes(fields, head.signature.field_count);
        head.length_bytes = (uint32_t)(is_usual ? bytes : any_number(state, 64));
        memcpy(body + at, &head, sizeof head);
        memcpy(body + at + sizeof head, fields, fields_bytes);
        at += (uint32_t)sizeof head + fields_bytes + (bytes < 256 ? (uint32_t)bytes : 0);
    }
    return at;
}

/* `body` has room for ANY_FRAME_BYTES. */
static inline void any_frame(uint64_t *state, spc_frame_t *frame, unsigned char *body) {
    *frame = (spc_frame_t){
        .kind = (uint8_t)(1 + check_random(state) % 13),
        .format = (uint8_t)any_number(state, 24),
        .flags = (uint16_t)(check_random(state) % 4 != 0 ? 0 : check_random(state) % 64),
        .job = 7,
        .source = (uint16_t)any_number(state, 4),
        .destination = (uint16_t)any_number(state, 2),
        .tag = (int32_t)any_number(state, 8),
        .context = (uint16_t)any_number(state, 4),
        .meta_bytes = (uint16_t)any_number(state, 64),
        .count = (uint16_t)(check_random(state) % 3),
        .total_bytes = any_number(state, 50000),
        .offset = any_number(state, 4),
        .length_bytes = (uint32_t)(check_random(state) % 3 != 0 ? check_random(state) % 512
                                                                : check_random(state) % 40000),
    };
    frame->kind = check_random(state) % 4 == 0 ? SPC_FRAME_ARRIVE : frame->kind;
    const uint32_t head = ((uint32_t)frame->count * 2 + 7) & ~7U;
    frame->length_bytes += frame->length_bytes < head ? head : 0;
    for (uint32_t i = 0; i < frame->length_bytes; i++) {
        body[i] = (unsigned char)(check_random(state) % 3 != 0 ? i % 2 == 0 ? check_random(state) % 4 : 0
                                                               : check_random(state));
    }
    if (frame->kind == SPC_FRAME_ARRIVE && check_random(state) % 2 == 0) {
        frame->count = 0;
        frame->length_bytes = any_arrivals(state, body);
        frame->source = check_random(state) % 4 == 0 ? SPC_FRAME_FROM_SERVER : frame->source;
        frame->context = (uint16_t)(check_random(state) % 8 == 0);
        frame->tag = 0;
        frame->flags |= (uint16_t)(check_random(state) % 2 != 0 ? SPC_FRAME_LAST : 0);
    }
    if (frame->kind == SPC_FRAME_MESSAGE && frame->length_bytes >= 8 && check_random(state) % 2 == 0) {
        const uint16_t ranks[4] = {
            (uint16_t)(2 + check_random(state) % 2)}; /* a whole message, of sound sizes */
        memcpy(body, ranks, sizeof ranks);
        frame->count = 1;
        frame->source = (uint16_t)(check_random(state) % 2);
        frame->total_bytes = frame->length_bytes - sizeof ranks;
        frame->flags &= (uint16_t)(check_random(state) % 8 != 0 ? ~SPC_FRAME_PART : ~0);
        frame->offset = 0;
    }
}

#endif
