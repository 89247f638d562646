/* SPDX-License-Identifier: MIT */
/* Types that are made with int counts and with large ones, and what both queries tell of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                \
        }                                                           \
    } while (0)

enum { ROOM = 8 };

/* The lists hold the numbers, one after another, that the query is to give. */
typedef struct expected {
    int integer_count;
    int integers[ROOM];
    int address_count;
    MPI_Aint addresses[ROOM];
    int large_count;
    MPI_Count larges[ROOM];
} expected_t;

static void check_lists(const expected_t *expected, const int *integers, const MPI_Aint *addresses) {
    for (int i = 0; i < expected->integer_count; i++) {
        CHECK(integers[i] == expected->integers[i]);
    }
    for (int i = 0; i < expected->address_count; i++) {
        CHECK(addresses[i] == expected->addresses[i]);
    }
}

static void check_large(MPI_Datatype type, const expected_t *expected) {
    int combiner, integers[ROOM];
    MPI_Count integer_count, address_count, large_count, type_count, larges[ROOM];
    MPI_Aint addresses[ROOM];
    MPI_Datatype types[ROOM];
    MPI_Type_get_envelope_c(type, &integer_count, &address_count, &large_count, &type_count, &combiner);
    CHECK(integer_count == expected->integer_count && address_count == expected->address_count);
    CHECK(large_count == expected->large_count);
    MPI_Type_get_contents_c(type, integer_count, address_count, large_count, type_count, integers, addresses,
                            larges, types);
    check_lists(expected, integers, addresses);
    for (int i = 0; i < large_count; i++) {
        CHECK(larges[i] == expected->larges[i]);
    }
}

static void check_small(MPI_Datatype type, const expected_t *expected) {
    int combiner, integer_count, address_count, type_count, error_class, integers[ROOM];
    MPI_Aint addresses[ROOM];
    MPI_Datatype types[ROOM];
    const int code = MPI_Type_get_envelope(type, &integer_count, &address_count, &type_count, &combiner);
    if (expected->large_count > 0) {
        MPI_Error_class(code, &error_class);
        CHECK(error_class == MPI_ERR_TYPE);
        MPI_Error_class(MPI_Type_get_contents(type, ROOM, ROOM, ROOM, integers, addresses, types),
                        &error_class);
        CHECK(error_class == MPI_ERR_TYPE);
        return;
    }
    CHECK(integer_count == expected->integer_count && address_count == expected->address_count);
    MPI_Type_get_contents(type, integer_count, address_count, type_count, integers, addresses, types);
    check_lists(expected, integers, addresses);
}

static void check(MPI_Datatype type, const expected_t *expected) {
    check_large(type, expected);
    check_small(type, expected);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    const int lengths[] = {1, 2}, sizes[] = {4, 5}, parts[] = {2, 3}, starts[] = {1, 0};
    const MPI_Count large_lengths[] = {1, 2}, large_sizes[] = {4, 5}, large_parts[] = {2, 3};
    const MPI_Count large_starts[] = {1, 0}, large_places[] = {0, 16}, many = 5000000000;
    const MPI_Aint places[] = {0, 16};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype type, copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    MPI_Type_vector(2, 3, 4, MPI_INT, &type);
    check(type, &(expected_t){3, {2, 3, 4}, 0, {0}, 0, {0}});
    MPI_Type_vector_c(2, 3, 4, MPI_INT, &type);
    check(type, &(expected_t){0, {0}, 0, {0}, 3, {2, 3, 4}});
    MPI_Type_contiguous_c(many, MPI_CHAR, &type);
    check(type, &(expected_t){0, {0}, 0, {0}, 1, {many}});

    MPI_Type_create_struct(2, lengths, places, types, &type);
    check(type, &(expected_t){3, {2, 1, 2}, 2, {0, 16}, 0, {0}});
    MPI_Type_create_struct_c(2, large_lengths, large_places, types, &type);
    check(type, &(expected_t){0, {0}, 0, {0}, 5, {2, 1, 2, 0, 16}});

    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    check(type, &(expected_t){8, {2, 4, 5, 2, 3, 1, 0, MPI_ORDER_C}, 0, {0}, 0, {0}});
    MPI_Type_create_subarray_c(2, large_sizes, large_parts, large_starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_dup(type, &copy);
    check(type, &(expected_t){2, {2, MPI_ORDER_C}, 0, {0}, 6, {4, 5, 2, 3, 1, 0}});
    check(copy, &(expected_t){0, {0}, 0, {0}, 0, {0}}); /* that it is a copy is all that its call was given */

    MPI_Type_create_resized(MPI_INT, 4, 16, &type);
    check(type, &(expected_t){0, {0}, 2, {4, 16}, 0, {0}});
    MPI_Type_create_resized_c(MPI_INT, 4, 16, &type);
    check(type, &(expected_t){0, {0}, 0, {0}, 2, {4, 16}});
    MPI_Finalize();
    return 0;
}
