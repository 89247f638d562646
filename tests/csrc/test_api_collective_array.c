/* SPDX-License-Identifier: MIT */
/* The public C interface, used as a program would: reductions of arrays. tests/interfaces compares all types and
 * operators with Python's. */
#include "api_check.h"

static spcomm_t *comm;
static int rank, size;

static int64_t sum_to(int64_t last, int64_t i) { /* of (node + 1) * i + node over nodes 0 to last */
    return i * (last + 1) * (last + 2) / 2 + last * (last + 1) / 2;
}

/* Short enough for the reducer, in several pieces, and in slices. */
static void test_sums(void) {
    static const int64_t lengths[] = {0, 1, 3, 100, 3000, 40000};
    for (size_t at = 0; at < sizeof(lengths) / sizeof(lengths[0]); at++) {
        const int64_t length = lengths[at];
        const spcomm_data_t nothing = spcomm_none();
        int64_t *mine = calloc((size_t)length + 1, 8), *found = calloc((size_t)length + 1, 8);
        for (int64_t i = 0; i < length; i++) {
            mine[i] = (rank + 1) * i + rank;
        }
        const spcomm_data_t values = spcomm_array(mine, 'i', 8, 1, &length);
        CHECK(nothing.bytes == 0);
        CHECK_OK(spcomm_allreduce(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, found));
        for (int64_t i = 0; i < length; i++) {
            CHECK(found[i] == sum_to(size - 1, i));
        }
        memset(found, 0, (size_t)length * 8);
        CHECK_OK(spcomm_reduce(comm, values, SPCOMM_SUM, size - 1, SPCOMM_FOREVER, found));
        CHECK(length < 2 || found[length - 1] == (rank == size - 1 ? sum_to(size - 1, length - 1) : 0));
        CHECK_OK(spcomm_scan(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, found));
        for (int64_t i = 0; i < length; i++) {
            CHECK(found[i] == sum_to(rank, i));
        }
        memset(found, 0, (size_t)length * 8);
        CHECK_OK(spcomm_exscan(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, found));
        for (int64_t i = 0; i < length; i++) {
            CHECK(found[i] == (rank == 0 ? 0 : sum_to(rank - 1, i)));
        }
        int64_t first = 0, rows = length / size + (rank < length % size);
        for (int node = 0; node < rank; node++) {
            first += length / size + (node < length % size);
        }
        found[rows] = -7;
        CHECK_OK(spcomm_reduce_scatter(comm, values, SPCOMM_SUM, NULL, SPCOMM_FOREVER, found));
        for (int64_t i = 0; i < rows; i++) {
            CHECK(found[i] == sum_to(size - 1, first + i));
        }
        CHECK(found[rows] == -7);
        CHECK_OK(spcomm_allreduce(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, mine)); /* in place */
        CHECK(length < 2 || mine[length - 1] == sum_to(size - 1, length - 1));
        free(mine);
        free(found);
    }
}

static void test_pairs_and_numbers(void) {
    const spcomm_pair_t mine = {{.float64 = rank % 2 == 0 ? 1.5 : 2.5}, 10 + rank};
    spcomm_pair_t least;
    spcomm_simtime_t time = {2.0, {rank, 0, 0, 0}};
    int64_t number = -1;
    CHECK_OK(spcomm_allreduce(comm, spcomm_pairs(&mine, SPCOMM_ELEMENT_PAIR_FLOAT64, 0, NULL), SPCOMM_MINLOC,
                              SPCOMM_FOREVER, &least));
    CHECK(least.value.float64 == 1.5 && least.index == 10);
    CHECK_OK(spcomm_allreduce(comm, spcomm_simtimes(&time, 0, NULL), SPCOMM_MAX, SPCOMM_FOREVER, &time));
    CHECK(time.priority[0] == size - 1);
    CHECK_OK(spcomm_allreduce(comm, spcomm_int64(rank), SPCOMM_MAX, SPCOMM_FOREVER, &number));
    CHECK(number == size - 1);
    number = -1;
    CHECK_OK(spcomm_reduce(comm, spcomm_int64(rank), SPCOMM_SUM, 0, SPCOMM_FOREVER, &number));
    CHECK(number == (rank == 0 ? size * (size - 1) / 2 : -1));
    const int status = spcomm_allreduce(comm, spcomm_int64(INT64_MAX), SPCOMM_SUM, SPCOMM_FOREVER, &number);
    CHECK(status == (size == 1 ? SPCOMM_OK : SPCOMM_EWIDE));
}

