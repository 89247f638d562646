/* SPDX-License-Identifier: MIT */
/* Grids with halos, datatypes, communicators. */
#include "course.h"

/* Game of Life on a torus: each node has four rows, and a row of each neighbour. */
void course_life(int rank, int size) {
    enum { ROWS = 4, WIDTH = 9 };
    char world[ROWS + 2][WIDTH] = {{0}}, next[ROWS][WIDTH];
    const int up = (rank + size - 1) % size, down = (rank + 1) % size;
    if (rank == 0) {
        world[1][1] = world[2][2] = world[3][0] = world[3][1] = world[3][2] = 1;
    }
    for (int step = 0; step < 14; step++) {
        MPI_Sendrecv(world[1], WIDTH, MPI_CHAR, up, 1, world[ROWS + 1], WIDTH, MPI_CHAR, down, 1, WORLD,
                     IGNORE);
        MPI_Sendrecv(world[ROWS], WIDTH, MPI_CHAR, down, 2, world[0], WIDTH, MPI_CHAR, up, 2, WORLD, IGNORE);
        for (int row = 1; row <= ROWS; row++) {
            for (int column = 0; column < WIDTH; column++) {
                int around = -world[row][column];
                for (int i = 0; i < 9; i++) {
                    around += world[row + i / 3 - 1][(column + i % 3 - 1 + WIDTH) % WIDTH];
                }
                next[row - 1][column] = around == 3 || (around == 2 && world[row][column]);
            }
        }
        memcpy(world[1], next, sizeof(next));
    }
    int alive = 0, place = 0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        alive += next[i / WIDTH][i % WIDTH];
        place += next[i / WIDTH][i % WIDTH] * i;
    }
    say_all("%d %d", alive, place);
}

enum { SIDE = 4, WIDE = SIDE + 2 };

static void exchange_halos(double cells[WIDE][WIDE], MPI_Comm grid, MPI_Datatype column) {
    int before, after;
    MPI_Cart_shift(grid, 0, 1, &before, &after);
    MPI_Sendrecv(&cells[SIDE][1], SIDE, MPI_DOUBLE, after, 1, &cells[0][1], SIDE, MPI_DOUBLE, before, 1, grid,
                 IGNORE);
    MPI_Sendrecv(&cells[1][1], SIDE, MPI_DOUBLE, before, 2, &cells[SIDE + 1][1], SIDE, MPI_DOUBLE, after, 2,
                 grid, IGNORE);
    MPI_Cart_shift(grid, 1, 1, &before, &after);
    MPI_Sendrecv(&cells[1][SIDE], 1, column, after, 3, &cells[1][0], 1, column, before, 3, grid, IGNORE);
    MPI_Sendrecv(&cells[1][1], 1, column, before, 4, &cells[1][SIDE + 1], 1, column, after, 4, grid, IGNORE);
}

/* Heat in a plate, on a grid of nodes; columns travel by a vector type. */
void course_plate(int rank, int size) {
    double cells[WIDE][WIDE] = {{0}}, next[WIDE][WIDE], sum = 0, total;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2];
    MPI_Comm grid;
    MPI_Datatype column;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, coords);
    MPI_Type_vector(SIDE, 1, WIDE, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < SIDE * SIDE; i++) {
        cells[1 + i / SIDE][1 + i % SIDE] = (coords[0] * 7 + coords[1] * 3 + i) % 10;
    }
    for (int step = 0; step < 8; step++) {
        exchange_halos(cells, grid, column);
        memcpy(next, cells, sizeof(cells));
        for (int i = 1; i <= SIDE; i++) {
            for (int j = 1; j <= SIDE; j++) {
                next[i][j] += 0.1
                              * (cells[i - 1][j] + cells[i + 1][j] + cells[i][j - 1] + cells[i][j + 1]
                                 - 4 * cells[i][j]);
            }
        }
        memcpy(cells, next, sizeof(cells));
    }
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += cells[1 + i / SIDE][1 + i % SIDE];
    }
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, grid);
    say_all("%.6f %.6f", sum, total);
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
}

