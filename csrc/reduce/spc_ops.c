/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops.h"

#include <stddef.h>
#include <string.h>

#include "base/spc_atomic.h"
#include "base/spc_error.h"
#include "spcomm/simtime.h"

/* ---- kernels */

/* to[i] = left[i] operator right[i]; `to` is one of the two, or apart from them. */
typedef int (*spc_kernel_fn)(void *to, const void *left, const void *right, uint32_t count);

/* An operator's kernels by type; NULL: it does not support the type. */
typedef struct spc_kernels {
    spc_kernel_fn of[SPC_TYPE_COUNT];
} spc_kernels_t;

/* to[i] = EXPRESSION of l and r. The inner loop has a fixed length and its own target, so that compilers turn it into
 * vector instructions even at -O2, and whether or not `to` is an operand: the block stays in registers. */
#define SPC_KERNEL_BLOCK 16

#define SPC_DEFINE_KERNEL(name, ctype, EXPRESSION)                                                     \
    static int name(void *to_bytes, const void *left_bytes, const void *right_bytes, uint32_t count) { \
        ctype *to = to_bytes;                                                                          \
        const ctype *left = left_bytes;                                                                \
        const ctype *right = right_bytes;                                                              \
        for (; count >= SPC_KERNEL_BLOCK; count -= SPC_KERNEL_BLOCK) {                                 \
            ctype block[SPC_KERNEL_BLOCK];                                                             \
            for (uint32_t i = 0; i < SPC_KERNEL_BLOCK; i++) {                                          \
                const ctype l = left[i];                                                               \
                const ctype r = right[i];                                                              \
                block[i] = (ctype)(EXPRESSION);                                                        \
            }                                                                                          \
            memcpy(to, block, sizeof block);                                                           \
            to += SPC_KERNEL_BLOCK;                                                                    \
            left += SPC_KERNEL_BLOCK;                                                                  \
            right += SPC_KERNEL_BLOCK;                                                                 \
        }                                                                                              \
        for (uint32_t i = 0; i < count; i++) {                                                         \
            const ctype l = left[i];                                                                   \
            const ctype r = right[i];                                                                  \
            to[i] = (ctype)(EXPRESSION);                                                               \
        }                                                                                              \
        return SPC_OK;                                                                                 \
    }

/* ---- kernels of values that are no plain numbers ---- */

static int sum_simtimes(void *to_bytes, const void *left_bytes, const void *right_bytes, uint32_t count) {
    spcomm_simtime_t *to = to_bytes;
    const spcomm_simtime_t *left = left_bytes;
    const spcomm_simtime_t *right = right_bytes;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = spcomm_simtime_from(left[i].time + right[i].time);
    }
    return SPC_OK;
}

/* Takes the right one only if it comes before (sign -1) or after (sign 1) the left one. */
static int choose_simtime(spcomm_simtime_t *to, const spcomm_simtime_t *left, const spcomm_simtime_t *right,
                          uint32_t count, int sign) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = spcomm_simtime_compare(right[i], left[i]) == sign ? right[i] : left[i];
    }
    return SPC_OK;
}

static int min_simtimes(void *to, const void *left, const void *right, uint32_t count) {
    return choose_simtime(to, left, right, count, -1);
}

static int max_simtimes(void *to, const void *left, const void *right, uint32_t count) {
    return choose_simtime(to, left, right, count, 1);
}

/* int64 of one operator; SPC_EWIDE if a result is out of range. */
#define EXACT(operator_name, overflows)                                                      \
    static int spc_kernel_##operator_name##_exact(void *to_bytes, const void *left_bytes,    \
                                                  const void *right_bytes, uint32_t count) { \
        int64_t *to = to_bytes;                                                              \
        const int64_t *left = left_bytes;                                                    \
        const int64_t *right = right_bytes;                                                  \
        int overflow = 0;                                                                    \
        for (uint32_t i = 0; i < count; i++) {                                               \
            int64_t made; /* not to[i]: gcc 12 reads left[i] again after writing there */    \
            overflow |= overflows(left[i], right[i], &made);                                 \
            to[i] = made;                                                                    \
        }                                                                                    \
        return overflow ? SPC_EWIDE : SPC_OK;                                                \
    }

EXACT(sum, __builtin_add_overflow)
EXACT(prod, __builtin_mul_overflow)

