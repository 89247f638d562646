/* SPDX-License-Identifier: MIT */
/*
 * Queries of datatypes: sizes, names, contents.
 */
#include "mpi/type/spc_mpi_pack.h"

#include <float.h>

int spc_mpi_type_commit(MPI_Datatype *datatype) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, *datatype, &type));
    atomic_store_explicit(&type->is_committed, true, memory_order_relaxed);
    return MPI_SUCCESS;
}

int spc_mpi_type_free(MPI_Datatype *datatype) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, *datatype, &type));
    if (type->is_builtin) {
        return spc_mpi_fail(NULL, MPI_ERR_TYPE, "%s is predefined: it cannot be freed", type->name);
    }
    if (type->is_freed) { /* by its operator, in a request that outlives it */
        return spc_mpi_fail(NULL, MPI_ERR_TYPE, "the program has freed the datatype already");
    }
    SPC_MPI_TRY(spc_mpi_attributes_free((intptr_t)*datatype, &type->attributes));
    type->is_freed = true;
    spc_mpi_type_release(type);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

/* ---- sizes ---- */

int spc_mpi_type_size(MPI_Datatype datatype, MPI_Count *size) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    *size = type->size;
    return MPI_SUCCESS;
}

int spc_mpi_type_size_x(MPI_Datatype datatype, MPI_Count *size) {
    return spc_mpi_type_size(datatype, size);
}

int spc_mpi_type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    *lb = type->lb;
    *extent = type->extent;
    return MPI_SUCCESS;
}

int spc_mpi_type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent) {
    return spc_mpi_type_get_extent(datatype, lb, extent);
}

int spc_mpi_type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    *true_lb = type->true_lb;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}

int spc_mpi_type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent) {
    return spc_mpi_type_get_true_extent(datatype, true_lb, true_extent);
}

/* ---- names ---- */

int spc_mpi_type_set_name(MPI_Datatype datatype, const char *type_name) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    (void)snprintf(type->name, sizeof(type->name), "%s", type_name);
    return MPI_SUCCESS;
}

int spc_mpi_type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen) {
    spc_mpi_type_t *type;
    const char *name = "MPI_DATATYPE_NULL";
    if (datatype != MPI_DATATYPE_NULL) {
        SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
        name = type->name;
    }
    return spc_mpi_give_text(name, type_name, resultlen);
}

/* ---- contents ---- */

/* The counts that are given as integers lie before `large` and from `rest` on. */
typedef struct layout {
    MPI_Count large, rest;
    MPI_Count integers, addresses, larges, types;
} layout_t;

static layout_t layout_of(const spc_mpi_contents_t *contents) {
    const MPI_Count rest =
        contents->is_large ? contents->count_count - contents->tail : contents->count_count;
    const MPI_Count large = contents->is_large ? contents->head : rest;
    return (layout_t){.large = large,
                      .rest = rest,
                      .integers = contents->count_count - (rest - large),
                      .addresses = contents->is_large ? 0 : contents->address_count,
                      .larges = rest - large + (contents->is_large ? contents->address_count : 0),
                      .types = contents->type_count};
}

int spc_mpi_type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                                MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    const layout_t layout = layout_of(&type->contents);
    *num_integers = layout.integers;
    *num_addresses = layout.addresses;
    *num_large_counts = layout.larges;
    *num_datatypes = layout.types;
    *combiner = type->contents.combiner;
    return MPI_SUCCESS;
}

/* A type of a _c form that has counts is described in that form alone. */
static int check_small(MPI_Datatype datatype) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    return layout_of(&type->contents).larges == 0
               ? MPI_SUCCESS
               : spc_mpi_fail(NULL, MPI_ERR_TYPE,
                              "a function with large counts (_c) has made the datatype: %s_c describes it",
                              spc_mpi_call);
}

int spc_mpi_type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses,
                              int *num_datatypes, int *combiner) {
    MPI_Count integers, addresses, larges, types;
    SPC_MPI_TRY(check_small(datatype));
    SPC_MPI_TRY(spc_mpi_type_get_envelope_c(datatype, &integers, &addresses, &larges, &types, combiner));
    *num_integers = spc_mpi_narrow(integers);
    *num_addresses = spc_mpi_narrow(addresses);
    *num_datatypes = spc_mpi_narrow(types);
    return MPI_SUCCESS;
}

