/* SPDX-License-Identifier: MIT */
/*
 * Loops, and copying by them: the description of where a datatype's bytes lie.
 *
 *     BLOCK     adjacent bytes
 *     REPEAT    a loop `count` times, at equal distances
 *     BLOCKS    blocks of different places and lengths, or of one length
 *     PARTS     different loops, one after another
 *
 * Places are relative to the beginning of an item. Types share loops, which never change once made.
 */
#include "mpi/type/spc_mpi_pack.h"

/* ---- making ---- */

static spc_mpi_loop_t *create(spc_mpi_loop_kind_t kind, size_t more_bytes) {
    spc_mpi_loop_t *made = calloc(1, sizeof(*made) + more_bytes);
    if (made != NULL) {
        made->kind = kind;
        atomic_init(&made->references, 1);
    }
    return made;
}

/* Relaxed: the caller holds a reference already. */
spc_mpi_loop_t *spc_mpi_loop_retain(spc_mpi_loop_t *loop) {
    atomic_fetch_add_explicit(&loop->references, 1, memory_order_relaxed);
    return loop;
}

/* Acquire and release pair with other threads' releases: the last one sees all uses as over. */
void spc_mpi_loop_release(spc_mpi_loop_t *loop) {
    if (loop == NULL || atomic_fetch_sub_explicit(&loop->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    spc_mpi_loop_release(loop->kind == SPC_MPI_REPEAT ? loop->child : NULL);
    for (MPI_Count i = 0; loop->kind == SPC_MPI_PARTS && i < loop->count; i++) {
        spc_mpi_loop_release(loop->parts[i].loop);
    }
    free(loop);
}

spc_mpi_loop_t *spc_mpi_loop_block(MPI_Count at, MPI_Count bytes) {
    spc_mpi_loop_t *made = create(SPC_MPI_BLOCK, 0);
    if (made != NULL) {
        made->at = at;
        made->bytes = made->size = bytes;
        made->low = bytes != 0 ? at : 0;
        made->high = bytes != 0 ? at + bytes : 0;
    }
    return made;
}

/* Whether the bytes of `count` copies adjoin each other in order. */
static bool is_adjacent(const spc_mpi_loop_t *child, MPI_Count count, MPI_Count stride) {
    return child->kind == SPC_MPI_BLOCK && (count == 1 || stride == child->bytes);
}

static MPI_Count least(MPI_Count a, MPI_Count b) {
    return a < b ? a : b;
}

static MPI_Count most(MPI_Count a, MPI_Count b) {
    return a > b ? a : b;
}

/* A vector of rows is one vector if its rows follow each other at the distance of their own elements. */
static bool continues(const spc_mpi_loop_t *child, MPI_Count stride) {
    return child->kind == SPC_MPI_REPEAT && child->stride * child->count == stride;
}

spc_mpi_loop_t *spc_mpi_loop_repeat(spc_mpi_loop_t *child, MPI_Count at, MPI_Count count, MPI_Count stride) {
    if (count == 0 || child->size == 0) {
        return spc_mpi_loop_block(0, 0);
    }
    if (is_adjacent(child, count, stride)) {
        return spc_mpi_loop_block(at + child->at, child->bytes * count);
    }
    if (count == 1 && at == 0) {
        return spc_mpi_loop_retain(child);
    }
    spc_mpi_loop_t *made = create(SPC_MPI_REPEAT, 0);
    if (made == NULL) {
        return NULL;
    }
    if (continues(child, stride)) {
        made->child = spc_mpi_loop_retain(child->child);
        made->at = at + child->at;
        made->count = count * child->count;
        made->stride = child->stride;
    } else {
        made->child = spc_mpi_loop_retain(child);
        made->at = at;
        made->count = count;
        made->stride = stride;
    }
    const MPI_Count last = (made->count - 1) * made->stride;
    made->size = made->count * made->child->size;
    made->low = made->at + made->child->low + least(0, last);
    made->high = made->at + made->child->high + most(0, last);
    return made;
}

spc_mpi_loop_t *spc_mpi_loop_blocks(MPI_Count count) {
    spc_mpi_loop_t *made = create(SPC_MPI_BLOCKS, sizeof(made->blocks[0]) * (size_t)count);
    return made;
}

void spc_mpi_loop_add_block(spc_mpi_loop_t *loop, MPI_Count at, MPI_Count bytes) {
    if (bytes == 0) {
        return;
    }
    spc_mpi_block_t *last = loop->count != 0 ? &loop->blocks[loop->count - 1] : NULL;
    loop->low = loop->size == 0 ? at : least(loop->low, at);
    loop->high = loop->size == 0 ? at + bytes : most(loop->high, at + bytes);
    loop->size += bytes;
    if (last != NULL && last->at + last->bytes == at) {
        last->bytes += bytes;
    } else {
        loop->blocks[loop->count++] = (spc_mpi_block_t){at, bytes};
    }
}

spc_mpi_loop_t *spc_mpi_loop_parts(MPI_Count count) {
    spc_mpi_loop_t *made = create(SPC_MPI_PARTS, sizeof(made->parts[0]) * (size_t)count);
    return made;
}

void spc_mpi_loop_add_part(spc_mpi_loop_t *loop, MPI_Count at, spc_mpi_loop_t *part) {
    if (part->size == 0) {
        return;
    }
    loop->low = loop->size == 0 ? at + part->low : least(loop->low, at + part->low);
    loop->high = loop->size == 0 ? at + part->high : most(loop->high, at + part->high);
    loop->size += part->size;
    loop->parts[loop->count++] = (spc_mpi_loop_part_t){at, spc_mpi_loop_retain(part)};
}

/* Replaces a list that turned out to be one block, or none, by that block. */
spc_mpi_loop_t *spc_mpi_loop_simplify(spc_mpi_loop_t *loop) {
    spc_mpi_loop_t *simple = NULL;
    if (loop->size == 0) {
        simple = spc_mpi_loop_block(0, 0);
    } else if (loop->kind == SPC_MPI_BLOCKS && loop->count == 1) {
        simple = spc_mpi_loop_block(loop->blocks[0].at, loop->blocks[0].bytes);
    } else if (loop->kind == SPC_MPI_PARTS && loop->count == 1) {
        simple = spc_mpi_loop_repeat(loop->parts[0].loop, loop->parts[0].at, 1, 0);
    }
    if (simple == NULL) {
        return loop;
    }
    spc_mpi_loop_release(loop);
    return simple;
}

/* ---- copying ---- */

/* The packed bytes, and how many of them are left. */
typedef struct cursor {
    char *packed;
    MPI_Count left;
    bool packs; /* else it unpacks */
} cursor_t;

static inline void copy(cursor_t *cursor, char *place, MPI_Count bytes) {
    if (cursor->packs) {
        memcpy(cursor->packed, place, (size_t)bytes);
    } else {
        memcpy(place, cursor->packed, (size_t)bytes);
    }
    cursor->packed += bytes;
    cursor->left -= bytes;
}

static inline void copy_block(cursor_t *cursor, char *place, MPI_Count bytes) {
    copy(cursor, place, least(bytes, cursor->left));
}

/* Elements of a size that the compiler knows are copied without a call. */
#define COPY_ELEMENTS(bytes)                                                      \
    case bytes:                                                                   \
        for (MPI_Count i = 0; i < count; i++, place += stride, packed += bytes) { \
            memcpy(packs ? packed : place, packs ? place : packed, bytes);        \
        }                                                                         \
        break;

/* `count` whole blocks at equal distances. */
static void copy_row(cursor_t *cursor, char *place, MPI_Count count, MPI_Count stride, MPI_Count bytes) {
    char *packed = cursor->packed;
    const bool packs = cursor->packs;
    switch (bytes) {
        COPY_ELEMENTS(1)
        COPY_ELEMENTS(2)
        COPY_ELEMENTS(4)
        COPY_ELEMENTS(8)
        COPY_ELEMENTS(16)
        COPY_ELEMENTS(32)
    default:
        for (MPI_Count i = 0; i < count; i++, place += stride, packed += bytes) {
            memcpy(packs ? packed : place, packs ? place : packed, (size_t)bytes);
        }
    }
    cursor->packed = packed;
    cursor->left -= count * bytes;
}

static void copy_loop(cursor_t *cursor, char *place, const spc_mpi_loop_t *loop);

static void copy_repeat(cursor_t *cursor, char *place, const spc_mpi_loop_t *child, MPI_Count count,
                        MPI_Count stride) {
    MPI_Count i = 0;
    if (child->kind == SPC_MPI_BLOCK && child->bytes != 0) {
        i = least(count, cursor->left / child->bytes);
        copy_row(cursor, place + child->at, i, stride, child->bytes);
    }
    for (; i < count && cursor->left > 0; i++) {
        copy_loop(cursor, place + i * stride, child);
    }
}

static void copy_loop(cursor_t *cursor, char *place, const spc_mpi_loop_t *loop) {
    switch (loop->kind) {
    case SPC_MPI_BLOCK:
        copy_block(cursor, place + loop->at, loop->bytes);
        break;
    case SPC_MPI_REPEAT:
        copy_repeat(cursor, place + loop->at, loop->child, loop->count, loop->stride);
        break;
    case SPC_MPI_BLOCKS:
        for (MPI_Count i = 0; i < loop->count && cursor->left > 0; i++) {
            copy_block(cursor, place + loop->blocks[i].at, loop->blocks[i].bytes);
        }
        break;
    case SPC_MPI_PARTS:
        for (MPI_Count i = 0; i < loop->count && cursor->left > 0; i++) {
            copy_loop(cursor, place + loop->parts[i].at, loop->parts[i].loop);
        }
        break;
    }
}

enum { NO_ADDRESS_BELOW = 4096 };

static inline bool is_nowhere(const void *buffer, MPI_Count count, const spc_mpi_type_t *type) {
    return __builtin_expect((uintptr_t)buffer < NO_ADDRESS_BELOW, 0) && count > 0 && type->size > 0
           && type->true_lb >= 0 && type->true_lb < NO_ADDRESS_BELOW;
}

int spc_mpi_check_buffer(const spc_mpi_comm_t *comm, const char *role, const void *buffer, MPI_Count count,
                         const spc_mpi_type_t *type) {
    return !is_nowhere(buffer, count, type)
               ? MPI_SUCCESS
               : spc_mpi_fail(comm, MPI_ERR_BUFFER, "%s is NULL, and the call has %lld items there", role,
                              (long long)count);
}

MPI_Count spc_mpi_type_pack(const void *buffer, MPI_Count count, const spc_mpi_type_t *type, void *packed) {
    const MPI_Count bytes = count * type->size;
    if (bytes == 0) {
        return 0;
    }
    if (type->is_dense) {
        memcpy(packed, buffer, (size_t)bytes);
        return bytes;
    }
    cursor_t cursor = {.packed = packed, .left = bytes, .packs = true};
    copy_repeat(&cursor, (char *)buffer, type->loop, count, type->extent);
    return bytes;
}

void spc_mpi_type_unpack(const void *packed, MPI_Count bytes, void *buffer, MPI_Count count,
                         const spc_mpi_type_t *type) {
    if (bytes == 0 || is_nowhere(buffer, count, type)) {
        return;
    }
    if (type->is_dense) {
        memcpy(buffer, packed, (size_t)bytes);
        return;
    }
    cursor_t cursor = {.packed = (char *)packed, .left = bytes};
    copy_repeat(&cursor, buffer, type->loop, count, type->extent);
}

/* ---- walking ---- */

typedef struct walk {
    MPI_Count skip; /* data bytes before the first one */
    MPI_Count left;
    spc_mpi_take_run_t *take;
    void *argument;
} walk_t;

static int walk_block(walk_t *walk, MPI_Count at, MPI_Count bytes) {
    if (walk->skip >= bytes) {
        walk->skip -= bytes;
        return MPI_SUCCESS;
    }
    at += walk->skip;
    bytes = least(bytes - walk->skip, walk->left);
    walk->skip = 0;
    walk->left -= bytes;
    return bytes > 0 ? walk->take(walk->argument, at, bytes) : MPI_SUCCESS;
}

static int walk_loop(walk_t *walk, MPI_Count place, const spc_mpi_loop_t *loop);

static int walk_repeat(walk_t *walk, MPI_Count place, const spc_mpi_loop_t *child, MPI_Count count,
                       MPI_Count stride) {
    MPI_Count i = walk->skip / child->size;
    walk->skip %= child->size;
    for (; i < count && walk->left > 0; i++) {
        SPC_MPI_TRY(walk_loop(walk, place + i * stride, child));
    }
    return MPI_SUCCESS;
}

static int walk_loop(walk_t *walk, MPI_Count place, const spc_mpi_loop_t *loop) {
    if (walk->skip >= loop->size) {
        walk->skip -= loop->size;
        return MPI_SUCCESS;
    }
    switch (loop->kind) {
    case SPC_MPI_BLOCK:
        return walk_block(walk, place + loop->at, loop->bytes);
    case SPC_MPI_REPEAT:
        return walk_repeat(walk, place + loop->at, loop->child, loop->count, loop->stride);
    case SPC_MPI_BLOCKS:
        for (MPI_Count i = 0; i < loop->count && walk->left > 0; i++) {
            SPC_MPI_TRY(walk_block(walk, place + loop->blocks[i].at, loop->blocks[i].bytes));
        }
        break;
    case SPC_MPI_PARTS:
        for (MPI_Count i = 0; i < loop->count && walk->left > 0; i++) {
            SPC_MPI_TRY(walk_loop(walk, place + loop->parts[i].at, loop->parts[i].loop));
        }
        break;
    }
    return MPI_SUCCESS;
}

int spc_mpi_type_walk(const spc_mpi_type_t *type, MPI_Count from, MPI_Count bytes, spc_mpi_take_run_t *take,
                      void *argument) {
    walk_t walk = {from, bytes, take, argument};
    if (bytes <= 0 || type->size == 0) {
        return MPI_SUCCESS;
    }
    if (type->is_dense) {
        return take(argument, from, bytes);
    }
    const MPI_Count items = (from + bytes + type->size - 1) / type->size;
    return walk_repeat(&walk, 0, type->loop, items, type->extent);
}

int spc_mpi_payload_begin(const spc_mpi_comm_t *comm, const void *buffer, MPI_Count count,
                          const spc_mpi_type_t *type, spc_mpi_payload_t *payload) {
    payload->copy = NULL;
    if (count < 0) {
        return spc_mpi_fail(comm, MPI_ERR_COUNT, "count=%lld: a count cannot be negative", (long long)count);
    }
    SPC_MPI_TRY(spc_mpi_check_buffer(comm, "the buffer", buffer, count, type));
    const void *data = buffer;
    if (!type->is_dense && count * type->size != 0) {
        payload->copy = malloc((size_t)(count * type->size));
        if (payload->copy == NULL) {
            return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory to pack %lld bytes",
                                (long long)(count * type->size));
        }
        (void)spc_mpi_type_pack(buffer, count, type, payload->copy);
        data = payload->copy;
    }
    payload->core = (spc_payload_t){
        .data = data, .data_bytes = (uint64_t)(count * type->size), .format = spc_mpi_format(type)};
    return MPI_SUCCESS;
}

int spc_mpi_payload_send(const spc_mpi_comm_t *comm, const int32_t *to, uint32_t count, int tag,
                         spc_mpi_payload_t *payload) {
    const int status = spc_comm_send_ahead(comm->core, to, count, SPC_CONTEXT_INTERNAL, tag, &payload->core,
                                           SPC_NO_DEADLINE);
    spc_mpi_payload_end(payload);
    return spc_mpi_check(comm, status);
}

/* ---- MPI_Pack and MPI_Unpack ---- */

static int check_room(const spc_mpi_comm_t *comm, MPI_Count count, const spc_mpi_type_t *type, MPI_Count room,
                      MPI_Count position) {
    if (count < 0) {
        return spc_mpi_fail(comm, MPI_ERR_COUNT, "count=%lld: a count cannot be negative", (long long)count);
    }
    if (position < 0 || position > room || (type->size > 0 && count > (room - position) / type->size)) {
        return spc_mpi_fail(comm, MPI_ERR_TRUNCATE,
                            "%lld items take %lld bytes, and the buffer has %lld from position %lld on",
                            (long long)count, (long long)(count * type->size), (long long)(room - position),
                            (long long)position);
    }
    return MPI_SUCCESS;
}

int spc_mpi_pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                 MPI_Count *position, MPI_Comm comm) {
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_type(found, datatype, &type));
    SPC_MPI_TRY(check_room(found, incount, type, outsize, *position));
    SPC_MPI_TRY(spc_mpi_check_buffer(found, "inbuf", inbuf, incount, type));
    *position += spc_mpi_type_pack(inbuf, incount, type, (char *)outbuf + *position);
    return MPI_SUCCESS;
}

