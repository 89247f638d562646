/* SPDX-License-Identifier: MIT */
#include "message/spc_format.h"

#include <string.h>

static void copy_extents(const spc_extent_t *extent, uint64_t from, uint64_t length_bytes,
                         unsigned char *target) {
    for (; length_bytes != 0; extent++) {
        if (from >= extent->length_bytes) {
            from -= extent->length_bytes;
            continue;
        }
        uint64_t part = extent->length_bytes - from;
        part = part < length_bytes ? part : length_bytes;
        memcpy(target, (const unsigned char *)extent->start + from, part);
        target += part;
        length_bytes -= part;
        from = 0;
    }
}

void spc_payload_copy(const spc_payload_t *payload, uint64_t from, uint64_t length_bytes, void *to) {
    unsigned char *target = to;
    if (from < payload->meta_bytes) {
        uint64_t part = payload->meta_bytes - from;
        part = part < length_bytes ? part : length_bytes;
        memcpy(target, (const unsigned char *)payload->meta + from, part);
        target += part;
        from += part;
        length_bytes -= part;
    }
    if (payload->extents != NULL) {
        copy_extents(payload->extents, from - payload->meta_bytes, length_bytes, target);
    } else if (length_bytes != 0) {
        memcpy(target, (const unsigned char *)payload->data + (from - payload->meta_bytes), length_bytes);
    }
}

void spc_message_move(spc_message_t *to, const spc_message_t *from) {
    *to = *from;
    if (from->storage == SPC_STORED_INLINE) {
        to->bytes = to->inlined;
    }
}
