/* SPDX-License-Identifier: MIT */
/*
 * Operators: those of MPI, and functions of the program.
 *
 * The core combines numbers (reduce/spc_ops.h). Pairs of a value and an index, long double and its complex numbers are
 * combined here.
 */
#include <complex.h>

#include "mpi/type/spc_mpi_type.h"

typedef struct op {
    _Atomic int references; /* the handle's, and each persistent request's */
    bool commutes;
    bool is_freed; /* the program no longer has a handle, but requests still use it */
    MPI_User_function *function; /* NULL: large_function */
    MPI_User_function_c *large_function;
} op_t;

enum { CHUNK_BYTES = 2048 }; /* of copies of values that lie where the core cannot combine them */

/* X(name, the core's operator or -1, what it combines) */
#define OPERATORS(X)                                                                    \
    X(SUM, SPC_SUM, "integers, floating-point and complex numbers")                     \
    X(PROD, SPC_PROD, "integers, floating-point and complex numbers")                   \
    X(MIN, SPC_MIN, "integers and floating-point numbers")                              \
    X(MAX, SPC_MAX, "integers and floating-point numbers")                              \
    X(LAND, SPC_LOGICAL_AND, "integers, floating-point numbers and logical values")     \
    X(LOR, SPC_LOGICAL_OR, "integers, floating-point numbers and logical values")       \
    X(LXOR, SPC_LOGICAL_XOR, "integers, floating-point numbers and logical values")     \
    X(BAND, SPC_BITWISE_AND, "integers and MPI_BYTE")                                   \
    X(BOR, SPC_BITWISE_OR, "integers and MPI_BYTE")                                     \
    X(BXOR, SPC_BITWISE_XOR, "integers and MPI_BYTE")                                   \
    X(MINLOC, -1, "pairs of a value and an index, such as MPI_DOUBLE_INT and MPI_2INT") \
    X(MAXLOC, -1, "pairs of a value and an index, such as MPI_DOUBLE_INT and MPI_2INT") \
    X(REPLACE, -1, "anything, in MPI_Accumulate")                                       \
    X(NO_OP, -1, "anything, in MPI_Get_accumulate")

static op_t *find_own(MPI_Op op) {
    return spc_mpi_handle_find(SPC_MPI_OP, (intptr_t)op);
}

/* NULL: none of MPI's own. */
static const char *name_of(MPI_Op op, int *core, const char **operands) {
#define FIND(name, core_, operands_) \
    if (op == MPI_##name) {          \
        *core = core_;               \
        *operands = operands_;       \
        return "MPI_" #name;         \
    }
    OPERATORS(FIND)
#undef FIND
    return NULL;
}

int spc_mpi_check_op(const spc_mpi_comm_t *comm, MPI_Op op) {
    int core;
    const char *operands;
    if (name_of(op, &core, &operands) != NULL || find_own(op) != NULL) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(comm, MPI_ERR_OP,
                        op == MPI_OP_NULL ? "the operator is MPI_OP_NULL"
                                          : "the operator is not a valid handle, or was freed");
}

static bool commutes(MPI_Op op) {
    const op_t *own = find_own(op);
    return own != NULL ? own->commutes : op != MPI_REPLACE && op != MPI_NO_OP;
}

/* Relaxed: the caller holds a reference already. */
void spc_mpi_op_retain(MPI_Op op) {
    op_t *own = find_own(op);
    if (own != NULL) {
        atomic_fetch_add_explicit(&own->references, 1, memory_order_relaxed);
    }
}

/* Acquire and release pair with other threads' releases: the last one sees all uses as over. */
void spc_mpi_op_release(MPI_Op op) {
    op_t *own = find_own(op);
    if (own != NULL && atomic_fetch_sub_explicit(&own->references, 1, memory_order_acq_rel) == 1) {
        spc_mpi_handle_free(SPC_MPI_OP, (intptr_t)op);
        free(own);
    }
}

/* ---- what the core combines ---- */

uint32_t spc_mpi_core_type(const spc_mpi_type_t *type) {
    if (type->element == NULL) {
        return SPC_TYPE_NONE;
    }
    return type->element->handle == MPI_BYTE ? SPC_TYPE_UINT8 : type->element->core;
}

static bool is_bitwise(int core) {
    return core == SPC_BITWISE_AND || core == SPC_BITWISE_OR || core == SPC_BITWISE_XOR;
}

