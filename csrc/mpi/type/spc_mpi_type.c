/* SPDX-License-Identifier: MIT */
/*
 * Datatypes: those of MPI, the lookup of a datatype by its handle, and those that programs make.
 */
#include <complex.h>
#include <stdalign.h>
#include <stddef.h>
#include <wchar.h>

#include "mpi/type/spc_mpi_pack.h"

_Thread_local bool spc_mpi_call_is_large;

/* ---- objects ---- */

/* Relaxed: the caller holds a reference already. */
void spc_mpi_type_retain(spc_mpi_type_t *type) {
    atomic_fetch_add_explicit(&type->references, 1, memory_order_relaxed);
}

static void free_contents(spc_mpi_contents_t *contents) {
    for (MPI_Count i = 0; contents->types != NULL && i < contents->type_count; i++) {
        spc_mpi_type_release(contents->types[i]);
    }
    free((void *)contents->counts);
    free((void *)contents->addresses);
    free((void *)contents->types);
}

/* Acquire and release pair with other threads' releases: the last one sees all uses as over. */
void spc_mpi_type_release(spc_mpi_type_t *type) {
    if (type == NULL || type->is_builtin
        || atomic_fetch_sub_explicit(&type->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    spc_mpi_handle_free(SPC_MPI_TYPE, (intptr_t)type->handle);
    spc_mpi_loop_release(type->loop);
    free_contents(&type->contents);
    free(type);
}

static int no_memory(void) {
    return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a datatype");
}

/* Makes a type, which takes over the loop. If memory is short, returns NULL and releases the loop. */
static spc_mpi_type_t *wrap(spc_mpi_loop_t *loop, MPI_Count lb, MPI_Count extent,
                            const spc_mpi_type_t *like) {
    spc_mpi_type_t *made = loop != NULL ? calloc(1, sizeof(*made)) : NULL;
    if (made == NULL) {
        spc_mpi_loop_release(loop);
        return NULL;
    }
    atomic_init(&made->references, 1);
    made->loop = loop;
    made->size = loop->size;
    made->lb = lb;
    made->extent = extent;
    made->true_lb = loop->low;
    made->true_extent = loop->high - loop->low;
    made->alignment = like->alignment;
    made->core = like->core;
    made->element = like->element;
    made->is_dense = lb == 0 && extent == loop->size
                     && (loop->size == 0 || (loop->kind == SPC_MPI_BLOCK && loop->at == 0));
    return made;
}

/* ---- those of MPI ---- */

enum { BUILTINS = 256 }; /* a power of two, more than twice their number */

static struct {
    intptr_t handle;
    spc_mpi_type_t *type;
} builtins[BUILTINS];

static uint32_t slot_of(intptr_t handle) {
    return (uint32_t)handle * 2654435761u >> 24;
}

static spc_mpi_type_t *find_builtin(MPI_Datatype handle) {
    for (uint32_t slot = slot_of((intptr_t)handle); builtins[slot % BUILTINS].type != NULL; slot++) {
        if (builtins[slot % BUILTINS].handle == (intptr_t)handle) {
            return builtins[slot % BUILTINS].type;
        }
    }
    return NULL;
}

static void add_builtin(MPI_Datatype handle, spc_mpi_type_t *type) {
    uint32_t slot = slot_of((intptr_t)handle);
    while (builtins[slot % BUILTINS].type != NULL) {
        slot++;
    }
    builtins[slot % BUILTINS].handle = (intptr_t)handle;
    builtins[slot % BUILTINS].type = type;
}

static bool lacks_memory; /* for one of them */

static void start_builtin(MPI_Datatype handle, const char *name, MPI_Count size, MPI_Count extent,
                          MPI_Count alignment, uint32_t core) {
    if (find_builtin(handle) != NULL) {
        return; /* another name of the same type */
    }
    spc_mpi_type_t *made = calloc(1, sizeof(*made));
    spc_mpi_loop_t *loop = spc_mpi_loop_block(0, size);
    if (made == NULL || loop == NULL) {
        free(made);
        spc_mpi_loop_release(loop);
        lacks_memory = true;
        return;
    }
    atomic_init(&made->references, 1);
    made->handle = handle;
    made->is_builtin = true;
    made->size = size;
    made->extent = extent;
    made->true_extent = extent;
    made->alignment = alignment;
    made->core = core;
    made->element = made;
    made->contents.combiner = MPI_COMBINER_NAMED;
    made->loop = loop;
    made->is_dense = size == extent;
    (void)snprintf(made->name, sizeof(made->name), "%s", name);
    add_builtin(handle, made);
}

/* A value and its index. */
static void start_pair(MPI_Datatype handle, const char *name, MPI_Count value_size, MPI_Count index_at,
                       MPI_Count extent, MPI_Count alignment) {
    start_builtin(handle, name, value_size + (MPI_Count)sizeof(int), extent, alignment, SPC_TYPE_NONE);
    spc_mpi_type_t *made = find_builtin(handle);
    spc_mpi_loop_t *loop = spc_mpi_loop_blocks(2);
    if (made == NULL || loop == NULL) {
        spc_mpi_loop_release(loop);
        lacks_memory = true;
        return;
    }
    spc_mpi_loop_add_block(loop, 0, value_size);
    spc_mpi_loop_add_block(loop, index_at, sizeof(int));
    spc_mpi_loop_release(made->loop);
    made->true_extent = index_at + (MPI_Count)sizeof(int);
    made->value_size = value_size;
    made->loop = spc_mpi_loop_simplify(loop);
}

/* X(name, C type, the core's type) */
#define NUMBERS(X)                                        \
    X(BYTE, unsigned char, NONE)                          \
    X(PACKED, unsigned char, NONE)                        \
    X(CHAR, char, INT8)                                   \
    X(SIGNED_CHAR, signed char, INT8)                     \
    X(UNSIGNED_CHAR, unsigned char, UINT8)                \
    X(SHORT, short, INT16)                                \
    X(UNSIGNED_SHORT, unsigned short, UINT16)             \
    X(INT, int, INT32)                                    \
    X(UNSIGNED, unsigned, UINT32)                         \
    X(LONG, long, INT64)                                  \
    X(UNSIGNED_LONG, unsigned long, UINT64)               \
    X(LONG_LONG_INT, long long, INT64)                    \
    X(UNSIGNED_LONG_LONG, unsigned long long, UINT64)     \
    X(FLOAT, float, FLOAT32)                              \
    X(DOUBLE, double, FLOAT64)                            \
    X(LONG_DOUBLE, long double, NONE)                     \
    X(WCHAR, wchar_t, NONE)                               \
    X(C_BOOL, _Bool, BOOL)                                \
    X(INT8_T, int8_t, INT8)                               \
    X(INT16_T, int16_t, INT16)                            \
    X(INT32_T, int32_t, INT32)                            \
    X(INT64_T, int64_t, INT64)                            \
    X(UINT8_T, uint8_t, UINT8)                            \
    X(UINT16_T, uint16_t, UINT16)                         \
    X(UINT32_T, uint32_t, UINT32)                         \
    X(UINT64_T, uint64_t, UINT64)                         \
    X(C_COMPLEX, float complex, COMPLEX64)                \
    X(C_DOUBLE_COMPLEX, double complex, COMPLEX128)       \
    X(C_LONG_DOUBLE_COMPLEX, long double complex, NONE)   \
    X(AINT, MPI_Aint, INT64)                              \
    X(OFFSET, MPI_Offset, INT64)                          \
    X(COUNT, MPI_Count, INT64)                            \
    X(CXX_BOOL, _Bool, BOOL)                              \
    X(CXX_FLOAT_COMPLEX, float complex, COMPLEX64)        \
    X(CXX_DOUBLE_COMPLEX, double complex, COMPLEX128)     \
    X(CXX_LONG_DOUBLE_COMPLEX, long double complex, NONE) \
    X(CHARACTER, char, NONE)                              \
    X(LOGICAL, int32_t, INT32)                            \
    X(INTEGER, int32_t, INT32)                            \
    X(REAL, float, FLOAT32)                               \
    X(DOUBLE_PRECISION, double, FLOAT64)                  \
    X(COMPLEX, float complex, COMPLEX64)                  \
    X(DOUBLE_COMPLEX, double complex, COMPLEX128)         \
    X(INTEGER1, int8_t, INT8)                             \
    X(INTEGER2, int16_t, INT16)                           \
    X(INTEGER4, int32_t, INT32)                           \
    X(INTEGER8, int64_t, INT64)                           \
    X(INTEGER16, wide_t, NONE)                            \
    X(LOGICAL1, int8_t, INT8)                             \
    X(LOGICAL2, int16_t, INT16)                           \
    X(LOGICAL4, int32_t, INT32)                           \
    X(LOGICAL8, int64_t, INT64)                           \
    X(LOGICAL16, wide_t, NONE)                            \
    X(REAL2, int16_t, NONE)                               \
    X(REAL4, float, FLOAT32)                              \
    X(REAL8, double, FLOAT64)                             \
    X(REAL16, wide_t, NONE)                               \
    X(COMPLEX4, float, NONE)                              \
    X(COMPLEX8, float complex, COMPLEX64)                 \
    X(COMPLEX16, double complex, COMPLEX128)              \
    X(COMPLEX32, wide_complex_t, NONE)

typedef struct wide {
    _Alignas(16) char bytes[16];
} wide_t;

typedef struct wide_complex {
    wide_t parts[2];
} wide_complex_t;

#define PAIRS(X)                    \
    X(FLOAT_INT, float)             \
    X(DOUBLE_INT, double)           \
    X(LONG_INT, long)               \
    X(SHORT_INT, short)             \
    X(LONG_DOUBLE_INT, long double) \
    X(2INT, int)                    \
    X(2INTEGER, int)

#define PAIR_STRUCT(name, ctype) \
    typedef struct pair_##name { \
        ctype value;             \
        int index;               \
    } pair_##name##_t;
PAIRS(PAIR_STRUCT)

bool spc_mpi_types_start(void) {
#define START(name, ctype, core) \
    start_builtin(MPI_##name, "MPI_" #name, sizeof(ctype), sizeof(ctype), alignof(ctype), SPC_TYPE_##core);
    NUMBERS(START)
#define START_PAIR(name, ctype)                                                           \
    start_pair(MPI_##name, "MPI_" #name, sizeof(ctype), offsetof(pair_##name##_t, index), \
               sizeof(pair_##name##_t), alignof(pair_##name##_t));
    PAIRS(START_PAIR)
    start_builtin(MPI_2REAL, "MPI_2REAL", 8, 8, 4, SPC_TYPE_NONE);
    start_builtin(MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", 16, 16, 8, SPC_TYPE_NONE);
#ifndef SPC_MPI_STANDARD_ABI
    start_builtin(MPIX_C_FLOAT16, "MPIX_C_FLOAT16", 2, 2, 2, SPC_TYPE_NONE);
    start_builtin(MPI_LB, "MPI_LB", 0, 0, 1, SPC_TYPE_NONE);
    start_builtin(MPI_UB, "MPI_UB", 0, 0, 1, SPC_TYPE_NONE);
#endif
    return !lacks_memory;
}

/* ---- types of handles ---- */

_Thread_local const spc_mpi_type_t *spc_mpi_combined_type;

/* NULL: the program no longer has a handle of it. */
static spc_mpi_type_t *find_made(MPI_Datatype handle) {
    spc_mpi_type_t *made = spc_mpi_handle_find(SPC_MPI_TYPE, (intptr_t)handle);
    const bool is_freed = made != NULL && made->is_freed && made != spc_mpi_combined_type;
    return is_freed ? NULL : made;
}

int spc_mpi_get_type(const spc_mpi_comm_t *comm, MPI_Datatype handle, spc_mpi_type_t **type) {
    *type = find_builtin(handle);
    if (*type == NULL) {
        *type = find_made(handle);
    }
    if (*type == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_TYPE,
                            handle == MPI_DATATYPE_NULL ? "the datatype is MPI_DATATYPE_NULL"
                                                        : "the datatype is not a valid handle, or was freed");
    }
    return MPI_SUCCESS;
}

/* Relaxed: a type that another thread commits meanwhile is the program's mistake. */
int spc_mpi_get_committed(const spc_mpi_comm_t *comm, MPI_Datatype handle, spc_mpi_type_t **type) {
    *type = find_builtin(handle);
    if (*type != NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_get_type(comm, handle, type));
    return atomic_load_explicit(&(*type)->is_committed, memory_order_relaxed)
               ? MPI_SUCCESS
               : spc_mpi_fail(comm, MPI_ERR_TYPE,
                              "the datatype is not committed: call MPI_Type_commit first");
}

/* ---- contents: the arguments of the call ---- */

static void *copy_of(const void *items, MPI_Count count, size_t bytes) {
    void *made = malloc((size_t)count * bytes + 1);
    return made == NULL || count == 0 ? made : memcpy(made, items, (size_t)count * bytes);
}

static bool keep_contents(spc_mpi_type_t *type, int combiner, const spc_mpi_contents_t *given) {
    spc_mpi_contents_t *contents = &type->contents;
    *contents = *given;
    contents->combiner = combiner;
    contents->is_large = spc_mpi_call_is_large;
    contents->counts = copy_of(given->counts, given->count_count, sizeof(*given->counts));
    contents->addresses = copy_of(given->addresses, given->address_count, sizeof(*given->addresses));
    contents->types = copy_of(given->types, given->type_count, sizeof(*given->types));
    if (contents->counts == NULL || contents->addresses == NULL || contents->types == NULL) {
        contents->type_count = 0;
        return false;
    }
    for (MPI_Count i = 0; i < given->type_count; i++) {
        spc_mpi_type_retain(given->types[i]);
    }
    return true;
}

/* Gives the type its handle. `made` NULL: there was no memory for it. */
static int publish(spc_mpi_type_t *made, int combiner, const spc_mpi_contents_t *given,
                   MPI_Datatype *handle) {
    *handle = MPI_DATATYPE_NULL;
    if (made == NULL || !keep_contents(made, combiner, given)) {
        spc_mpi_type_release(made);
        return no_memory();
    }
    made->handle = (MPI_Datatype)spc_mpi_handle_create(SPC_MPI_TYPE, made);
    if ((intptr_t)made->handle == 0) {
        spc_mpi_type_release(made);
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM,
                            "there are too many datatypes: free some with MPI_Type_free");
    }
    *handle = made->handle;
    return MPI_SUCCESS;
}

#define GIVEN(counts_, addresses_, address_count_, type)                                \
    (&(const spc_mpi_contents_t){.counts = counts_,                                     \
                                 .count_count = sizeof(counts_) / sizeof((counts_)[0]), \
                                 .addresses = addresses_,                               \
                                 .address_count = address_count_,                       \
                                 .types = &(type),                                      \
                                 .type_count = 1})

static int check_not_negative(const char *role, MPI_Count value) {
    return value >= 0
               ? MPI_SUCCESS
               : spc_mpi_fail(NULL, MPI_ERR_ARG, "%s=%lld: it cannot be negative", role, (long long)value);
}

/* ---- repeating ---- */

/* Bounds of `count` copies at distances of `stride` bytes. */
typedef struct bounds {
    MPI_Count lb, ub;
    bool is_set;
} bounds_t;

static void extend(bounds_t *bounds, const spc_mpi_type_t *type, MPI_Count at, MPI_Count count,
                   MPI_Count stride) {
    if (count == 0) {
        return;
    }
    const MPI_Count last = (count - 1) * stride;
    const MPI_Count lb = at + type->lb + (last < 0 ? last : 0);
    const MPI_Count ub = at + type->lb + type->extent + (last > 0 ? last : 0);
    bounds->lb = !bounds->is_set || lb < bounds->lb ? lb : bounds->lb;
    bounds->ub = !bounds->is_set || ub > bounds->ub ? ub : bounds->ub;
    bounds->is_set = true;
}

/* `count` blocks of `length` items, `stride` bytes from one to the next. */
static spc_mpi_type_t *repeat(spc_mpi_type_t *old, MPI_Count count, MPI_Count length, MPI_Count stride) {
    bounds_t block = {0}, all = {0};
    extend(&block, old, 0, length, old->extent);
    const spc_mpi_type_t row = {.lb = block.lb, .extent = block.ub - block.lb};
    extend(&all, &row, 0, length != 0 ? count : 0, stride);
    spc_mpi_loop_t *inner = spc_mpi_loop_repeat(old->loop, 0, length, old->extent);
    spc_mpi_loop_t *outer = inner != NULL ? spc_mpi_loop_repeat(inner, 0, count, stride) : NULL;
    spc_mpi_loop_release(inner);
    return wrap(outer, all.lb, all.ub - all.lb, old);
}

int spc_mpi_type_contiguous(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    MPI_Count counts[] = {count};
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    SPC_MPI_TRY(check_not_negative("count", count));
    return publish(repeat(old, 1, count, 0), MPI_COMBINER_CONTIGUOUS, GIVEN(counts, NULL, 0, old), newtype);
}

int spc_mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                        MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    MPI_Count counts[] = {count, blocklength, stride};
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    SPC_MPI_TRY(check_not_negative("count", count));
    SPC_MPI_TRY(check_not_negative("blocklength", blocklength));
    return publish(repeat(old, count, blocklength, stride * old->extent), MPI_COMBINER_VECTOR,
                   GIVEN(counts, NULL, 0, old), newtype);
}

int spc_mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                                MPI_Datatype oldtype, MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    MPI_Count counts[] = {count, blocklength};
    const MPI_Aint address = (MPI_Aint)stride;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    SPC_MPI_TRY(check_not_negative("count", count));
    SPC_MPI_TRY(check_not_negative("blocklength", blocklength));
    return publish(repeat(old, count, blocklength, stride), MPI_COMBINER_HVECTOR,
                   GIVEN(counts, &address, 1, old), newtype);
}

/* ---- places of different distances ---- */

/* Blocks of items: their lengths in items, NULL at: `length` each; their places in units of `unit` bytes. `types`: one,
 * or of a structure one for each block. */
typedef struct placed {
    MPI_Count count;
    spc_mpi_type_t **types;
    bool is_structure;
    spc_mpi_counts_t lengths;
    MPI_Count length;
    spc_mpi_counts_t places;
    const MPI_Aint *addresses; /* instead of places, in bytes */
    MPI_Count unit;
} placed_t;

static const spc_mpi_type_t *type_of(const placed_t *placed, MPI_Count i) {
    return placed->types[placed->is_structure ? i : 0];
}

static MPI_Count length_of(const placed_t *placed, MPI_Count i) {
    return placed->lengths.at != NULL ? spc_mpi_count(placed->lengths, i) : placed->length;
}

static MPI_Count place_of(const placed_t *placed, MPI_Count i) {
    return placed->addresses != NULL ? placed->addresses[i] : spc_mpi_count(placed->places, i) * placed->unit;
}

/* If each item is one block, the loop lists their blocks alone. */
static spc_mpi_loop_t *place_blocks(const placed_t *placed) {
    spc_mpi_loop_t *made = spc_mpi_loop_blocks(placed->count);
    for (MPI_Count i = 0; made != NULL && i < placed->count; i++) {
        spc_mpi_loop_add_block(made, place_of(placed, i), length_of(placed, i) * type_of(placed, i)->size);
    }
    return made;
}

static spc_mpi_loop_t *place_loops(const placed_t *placed) {
    spc_mpi_loop_t *made = spc_mpi_loop_parts(placed->count);
    for (MPI_Count i = 0; made != NULL && i < placed->count; i++) {
        const spc_mpi_type_t *type = type_of(placed, i);
        spc_mpi_loop_t *part = spc_mpi_loop_repeat(type->loop, 0, length_of(placed, i), type->extent);
        if (part == NULL) {
            spc_mpi_loop_release(made);
            return NULL;
        }
        spc_mpi_loop_add_part(made, place_of(placed, i), part);
        spc_mpi_loop_release(part);
    }
    return made;
}

/* As a compiler pads a structure whose most aligned member is this one. */
static MPI_Count padded(MPI_Count extent, MPI_Count alignment) {
    const MPI_Count over = alignment > 1 ? extent % alignment : 0;
    return over != 0 ? extent + alignment - over : extent;
}

/* Turns members that are single blocks into a list of blocks, in which neighbours join. */
static spc_mpi_loop_t *flatten(spc_mpi_loop_t *parts) {
    if (parts == NULL) {
        return NULL;
    }
    for (MPI_Count i = 0; i < parts->count; i++) {
        if (parts->parts[i].loop->kind != SPC_MPI_BLOCK) {
            return parts;
        }
    }
    spc_mpi_loop_t *made = spc_mpi_loop_blocks(parts->count);
    for (MPI_Count i = 0; made != NULL && i < parts->count; i++) {
        const spc_mpi_loop_part_t *part = &parts->parts[i];
        spc_mpi_loop_add_block(made, part->at + part->loop->at, part->loop->bytes);
    }
    spc_mpi_loop_release(parts);
    return made;
}

/* Leaves in `like` what the members of a structure have in common, and the largest of their alignments. */
static void mix(spc_mpi_type_t *like, const spc_mpi_type_t *type, bool is_first) {
    const bool is_same = is_first || like->element == type->element;
    like->alignment = type->alignment > like->alignment ? type->alignment : like->alignment;
    like->element = is_same ? type->element : NULL;
    like->core = is_same ? type->core : SPC_TYPE_NONE;
}

static int place(const placed_t *placed, spc_mpi_type_t **made) {
    bounds_t bounds = {0};
    spc_mpi_type_t like = {.alignment = 1, .core = SPC_TYPE_NONE};
    bool is_dense = true;
    *made = NULL;
    SPC_MPI_TRY(check_not_negative("count", placed->count));
    for (MPI_Count i = 0; i < placed->count; i++) {
        const spc_mpi_type_t *type = type_of(placed, i);
        SPC_MPI_TRY(check_not_negative("blocklength", length_of(placed, i)));
        extend(&bounds, type, place_of(placed, i), length_of(placed, i), type->extent);
        mix(&like, type, i == 0);
        is_dense = is_dense && type->is_dense;
    }
    spc_mpi_loop_t *loop = is_dense ? place_blocks(placed) : flatten(place_loops(placed));
    loop = loop != NULL ? spc_mpi_loop_simplify(loop) : NULL;
    const MPI_Count extent = bounds.ub - bounds.lb;
    *made = placed->is_structure ? wrap(loop, bounds.lb, padded(extent, like.alignment), &like)
                                 : wrap(loop, bounds.lb, extent, placed->types[0]);
    return MPI_SUCCESS;
}

/* count, then lengths (or the one), then places if they are counts: as MPI_Type_get_contents gives them. */
static int publish_placed(const placed_t *placed, int combiner, MPI_Datatype *newtype) {
    const bool has_one_length =
        combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    spc_mpi_type_t *made;
    SPC_MPI_TRY(place(placed, &made));
    MPI_Count *counts = malloc(sizeof(*counts) * (2 * (size_t)placed->count + 2)), next = 0;
    if (counts == NULL) {
        spc_mpi_type_release(made);
        return no_memory();
    }
    counts[next++] = placed->count;
    if (has_one_length) {
        counts[next++] = placed->length;
    }
    for (MPI_Count i = 0; !has_one_length && i < placed->count; i++) {
        counts[next++] = spc_mpi_count(placed->lengths, i);
    }
    for (MPI_Count i = 0; placed->addresses == NULL && i < placed->count; i++) {
        counts[next++] = spc_mpi_count(placed->places, i);
    }
    const spc_mpi_contents_t given = {.counts = counts,
                                      .count_count = next,
                                      .addresses = placed->addresses,
                                      .address_count = placed->addresses != NULL ? placed->count : 0,
                                      .types = placed->types,
                                      .type_count = placed->is_structure ? placed->count : 1};
    const int code = publish(made, combiner, &given, newtype);
    free(counts);
    return code;
}

int spc_mpi_type_indexed(MPI_Count count, spc_mpi_counts_t array_of_blocklengths,
                         spc_mpi_counts_t array_of_displacements, MPI_Datatype oldtype,
                         MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const placed_t placed = {.count = count,
                             .types = &old,
                             .lengths = array_of_blocklengths,
                             .places = array_of_displacements,
                             .unit = old->extent};
    return publish_placed(&placed, MPI_COMBINER_INDEXED, newtype);
}

int spc_mpi_type_create_hindexed(MPI_Count count, spc_mpi_counts_t array_of_blocklengths,
                                 const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                 MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const placed_t placed = {.count = count,
                             .types = &old,
                             .lengths = array_of_blocklengths,
                             .addresses = (const MPI_Aint *)(const void *)array_of_displacements};
    return publish_placed(&placed, MPI_COMBINER_HINDEXED, newtype);
}

int spc_mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
                                      spc_mpi_counts_t array_of_displacements, MPI_Datatype oldtype,
                                      MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const placed_t placed = {.count = count,
                             .types = &old,
                             .length = blocklength,
                             .places = array_of_displacements,
                             .unit = old->extent};
    return publish_placed(&placed, MPI_COMBINER_INDEXED_BLOCK, newtype);
}