int spc_mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                   MPI_Datatype datatype, MPI_Comm comm) {
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_type(found, datatype, &type));
    SPC_MPI_TRY(check_room(found, outcount, type, insize, *position));
    SPC_MPI_TRY(spc_mpi_check_buffer(found, "outbuf", outbuf, outcount, type));
    spc_mpi_type_unpack((const char *)inbuf + *position, outcount * type->size, outbuf, outcount, type);
    *position += outcount * type->size;
    return MPI_SUCCESS;
}

int spc_mpi_pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size) {
    spc_mpi_comm_t *found;
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_type(found, datatype, &type));
    *size = incount * type->size;
    return MPI_SUCCESS;
}

/* ---- external32: big-endian, each element by itself ---- */

/* The unit of byte order: a complex number has two. */
static MPI_Count unit_of(const spc_mpi_type_t *type) {
    if (type->element == NULL) {
        return 0;
    }
    const bool is_complex = type->core == SPC_TYPE_COMPLEX64 || type->core == SPC_TYPE_COMPLEX128;
    return is_complex ? type->element->size / 2 : type->element->size;
}

static void swap_units(char *data, MPI_Count bytes, MPI_Count unit) {
    for (MPI_Count at = 0; at + unit <= bytes; at += unit) {
        for (MPI_Count low = at, high = at + unit - 1; low < high; low++, high--) {
            const char kept = data[low];
            data[low] = data[high];
            data[high] = kept;
        }
    }
}

