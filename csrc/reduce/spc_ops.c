/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops.h"

#include <stddef.h>

#include "base/spc_atomic.h"
#include "reduce/spc_ops_private.h"
#include "spcomm/simtime.h"

/* ---- kernels of what is no plain number ---- */

int spc_kernel_sum_simtime(void *to_bytes, const void *left_bytes, const void *right_bytes, uint32_t count) {
    spcomm_simtime_t *to = to_bytes;
    const spcomm_simtime_t *left = left_bytes;
    const spcomm_simtime_t *right = right_bytes;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = spcomm_simtime_from(left[i].time + right[i].time);
    }
    return SPC_OK;
}

/* The right one only where it comes before (sign -1) or after (sign 1) the left one. */
static int choose_simtime(spcomm_simtime_t *to, const spcomm_simtime_t *left, const spcomm_simtime_t *right,
                          uint32_t count, int sign) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = spcomm_simtime_compare(right[i], left[i]) == sign ? right[i] : left[i];
    }
    return SPC_OK;
}

int spc_kernel_min_simtime(void *to, const void *left, const void *right, uint32_t count) {
    return choose_simtime(to, left, right, count, -1);
}

int spc_kernel_max_simtime(void *to, const void *left, const void *right, uint32_t count) {
    return choose_simtime(to, left, right, count, 1);
}

/* int64 of one operator; SPC_EWIDE if a result is out of range. */
#define EXACT(operator_name, overflows)                                                                     \
    int spc_kernel_##operator_name##_exact(void *to_bytes, const void *left_bytes, const void *right_bytes, \
                                           uint32_t count) {                                                \
        int64_t *to = to_bytes;                                                                             \
        const int64_t *left = left_bytes;                                                                   \
        const int64_t *right = right_bytes;                                                                 \
        int overflow = 0;                                                                                   \
        for (uint32_t i = 0; i < count; i++) {                                                              \
            int64_t made; /* not to[i]: gcc 12 reads left[i] again after writing there */                   \
            overflow |= overflows(left[i], right[i], &made);                                                \
            to[i] = made;                                                                                   \
        }                                                                                                   \
        return overflow ? SPC_EWIDE : SPC_OK;                                                               \
    }

EXACT(sum, __builtin_add_overflow)
EXACT(prod, __builtin_mul_overflow)

int spc_kernel_wide(void *to, const void *left, const void *right, uint32_t count) {
    (void)to;
    (void)left;
    (void)right;
    (void)count;
    return SPC_EWIDE;
}

int spc_kernel_nothing(void *to, const void *left, const void *right, uint32_t count) {
    (void)to;
    (void)left;
    (void)right;
    (void)count;
    return SPC_OK;
}

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

uint64_t spc_fields_hash(const spc_field_t *fields, uint32_t field_count) {
    uint64_t hash = field_count;
    for (uint32_t i = 0; i < field_count; i++) {
        const uint64_t type = fields[i].type == SPC_TYPE_WIDE ? SPC_TYPE_INT : fields[i].type;
        hash ^= type << 32 | fields[i].count;
        hash *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: odd, and its bits look random */
        hash ^= hash >> 32;
    }
    return hash;
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
        const int status = kernel((unsigned char *)to + at, (const unsigned char *)left + at,
                                  (const unsigned char *)right + at, fields[i].count);
        outcome = status != SPC_OK ? status : outcome;
        at += field_bytes(fields[i]);
    }
    return outcome;
}

int spc_ops_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *left,
                    const void *right) {
    return spc_ops_combine_to(operator, fields, field_count, left, left, right);
}

/* ---- what the only node gives ---- */

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
