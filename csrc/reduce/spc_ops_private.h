/* SPDX-License-Identifier: MIT */
/*
 * spc_ops_private: what the files of the operators share; nobody else includes it.
 *
 *   spc_ops.c             types, values of several fields, the way to the right kernel; INT, WIDE, SIMTIME
 *   spc_ops_arithmetic.c  sums, products, the lesser and the greater
 *   spc_ops_logic.c       logical and bitwise operators
 *   spc_ops_pairs.c       the place of the least and of the greatest
 */
#ifndef SPC_OPS_PRIVATE_H
#define SPC_OPS_PRIVATE_H

#include <string.h>

#include "base/spc_error.h"
#include "reduce/spc_ops.h"

/* to[i] = left[i] operator right[i]; `to` is one of the two, or apart from them. */
typedef int (*spc_kernel_fn)(void *to, const void *left, const void *right, uint32_t count);

/* An operator's kernels by type; NULL: it does not know the type. */
typedef struct spc_kernels {
    spc_kernel_fn of[SPC_TYPE_COUNT];
} spc_kernels_t;

extern const spc_kernels_t spc_kernels_sum, spc_kernels_prod, spc_kernels_min, spc_kernels_max;
extern const spc_kernels_t spc_kernels_logical_and, spc_kernels_logical_or, spc_kernels_logical_xor;
extern const spc_kernels_t spc_kernels_bitwise_and, spc_kernels_bitwise_or, spc_kernels_bitwise_xor;
extern const spc_kernels_t spc_kernels_minloc, spc_kernels_maxloc;

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

/* Of INT, WIDE and SIMTIME: in spc_ops.c. */
int spc_kernel_wide(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_sum_exact(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_prod_exact(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_sum_simtime(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_min_simtime(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_max_simtime(void *to, const void *left, const void *right, uint32_t count);
int spc_kernel_nothing(void *to, const void *left, const void *right, uint32_t count);

#endif
