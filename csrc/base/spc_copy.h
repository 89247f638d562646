/* SPDX-License-Identifier: MIT */
/*
 * spc_copy: memcpy for messages. Nothing may overlap; other threads see the copy after whatever release follows.
 *
 * From SPC_COPY_LONG_BYTES on memcpy of some C libraries uses an instruction of the processor (rep movsb) that some
 * processors execute two to twenty times slower than ordinary loads and stores: a loop of these is used instead, where
 * the machine is known. spc_copy_past writes very long ones past the cache, for those who will not read them next.
 */
#ifndef SPC_COPY_H
#define SPC_COPY_H

#include <stdint.h>
#include <string.h>

#define SPC_COPY_LONG_BYTES 4096
#define SPC_COPY_PAST_BYTES (UINT64_C(8) << 20) /* measured: docs/internals/block.md */

/* For the two below: of any length. */
void spc_copy_long(void *to, const void *from, uint64_t length_bytes);
void spc_copy_uncached(void *to, const void *from, uint64_t length_bytes);

static inline void spc_copy(void *to, const void *from, uint64_t length_bytes) {
    if (length_bytes < SPC_COPY_LONG_BYTES) {
        memcpy(to, from, length_bytes);
    } else {
        spc_copy_long(to, from, length_bytes);
    }
}

static inline void spc_copy_past(void *to, const void *from, uint64_t length_bytes) {
    if (length_bytes < SPC_COPY_PAST_BYTES) {
        spc_copy(to, from, length_bytes);
    } else {
        spc_copy_uncached(to, from, length_bytes);
    }
}

#endif