static void give_counts(const spc_mpi_contents_t *contents, int integers[], MPI_Aint addresses[],
                        MPI_Count larges[]) {
    const layout_t layout = layout_of(contents);
    for (MPI_Count i = 0; i < contents->count_count; i++) {
        if (i >= layout.large && i < layout.rest) {
            *larges++ = contents->counts[i];
        } else {
            *integers++ = (int)contents->counts[i];
        }
    }
    for (MPI_Count i = 0; i < contents->address_count; i++) {
        if (contents->is_large) {
            *larges++ = contents->addresses[i];
        } else {
            *addresses++ = contents->addresses[i];
        }
    }
}

int spc_mpi_type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                                MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                                MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                                MPI_Datatype array_of_datatypes[]) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    const spc_mpi_contents_t *contents = &type->contents;
    const layout_t layout = layout_of(contents);
    if (contents->combiner == MPI_COMBINER_NAMED) {
        return spc_mpi_fail(NULL, MPI_ERR_TYPE, "%s is predefined: no call made it", type->name);
    }
    if (max_integers < layout.integers || max_addresses < layout.addresses || max_large_counts < layout.larges
        || max_datatypes < layout.types) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG,
                            "an array is too short: MPI_Type_get_envelope gives the lengths");
    }
    give_counts(contents, array_of_integers, array_of_addresses, array_of_large_counts);
    for (MPI_Count i = 0; i < contents->type_count; i++) {
        const spc_mpi_type_t *old = contents->types[i];
        array_of_datatypes[i] = old->handle;
        if (!old->is_builtin) {
            SPC_MPI_TRY(spc_mpi_type_copy(old, &array_of_datatypes[i]));
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                              int array_of_integers[], MPI_Aint array_of_addresses[],
                              MPI_Datatype array_of_datatypes[]) {
    SPC_MPI_TRY(check_small(datatype));
    return spc_mpi_type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes,
                                       array_of_integers, array_of_addresses, NULL, array_of_datatypes);
}

/* ---- finding builtin types ---- */

int spc_mpi_type_match_size(int typeclass, int size, MPI_Datatype *datatype) {
    static const struct {
        int typeclass, size;
        MPI_Datatype type;
    } known[] = {
        {MPI_TYPECLASS_INTEGER, 1, MPI_INT8_T},
        {MPI_TYPECLASS_INTEGER, 2, MPI_INT16_T},
        {MPI_TYPECLASS_INTEGER, 4, MPI_INT32_T},
        {MPI_TYPECLASS_INTEGER, 8, MPI_INT64_T},
        {MPI_TYPECLASS_REAL, 4, MPI_FLOAT},
        {MPI_TYPECLASS_REAL, 8, MPI_DOUBLE},
        {MPI_TYPECLASS_REAL, 16, MPI_LONG_DOUBLE},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_C_FLOAT_COMPLEX},
        {MPI_TYPECLASS_COMPLEX, 16, MPI_C_DOUBLE_COMPLEX},
        {MPI_TYPECLASS_COMPLEX, 32, MPI_C_LONG_DOUBLE_COMPLEX},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].typeclass == typeclass && known[i].size == size) {
            *datatype = known[i].type;
            return MPI_SUCCESS;
        }
    }
    *datatype = MPI_DATATYPE_NULL;
    return spc_mpi_fail(NULL, MPI_ERR_ARG, "there is no builtin type of %d bytes in this class", size);
}

/* A type of MPI_Type_create_f90_real and its like: predefined, made once for the same arguments, never freed. */
typedef struct parametrized {
    spc_mpi_type_t type;
    MPI_Count arguments[2]; /* precision and range, or the range alone */
    struct parametrized *next;
} parametrized_t;

static pthread_mutex_t parametrized_lock = PTHREAD_MUTEX_INITIALIZER;
static parametrized_t *parametrized; /* with the lock */

static parametrized_t *find_parametrized(int combiner, const MPI_Count arguments[2]) {
    parametrized_t *found = parametrized;
    while (found != NULL
           && (found->type.contents.combiner != combiner
               || memcmp(found->arguments, arguments, sizeof(found->arguments)) != 0)) {
        found = found->next;
    }
    return found;
}

