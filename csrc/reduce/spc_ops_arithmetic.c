/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops_private.h"

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
const spc_kernels_t spc_kernels_sum = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
    [SPC_TYPE_INT] = spc_kernel_sum_exact,
    [SPC_TYPE_WIDE] = spc_kernel_wide,
    [SPC_TYPE_SIMTIME] = spc_kernel_sum_simtime,
    [SPC_TYPE_BOOL] = or_BOOL,
    [SPC_TYPE_COMPLEX64] = sum_COMPLEX64,
    [SPC_TYPE_COMPLEX128] = sum_COMPLEX128,
#define SUM_ENTRY(name, ctype) [SPC_TYPE_##name] = sum_##name,
    SPC_NUMBER_TYPES(SUM_ENTRY)
}};

const spc_kernels_t spc_kernels_prod = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
    [SPC_TYPE_INT] = spc_kernel_prod_exact,
    [SPC_TYPE_WIDE] = spc_kernel_wide,
    [SPC_TYPE_BOOL] = and_BOOL,
    [SPC_TYPE_COMPLEX64] = prod_COMPLEX64,
    [SPC_TYPE_COMPLEX128] = prod_COMPLEX128,
#define PROD_ENTRY(name, ctype) [SPC_TYPE_##name] = prod_##name,
    SPC_NUMBER_TYPES(PROD_ENTRY)
}};

const spc_kernels_t spc_kernels_min = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
    [SPC_TYPE_INT] = min_INT64,
    [SPC_TYPE_WIDE] = spc_kernel_wide,
    [SPC_TYPE_SIMTIME] = spc_kernel_min_simtime,
    [SPC_TYPE_BOOL] = and_BOOL,
#define MIN_ENTRY(name, ctype) [SPC_TYPE_##name] = min_##name,
    SPC_NUMBER_TYPES(MIN_ENTRY)
}};

const spc_kernels_t spc_kernels_max = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
    [SPC_TYPE_INT] = max_INT64,
    [SPC_TYPE_WIDE] = spc_kernel_wide,
    [SPC_TYPE_SIMTIME] = spc_kernel_max_simtime,
    [SPC_TYPE_BOOL] = or_BOOL,
#define MAX_ENTRY(name, ctype) [SPC_TYPE_##name] = max_##name,
    SPC_NUMBER_TYPES(MAX_ENTRY)
}};
