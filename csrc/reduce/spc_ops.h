/* SPDX-License-Identifier: MIT */
/*
 * spc_ops: the operators with which the core itself can combine values.
 *
 * A value is a sequence of fields; each field is `count` elements of one type and starts at a multiple of 8
 * bytes. A number is one field of one element, an array one field, a tuple several. Pure functions; any thread may call
 * them.
 *
 * An operator applied to two elements of one type gives the result of NumPy's ufunc for two arrays of that dtype, but a
 * logical result keeps the type, as 0 or 1:
 *
 *                   SUM PROD   MIN MAX   LOGICAL_…   BITWISE_…   MINLOC MAXLOC
 *   integers         x   x      x   x        x           x
 *   floating point   x   x      x   x        x
 *   BOOL             x   x      x   x        x           x                        SUM, MAX: or; PROD, MIN: and
 *   COMPLEX          x   x
 *   PAIR_…                                                           x
 *   INT              x   x      x   x        x           x                        nothing wraps: SPC_EWIDE
 *   SIMTIME          x          x   x
 *
 * A PAIR is a value and an index, spc_pair_t: 16 bytes, as NumPy lays out an aligned [('value', T), ('index', int64)].
 * MINLOC and MAXLOC keep the whole pair of the least or greatest value; of equal values (0.0 and -0.0 are equal, and so
 * are any two NaN, which win over numbers as in numpy.argmin) they keep the pair with the lower index.
 *
 * A SIMTIME is a spcomm_simtime_t. Its sum adds the times and has no priorities, for those break ties between
 * events and a sum is none; its order is that of spcomm/simtime.h. Of equal times MIN and MAX keep the one of
 * the lower ranks, as Python's min and max keep the first.
 */
#ifndef SPC_OPS_H
#define SPC_OPS_H

#include <stdbool.h>
#include <stdint.h>

#define SPC_FIELDS_MAX 32

/* X(name, public name). For floating point MIN and MAX are NaN if any value is, as numpy.minimum; -0.0 is less than
 * 0.0. */
#define SPC_OPERATORS(X)   \
    X(SUM, "SUM")          \
    X(MIN, "MIN")          \
    X(MAX, "MAX")          \
    X(PROD, "PROD")        \
    X(LOGICAL_AND, "LAND") \
    X(LOGICAL_OR, "LOR")   \
    X(LOGICAL_XOR, "LXOR") \
    X(BITWISE_AND, "BAND") \
    X(BITWISE_OR, "BOR")   \
    X(BITWISE_XOR, "BXOR") \
    X(MINLOC, "MINLOC")    \
    X(MAXLOC, "MAXLOC")

typedef enum spc_operator {
#define SPC_OPERATOR_ENUM(name, word) SPC_##name,
    SPC_OPERATORS(SPC_OPERATOR_ENUM)
#undef SPC_OPERATOR_ENUM
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
    SPC_TYPE_WIDE, /* one that does not fit: combined with any value, it gives SPC_EWIDE */
#define SPC_TYPE_ENUM(name, ctype) SPC_TYPE_##name,
    SPC_NUMBER_TYPES(SPC_TYPE_ENUM)
#undef SPC_TYPE_ENUM
    SPC_TYPE_SIMTIME, /* spcomm_simtime_t, 24 bytes */
    SPC_TYPE_BOOL,    /* a byte, 0 or 1 */
    SPC_TYPE_COMPLEX64,
    SPC_TYPE_COMPLEX128,
#define SPC_TYPE_PAIR_ENUM(name, ctype) SPC_TYPE_PAIR_##name,
    SPC_NUMBER_TYPES(SPC_TYPE_PAIR_ENUM)
#undef SPC_TYPE_PAIR_ENUM
    SPC_TYPE_COUNT
} spc_type_t;
/* clang-format on */

typedef struct spc_field {
    uint32_t type; /* spc_type_t */
    uint32_t count;
} spc_field_t;

/* Layout of a PAIR; `value` has one of the number types, and the rest of its 8 bytes is carried along. */
typedef struct spc_pair {
    union {
#define SPC_PAIR_MEMBER(name, ctype) ctype name;
        SPC_NUMBER_TYPES(SPC_PAIR_MEMBER)
#undef SPC_PAIR_MEMBER
        uint64_t bytes;
    } value;
    int64_t index;
} spc_pair_t;

_Static_assert(sizeof(spc_pair_t) == 16, "spc_pair_t is what bindings lay out");

/* Bytes of one element; 0 for SPC_TYPE_NONE. INT and WIDE take 8. */
uint32_t spc_type_size(uint32_t type);

/* Bytes of a value of these fields, each rounded up to 8. */
uint64_t spc_fields_bytes(const spc_field_t *fields, uint32_t field_count);

/* Whether the operator supports this type. INT and WIDE: whether it supports INT64. */
bool spc_ops_has(spc_operator_t operator, uint32_t type);

/* to = left operator right, element by element; `left` is the value of the lower ranks. Integer arrays wrap, as NumPy's
 * do. SPC_EWIDE if an INT sum or product overflows or a field is WIDE (`to` is then undefined); SPC_EINVAL if an
 * operator does not support a type. All values start at a multiple of 8 bytes; `to` may be `left` or `right`, and
 * otherwise they do not overlap. */
int spc_ops_combine_to(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *to,
                       const void *left, const void *right);

/* left = left operator right. */
int spc_ops_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *left,
                    const void *right);

/* value = the operator's result for it alone, as the only node's: a sum of a SIMTIME has no priorities, logical results
 * are 0 or 1; all others stay. */
void spc_ops_alone(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *value);

#endif