int spc_mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
                                       const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                       MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const placed_t placed = {.count = count,
                             .types = &old,
                             .length = blocklength,
                             .addresses = (const MPI_Aint *)(const void *)array_of_displacements};
    return publish_placed(&placed, MPI_COMBINER_HINDEXED_BLOCK, newtype);
}

/* ---- structures ---- */

int spc_mpi_type_create_struct(MPI_Count count, spc_mpi_counts_t array_of_blocklengths,
                               const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
                               MPI_Datatype *newtype) {
    SPC_MPI_TRY(check_not_negative("count", count));
    placed_t placed = {.count = count,
                       .types = malloc(sizeof(*placed.types) * ((size_t)count + 1)),
                       .is_structure = true,
                       .lengths = array_of_blocklengths,
                       .addresses = (const MPI_Aint *)(const void *)array_of_displacements};
    int code = placed.types != NULL ? MPI_SUCCESS : no_memory();
    for (MPI_Count i = 0; i < count && code == MPI_SUCCESS; i++) {
        code = spc_mpi_get_type(NULL, array_of_types[i], &placed.types[i]);
    }
    code = code == MPI_SUCCESS ? publish_placed(&placed, MPI_COMBINER_STRUCT, newtype) : code;
    free(placed.types);
    return code;
}

