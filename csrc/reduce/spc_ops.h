/* SPDX-License-Identifier: MIT */
/*
 * spc_ops: the operators that the core itself can combine values with.
 *
 * A value is a sequence of fields; each field is `count` elements of one type and starts at a multiple of 8
 * bytes. A number is one field of one element, an array one field, a tuple several. Pure functions; anybody
 * may call.
 *
 * A SIMTIME is a spcomm_simtime_t. Its sum adds the times and has no priorities, for those break ties between
 * events and a sum is none; its order is that of spcomm/simtime.h. Of equal times MIN and MAX keep the one of
 * the lower ranks, as Python's min and max keep the first.
 */
#ifndef SPC_OPS_H
#define SPC_OPS_H

#include <stdint.h>

#define SPC_FIELDS_MAX 32

typedef enum spc_operator {
    SPC_SUM,
    SPC_MIN, /* of floating point: NaN if any is NaN, as numpy.minimum; -0.0 is less than 0.0 */
    SPC_MAX,
    SPC_OPERATOR_COUNT
} spc_operator_t;

/* X(name, C type). */
#define SPC_INTEGER_TYPES(X) \
    X(INT8, int8_t)          \
    X(INT16, int16_t)        \
    X(INT32, int32_t)        \
    X(INT64, int64_t)        \
    X(UINT8, uint8_t)        \
    X(UINT16, uint16_t)      \
    X(UINT32, uint32_t)      \
    X(UINT64, uint64_t)
#define SPC_FLOAT_TYPES(X) \
    X(FLOAT32, float)      \
    X(FLOAT64, double)
#define SPC_NUMBER_TYPES(X) \
    SPC_INTEGER_TYPES(X)    \
    SPC_FLOAT_TYPES(X)

/* clang-format off */
typedef enum spc_type {
    SPC_TYPE_NONE, /* no value: barriers */
    SPC_TYPE_INT,  /* a Python integer that fits into 64 bits: sums do not wrap, but give SPC_EWIDE */
    SPC_TYPE_WIDE, /* one that does not fit: whatever it is combined with, SPC_EWIDE */
#define SPC_TYPE_ENUM(name, ctype) SPC_TYPE_##name,
    SPC_NUMBER_TYPES(SPC_TYPE_ENUM)
#undef SPC_TYPE_ENUM
    SPC_TYPE_SIMTIME, /* spcomm_simtime_t, 24 bytes */
    SPC_TYPE_COUNT
} spc_type_t;
/* clang-format on */

typedef struct spc_field {
    uint32_t type; /* spc_type_t */
    uint32_t count;
} spc_field_t;

/* Bytes of one element; 0 for SPC_TYPE_NONE. INT and WIDE take 8. */
uint32_t spc_type_size(uint32_t type);

/* Bytes of a value of these fields, each rounded up to 8. */
uint64_t spc_fields_bytes(const spc_field_t *fields, uint32_t field_count);

/* A hash for spc_signature_t.layout: types and counts of the fields. INT and WIDE give the same, since
 * nodes that contribute one and the other match, and all get SPC_EWIDE. */
uint64_t spc_fields_hash(const spc_field_t *fields, uint32_t field_count);

/* left = left operator right, element by element; `left` is the value of the lower ranks. Integer arrays
 * wrap, as NumPy's do. SPC_EWIDE if an INT sum overflows or a field is WIDE (left is then undefined);
 * SPC_EINVAL if an operator or type is not one of the above. Both values start at a multiple of 8 bytes
 * and do not overlap. */
int spc_ops_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *left,
                    const void *right);

/* value = the sum of it alone. Only a SIMTIME becomes another: it loses its priorities, as in every sum. */
void spc_ops_sum_of_one(const spc_field_t *fields, uint32_t field_count, void *value);

#endif