/* With the lock. Like this builtin type, except for its handle, its name and its contents. */
static parametrized_t *make_parametrized(int combiner, int count, const MPI_Count arguments[2],
                                         const spc_mpi_type_t *like) {
    parametrized_t *made = malloc(sizeof(*made));
    if (made != NULL) {
        *made = (parametrized_t){.arguments = {arguments[0], arguments[1]}, .next = parametrized};
        memcpy(&made->type, like, sizeof(made->type));
        made->type.attributes = NULL;
        made->type.name[0] = '\0';
        made->type.contents =
            (spc_mpi_contents_t){.combiner = combiner, .count_count = count, .counts = made->arguments};
        made->type.handle = (MPI_Datatype)spc_mpi_handle_create(SPC_MPI_TYPE, &made->type);
        parametrized = made;
    }
    return made;
}

static int give_parametrized(int combiner, int count, const MPI_Count arguments[2], MPI_Datatype base,
                             MPI_Datatype *newtype) {
    spc_mpi_type_t *like;
    *newtype = MPI_DATATYPE_NULL;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, base, &like));
    pthread_mutex_lock(&parametrized_lock);
    parametrized_t *found = find_parametrized(combiner, arguments);
    found = found != NULL ? found : make_parametrized(combiner, count, arguments, like);
    pthread_mutex_unlock(&parametrized_lock);
    if (found == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a datatype");
    }
    *newtype = found->type.handle;
    return MPI_SUCCESS;
}

int spc_mpi_type_create_f90_integer(int r, MPI_Datatype *newtype) {
    static const struct {
        int range;
        MPI_Datatype type;
    } known[] = {{2, MPI_INTEGER1}, {4, MPI_INTEGER2}, {9, MPI_INTEGER4}, {18, MPI_INTEGER8}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (r <= known[i].range) {
            return give_parametrized(MPI_COMBINER_F90_INTEGER, 1, (MPI_Count[]){r, 0}, known[i].type,
                                     newtype);
        }
    }
    return spc_mpi_fail(NULL, MPI_ERR_ARG, "r=%d: integers have 18 decimal digits at most", r);
}

/* A complex number has two of these. MPI_UNDEFINED, which is negative, asks for nothing. */
static int create_real(int combiner, int p, int r, MPI_Datatype *newtype) {
    static const struct {
        int precision, range;
        MPI_Datatype real, complex;
    } known[] = {
        {FLT_DIG, -FLT_MIN_10_EXP, MPI_REAL4, MPI_COMPLEX8},
        {DBL_DIG, -DBL_MIN_10_EXP, MPI_REAL8, MPI_COMPLEX16},
        {LDBL_DIG, -LDBL_MIN_10_EXP, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && (p != MPI_UNDEFINED || r != MPI_UNDEFINED);
         i++) {
        if (p <= known[i].precision && r <= known[i].range) {
            return give_parametrized(combiner, 2, (MPI_Count[]){p, r},
                                     combiner == MPI_COMBINER_F90_REAL ? known[i].real : known[i].complex,
                                     newtype);
        }
    }
    return spc_mpi_fail(NULL, MPI_ERR_ARG,
                        "p=%d, r=%d: there are p up to %d with r up to %d; one of them can be MPI_UNDEFINED",
                        p, r, LDBL_DIG, -LDBL_MIN_10_EXP);
}

int spc_mpi_type_create_f90_real(int p, int r, MPI_Datatype *newtype) {
    return create_real(MPI_COMBINER_F90_REAL, p, r, newtype);
}

int spc_mpi_type_create_f90_complex(int p, int r, MPI_Datatype *newtype) {
    return create_real(MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

int spc_mpi_type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type) {
    static const struct {
        MPI_Datatype value, pair;
    } known[] = {{MPI_FLOAT, MPI_FLOAT_INT}, {MPI_DOUBLE, MPI_DOUBLE_INT},
                 {MPI_LONG, MPI_LONG_INT},   {MPI_SHORT, MPI_SHORT_INT},
                 {MPI_INT, MPI_2INT},        {MPI_LONG_DOUBLE, MPI_LONG_DOUBLE_INT}};
    spc_mpi_type_t *type;
    *pair_type = MPI_DATATYPE_NULL;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, value_type, &type));
    SPC_MPI_TRY(spc_mpi_get_type(NULL, index_type, &type));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (index_type == MPI_INT && known[i].value == value_type) {
            *pair_type = known[i].pair;
        }
    }
    return MPI_SUCCESS;
}