static int combine_wide(void *to, const void *left, const void *right, uint32_t count) {
    (void)to;
    (void)left;
    (void)right;
    (void)count;
    return SPC_EWIDE;
}

static int do_nothing(void *to, const void *left, const void *right, uint32_t count) {
    (void)to;
    (void)left;
    (void)right;
    (void)count;
    return SPC_OK;
}

/* ---- sums, products, the lesser and the greater */

/* Integers are added and multiplied unsigned, where wrapping is defined. */
#define DEFINE_INTEGER_KERNELS(name, ctype)                         \
    SPC_DEFINE_KERNEL(sum_##name, ctype, (uint64_t)l + (uint64_t)r) \
    SPC_DEFINE_KERNEL(prod_##name, ctype, (uint64_t)l *(uint64_t)r) \
    SPC_DEFINE_KERNEL(min_##name, ctype, l < r ? l : r)             \
    SPC_DEFINE_KERNEL(max_##name, ctype, l > r ? l : r)
SPC_INTEGER_TYPES(DEFINE_INTEGER_KERNELS)

/* A NaN stays: the left one because it differs from itself, the right one because all comparisons with it
 * are false. Equal values differ at most in the sign of zero, and the zero with a sign is the lesser. No
 * branches: | and &. */
#define HAS_SIGN(x) (__builtin_copysign(1.0, (x)) < 0.0)
#define DEFINE_FLOAT_KERNELS(name, ctype)                                                        \
    SPC_DEFINE_KERNEL(sum_##name, ctype, l + r)                                                  \
    SPC_DEFINE_KERNEL(prod_##name, ctype, l *r)                                                  \
    SPC_DEFINE_KERNEL(min_##name, ctype, (l < r) | (l != l) | ((l == r) & !HAS_SIGN(r)) ? l : r) \
    SPC_DEFINE_KERNEL(max_##name, ctype, (l > r) | (l != l) | ((l == r) & !HAS_SIGN(l)) ? l : r)
SPC_FLOAT_TYPES(DEFINE_FLOAT_KERNELS)

SPC_DEFINE_KERNEL(or_BOOL, uint8_t, (l | r) != 0)
SPC_DEFINE_KERNEL(and_BOOL, uint8_t, (l != 0) & (r != 0))

/* Real and imaginary parts in turn. A product as NumPy's: four multiplications, and no second look at infinities. */
#define DEFINE_COMPLEX_KERNELS(name, ctype)                                                             \
    static int sum_##name(void *to, const void *left, const void *right, uint32_t count) {              \
        /* In two halves: twice `count` may not fit its type. */                                        \
        const int status = sum_of_parts_##name(to, left, right, count);                                 \
        return status != SPC_OK ? status                                                                \
                                : sum_of_parts_##name((ctype *)to + count, (const ctype *)left + count, \
                                                      (const ctype *)right + count, count);             \
    }                                                                                                   \
    static int prod_##name(void *to_bytes, const void *left_bytes, const void *right_bytes,             \
                           uint32_t count) {                                                            \
        ctype *to = to_bytes;                                                                           \
        const ctype *left = left_bytes;                                                                 \
        const ctype *right = right_bytes;                                                               \
        for (uint64_t i = 0; i < 2 * (uint64_t)count; i += 2) {                                         \
            const ctype real = left[i] * right[i] - left[i + 1] * right[i + 1];                         \
            const ctype imaginary = left[i] * right[i + 1] + left[i + 1] * right[i];                    \
            to[i] = real;                                                                               \
            to[i + 1] = imaginary;                                                                      \
        }                                                                                               \
        return SPC_OK;                                                                                  \
    }
#define sum_of_parts_COMPLEX64 sum_FLOAT32
#define sum_of_parts_COMPLEX128 sum_FLOAT64
DEFINE_COMPLEX_KERNELS(COMPLEX64, float)
DEFINE_COMPLEX_KERNELS(COMPLEX128, double)

/* clang-format off */
static const spc_kernels_t spc_kernels_sum = {{
    [SPC_TYPE_NONE] = do_nothing,
    [SPC_TYPE_INT] = spc_kernel_sum_exact,
    [SPC_TYPE_WIDE] = combine_wide,
    [SPC_TYPE_SIMTIME] = sum_simtimes,
    [SPC_TYPE_BOOL] = or_BOOL,
    [SPC_TYPE_COMPLEX64] = sum_COMPLEX64,
    [SPC_TYPE_COMPLEX128] = sum_COMPLEX128,
#define SUM_ENTRY(name, ctype) [SPC_TYPE_##name] = sum_##name,
    SPC_NUMBER_TYPES(SUM_ENTRY)
}};

static const spc_kernels_t spc_kernels_prod = {{
    [SPC_TYPE_NONE] = do_nothing,
    [SPC_TYPE_INT] = spc_kernel_prod_exact,
    [SPC_TYPE_WIDE] = combine_wide,
    [SPC_TYPE_BOOL] = and_BOOL,
    [SPC_TYPE_COMPLEX64] = prod_COMPLEX64,
    [SPC_TYPE_COMPLEX128] = prod_COMPLEX128,
#define PROD_ENTRY(name, ctype) [SPC_TYPE_##name] = prod_##name,
    SPC_NUMBER_TYPES(PROD_ENTRY)
}};

static const spc_kernels_t spc_kernels_min = {{
    [SPC_TYPE_NONE] = do_nothing,
    [SPC_TYPE_INT] = min_INT64,
    [SPC_TYPE_WIDE] = combine_wide,
    [SPC_TYPE_SIMTIME] = min_simtimes,
    [SPC_TYPE_BOOL] = and_BOOL,
#define MIN_ENTRY(name, ctype) [SPC_TYPE_##name] = min_##name,
    SPC_NUMBER_TYPES(MIN_ENTRY)
}};

static const spc_kernels_t spc_kernels_max = {{
    [SPC_TYPE_NONE] = do_nothing,
    [SPC_TYPE_INT] = max_INT64,
    [SPC_TYPE_WIDE] = combine_wide,
    [SPC_TYPE_SIMTIME] = max_simtimes,
    [SPC_TYPE_BOOL] = or_BOOL,
#define MAX_ENTRY(name, ctype) [SPC_TYPE_##name] = max_##name,
    SPC_NUMBER_TYPES(MAX_ENTRY)
}};
/* clang-format on */

/* ---- logical and bitwise operators */

/* Any value other than zero is true, NaN too. */
#define DEFINE_LOGICAL_KERNELS(name, ctype)                           \
    SPC_DEFINE_KERNEL(logical_and_##name, ctype, (l != 0) & (r != 0)) \
    SPC_DEFINE_KERNEL(logical_or_##name, ctype, (l != 0) | (r != 0))  \
    SPC_DEFINE_KERNEL(logical_xor_##name, ctype, (l != 0) ^ (r != 0))
SPC_NUMBER_TYPES(DEFINE_LOGICAL_KERNELS)
DEFINE_LOGICAL_KERNELS(BOOL, uint8_t)

#define DEFINE_BITWISE_KERNELS(name, ctype)            \
    SPC_DEFINE_KERNEL(bitwise_and_##name, ctype, l &r) \
    SPC_DEFINE_KERNEL(bitwise_or_##name, ctype, l | r) \
    SPC_DEFINE_KERNEL(bitwise_xor_##name, ctype, l ^ r)
SPC_INTEGER_TYPES(DEFINE_BITWISE_KERNELS)

/* clang-format off */
#define DEFINE_LOGICAL_TABLE(operator)                             \
    static const spc_kernels_t spc_kernels_##operator = {{         \
        [SPC_TYPE_NONE] = do_nothing,                      \
        [SPC_TYPE_INT] = operator##_INT64,                         \
        [SPC_TYPE_WIDE] = combine_wide,                         \
        [SPC_TYPE_BOOL] = operator##_BOOL,                         \
        [SPC_TYPE_FLOAT32] = operator##_FLOAT32,                   \
        [SPC_TYPE_FLOAT64] = operator##_FLOAT64,                   \
        INTEGER_ENTRIES(operator)                                  \
    }}
#define DEFINE_BITWISE_TABLE(operator)                             \
    static const spc_kernels_t spc_kernels_##operator = {{         \
        [SPC_TYPE_NONE] = do_nothing,                      \
        [SPC_TYPE_INT] = operator##_INT64,                         \
        [SPC_TYPE_WIDE] = combine_wide,                         \
        [SPC_TYPE_BOOL] = logical_##operator,                      \
        INTEGER_ENTRIES(operator)                                  \
    }}
#define INTEGER_ENTRIES(operator)                                                                  \
    [SPC_TYPE_INT8] = operator##_INT8, [SPC_TYPE_INT16] = operator##_INT16,                        \
    [SPC_TYPE_INT32] = operator##_INT32, [SPC_TYPE_INT64] = operator##_INT64,                      \
    [SPC_TYPE_UINT8] = operator##_UINT8, [SPC_TYPE_UINT16] = operator##_UINT16,                    \
    [SPC_TYPE_UINT32] = operator##_UINT32, [SPC_TYPE_UINT64] = operator##_UINT64
#define logical_bitwise_and logical_and_BOOL
#define logical_bitwise_or logical_or_BOOL
#define logical_bitwise_xor logical_xor_BOOL

DEFINE_LOGICAL_TABLE(logical_and);
DEFINE_LOGICAL_TABLE(logical_or);
DEFINE_LOGICAL_TABLE(logical_xor);
DEFINE_BITWISE_TABLE(bitwise_and);
DEFINE_BITWISE_TABLE(bitwise_or);
DEFINE_BITWISE_TABLE(bitwise_xor);
/* clang-format on */

/* ---- the position of the least and of the greatest */

/* Order of values: for integers the lesser (or greater) first, for floating point a NaN before all numbers. */
#define LESS(l, r) ((l) < (r))
#define GREATER(l, r) ((l) > (r))
#define LESS_OR_NAN(l, r) (((l) < (r)) | (((l) != (l)) & ((r) == (r))))
#define GREATER_OR_NAN(l, r) (((l) > (r)) | (((l) != (l)) & ((r) == (r))))

/* If neither comes first, the pair with the lower index does: so the order of the nodes does not matter. */
#define DEFINE_PAIR_KERNEL(prefix, name, FIRST)                                                 \
    static int prefix##_##name(void *to_bytes, const void *left_bytes, const void *right_bytes, \
                               uint32_t count) {                                                \
        spc_pair_t *to = to_bytes;                                                              \
        const spc_pair_t *left = left_bytes;                                                    \
        const spc_pair_t *right = right_bytes;                                                  \
        for (uint32_t i = 0; i < count; i++) {                                                  \
            const spc_pair_t l = left[i];                                                       \
            const spc_pair_t r = right[i];                                                      \
            const bool stays = FIRST(l.value.name, r.value.name)                                \
                               | (!FIRST(r.value.name, l.value.name) & (l.index <= r.index));   \
            to[i].value.bytes = stays ? l.value.bytes : r.value.bytes;                          \
            to[i].index = stays ? l.index : r.index;                                            \
        }                                                                                       \
        return SPC_OK;                                                                          \
    }
#define DEFINE_INTEGER_PAIR_KERNELS(name, ctype) \
    DEFINE_PAIR_KERNEL(minloc, name, LESS)       \
    DEFINE_PAIR_KERNEL(maxloc, name, GREATER)
#define DEFINE_FLOAT_PAIR_KERNELS(name, ctype)    \
    DEFINE_PAIR_KERNEL(minloc, name, LESS_OR_NAN) \
    DEFINE_PAIR_KERNEL(maxloc, name, GREATER_OR_NAN)
SPC_INTEGER_TYPES(DEFINE_INTEGER_PAIR_KERNELS)
SPC_FLOAT_TYPES(DEFINE_FLOAT_PAIR_KERNELS)

/* clang-format off */
static const spc_kernels_t spc_kernels_minloc = {{
    [SPC_TYPE_NONE] = do_nothing,
#define MINLOC_ENTRY(name, ctype) [SPC_TYPE_PAIR_##name] = minloc_##name,
    SPC_NUMBER_TYPES(MINLOC_ENTRY)
}};

static const spc_kernels_t spc_kernels_maxloc = {{
    [SPC_TYPE_NONE] = do_nothing,
#define MAXLOC_ENTRY(name, ctype) [SPC_TYPE_PAIR_##name] = maxloc_##name,
    SPC_NUMBER_TYPES(MAXLOC_ENTRY)
}};
/* clang-format on */

/* ---- types and operators ---- */

/* clang-format off */
static const uint32_t type_bytes[SPC_TYPE_COUNT] = {
    [SPC_TYPE_INT] = 8,
    [SPC_TYPE_WIDE] = 8,
    [SPC_TYPE_SIMTIME] = sizeof(spcomm_simtime_t),
    [SPC_TYPE_BOOL] = 1,
    [SPC_TYPE_COMPLEX64] = 8,
    [SPC_TYPE_COMPLEX128] = 16,
#define SIZE_ENTRIES(name, ctype)            \
    [SPC_TYPE_##name] = sizeof(ctype),       \
    [SPC_TYPE_PAIR_##name] = sizeof(spc_pair_t),
    SPC_NUMBER_TYPES(SIZE_ENTRIES)
#undef SIZE_ENTRIES
};

static const spc_kernels_t *const operator_table[SPC_OPERATOR_COUNT] = {
    [SPC_SUM] = &spc_kernels_sum,
    [SPC_MIN] = &spc_kernels_min,
    [SPC_MAX] = &spc_kernels_max,
    [SPC_PROD] = &spc_kernels_prod,
    [SPC_LOGICAL_AND] = &spc_kernels_logical_and,
    [SPC_LOGICAL_OR] = &spc_kernels_logical_or,
    [SPC_LOGICAL_XOR] = &spc_kernels_logical_xor,
    [SPC_BITWISE_AND] = &spc_kernels_bitwise_and,
    [SPC_BITWISE_OR] = &spc_kernels_bitwise_or,
    [SPC_BITWISE_XOR] = &spc_kernels_bitwise_xor,
    [SPC_MINLOC] = &spc_kernels_minloc,
    [SPC_MAXLOC] = &spc_kernels_maxloc,
};
/* clang-format on */

static spc_kernel_fn kernel_of(spc_operator_t operator, uint32_t type) {
    return type < SPC_TYPE_COUNT ? operator_table[operator]->of[type] : NULL;
}

bool spc_ops_has(spc_operator_t operator, uint32_t type) {
    return (unsigned)operator < SPC_OPERATOR_COUNT && kernel_of(operator, type) != NULL;
}

uint32_t spc_type_size(uint32_t type) {
    return type < SPC_TYPE_COUNT ? type_bytes[type] : 0;
}

/* ---- values ---- */

static uint64_t field_bytes(spc_field_t field) {
    return spc_round_up((uint64_t)spc_type_size(field.type) * field.count, 8);
}

uint64_t spc_fields_bytes(const spc_field_t *fields, uint32_t field_count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < field_count; i++) {
        bytes += field_bytes(fields[i]);
    }
    return bytes;
}

int spc_ops_combine_to(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *to,
                       const void *left, const void *right) {
    uint64_t at = 0;
    int outcome = SPC_OK;
    if ((unsigned)operator >= SPC_OPERATOR_COUNT) {
        return SPC_EINVAL;
    }
    for (uint32_t i = 0; i < field_count; i++) {
        const spc_kernel_fn kernel = kernel_of(operator, fields[i].type);
        if (kernel == NULL) {
            return SPC_EINVAL;
        }
        at += i == 0 ? 0 : field_bytes(fields[i - 1]);
        const int status = kernel((unsigned char *)to + at, (const unsigned char *)left + at,
                                  (const unsigned char *)right + at, fields[i].count);
        outcome = status != SPC_OK ? status : outcome;
    }
    return outcome;
}

int spc_ops_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *left,
                    const void *right) {
    return spc_ops_combine_to(operator, fields, field_count, left, left, right);
}

/* ---- the result of a single node ---- */

static bool is_logical(spc_operator_t operator) {
    return operator == SPC_LOGICAL_AND || operator == SPC_LOGICAL_OR || operator == SPC_LOGICAL_XOR;
}

static void strip_times(spcomm_simtime_t *times, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        times[i] = spcomm_simtime_from(times[i].time);
    }
}

void spc_ops_alone(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *value) {
    unsigned char *bytes = value;
    for (uint32_t i = 0; i < field_count; i++) {
        if (operator == SPC_SUM && fields[i].type == SPC_TYPE_SIMTIME) {
            strip_times((spcomm_simtime_t *)(void *)bytes, fields[i].count);
        } else if (is_logical(operator) && spc_ops_has(operator, fields[i].type)) {
            /* x and x, x or x: whether x is true */
            (void)kernel_of(SPC_LOGICAL_OR, fields[i].type)(bytes, bytes, bytes, fields[i].count);
        }
        bytes += field_bytes(fields[i]);
    }
}