/* ---- the same data with other bounds, or another handle ---- */

int spc_mpi_type_create_resized(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    const MPI_Aint addresses[] = {(MPI_Aint)lb, (MPI_Aint)extent};
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const spc_mpi_contents_t given = {
        .addresses = addresses, .address_count = 2, .types = &old, .type_count = 1};
    return publish(wrap(spc_mpi_loop_retain(old->loop), lb, extent, old), MPI_COMBINER_RESIZED, &given,
                   newtype);
}

int spc_mpi_type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    const spc_mpi_contents_t given = {.types = &old, .type_count = 1};
    spc_mpi_type_t *made = wrap(spc_mpi_loop_retain(old->loop), old->lb, old->extent, old);
    SPC_MPI_TRY(publish(made, MPI_COMBINER_DUP, &given, newtype));
    atomic_store_explicit(&made->is_committed, old->is_builtin || atomic_load(&old->is_committed),
                          memory_order_relaxed);
    const int code = spc_mpi_attributes_copy((intptr_t)oldtype, old->attributes, &made->attributes);
    if (code != MPI_SUCCESS) {
        (void)spc_mpi_type_free(newtype);
    }
    return code;
}

int spc_mpi_type_copy(const spc_mpi_type_t *old, MPI_Datatype *newtype) {
    const spc_mpi_contents_t *contents = &old->contents;
    spc_mpi_type_t *made = wrap(spc_mpi_loop_retain(old->loop), old->lb, old->extent, old);
    spc_mpi_call_is_large = contents->is_large;
    return publish(made, contents->combiner, contents, newtype);
}

