/* SPDX-License-Identifier: MIT */
// Random datatypes, nested in one another: what MPI_Pack, MPI_Unpack and a message move are the bytes at the offsets
// that a list, made beside each type by the definition of its constructor, has.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "seed %u, line %d: %s is false\n", seed, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
        }                                                                                   \
    } while (0)

enum { TYPES = 300, DEPTH = 4, BYTES_MAX = 20000, MIDDLE = 1 << 18, ROOM = 1 << 19 };

static unsigned seed;

typedef struct list {
    MPI_Datatype type;
    long *at; // of each byte, relative to the item
    long count;
    long extent;
} list_t;

static unsigned next_random(unsigned below) {
    static unsigned state;
    state = state == 0 ? seed : state;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void append(list_t *list, const list_t *child, long at) {
    list->at = realloc(list->at, sizeof(long) * (size_t)(list->count + child->count + 1));
    for (long i = 0; i < child->count; i++) {
        list->at[list->count++] = at + child->at[i];
    }
}

static void append_many(list_t *list, const list_t *child, long at, long many) {
    for (long i = 0; i < many; i++) {
        append(list, child, at + i * child->extent);
    }
}

static list_t basic(void) {
    const MPI_Datatype types[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    const int sizes[] = {1, 2, 4, 8}, which = (int)next_random(4);
    list_t made = {.type = types[which], .count = sizes[which], .extent = sizes[which]};
    made.at = malloc(sizeof(long) * 8);
    for (long i = 0; i < made.count; i++) {
        made.at[i] = i;
    }
    return made;
}

static void vector(const list_t *child, list_t *made) {
    const int count = (int)next_random(4) + 1, length = (int)next_random(3), stride = (int)next_random(9) - 3;
    const MPI_Aint bytes = (MPI_Aint)next_random(100) - 30;
    const int in_bytes = (int)next_random(2);
    for (int i = 0; i < count; i++) {
        append_many(made, child, in_bytes ? i * bytes : i * (long)stride * child->extent, length);
    }
    if (in_bytes) {
        MPI_Type_create_hvector(count, length, bytes, child->type, &made->type);
    } else {
        MPI_Type_vector(count, length, stride, child->type, &made->type);
    }
}

static void indexed(const list_t *child, list_t *made) {
    int lengths[4], places[4];
    MPI_Aint bytes[4];
    const int count = (int)next_random(4) + 1, kind = (int)next_random(3);
    for (int i = 0; i < count; i++) {
        lengths[i] = kind == 2 ? 2 : (int)next_random(4);
        places[i] = (int)next_random(20) - 4;
        bytes[i] = (MPI_Aint)next_random(200) - 50;
        append_many(made, child, kind == 1 ? bytes[i] : places[i] * child->extent, lengths[i]);
    }
    if (kind == 1) {
        MPI_Type_create_hindexed(count, lengths, bytes, child->type, &made->type);
    } else if (kind == 2) {
        MPI_Type_create_indexed_block(count, 2, places, child->type, &made->type);
    } else {
        MPI_Type_indexed(count, lengths, places, child->type, &made->type);
    }
}

static void structure(const list_t *child, list_t *made) {
    list_t other = basic();
    const int lengths[] = {(int)next_random(3), (int)next_random(3) + 1};
    const MPI_Aint places[] = {(MPI_Aint)next_random(64), (MPI_Aint)next_random(300)};
    const MPI_Datatype types[] = {other.type, child->type};
    append_many(made, &other, places[0], lengths[0]);
    append_many(made, child, places[1], lengths[1]);
    MPI_Type_create_struct(2, lengths, places, types, &made->type);
    free(other.at);
}

static void subarray(const list_t *child, list_t *made) {
    int sizes[2], parts[2], starts[2];
    const int is_c = (int)next_random(2);
    for (int i = 0; i < 2; i++) {
        sizes[i] = (int)next_random(5) + 1;
        parts[i] = (int)next_random((unsigned)sizes[i]) + 1;
        starts[i] = (int)next_random((unsigned)(sizes[i] - parts[i] + 1));
    }
    const int slow = is_c ? 0 : 1, fast = 1 - slow;
    for (int i = 0; i < parts[slow]; i++) {
        const long row = (long)(starts[slow] + i) * sizes[fast];
        append_many(made, child, (row + starts[fast]) * child->extent, parts[fast]);
    }
    MPI_Type_create_subarray(2, sizes, parts, starts, is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child->type,
                             &made->type);
}

// Of a cyclic distribution over a grid of 2 by 1: rows 0, 2, ... or 1, 3, ..., in blocks of `block`.
static void darray(const list_t *child, list_t *made) {
    const int sizes[] = {(int)next_random(6) + 2, (int)next_random(4) + 1}, grid[] = {2, 1};
    const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    const int rank = (int)next_random(2), block = (int)next_random(2) + 1;
    const int arguments[] = {block, MPI_DISTRIBUTE_DFLT_DARG};
    for (int row = 0; row < sizes[0]; row++) {
        if (row / block % 2 == rank) {
            append_many(made, child, (long)row * sizes[1] * child->extent, sizes[1]);
        }
    }
    MPI_Type_create_darray(2, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, child->type, &made->type);
}

static void resized(const list_t *child, list_t *made) {
    append(made, child, 0);
    MPI_Type_create_resized(child->type, -(MPI_Aint)next_random(8), (MPI_Aint)next_random(120), &made->type);
}

static list_t grow(list_t child) {
    void (*const kinds[])(const list_t *, list_t *) = {vector, indexed, structure, subarray, darray, resized};
    list_t made = {.at = NULL};
    MPI_Aint low, extent;
    kinds[next_random(6)](&child, &made);
    MPI_Type_get_extent(made.type, &low, &extent);
    made.extent = (long)extent;
    free(child.at);
    return made;
}

static char data[ROOM], packed[8 * BYTES_MAX], back[ROOM], expected[ROOM];

static void check_true_extent(const list_t *list) {
    MPI_Aint low, extent;
    MPI_Count size;
    long least = list->at[0], most = list->at[0];
    for (long i = 0; i < list->count; i++) {
        least = list->at[i] < least ? list->at[i] : least;
        most = list->at[i] > most ? list->at[i] : most;
    }
    MPI_Type_get_true_extent(list->type, &low, &extent);
    MPI_Type_size_x(list->type, &size);
    CHECK(size == list->count);
    CHECK(low == least && extent == most - least + 1);
}

static void check_bytes(const list_t *list, int items) {
    int position = 0;
    long at = 0;
    const int room = (int)(list->count * items);
    memset(packed, 0, sizeof(packed));
    MPI_Pack(data + MIDDLE, items, list->type, packed, (int)sizeof(packed), &position, MPI_COMM_SELF);
    CHECK(position == room);
    memset(expected, 0, sizeof(expected));
    for (int item = 0; item < items; item++) {
        for (long i = 0; i < list->count; i++, at++) {
            const long place = MIDDLE + item * list->extent + list->at[i];
            CHECK(packed[at] == data[place]);
            expected[place] = data[place];
        }
    }
    memset(back, 0, sizeof(back));
    position = 0;
    MPI_Unpack(packed, room, &position, back + MIDDLE, items, list->type, MPI_COMM_SELF);
    CHECK(memcmp(back, expected, sizeof(back)) == 0);
    memset(back, 0, sizeof(back));
    MPI_Sendrecv(data + MIDDLE, items, list->type, 0, 0, back + MIDDLE, items, list->type, 0, 0,
                 MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(memcmp(back, expected, sizeof(back)) == 0);
}

static int is_disjoint(const list_t *list, int items) {
    memset(expected, 0, sizeof(expected));
    for (int item = 0; item < items; item++) {
        for (long i = 0; i < list->count; i++) {
            const long place = MIDDLE + item * list->extent + list->at[i];
            if (place < 0 || place >= ROOM || expected[place]++) {
                return 0; // what is received twice is no right type of a receive
            }
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    int checked = 0;
    MPI_Init(&argc, &argv);
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    for (int i = 0; i < ROOM; i++) {
        data[i] = (char)(next_random(255) + 1);
    }
    for (int i = 0; i < TYPES; i++) {
        list_t list = basic();
        for (unsigned depth = next_random(DEPTH) + 1; depth > 0 && list.count < BYTES_MAX / 40; depth--) {
            list = grow(list);
        }
        MPI_Type_commit(&list.type);
        const int items = (int)next_random(3) + 1;
        if (list.count > 0 && list.count * items < BYTES_MAX && is_disjoint(&list, items)) {
            check_true_extent(&list);
            check_bytes(&list, items);
            checked++;
        }
        free(list.at);
    }
    printf("%d\n", checked);
    MPI_Finalize();
    return 0;
}