int spc_mpi_core_op(MPI_Op op, const spc_mpi_type_t *type) {
    int core = -1;
    const char *operands;
    const uint32_t elements = spc_mpi_core_type(type);
    if (elements == SPC_TYPE_NONE || name_of(op, &core, &operands) == NULL || core < 0) {
        return -1;
    }
    if (type->element->handle == MPI_BYTE && !is_bitwise(core)) {
        return -1;
    }
    return spc_ops_has((spc_operator_t)core, elements) ? core : -1;
}

/* The core needs values at multiples of 8 bytes, and counts them in 32 bits. */
static void combine_numbers(int core, uint32_t type, const void *left, void *right, MPI_Count count) {
    const MPI_Count size = (MPI_Count)spc_type_size(type);
    const bool is_aligned = (((uintptr_t)left | (uintptr_t)right) & 7) == 0;
    const MPI_Count most = is_aligned ? (MPI_Count)1 << 28 : CHUNK_BYTES / size;
    uint64_t chunk[2][CHUNK_BYTES / 8];
    for (MPI_Count done = 0; done < count;) {
        const MPI_Count now = count - done < most ? count - done : most;
        const spc_field_t field = {type, (uint32_t)now};
        const char *from = (const char *)left + done * size;
        char *to = (char *)right + done * size;
        if (is_aligned) {
            (void)spc_ops_combine_to((spc_operator_t)core, &field, 1, to, from, to);
        } else {
            memcpy(chunk[0], from, (size_t)(now * size));
            memcpy(chunk[1], to, (size_t)(now * size));
            (void)spc_ops_combine_to((spc_operator_t)core, &field, 1, chunk[1], chunk[0], chunk[1]);
            memcpy(to, chunk[1], (size_t)(now * size));
        }
        done += now;
    }
}

/* ---- what the core does not combine ---- */

/* X(name, the combination of a and b) */
#define LONG_DOUBLES(X)       \
    X(SUM, a + b)             \
    X(PROD, a *b)             \
    X(MIN, a < b ? a : b)     \
    X(MAX, a > b ? a : b)     \
    X(LAND, a != 0 && b != 0) \
    X(LOR, a != 0 || b != 0)  \
    X(LXOR, (a != 0) != (b != 0))

#define COMPLEX_LONG_DOUBLES(X) \
    X(SUM, a + b)               \
    X(PROD, a *b)

#define CASE(name, expression)                          \
    if (op == MPI_##name) {                             \
        for (MPI_Count i = 0; i < count; i++) {         \
            const value_type a = left[i], b = right[i]; \
            right[i] = expression;                      \
        }                                               \
        return true;                                    \
    }

/* False: the operator cannot combine them. A count of 0 asks only that. */
static bool combine_long_doubles(MPI_Op op, const long double *left, long double *right, MPI_Count count) {
    typedef long double value_type;
    LONG_DOUBLES(CASE)
    return false;
}

static bool combine_complex(MPI_Op op, const long double complex *left, long double complex *right,
                            MPI_Count count) {
    typedef long double complex value_type;
    COMPLEX_LONG_DOUBLES(CASE)
    return false;
}

/* X(datatype, type of the value, type of the index) */
#define PAIRS(X)                         \
    X(FLOAT_INT, float, int)             \
    X(DOUBLE_INT, double, int)           \
    X(LONG_INT, long, int)               \
    X(2INT, int, int)                    \
    X(SHORT_INT, short, int)             \
    X(LONG_DOUBLE_INT, long double, int) \
    X(2INTEGER, int, int)                \
    X(2REAL, float, float)               \
    X(2DOUBLE_PRECISION, double, double)

/* The pair with the lower index stays if values are equal. */
#define COMBINE_PAIRS(name, value_type, index_type)                                                    \
    static void combine_##name(bool least, const void *from, void *to, MPI_Count count) {              \
        typedef struct pair {                                                                          \
            value_type value;                                                                          \
            index_type index;                                                                          \
        } pair_t;                                                                                      \
        const pair_t *left = from;                                                                     \
        pair_t *right = to;                                                                            \
        for (MPI_Count i = 0; i < count; i++) {                                                        \
            const bool is_equal = left[i].value == right[i].value;                                     \
            const bool wins = least ? left[i].value < right[i].value : left[i].value > right[i].value; \
            if (wins || (is_equal && left[i].index < right[i].index)) {                                \
                right[i].value = left[i].value;                                                        \
                right[i].index = left[i].index;                                                        \
            }                                                                                          \
        }                                                                                              \
    }