/* ---- parts of an array ---- */

/* The loop of `count` slices of the inner dimensions from `start` on, each `row` bytes; the old loop is released. */
static spc_mpi_loop_t *slice(spc_mpi_loop_t *inner, MPI_Count start, MPI_Count count, MPI_Count row) {
    spc_mpi_loop_t *made = inner != NULL ? spc_mpi_loop_repeat(inner, start * row, count, row) : NULL;
    spc_mpi_loop_release(inner);
    return made;
}

/* The dimension whose elements lie closest together is the last one in C, the first one in Fortran. */
static int nth_fastest(int order, int ndims, int i) {
    return order == MPI_ORDER_C ? ndims - 1 - i : i;
}

static int check_array(int ndims, int order) {
    if (ndims < 1) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "ndims=%d: an array has 1 dimension or more", ndims);
    }
    return order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN
               ? MPI_SUCCESS
               : spc_mpi_fail(NULL, MPI_ERR_ARG, "order=%d: it is MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
}

static int publish_array(spc_mpi_type_t *old, spc_mpi_loop_t *loop, MPI_Count items, int combiner,
                         spc_mpi_contents_t *counts, MPI_Datatype *newtype) {
    counts->types = &old;
    counts->type_count = 1;
    return publish(wrap(loop, 0, items * old->extent, old), combiner, counts, newtype);
}

