/* SPDX-License-Identifier: MIT */
/*
 * Programs of an MPI course in C, in one executable: course [--without MARK]... [NAME]...
 *
 * Each is a function course_NAME; node 0 prints what expected/ has for this number of nodes. Marks: `shared` needs
 * memory that all nodes share, `buffered` needs sends that do not wait.
 */
#ifndef COURSE_H
#define COURSE_H

#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

/* X(name, mark) */
#define PROGRAMS(X)              \
    X(hello, "")                 \
    X(ring, "")                  \
    X(careless_ring, "buffered") \
    X(ping_pong, "")             \
    X(exchange, "")              \
    X(any_source, "")            \
    X(probe_unknown, "")         \
    X(matched_probe, "")         \
    X(task_farm, "")             \
    X(persistent, "")            \
    X(wait_any, "")              \
    X(wait_some, "")             \
    X(buffered, "")              \
    X(synchronous, "")           \
    X(cancel, "")                \
    X(return_codes, "")          \
    X(pi, "")                    \
    X(trapezoids, "")            \
    X(matrix_vector, "")         \
    X(uneven_parts, "")          \
    X(minimum_at, "")            \
    X(own_operator, "")          \
    X(prefix_sums, "")           \
    X(overlap, "")               \
    X(to_owners, "")             \
    X(reduce_scatter, "")        \
    X(odd_even_sort, "")         \
    X(sieve, "")                 \
    X(life, "")                  \
    X(plate, "")                 \
    X(columns, "")               \
    X(particles, "")             \
    X(triangle, "")              \
    X(packed, "")                \
    X(elements, "")              \
    X(contents, "")              \
    X(rows_and_columns, "")      \
    X(groups, "")                \
    X(intercomm, "")             \
    X(neighbors, "")             \
    X(attributes, "")            \
    X(info, "")                  \
    X(fence, "shared")           \
    X(counter, "shared")         \
    X(spin_lock, "shared")       \
    X(shared_memory, "shared")   \
    X(file_blocks, "")           \
    X(file_view, "")

#define DECLARE(name, mark) void course_##name(int rank, int size);
PROGRAMS(DECLARE)

/* Node 0 prints a line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Node 0 prints a line of each node, in order. */
void say_all(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Numbers with blanks between them, in memory that the next call but three uses again. */
const char *ints(const int *numbers, int count);

#endif