/* It stays entered; the same call with the same memory goes on. */
static void test_timeouts(void) {
    for (int64_t length = 8; length <= 80000; length *= 100) {
        double *mine = calloc((size_t)length, 8), *other = calloc((size_t)length, 8);
        const spcomm_data_t values = spcomm_array(mine, 'f', 8, 1, &length);
        spcomm_message_t message;
        mine[length - 1] = rank + 0.5;
        if (rank == 0 && size > 1) {
            CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_SUM, 0, mine), SPCOMM_ETIMEDOUT,
                        "nodes came in that time; node");
            CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_MAX, 0, other), SPCOMM_EMISMATCH,
                        "has left allreduce(op=SUM) of an array of float64");
            CHECK_FAILS(spcomm_barrier(comm, 0), SPCOMM_EMISMATCH, "Finish that first");
            if (length == 80000) { /* pieces of other memory may not be mixed with its own */
                const spcomm_data_t others = spcomm_array(other, 'f', 8, 1, &length);
                CHECK_FAILS(spcomm_allreduce(comm, others, SPCOMM_SUM, 0, mine), SPCOMM_EINVAL,
                            "repeat it with the same values and result");
                CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_SUM, 0, other), SPCOMM_EINVAL,
                            "repeat it with the same values and result");
            }
            for (int node = 1; node < size; node++) {
                CHECK_OK(spcomm_send(comm, node, 2, spcomm_none(), SPCOMM_FOREVER));
            }
        } else if (size > 1) {
            CHECK_OK(spcomm_recv(comm, 0, 2, SPCOMM_FOREVER, &message));
            spcomm_message_free(&message);
        }
        CHECK_OK(spcomm_allreduce(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, mine));
        CHECK(mine[length - 1] == size * size / 2.0 && mine[0] == 0.0);
        free(mine);
        free(other);
    }
}

static void test_mismatches(void) {
    const int64_t shape[2] = {2, 6}, other[2] = {3, 4};
    double values[12] = {0};
    if (size == 1) {
        return;
    }
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(values, rank == 0 ? 'f' : 'i', 8, 2, shape), SPCOMM_SUM,
                                 SPCOMM_FOREVER, values),
                SPCOMM_EMISMATCH, "node 0: allreduce(op=SUM) of an array of float64, shape (2, 6)\n  node");
    CHECK(strstr(spcomm_last_error(), ": allreduce(op=SUM) of an array of int64, shape (2, 6)\nAll nodes"));
    CHECK(strstr(spcomm_last_error(), ": the nodes gave different types or shapes (collective call "));
    CHECK_FAILS(spcomm_scan(comm, spcomm_array(values, 'f', 8, 2, rank == 0 ? shape : other), SPCOMM_MAX,
                            SPCOMM_FOREVER, values),
                SPCOMM_EMISMATCH, "node 0: scan(op=MAX) of an array of float64, shape (2, 6)\n  node");
    CHECK_FAILS(spcomm_reduce(comm, spcomm_array(values, 'f', 8, 1, other), SPCOMM_MAX, rank == 0 ? 1 : 0,
                              SPCOMM_FOREVER, values),
                SPCOMM_EMISMATCH, "node 0: reduce(op=MAX, root=1) of an array of float64, shape (3,)\n");
    CHECK(strstr(spcomm_last_error(), ": the nodes called different operations (collective call "));
    const int64_t counts[64] = {[0] = rank == 0 ? 3 : 2, [1] = rank == 0 ? 0 : 1};
    CHECK_FAILS(spcomm_reduce_scatter(comm, spcomm_array(values, 'f', 8, 2, other), SPCOMM_MAX, counts,
                                      SPCOMM_FOREVER, values),
                SPCOMM_EMISMATCH, "reduce_scatter(op=MAX) of an array of float64, shape (3, 4)");
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

/* Items in place that the kernels could not read: of a packed structure, or of a file. Under UBSan, too. */
static void test_misaligned(void) {
    static const struct {
        char kind;
        uint8_t bytes, alignment;
    } types[] = {{'i', 2, 2}, {'u', 4, 4}, {'i', 8, 8}, {'f', 4, 4}, {'f', 8, 8}, {'c', 8, 4}, {'c', 16, 8}};
    static _Alignas(16) char memory[4096], results[4096];
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int64_t length = 1; length <= 200; length += 199) { /* in one step, and with an object */
            for (size_t at = 1; at <= types[i].alignment; at++) {
                const spcomm_data_t good = spcomm_array(memory, types[i].kind, types[i].bytes, 1, &length);
                spcomm_data_t values = good;
                values.data = memory + at;
                if (at % types[i].alignment == 0) {
                    CHECK_OK(spcomm_allreduce(comm, values, SPCOMM_SUM, SPCOMM_FOREVER, results + at));
                    continue;
                }
                CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_SUM, 0, results), SPCOMM_EINVAL,
                            "spcomm_allreduce(): values begin at an address that is not divisible by");
                CHECK_FAILS(spcomm_scan(comm, good, SPCOMM_SUM, 0, results + at), SPCOMM_EINVAL,
                            "spcomm_scan(): results begin at an address");
                CHECK_FAILS(spcomm_reduce_scatter(comm, good, SPCOMM_SUM, NULL, 0, results + at),
                            SPCOMM_EINVAL, "results begin at an address");
            }
        }
    }
    const int64_t one = 1;
    spcomm_data_t times = spcomm_simtimes((const spcomm_simtime_t *)memory, 1, &one);
    times.data = memory + 4;
    CHECK_FAILS(spcomm_allreduce(comm, times, SPCOMM_MIN, 0, results), SPCOMM_EINVAL, "divisible by 8");
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