int spc_mpi_type_create_subarray(int ndims, spc_mpi_counts_t array_of_sizes,
                                 spc_mpi_counts_t array_of_subsizes, spc_mpi_counts_t array_of_starts,
                                 int order, MPI_Datatype oldtype, MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    SPC_MPI_TRY(check_array(ndims, order));
    for (int i = 0; i < ndims; i++) {
        const MPI_Count size = spc_mpi_count(array_of_sizes, i), part = spc_mpi_count(array_of_subsizes, i);
        const MPI_Count start = spc_mpi_count(array_of_starts, i);
        if (part < 1 || start < 0 || part > size || start > size - part) {
            return spc_mpi_fail(NULL, MPI_ERR_ARG,
                                "dimension %d: %lld elements from %lld on do not fit into %lld", i,
                                (long long)part, (long long)start, (long long)size);
        }
    }
    MPI_Count *counts = malloc(sizeof(*counts) * (3 * (size_t)ndims + 2));
    if (counts == NULL) {
        return no_memory();
    }
    spc_mpi_loop_t *loop = spc_mpi_loop_retain(old->loop);
    MPI_Count items = 1;
    for (int i = 0; i < ndims; i++) {
        const int d = nth_fastest(order, ndims, i);
        loop = slice(loop, spc_mpi_count(array_of_starts, d), spc_mpi_count(array_of_subsizes, d),
                     items * old->extent);
        items *= spc_mpi_count(array_of_sizes, d);
        counts[1 + i] = spc_mpi_count(array_of_sizes, i);
        counts[1 + ndims + i] = spc_mpi_count(array_of_subsizes, i);
        counts[1 + 2 * ndims + i] = spc_mpi_count(array_of_starts, i);
    }
    counts[0] = ndims;
    counts[1 + 3 * ndims] = order;
    spc_mpi_contents_t given = {.counts = counts, .count_count = 3 * ndims + 2, .head = 1, .tail = 1};
    const int code = publish_array(old, loop, items, MPI_COMBINER_SUBARRAY, &given, newtype);
    free(counts);
    return code;
}