static int check_external(const char *datarep, const spc_mpi_type_t *type) {
    if (strcmp(datarep, "external32") != 0) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "datarep is '%s'; 'external32' is the only one", datarep);
    }
    if (unit_of(type) == 0) {
        return spc_mpi_fail(NULL, MPI_ERR_TYPE,
                            "elements of different types in one datatype have no external32 form "
                            "here");
    }
    return MPI_SUCCESS;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define IS_LITTLE_ENDIAN true
#else
#define IS_LITTLE_ENDIAN false
#endif

int spc_mpi_pack_external(const char *datarep, const void *inbuf, MPI_Count incount, MPI_Datatype datatype,
                          void *outbuf, MPI_Count outsize, MPI_Count *position) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    SPC_MPI_TRY(check_external(datarep, type));
    SPC_MPI_TRY(check_room(NULL, incount, type, outsize, *position));
    SPC_MPI_TRY(spc_mpi_check_buffer(NULL, "inbuf", inbuf, incount, type));
    char *packed = (char *)outbuf + *position;
    *position += spc_mpi_type_pack(inbuf, incount, type, packed);
    if (IS_LITTLE_ENDIAN) {
        swap_units(packed, incount * type->size, unit_of(type));
    }
    return MPI_SUCCESS;
}

int spc_mpi_unpack_external(const char *datarep, const void *inbuf, MPI_Count insize, MPI_Count *position,
                            void *outbuf, MPI_Count outcount, MPI_Datatype datatype) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    SPC_MPI_TRY(check_external(datarep, type));
    SPC_MPI_TRY(check_room(NULL, outcount, type, insize, *position));
    const MPI_Count bytes = outcount * type->size;
    char *swapped = malloc((size_t)bytes + 1);
    if (swapped == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory to unpack %lld bytes",
                            (long long)bytes);
    }
    memcpy(swapped, (const char *)inbuf + *position, (size_t)bytes);
    if (IS_LITTLE_ENDIAN) {
        swap_units(swapped, bytes, unit_of(type));
    }
    spc_mpi_type_unpack(swapped, bytes, outbuf, outcount, type);
    free(swapped);
    *position += bytes;
    return MPI_SUCCESS;
}

int spc_mpi_pack_external_size(const char *datarep, MPI_Count incount, MPI_Datatype datatype,
                               MPI_Count *size) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    SPC_MPI_TRY(check_external(datarep, type));
    *size = incount * type->size;
    return MPI_SUCCESS;
}
