/* SPDX-License-Identifier: MIT */
/* reduction: signatures of reductions, for tests. */
#ifndef REDUCTION_H
#define REDUCTION_H

#include "reduce/spc_layout.h"
#include "reduce/spc_reduce.h"

/* The signature of a reduction of these fields, the same for INT and WIDE. */
static inline spc_signature_t reduction_signature(spc_operator_t operator, const spc_field_t *fields,
                                                  uint32_t count) {
    uint64_t hash = spc_layout_mix(0, SPC_KIND_TUPLE);
    for (uint32_t i = 0; i < count; i++) {
        hash = spc_layout_mix(hash, fields[i].type == SPC_TYPE_WIDE ? SPC_TYPE_INT : fields[i].type);
        hash = spc_layout_mix(hash, fields[i].count);
    }
    return (spc_signature_t){
        .length_bytes = spc_fields_bytes(fields, count),
        .layout = spc_layout_of(SPC_KIND_TUPLE, hash, 0),
        .operation = SPC_OPERATION_REDUCE,
        .operator = (uint8_t)operator,
        .type = (uint8_t)fields[0].type,
        .field_count = (uint8_t)count,
    };
}

#endif