/* One dimension of a distributed array: what one process of `processes` has of `size` slices. */
typedef struct share {
    MPI_Count size;
    int processes;
    int process;
    int distribution;
    int argument;
} share_t;

/* Blocks of `length` are dealt out in turn; a block distribution has one for each. */
static int block_length(const share_t *share, MPI_Count *length) {
    const bool is_default = share->argument == MPI_DISTRIBUTE_DFLT_DARG;
    if (share->distribution == MPI_DISTRIBUTE_NONE) {
        *length = share->size;
        return share->processes == 1 ? MPI_SUCCESS
                                     : spc_mpi_fail(NULL, MPI_ERR_ARG,
                                                    "a dimension that is not distributed has one "
                                                    "process");
    }
    if (share->distribution != MPI_DISTRIBUTE_BLOCK && share->distribution != MPI_DISTRIBUTE_CYCLIC) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "distribution %d is not one of MPI's", share->distribution);
    }
    if (share->distribution == MPI_DISTRIBUTE_CYCLIC) {
        *length = is_default ? 1 : share->argument;
    } else {
        *length = is_default ? (share->size + share->processes - 1) / share->processes : share->argument;
        if (*length * share->processes < share->size) {
            return spc_mpi_fail(NULL, MPI_ERR_ARG, "%d blocks of %lld do not hold %lld", share->processes,
                                (long long)*length, (long long)share->size);
        }
    }
    return *length > 0 ? MPI_SUCCESS : spc_mpi_fail(NULL, MPI_ERR_ARG, "a block has at least one item");
}

