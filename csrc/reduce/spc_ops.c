/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops.h"

#include <stddef.h>

#include "base/spc_atomic.h"
#include "base/spc_error.h"
#include "spcomm/simtime.h"

/* left[i] = EXPRESSION of l and r. The inner loop has a fixed length, so that compilers turn it into vector
 * instructions even at -O2, where loops of unknown length are left alone. */
#define KERNEL_BLOCK 16

#define DEFINE_KERNEL(name, ctype, EXPRESSION)                                                     \
    static int name(void *restrict left_bytes, const void *restrict right_bytes, uint32_t count) { \
        ctype *restrict left = left_bytes;                                                         \
        const ctype *restrict right = right_bytes;                                                 \
        for (; count >= KERNEL_BLOCK; count -= KERNEL_BLOCK) {                                     \
            for (uint32_t i = 0; i < KERNEL_BLOCK; i++) {                                          \
                const ctype l = left[i];                                                           \
                const ctype r = right[i];                                                          \
                left[i] = (ctype)(EXPRESSION);                                                     \
            }                                                                                      \
            left += KERNEL_BLOCK;                                                                  \
            right += KERNEL_BLOCK;                                                                 \
        }                                                                                          \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            const ctype l = left[i];                                                               \
            const ctype r = right[i];                                                              \
            left[i] = (ctype)(EXPRESSION);                                                         \
        }                                                                                          \
        return SPC_OK;                                                                             \
    }

/* Integers are added unsigned, where wrapping is defined. */
#define DEFINE_INTEGER_KERNELS(name, ctype)                     \
    DEFINE_KERNEL(sum_##name, ctype, (uint64_t)l + (uint64_t)r) \
    DEFINE_KERNEL(min_##name, ctype, l < r ? l : r)             \
    DEFINE_KERNEL(max_##name, ctype, l > r ? l : r)
SPC_INTEGER_TYPES(DEFINE_INTEGER_KERNELS)

/* A NaN stays: the left one because it differs from itself, the right one because all comparisons with it
 * are false. Equal values differ at most in the sign of zero, and the zero with a sign is the lesser. No
 * branches: | and &. */
#define HAS_SIGN(x) (__builtin_copysign(1.0, (x)) < 0.0)
#define DEFINE_FLOAT_KERNELS(name, ctype)                                                   \
    DEFINE_KERNEL(sum_##name, ctype, l + r)                                                 \
    DEFINE_KERNEL(min_##name, ctype, (l < r) | (l != l) | ((l == r) & HAS_SIGN(l)) ? l : r) \
    DEFINE_KERNEL(max_##name, ctype, (l > r) | (l != l) | ((l == r) & !HAS_SIGN(l)) ? l : r)
SPC_FLOAT_TYPES(DEFINE_FLOAT_KERNELS)

static int sum_simtime(void *restrict left_bytes, const void *restrict right_bytes, uint32_t count) {
    spcomm_simtime_t *restrict left = left_bytes;
    const spcomm_simtime_t *restrict right = right_bytes;
    for (uint32_t i = 0; i < count; i++) {
        left[i] = spcomm_simtime_from(left[i].time + right[i].time);
    }
    return SPC_OK;
}

/* Keeps the right one only where it comes before (sign -1) or after (sign 1) the left one. */
static int choose_simtime(spcomm_simtime_t *restrict left, const spcomm_simtime_t *restrict right,
                          uint32_t count, int sign) {
    for (uint32_t i = 0; i < count; i++) {
        if (spcomm_simtime_compare(right[i], left[i]) == sign) {
            left[i] = right[i];
        }
    }
    return SPC_OK;
}

static int min_simtime(void *restrict left, const void *restrict right, uint32_t count) {
    return choose_simtime(left, right, count, -1);
}

static int max_simtime(void *restrict left, const void *restrict right, uint32_t count) {
    return choose_simtime(left, right, count, 1);
}

static int sum_exact(void *restrict left_bytes, const void *restrict right_bytes, uint32_t count) {
    int64_t *restrict left = left_bytes;
    const int64_t *restrict right = right_bytes;
    int overflow = 0;
    for (uint32_t i = 0; i < count; i++) {
        overflow |= __builtin_add_overflow(left[i], right[i], &left[i]);
    }
    return overflow ? SPC_EWIDE : SPC_OK;
}

static int too_wide(void *restrict left, const void *restrict right, uint32_t count) {
    (void)left;
    (void)right;
    (void)count;
    return SPC_EWIDE;
}

static int nothing(void *restrict left, const void *restrict right, uint32_t count) {
    (void)left;
    (void)right;
    (void)count;
    return SPC_OK;
}

typedef int (*kernel_fn)(void *restrict left, const void *restrict right, uint32_t count);

/* clang-format off */
static const struct {
    uint32_t size_bytes;
    kernel_fn kernel[SPC_OPERATOR_COUNT];
} type_table[SPC_TYPE_COUNT] = {
    [SPC_TYPE_NONE] = {0, {nothing, nothing, nothing}},
    [SPC_TYPE_INT] = {8, {sum_exact, min_INT64, max_INT64}},
    [SPC_TYPE_WIDE] = {8, {too_wide, too_wide, too_wide}},
#define TYPE_ENTRY(name, ctype) [SPC_TYPE_##name] = {sizeof(ctype), {sum_##name, min_##name, max_##name}},
    SPC_NUMBER_TYPES(TYPE_ENTRY)
#undef TYPE_ENTRY
    [SPC_TYPE_SIMTIME] = {sizeof(spcomm_simtime_t), {sum_simtime, min_simtime, max_simtime}},
};
/* clang-format on */

uint32_t spc_type_size(uint32_t type) {
    return type < SPC_TYPE_COUNT ? type_table[type].size_bytes : 0;
}

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

int spc_ops_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count, void *left,
                    const void *right) {
    unsigned char *left_bytes = left;
    const unsigned char *right_bytes = right;
    int outcome = SPC_OK;
    if ((unsigned)operator >= SPC_OPERATOR_COUNT) {
        return SPC_EINVAL;
    }
    for (uint32_t i = 0; i < field_count; i++) {
        if (fields[i].type >= SPC_TYPE_COUNT) {
            return SPC_EINVAL;
        }
        const kernel_fn kernel = type_table[fields[i].type].kernel[operator];
        const int status = kernel(left_bytes, right_bytes, fields[i].count);
        outcome = status != SPC_OK ? status : outcome;
        left_bytes += field_bytes(fields[i]);
        right_bytes += field_bytes(fields[i]);
    }
    return outcome;
}

void spc_ops_sum_of_one(const spc_field_t *fields, uint32_t field_count, void *value) {
    unsigned char *bytes = value;
    for (uint32_t i = 0; i < field_count; i++) {
        spcomm_simtime_t *times = (spcomm_simtime_t *)(void *)bytes;
        for (uint32_t j = 0; fields[i].type == SPC_TYPE_SIMTIME && j < fields[i].count; j++) {
            times[j] = spcomm_simtime_from(times[j].time);
        }
        bytes += field_bytes(fields[i]);
    }
}
