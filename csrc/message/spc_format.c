/* SPDX-License-Identifier: MIT */
#include "message/spc_format.h"

#include <string.h>

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
    if (length_bytes != 0) {
        memcpy(target, (const unsigned char *)payload->data + (from - payload->meta_bytes), length_bytes);
    }
}

void spc_message_move(spc_message_t *to, const spc_message_t *from) {
    *to = *from;
    if (from->storage == SPC_STORED_INLINE) {
        to->bytes = to->inlined;
    }
}