/* Whole blocks at equal distances, then the rest of one. */
static spc_mpi_loop_t *deal(spc_mpi_loop_t *inner, const share_t *share, MPI_Count length, MPI_Count row) {
    const MPI_Count first = share->process * length, step = share->processes * length;
    const MPI_Count whole = first + length <= share->size ? (share->size - first - length) / step + 1 : 0;
    const MPI_Count rest_at = first + whole * step;
    const MPI_Count rest = rest_at < share->size ? share->size - rest_at : 0;
    spc_mpi_loop_t *made = spc_mpi_loop_parts(2);
    spc_mpi_loop_t *block = inner != NULL ? spc_mpi_loop_repeat(inner, 0, length, row) : NULL;
    spc_mpi_loop_t *blocks = block != NULL ? spc_mpi_loop_repeat(block, 0, whole, step * row) : NULL;
    spc_mpi_loop_t *last = inner != NULL ? spc_mpi_loop_repeat(inner, 0, rest, row) : NULL;
    if (made != NULL && blocks != NULL && last != NULL) {
        spc_mpi_loop_add_part(made, first * row, blocks);
        spc_mpi_loop_add_part(made, rest_at * row, last);
        made = spc_mpi_loop_simplify(made);
    } else {
        spc_mpi_loop_release(made);
        made = NULL;
    }
    spc_mpi_loop_release(block);
    spc_mpi_loop_release(blocks);
    spc_mpi_loop_release(last);
    spc_mpi_loop_release(inner);
    return made;
}

