/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_arrival.h"

#include <string.h>

#include "base/spc_error.h"

int spc_arrival_read(const unsigned char *bytes, uint32_t length_bytes, uint32_t members, uint32_t *at,
                     spc_arrival_t *arrival) {
    spc_arrival_head_t *head = &arrival->head;
    if (length_bytes - *at < sizeof *head) {
        return SPC_EINVAL;
    }
    memcpy(head, bytes + *at, sizeof *head);
    const unsigned char *next = bytes + *at + sizeof *head;
    const uint64_t left_bytes = length_bytes - *at - sizeof *head;
    const uint64_t fields_bytes = head->signature.field_count * sizeof *arrival->fields;
    const uint64_t row_bytes = head->stamp != 0 ? members * sizeof *arrival->row : 0;
    const uint64_t value_bytes = spc_round_up(head->length_bytes, 8);
    if (head->signature.field_count > SPC_FIELDS_MAX || fields_bytes + row_bytes + value_bytes > left_bytes) {
        return SPC_EINVAL;
    }
    arrival->fields = fields_bytes != 0 ? (const spc_field_t *)(const void *)next : NULL;
    arrival->row = row_bytes != 0 ? (const uint64_t *)(const void *)(next + fields_bytes) : NULL;
    arrival->value = next + fields_bytes + row_bytes;
    *at += (uint32_t)(sizeof *head + fields_bytes + row_bytes + value_bytes);
    return SPC_OK;
}

bool spc_arrival_combines(const spc_arrival_t *arrival) {
    const spc_signature_t *signature = &arrival->head.signature;
    const bool is_barrier = spc_reduce_is_barrier(signature);
    if ((!is_barrier && !spc_reduce_combines(signature)) || is_barrier != (arrival->fields == NULL)
        || arrival->head.stamp != 0) {
        return false;
    }
    for (uint32_t i = 0; i < signature->field_count; i++) {
        if (!spc_ops_has((spc_operator_t)signature->operator, arrival->fields[i].type)) {
            return false;
        }
    }
    return arrival->head.length_bytes == spc_fields_bytes(arrival->fields, signature->field_count);
}
