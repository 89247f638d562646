/* SPDX-License-Identifier: MIT */
/*
 * Predefined datatypes, and the lookup of a datatype by its handle.
 */
#include <complex.h>
#include <stdalign.h>
#include <stddef.h>
#include <wchar.h>

#include "mpi/spc_mpi_pack.h"

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

static void start_builtin(MPI_Datatype handle, const char *name, MPI_Count size, MPI_Count extent,
                          MPI_Count alignment, uint32_t core) {
    if (find_builtin(handle) != NULL) {
        return; /* another name of the same type */
    }
    spc_mpi_type_t *made = calloc(1, sizeof(*made));
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
    made->loop = spc_mpi_loop_block(0, size);
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

void spc_mpi_types_start(void) {
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