/* The place of the process in the grid, whose last dimension varies fastest, in either order. */
static int coordinate(int rank, int ndims, const int psizes[], int dimension) {
    for (int d = ndims - 1; d > dimension; d--) {
        rank /= psizes[d];
    }
    return rank % psizes[dimension];
}

int spc_mpi_type_create_darray(int size, int rank, int ndims, spc_mpi_counts_t array_of_gsizes,
                               const int array_of_distribs[], const int array_of_dargs[],
                               const int array_of_psizes[], int order, MPI_Datatype oldtype,
                               MPI_Datatype *newtype) {
    spc_mpi_type_t *old;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, oldtype, &old));
    SPC_MPI_TRY(check_array(ndims, order));
    MPI_Count processes = 1;
    for (int i = 0; i < ndims; i++) {
        if (array_of_psizes[i] < 1) {
            return spc_mpi_fail(NULL, MPI_ERR_ARG, "dimension %d has %d processes", i, array_of_psizes[i]);
        }
        processes *= array_of_psizes[i];
    }
    if (processes != size || rank < 0 || rank >= size) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "rank=%d, size=%d: the grid has %lld processes", rank, size,
                            (long long)processes);
    }
    spc_mpi_loop_t *loop = spc_mpi_loop_retain(old->loop);
    MPI_Count items = 1;
    for (int i = 0; i < ndims; i++) {
        const int d = nth_fastest(order, ndims, i);
        const share_t share = {.size = spc_mpi_count(array_of_gsizes, d),
                               .processes = array_of_psizes[d],
                               .process = coordinate(rank, ndims, array_of_psizes, d),
                               .distribution = array_of_distribs[d],
                               .argument = array_of_dargs[d]};
        MPI_Count length = 0;
        const int code = block_length(&share, &length);
        if (code != MPI_SUCCESS) {
            spc_mpi_loop_release(loop);
            return code;
        }
        loop = deal(loop, &share, length, items * old->extent);
        items *= share.size;
    }
    MPI_Count *counts = malloc(sizeof(*counts) * (4 * (size_t)ndims + 4)), next = 0;
    if (counts == NULL) {
        spc_mpi_loop_release(loop);
        return no_memory();
    }
    counts[next++] = size;
    counts[next++] = rank;
    counts[next++] = ndims;
    for (int i = 0; i < ndims; i++) {
        counts[next + i] = spc_mpi_count(array_of_gsizes, i);
        counts[next + ndims + i] = array_of_distribs[i];
        counts[next + 2 * ndims + i] = array_of_dargs[i];
        counts[next + 3 * ndims + i] = array_of_psizes[i];
    }
    next += 4 * ndims;
    counts[next++] = order;
    spc_mpi_contents_t given = {.counts = counts, .count_count = next, .head = 3, .tail = 3 * ndims + 1};
    const int code = publish_array(old, loop, items, MPI_COMBINER_DARRAY, &given, newtype);
    free(counts);
    return code;
}