/* More than 32 bits are no item: they would be cut to a few bytes. */
static void test_items_too_long(void) {
    const int64_t one = 1;
    const size_t wide = ((size_t)1 << 32) + 8;
    static const char kinds[] = "ifcbSUV";
    double numbers[4] = {0}, result[4];
    for (const char *kind = kinds; *kind != '\0'; kind++) {
        CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array(numbers, *kind, wide, 1, &one), 0), SPCOMM_EINVAL,
                    "with items of 4294967295 bytes");
    }
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(numbers, 'f', wide, 1, &one), SPCOMM_SUM, 0, result),
                SPCOMM_EINVAL, "with items of 4294967295 bytes");
}

static void test_refused(void) {
    const int64_t length = 4, short_counts[64] = {3}, negative[64] = {-1};
    double numbers[4] = {0}, result[4];
    spcomm_data_t values = spcomm_array(numbers, 'f', 8, 1, &length), odd = values;
    CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_BAND, 0, result), SPCOMM_EINVAL,
                "BAND does not combine float64");
    CHECK_FAILS(spcomm_allreduce(comm, values, SPCOMM_MINLOC, 0, result), SPCOMM_EINVAL, "MINLOC does not");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(numbers, 'f', 2, 1, &length), SPCOMM_SUM, 0, result),
                SPCOMM_EINVAL, "kind 'f' and 2 bytes");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(numbers, 'V', 24, 1, &length), SPCOMM_SUM, 0, result),
                SPCOMM_EINVAL, "kind 'V'");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(numbers, 'b', 1, 1, &length), SPCOMM_SUM, 0, result),
                SPCOMM_EINVAL, "SUM of bools");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_array(NULL, 'f', 8, 1, &length), SPCOMM_SUM, 0, result),
                SPCOMM_EINVAL, "NULL");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_string("x"), SPCOMM_SUM, 0, result), SPCOMM_EINVAL, "an array");
    CHECK_FAILS(spcomm_scan(comm, spcomm_int64(1), SPCOMM_SUM, 0, result), SPCOMM_EINVAL, "an array");
    CHECK_FAILS(spcomm_allreduce(comm, spcomm_int64(1), SPCOMM_PROD, 0, result), SPCOMM_EINVAL, "an array");
    CHECK_FAILS(spcomm_reduce_scatter(comm, values, SPCOMM_SUM, short_counts, 0, result), SPCOMM_EINVAL,
                "the counts are 3 together, and the first axis is 4");
    CHECK_FAILS(spcomm_reduce_scatter(comm, values, SPCOMM_SUM, negative, 0, result), SPCOMM_EINVAL,
                "counts[0] is -1");
    CHECK_FAILS(
        spcomm_reduce_scatter(comm, spcomm_array(numbers, 'f', 8, 0, NULL), SPCOMM_SUM, NULL, 0, result),
        SPCOMM_EINVAL, "no axes");
    odd.array.fortran = 1;
    CHECK_FAILS(spcomm_allreduce(comm, odd, SPCOMM_SUM, 0, result), SPCOMM_EINVAL, "C's order");
    odd.array.fortran = 0;
    odd.array.byte_order = '>';
    CHECK_FAILS(spcomm_allreduce(comm, odd, SPCOMM_SUM, 0, result), SPCOMM_EINVAL, "byte order");
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* none of these has entered anything */
}

int main(int argc, char **argv) {
    comm = api_start(argc, argv);
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    test_sums();
    test_pairs_and_numbers();
    test_timeouts();
    test_mismatches();
    test_refused();
    test_misaligned();
    test_items_too_long();
    CHECK_OK(spcomm_shutdown(comm, SPCOMM_FOREVER));
    return 0;
}
