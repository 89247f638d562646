/* SPDX-License-Identifier: MIT */
#include "course.h"

#include <stdarg.h>

enum { LINE = 400 };

void say(const char *format, ...) {
    int rank;
    MPI_Comm_rank(WORLD, &rank);
    if (rank == 0) {
        va_list words;
        va_start(words, format);
        vprintf(format, words);
        va_end(words);
        printf("\n");
        fflush(stdout);
    }
}

void say_all(const char *format, ...) {
    char line[LINE] = "", *lines = NULL;
    int rank, size;
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    va_list words;
    va_start(words, format);
    vsnprintf(line, LINE, format, words);
    va_end(words);
    if (rank == 0) {
        lines = malloc((size_t)size * LINE);
    }
    MPI_Gather(line, LINE, MPI_CHAR, lines, LINE, MPI_CHAR, 0, WORLD);
    for (int node = 0; rank == 0 && node < size; node++) {
        printf("%s\n", lines + node * LINE);
    }
    fflush(stdout);
    free(lines);
}

const char *ints(const int *numbers, int count) {
    static char texts[4][LINE];
    static int turn;
    char *text = texts[turn++ % 4];
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < count && at < LINE - 16; i++) {
        at += snprintf(text + at, (size_t)(LINE - at), i > 0 ? " %d" : "%d", numbers[i]);
    }
    return text;
}

static int is_named(const char *name, int argc, char **argv) {
    int named = 0, names = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--without") == 0) {
            i++;
        } else {
            names++;
            named |= strcmp(argv[i], name) == 0;
        }
    }
    return named || names == 0;
}

static int is_left_out(const char *mark, int argc, char **argv) {
    for (int i = 1; i < argc - 1; i++) {
        if (strcmp(argv[i], "--without") == 0 && strcmp(argv[i + 1], mark) == 0) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
#define RUN(name, mark)                                                  \
    if (is_named(#name, argc, argv) && !is_left_out(mark, argc, argv)) { \
        say("== " #name);                                                \
        course_##name(rank, size);                                       \
        MPI_Barrier(WORLD);                                              \
    }
    PROGRAMS(RUN)
    return MPI_Finalize();
}