PAIRS(COMBINE_PAIRS)

static bool combine_pairs(MPI_Op op, const spc_mpi_type_t *element, const void *left, void *right,
                          MPI_Count count) {
    if (op != MPI_MINLOC && op != MPI_MAXLOC) {
        return false;
    }
#define CHOOSE(name, value_type, index_type)                  \
    if (element->handle == MPI_##name) {                      \
        combine_##name(op == MPI_MINLOC, left, right, count); \
        return true;                                          \
    }
    PAIRS(CHOOSE)
#undef CHOOSE
    return false;
}

/* Elements of a builtin type, one after another. False: the operator cannot combine them. */
static bool combine_elements(MPI_Op op, const spc_mpi_type_t *element, const void *left, void *right,
                             MPI_Count count) {
    const int core = spc_mpi_core_op(op, element);
    if (core >= 0) {
        combine_numbers(core, spc_mpi_core_type(element), left, right, count);
        return true;
    }
    if (element->handle == MPI_LONG_DOUBLE) {
        return combine_long_doubles(op, left, right, count);
    }
    if (element->handle == MPI_C_LONG_DOUBLE_COMPLEX || element->handle == MPI_CXX_LONG_DOUBLE_COMPLEX) {
        return combine_complex(op, left, right, count);
    }
    return combine_pairs(op, element, left, right, count);
}

int spc_mpi_check_operands(const spc_mpi_comm_t *comm, MPI_Op op, const spc_mpi_type_t *type) {
    int core;
    const char *operands, *name = name_of(op, &core, &operands);
    if (name == NULL) {
        return spc_mpi_check_op(comm, op);
    }
    if (op == MPI_REPLACE || op == MPI_NO_OP) {
        return spc_mpi_fail(comm, MPI_ERR_OP,
                            "%s combines nothing; it is for MPI_Accumulate and its relatives", name);
    }
    if (type->size == 0 || (type->element != NULL && combine_elements(op, type->element, NULL, NULL, 0))) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(
        comm, MPI_ERR_OP,
        "%s does not combine %s; it combines %s. MPI_Op_create makes an operator of a function", name,
        type->name[0] != '\0'   ? type->name
        : type->element == NULL ? "a datatype of different elements"
                                : type->element->name,
        operands);
}

/* ---- combining ---- */

static void call_function(const op_t *own, const void *left, void *right, MPI_Count count,
                          const spc_mpi_type_t *type) {
    MPI_Datatype handle = type->handle;
    if (own->function == NULL) {
        own->large_function((void *)(uintptr_t)left, right, &count, &handle);
        return;
    }
    for (MPI_Count done = 0; done < count;) {
        int now = count - done < INT_MAX ? (int)(count - done) : INT_MAX;
        const int length = now;
        own->function(spc_mpi_item(left, done, type), spc_mpi_item(right, done, type), &now, &handle);
        done += length;
    }
}

/* The function may ask about the type, which the program may have freed: a persistent request still uses it. */
static void call_own(const op_t *own, const void *left, void *right, MPI_Count count,
                     const spc_mpi_type_t *type) {
    const spc_mpi_type_t *outer = spc_mpi_combined_type;
    spc_mpi_combined_type = type;
    call_function(own, left, right, count, type);
    spc_mpi_combined_type = outer;
}

/* Combines elements with holes between them as dense copies, and copies them back. */
static int combine_spread(const spc_mpi_comm_t *comm, MPI_Op op, const void *left, void *right,
                          MPI_Count count, const spc_mpi_type_t *type) {
    const spc_mpi_type_t *element = type->element;
    const MPI_Count elements = count * (type->size / element->size), bytes = count * type->size;
    const size_t room = (size_t)(elements * element->extent);
    char *memory = malloc(3 * room + 1);
    if (memory == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for %lld items", (long long)count);
    }
    char *packed = memory, *from = memory + room, *to = memory + 2 * room;
    (void)spc_mpi_type_pack(left, count, type, packed);
    spc_mpi_type_unpack(packed, bytes, from, elements, element);
    (void)spc_mpi_type_pack(right, count, type, packed);
    spc_mpi_type_unpack(packed, bytes, to, elements, element);
    (void)combine_elements(op, element, from, to, elements);
    (void)spc_mpi_type_pack(to, elements, element, packed);
    spc_mpi_type_unpack(packed, bytes, right, count, type);
    free(memory);
    return MPI_SUCCESS;
}

