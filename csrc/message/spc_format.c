/* SPDX-License-Identifier: MIT */
#include "message/spc_format.h"

#include <string.h>

#include "base/spc_copy.h"

typedef void *(*copy_t)(void *to, const void *from, size_t length_bytes);

static void copy_extents(const spc_extent_t *extent, uint64_t from, uint64_t length_bytes,
                         unsigned char *target, copy_t copy) {
    for (; length_bytes != 0; extent++) {
        if (from >= extent->length_bytes) {
            from -= extent->length_bytes;
            continue;
        }
        uint64_t part = extent->length_bytes - from;
        part = part < length_bytes ? part : length_bytes;
        copy(target, (const unsigned char *)extent->start + from, part);
        target += part;
        length_bytes -= part;
        from = 0;
    }
}

static inline void copy_payload(const spc_payload_t *payload, uint64_t from, uint64_t length_bytes, void *to,
                                copy_t copy) {
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
        copy_extents(payload->extents, from - payload->meta_bytes, length_bytes, target, copy);
    } else if (length_bytes != 0) {
        copy(target, (const unsigned char *)payload->data + (from - payload->meta_bytes), length_bytes);
    }
}

void spc_payload_copy(const spc_payload_t *payload, uint64_t from, uint64_t length_bytes, void *to) {
    copy_payload(payload, from, length_bytes, to, memcpy);
}

void spc_payload_fill(const spc_payload_t *payload, uint32_t receivers, void *to) {
    uint64_t length_bytes = payload->meta_bytes + payload->data_bytes;
    copy_payload(payload, 0, length_bytes, to, receivers == 1 ? spc_copy_past : memcpy);
}

void spc_message_move(spc_message_t *to, const spc_message_t *from) {
    *to = *from;
    if (from->storage == SPC_STORED_INLINE) {
        to->bytes = to->inlined;
    }
}
