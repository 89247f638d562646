/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the arrivals of an ARRIVE frame, which a box and the server read from each other. The first byte of the
 * input says how they are put right, since a fuzzer hardly guesses lengths and types that agree; the second how many
 * members there are; the rest are the arrivals, whole words of 8 bytes as frames have them.
 *
 * A reader finds arrivals one behind the other, all of whose parts lie in the input, or it says that the input is
 * wrong and has not moved. Values that can be combined are combined, as the server does it.
 */
#include "fuzz.h"

#include "base/spc_atomic.h"
#include "base/spc_error.h"
#include "net/wire/spc_arrival.h"
#include "reduce/spc_subtree.h"

enum { REPAIR_OPERATION = 1, REPAIR_TYPES = 2, REPAIR_LENGTH = 4, REPAIR_ROW = 8, REPAIR_PLACE = 16 };
enum { ARRIVALS_MAX = 64, HEAD = sizeof(spc_arrival_head_t) };

/* Puts the arrivals right, each where the one before ends. */
static void repair(unsigned char *bytes, uint32_t length_bytes, uint32_t members, int how) {
    uint32_t number = 0;
    for (uint64_t at = 0; length_bytes - at >= HEAD; number++) {
        spc_arrival_head_t head;
        memcpy(&head, bytes + at, HEAD);
        spc_signature_t *signature = &head.signature;
        if (how & REPAIR_OPERATION) {
            signature->operation = SPC_OPERATION_REDUCE;
            signature->operator %= SPC_OPERATOR_COUNT;
            signature->field_count = signature->field_count % 4 != 0 ? signature->field_count % 4 : 1;
        }
        if (how & REPAIR_ROW) {
            head.stamp = 0;
        }
        if (how & REPAIR_PLACE) {
            head.first = number;
            head.span = 1;
        }
        unsigned char *fields = bytes + at + HEAD;
        const uint64_t fields_bytes = signature->field_count * sizeof(spc_field_t);
        const uint64_t row_bytes = head.stamp != 0 ? members * sizeof(uint64_t) : 0;
        uint64_t value_bytes = 0;
        for (uint64_t i = 0; i < signature->field_count && fields_bytes <= length_bytes - at - HEAD; i++) {
            spc_field_t field;
            memcpy(&field, fields + i * sizeof field, sizeof field);
            if (how & REPAIR_TYPES) {
                field.type %= SPC_TYPE_COUNT;
                field.count %= 6;
                memcpy(fields + i * sizeof field, &field, sizeof field);
            }
            value_bytes += spc_fields_bytes(&field, 1);
        }
        if (how & REPAIR_LENGTH) {
            head.length_bytes = (uint32_t)value_bytes;
        }
        memcpy(bytes + at, &head, HEAD);
        at += HEAD + fields_bytes + row_bytes + spc_round_up(head.length_bytes, 8);
        if (at > length_bytes) {
            return;
        }
    }
}

/* Reads every byte, so that a sanitizer sees those that are not there. */
static uint64_t sum_of(const void *bytes, uint64_t length_bytes) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < length_bytes; i++) {
        sum += ((const unsigned char *)bytes)[i];
    }
    return sum;
}

static void check_parts(const unsigned char *bytes, uint32_t at, uint32_t end, uint32_t members,
                        const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    const unsigned char *next = bytes + at + HEAD;
    MUST(memcmp(head, bytes + at, HEAD) == 0 && head->signature.field_count <= SPC_FIELDS_MAX);
    MUST((arrival->fields != NULL) == (head->signature.field_count != 0));
    if (arrival->fields != NULL) {
        MUST((const unsigned char *)arrival->fields == next);
        next += head->signature.field_count * sizeof(spc_field_t);
    }
    MUST((arrival->row != NULL) == (head->stamp != 0 && members != 0));
    if (arrival->row != NULL) {
        MUST((const unsigned char *)arrival->row == next);
        next += members * sizeof(uint64_t);
    }
    MUST(arrival->value == next && (uintptr_t)next % 8 == 0);
    MUST(bytes + end == next + spc_round_up(head->length_bytes, 8));
    (void)sum_of(bytes + at, end - at);
}

/* Whether the server takes these for values of one operation. */
static bool match(const spc_arrival_t *one, const spc_arrival_t *other) {
    const size_t fields_bytes = one->head.signature.field_count * sizeof *one->fields;
    return memcmp(&one->head.signature, &other->head.signature, sizeof one->head.signature) == 0
           && (fields_bytes == 0 || memcmp(one->fields, other->fields, fields_bytes) == 0);
}

/* Combines the values of those that match the first one; without gaps, they become one of all members. */
static void combine(const spc_arrival_t *arrivals, uint32_t count) {
    spc_subtree_t subtrees[ARRIVALS_MAX];
    uint32_t used = 0, members = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (spc_arrival_combines(&arrivals[i]) && match(&arrivals[0], &arrivals[i])) {
            const spc_arrival_head_t *head = &arrivals[i].head;
            MUST(head->length_bytes == spc_fields_bytes(arrivals[i].fields, head->signature.field_count));
            subtrees[used++] =
                (spc_subtree_t){head->first, head->span, exactly(arrivals[i].value, head->length_bytes)};
            members += head->span;
        }
    }
    uint32_t left = used;
    void *values[ARRIVALS_MAX];
    for (uint32_t i = 0; i < used; i++) {
        values[i] = subtrees[i].value;
    }
    if (used > 0) {
        const spc_signature_t *signature = &arrivals[0].head.signature;
        const int status = spc_subtree_combine((spc_operator_t)signature->operator, arrivals[0].fields,
                                               signature->field_count, members, subtrees, &left);
        MUST(status == SPC_OK || status == SPC_EWIDE || status == SPC_EINVAL);
        MUST(status == SPC_EINVAL ? left == used : left == 1 && subtrees[0].span == members);
    }
    for (uint32_t i = 0; i < used; i++) {
        free(values[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length_bytes) {
    input_t input = {data, length_bytes};
    const int how = input_byte(&input);
    const uint32_t members = input_byte(&input) % 65;
    const uint32_t bytes_count = (uint32_t)(input.left_bytes / 8 * 8);
    unsigned char *bytes = exactly(input.next, bytes_count);
    repair(bytes, bytes_count, members, how);

    spc_arrival_t arrivals[ARRIVALS_MAX];
    uint32_t at = 0, count = 0;
    while (at < bytes_count && count < ARRIVALS_MAX) {
        const uint32_t before = at;
        if (spc_arrival_read(bytes, bytes_count, members, &at, &arrivals[count]) != SPC_OK) {
            MUST(at == before);
            break;
        }
        MUST(at >= before + HEAD && at <= bytes_count && at % 8 == 0);
        check_parts(bytes, before, at, members, &arrivals[count++]);
    }
    if (count > 0 && spc_arrival_combines(&arrivals[0])) {
        combine(arrivals, count);
    }
    free(bytes);
    return 0;
}