/* Keeps the left one. */
static int keep_left(const spc_mpi_comm_t *comm, const void *left, void *right, MPI_Count count,
                     const spc_mpi_type_t *type) {
    void *packed = malloc((size_t)(count * type->size) + 1);
    if (packed == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for %lld items", (long long)count);
    }
    spc_mpi_type_unpack(packed, spc_mpi_type_pack(left, count, type, packed), right, count, type);
    free(packed);
    return MPI_SUCCESS;
}

int spc_mpi_combine(const spc_mpi_comm_t *comm, MPI_Op op, const void *left, void *right, MPI_Count count,
                    const spc_mpi_type_t *type) {
    const op_t *own = find_own(op);
    if (own != NULL) {
        call_own(own, left, right, count, type);
        return MPI_SUCCESS;
    }
    if (op == MPI_REPLACE || type->size == 0 || count == 0) {
        return MPI_SUCCESS;
    }
    if (op == MPI_NO_OP) {
        return keep_left(comm, left, right, count, type);
    }
    SPC_MPI_TRY(spc_mpi_check_operands(comm, op, type));
    if (type == type->element || type->is_dense) {
        const MPI_Count elements = count * (type->size / type->element->size);
        (void)combine_elements(op, type->element, left, right, elements);
        return MPI_SUCCESS;
    }
    return combine_spread(comm, op, left, right, count, type);
}

/* ---- MPI functions ---- */

static int create(op_t made, MPI_Op *op) {
    op_t *own = malloc(sizeof(*own));
    *op = MPI_OP_NULL;
    if (own == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for an operator");
    }
    memcpy(own, &made, sizeof(made));
    atomic_init(&own->references, 1);
    const intptr_t handle = spc_mpi_handle_create(SPC_MPI_OP, own);
    if (handle == 0) {
        free(own);
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there are too many operators: free some with MPI_Op_free");
    }
    *op = (MPI_Op)handle;
    return MPI_SUCCESS;
}

int spc_mpi_op_create(MPI_User_function *user_fn, int commute, MPI_Op *op) {
    if (user_fn == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "user_fn is NULL; it is the function that combines items");
    }
    return create((op_t){.commutes = commute != 0, .function = user_fn}, op);
}

int spc_mpi_op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op) {
    if (user_fn == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "user_fn is NULL; it is the function that combines items");
    }
    return create((op_t){.commutes = commute != 0, .large_function = user_fn}, op);
}

int spc_mpi_op_free(MPI_Op *op) {
    int core;
    const char *operands, *name = name_of(*op, &core, &operands);
    if (name != NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_OP, "%s is predefined, and cannot be freed", name);
    }
    op_t *own = find_own(*op);
    if (own == NULL || own->is_freed) {
        return spc_mpi_fail(NULL, MPI_ERR_OP, "the operator is not a valid handle, or was freed");
    }
    own->is_freed = true;
    spc_mpi_op_release(*op);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_op_commutative(MPI_Op op, int *commute) {
    SPC_MPI_TRY(spc_mpi_check_op(NULL, op));
    *commute = commutes(op);
    return MPI_SUCCESS;
}

int spc_mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    SPC_MPI_TRY(spc_mpi_check_operands(NULL, op, type));
    if (count < 0) {
        return spc_mpi_fail(NULL, MPI_ERR_COUNT, "count=%lld: a count cannot be negative", (long long)count);
    }
    if (count != 0 && (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)) {
        return spc_mpi_fail(NULL, MPI_ERR_BUFFER,
                            "MPI_IN_PLACE is no buffer here; inoutbuf gets the result anyway");
    }
    SPC_MPI_TRY(spc_mpi_check_buffer(NULL, "inbuf", inbuf, count, type));
    SPC_MPI_TRY(spc_mpi_check_buffer(NULL, "inoutbuf", inoutbuf, count, type));
    return spc_mpi_combine(NULL, op, inbuf, inoutbuf, count, type);
}
