/* SPDX-License-Identifier: MIT */
#include "reduce/spc_ops_private.h"

/* Which comes first: of integers the lesser (or greater), of floating point a NaN before all numbers. */
#define LESS(l, r) ((l) < (r))
#define GREATER(l, r) ((l) > (r))
#define LESS_OR_NAN(l, r) (((l) < (r)) | (((l) != (l)) & ((r) == (r))))
#define GREATER_OR_NAN(l, r) (((l) > (r)) | (((l) != (l)) & ((r) == (r))))

/* Of two of which neither comes first, the one of the lower index: so the order of the nodes does not matter. */
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
const spc_kernels_t spc_kernels_minloc = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
#define MINLOC_ENTRY(name, ctype) [SPC_TYPE_PAIR_##name] = minloc_##name,
    SPC_NUMBER_TYPES(MINLOC_ENTRY)
}};

const spc_kernels_t spc_kernels_maxloc = {{
    [SPC_TYPE_NONE] = spc_kernel_nothing,
#define MAXLOC_ENTRY(name, ctype) [SPC_TYPE_PAIR_##name] = maxloc_##name,
    SPC_NUMBER_TYPES(MAXLOC_ENTRY)
}};
