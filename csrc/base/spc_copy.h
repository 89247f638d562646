/* SPDX-License-Identifier: MIT */
/*
 * spc_copy: memcpy past the cache, for very long copies that this process will not read.
 *
 * The ranges must not overlap; other threads see the copy after the next release.
 */
#ifndef SPC_COPY_H
#define SPC_COPY_H

#include <stddef.h>

#define SPC_COPY_PAST_BYTES ((size_t)8 << 20) /* shorter ones: memcpy. Measured: docs/internals/memory.md */

/* As memcpy. */
void *spc_copy_past(void *to, const void *from, size_t length_bytes);

#endif
