/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops_private.h"

/* Whatever is not zero is true, NaN too. */
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
    const spc_kernels_t spc_kernels_##operator = {{                \
        [SPC_TYPE_NONE] = spc_kernel_nothing,                      \
        [SPC_TYPE_INT] = operator##_INT64,                         \
        [SPC_TYPE_WIDE] = spc_kernel_wide,                         \
        [SPC_TYPE_BOOL] = operator##_BOOL,                         \
        [SPC_TYPE_FLOAT32] = operator##_FLOAT32,                   \
        [SPC_TYPE_FLOAT64] = operator##_FLOAT64,                   \
        INTEGER_ENTRIES(operator)                                  \
    }}
#define DEFINE_BITWISE_TABLE(operator)                             \
    const spc_kernels_t spc_kernels_##operator = {{                \
        [SPC_TYPE_NONE] = spc_kernel_nothing,                      \
        [SPC_TYPE_INT] = operator##_INT64,                         \
        [SPC_TYPE_WIDE] = spc_kernel_wide,                         \
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