/* Columns of a matrix are dealt out: a vector that is resized to begin at the next column. */
void course_columns(int rank, int size) {
    int matrix[3][16], mine[3];
    MPI_Datatype vector, column;
    for (int i = 0; i < 3 * 16; i++) {
        matrix[i / 16][i % 16] = rank == 0 ? i / 16 * 100 + i % 16 : -1;
    }
    MPI_Type_vector(3, 1, 16, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    MPI_Scatter(matrix, 1, column, mine, 3, MPI_INT, 0, WORLD);
    MPI_Type_free(&vector);
    MPI_Type_free(&column);
    say_all("%s", ints(mine, 3));
    (void)size;
}

typedef struct particle {
    int id;
    double place[2];
    char kind;
} particle_t;

void course_particles(int rank, int size) {
    const int lengths[3] = {1, 2, 1};
    const MPI_Aint places[3] = {offsetof(particle_t, id), offsetof(particle_t, place),
                                offsetof(particle_t, kind)};
    const MPI_Datatype parts[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype plain, type;
    MPI_Aint lb, extent;
    int bytes;
    MPI_Type_create_struct(3, lengths, places, parts, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(particle_t), &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &lb, &extent);
    particle_t mine[2] = {{rank, {0.5, 1}, 'a'}, {rank + 1, {2, 3}, 'b'}}, in[2];
    const int peer = size - 1 - rank;
    MPI_Sendrecv(mine, 2, type, peer, 1, in, 2, type, peer, 1, WORLD, IGNORE);
    MPI_Type_free(&plain);
    MPI_Type_free(&type);
    say_all("%d %.1f %c, %d %.1f %c; %d %d", in[0].id, in[0].place[1], in[0].kind, in[1].id, in[1].place[0],
            in[1].kind, bytes, extent == sizeof(particle_t));
}

void course_triangle(int rank, int size) {
    int matrix[4][4], in[10], lengths[4], places[4], count;
    MPI_Datatype upper;
    MPI_Status status;
    for (int i = 0; i < 16; i++) {
        matrix[i / 4][i % 4] = i * (rank + 1);
    }
    for (int row = 0; row < 4; row++) {
        lengths[row] = 4 - row;
        places[row] = 5 * row;
    }
    MPI_Type_indexed(4, lengths, places, MPI_INT, &upper);
    MPI_Type_commit(&upper);
    const int peer = size - 1 - rank;
    MPI_Sendrecv(matrix, 1, upper, peer, 1, in, 10, MPI_INT, peer, 1, WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Type_free(&upper);
    say_all("%s: %d", ints(in, 10), count);
}

void course_packed(int rank, int size) {
    char buffer[64];
    int at = 0, pair[2] = {rank, 9};
    double fraction = rank / 4.0;
    const int peer = size - 1 - rank;
    MPI_Pack(pair, 2, MPI_INT, buffer, 64, &at, WORLD);
    MPI_Pack(&fraction, 1, MPI_DOUBLE, buffer, 64, &at, WORLD);
    MPI_Sendrecv_replace(buffer, at, MPI_PACKED, peer, 1, peer, 1, WORLD, IGNORE);
    at = 0;
    MPI_Unpack(buffer, 64, &at, pair, 2, MPI_INT, WORLD);
    MPI_Unpack(buffer, 64, &at, &fraction, 1, MPI_DOUBLE, WORLD);
    say_all("%s %.2f", ints(pair, 2), fraction);
}

/* A message that ends within an item of the receive. */
void course_elements(int rank, int size) {
    double data[3] = {1, 2, 3}, doubles[4];
    int count, elements;
    MPI_Datatype two;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_DOUBLE, &two);
    MPI_Type_commit(&two);
    MPI_Sendrecv(data, 3, MPI_DOUBLE, 0, 1, doubles, 2, two, 0, 1, MPI_COMM_SELF, &status);
    MPI_Get_count(&status, two, &count);
    MPI_Get_elements(&status, two, &elements);
    MPI_Type_free(&two);
    say_all("%d %d", count == MPI_UNDEFINED, elements);
    (void)rank;
    (void)size;
}

/* Handles that a query gives are the program's: it frees them, and its own, in any order. */
void course_contents(int rank, int size) {
    MPI_Datatype inner, outer, given;
    int integers[1], count, addresses, types, combiner, bytes;
    MPI_Aint places[1];
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_contiguous(3, inner, &outer);
    MPI_Type_get_envelope(outer, &count, &addresses, &types, &combiner);
    MPI_Type_get_contents(outer, 1, 0, 1, integers, places, &given);
    MPI_Type_free(&given);
    MPI_Type_free(&inner);
    MPI_Type_get_contents(outer, 1, 0, 1, integers, places, &given);
    MPI_Type_size(given, &bytes);
    MPI_Type_free(&outer);
    MPI_Type_free(&given);
    say_all("%d %d %d %d, %d, %d", count, addresses, types, combiner == MPI_COMBINER_CONTIGUOUS, integers[0],
            bytes);
    (void)rank;
    (void)size;
}

void course_rows_and_columns(int rank, int size) {
    int dims[2] = {0, 0}, sums[2];
    MPI_Comm row, column, none;
    MPI_Dims_create(size, 2, dims);
    MPI_Comm_split(WORLD, rank / dims[1], rank, &row);
    MPI_Comm_split(WORLD, rank % dims[1], -rank, &column);
    MPI_Comm_split(WORLD, rank == 0 ? 1 : MPI_UNDEFINED, 0, &none);
    MPI_Allreduce(&rank, &sums[0], 1, MPI_INT, MPI_SUM, row);
    MPI_Allreduce(&rank, &sums[1], 1, MPI_INT, MPI_SUM, column);
    int place;
    MPI_Comm_rank(column, &place);
    say_all("%s, %d, %d", ints(sums, 2), place, none == MPI_COMM_NULL);
    if (none != MPI_COMM_NULL) {
        MPI_Comm_free(&none);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
}

void course_groups(int rank, int size) {
    MPI_Group world, even, low, both;
    int range[1][3] = {{0, size - 1, 2}}, range_low[1][3] = {{0, size / 2, 1}}, ranks[16], there[16], count,
        same;
    MPI_Comm_group(WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &even);
    MPI_Group_range_incl(world, 1, range_low, &low);
    MPI_Group_intersection(even, low, &both);
    MPI_Group_size(both, &count);
    for (int i = 0; i < count; i++) {
        ranks[i] = i;
    }
    MPI_Group_translate_ranks(both, count, ranks, world, there);
    MPI_Group_compare(even, world, &same);
    MPI_Comm comm;
    MPI_Comm_create(WORLD, both, &comm);
    int total = -1;
    if (comm != MPI_COMM_NULL) {
        MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
    }
    say_all("%s, %d, %d", ints(there, count), total, same == MPI_UNEQUAL);
    MPI_Group_free(&both);
    MPI_Group_free(&low);
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

void course_intercomm(int rank, int size) {
    if (size == 1) {
        return;
    }
    const int side = rank % 2;
    int sum, remote, is_inter;
    MPI_Comm local, inter, merged;
    MPI_Comm_split(WORLD, side, rank, &local);
    MPI_Intercomm_create(local, 0, WORLD, 1 - side, 7, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_test_inter(inter, &is_inter);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Intercomm_merge(inter, side == 0, &merged);
    int place;
    MPI_Comm_rank(merged, &place);
    say_all("%d %d %d %d", remote, is_inter, sum, place);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

void course_neighbors(int rank, int size) {
    int dims[1] = {size}, periods[1] = {1}, out[2] = {rank, rank + 100}, in[2], sources[2], targets[2],
        got[2];
    MPI_Comm circle, graph;
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &circle);
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, circle);
    for (int i = 0; i < 2; i++) {
        sources[i] = (rank + 2 * size - 1 - i) % size;
        targets[i] = (rank + 1 + i) % size;
    }
    MPI_Dist_graph_create_adjacent(WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, graph);
    say_all("%s, %s", ints(in, 2), ints(got, 2));
    MPI_Comm_free(&graph);
    MPI_Comm_free(&circle);
}

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    (void)comm, (void)key, (void)extra;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    deleted++;
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

void course_attributes(int rank, int size) {
    static char values[2];
    int key, flag, *most;
    void *found;
    MPI_Comm first, second;
    copied = deleted = 0;
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_dup(WORLD, &first);
    MPI_Comm_set_attr(first, key, values);
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, key, &found, &flag);
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    MPI_Comm_free_keyval(&key);
    int has_most;
    MPI_Comm_get_attr(WORLD, MPI_TAG_UB, &most, &has_most);
    say_all("%d %d, %d %d, %d", flag, found == values + 1, copied, deleted, has_most && *most >= 32767);
    (void)rank;
    (void)size;
}

void course_info(int rank, int size) {
    MPI_Info info, twin;
    char value[16], key[MPI_MAX_INFO_KEY];
    int flag, count;
    MPI_Info_create(&info);
    MPI_Info_set(info, "color", "blue");
    MPI_Info_set(info, "shape", "round");
    MPI_Info_dup(info, &twin);
    MPI_Info_delete(info, "color");
    MPI_Info_get_nkeys(info, &count);
    MPI_Info_get_nthkey(info, 0, key);
    int length = sizeof(value);
    MPI_Info_get_string(twin, "color", &length, value, &flag);
    say_all("%d %s, %d %s", count, key, flag, value);
    MPI_Info_free(&info);
    MPI_Info_free(&twin);
    (void)rank;
    (void)size;
}
