/* SPDX-License-Identifier: MIT */
/* Windows and files. */
#include "course.h"

void course_fence(int rank, int size) {
    int memory[3] = {-1, -1, 0}, one = 1;
    MPI_Win window;
    MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Put(&rank, 1, MPI_INT, (rank + size - 1) % size, 1, 1, MPI_INT, window);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    say_all("%s", ints(memory, 3));
}

void course_counter(int rank, int size) {
    enum { DRAWN = 6 };
    long *memory, one = 1, mine[DRAWN], all[16 * DRAWN];
    MPI_Win window;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, WORLD, &memory, &window);
    *memory = 0;
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < DRAWN; i++) {
        MPI_Fetch_and_op(&one, &mine[i], MPI_LONG, size - 1, 0, MPI_SUM, window);
        MPI_Win_flush(size - 1, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Gather(mine, DRAWN, MPI_LONG, all, DRAWN, MPI_LONG, 0, WORLD);
    int seen = 0;
    for (int ticket = 0; rank == 0 && ticket < DRAWN * size; ticket++) {
        for (int i = 0; i < DRAWN * size; i++) {
            seen += all[i] == ticket;
        }
    }
    say("%d", seen);
    MPI_Win_free(&window);
}

void course_spin_lock(int rank, int size) {
    long *memory, one = 1, zero = 0, found, value, ignored;
    MPI_Win window;
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, WORLD, &memory, &window);
    memory[0] = memory[1] = 0;
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 5; i++) {
        do {
            MPI_Compare_and_swap(&one, &zero, &found, MPI_LONG, 0, 0, window);
            MPI_Win_flush(0, window);
        } while (found != 0);
        MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
        value += rank + 1;
        MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
        MPI_Fetch_and_op(&zero, &ignored, MPI_LONG, 0, 0, MPI_REPLACE, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
    say_all("%ld", value);
    MPI_Win_free(&window);
    (void)size;
}

void course_shared_memory(int rank, int size) {
    int *mine, *theirs, unit;
    MPI_Aint bytes;
    MPI_Win window;
    MPI_Win_allocate_shared(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &mine, &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 4; i++) {
        mine[i] = rank * 10 + i;
    }
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, (rank + 1) % size, &bytes, &unit, &theirs);
    const int last = theirs[3];
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    say_all("%d %d %d", last, (int)bytes, unit);
}

/* The name of a file that node 0 has made. */
static const char *new_file(int rank) {
    static char path[64];
    snprintf(path, sizeof(path), "/tmp/course-XXXXXX");
    if (rank == 0) {
        const int file = mkstemp(path);
        if (file < 0) {
            MPI_Abort(WORLD, 1);
        }
    }
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, WORLD);
    return path;
}

void course_file_blocks(int rank, int size) {
    const char *path = new_file(rank);
    int out[3] = {rank, rank * 2, rank * 3}, in[3] = {0}, count;
    MPI_File file;
    MPI_Status status;
    MPI_Offset bytes;
    MPI_File_open(WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)(rank * 12), out, 3, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_File_sync(file);
    MPI_Barrier(WORLD);
    MPI_File_read_at(file, (MPI_Offset)((rank + 1) % size * 12), in, 3, MPI_INT, IGNORE);
    MPI_File_get_size(file, &bytes);
    MPI_File_close(&file);
    say_all("%s, %d, %d", ints(in, 3), count, (int)bytes);
    if (rank == 0) {
        MPI_File_delete(path, MPI_INFO_NULL);
    }
}

/* The view keeps its type, though the program has freed it. */
void course_file_view(int rank, int size) {
    const char *path = new_file(rank);
    int out[4], whole[64] = {0}, bytes;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_Datatype every, element, tile;
    MPI_Offset start;
    MPI_File file;
    for (int i = 0; i < 4; i++) {
        out[i] = 10 * i + rank;
    }
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)size * 4, &every);
    MPI_Type_commit(&every);
    MPI_File_open(WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, (MPI_Offset)rank * 4, MPI_INT, every, "native", MPI_INFO_NULL);
    MPI_Type_free(&every);
    MPI_File_write_all(file, out, 4, MPI_INT, IGNORE);
    MPI_File_get_view(file, &start, &element, &tile, representation);
    MPI_Type_size(tile, &bytes);
    MPI_Type_free(&tile);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_sync(file);
    MPI_Barrier(WORLD);
    MPI_File_read_at_all(file, 0, whole, 4 * size, MPI_INT, IGNORE);
    MPI_File_close(&file);
    say("%s", ints(whole, 4 * size));
    say_all("%d %d %s", (int)start, bytes, representation);
    if (rank == 0) {
        MPI_File_delete(path, MPI_INFO_NULL);
    }
}
