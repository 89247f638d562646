/* SPDX-License-Identifier: MIT */
/*
 * NET_INT and NET_DOUBLE: every operator against int and double, and files between languages and machines. Needs
 * nothing of the library, so that it can be compiled for any machine.
 *
 *     net_types check              0, or 1 with a line for each mistake
 *     net_types write FILE         what this machine writes: 6 ints, 6 doubles; even ones by C, odd ones by C++
 *     net_types read FILE          0 if FILE has these numbers, whoever wrote them; then it says how many were foreign
 */
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "spcomm/net_types.hpp"

#if HETEROGENEOUS_DATA_TYPE
static_assert(sizeof(NET_INT) == sizeof(spcomm_net_int_t) && alignof(NET_INT) == alignof(spcomm_net_int_t),
              "layout");
static_assert(sizeof(NET_DOUBLE) == sizeof(spcomm_net_double_t), "layout");
static_assert(std::is_standard_layout<NET_INT>::value && std::is_trivial<NET_INT>::value, "memcpy");
static_assert(std::is_standard_layout<NET_DOUBLE>::value && std::is_trivial<NET_DOUBLE>::value, "memcpy");
#else
static_assert(std::is_same<NET_INT, int>::value && std::is_same<NET_DOUBLE, double>::value, "plain");
#endif

static int mistakes = 0;

#define EXPECT(condition)                                  \
    do {                                                   \
        if (!(condition)) {                                \
            std::printf("%d: %s\n", __LINE__, #condition); \
            mistakes++;                                    \
        }                                                  \
    } while (0)

static const int ints[6] = {0, 1, -2, 258, INT_MAX, INT_MIN};
static const double doubles[6] = {0.0, -0.0, 1.5, -1e300, 5e-324, 3.141592653589793};

template <class T> static bool same(T left, T right) {
    return std::memcmp(&left, &right, sizeof left) == 0;
}

/* ---- operators: the same on ours as on a plain number, whatever stands on the right */

#define SAME_EFFECT(expression)                                               \
    do {                                                                      \
        Net x(start);                                                         \
        const Number ours = expression;                                       \
        const Number ours_after = x;                                          \
        {                                                                     \
            Number x = start;                                                 \
            const Number plain = expression;                                  \
            EXPECT(same<Number>(ours, plain) && same<Number>(ours_after, x)); \
        }                                                                     \
    } while (0)

template <class Net, class Number, class Right> static void arithmetic(Number start, Right right) {
    SAME_EFFECT(static_cast<Number>(x += right));
    SAME_EFFECT(static_cast<Number>(x -= right));
    SAME_EFFECT(static_cast<Number>(x *= right));
    SAME_EFFECT(static_cast<Number>(x /= right));
    SAME_EFFECT(static_cast<Number>(x = static_cast<Number>(right)));
    SAME_EFFECT(static_cast<Number>(x + right));
    SAME_EFFECT(static_cast<Number>(right - x));
    SAME_EFFECT(static_cast<Number>(x * right / (x + 1000)));
    SAME_EFFECT(static_cast<Number>((x < right) + 2 * (x <= right) + 4 * (x == right) + 8 * (x != right)));
    SAME_EFFECT(
        static_cast<Number>((x > right) + 2 * (x >= right) + 4 * (x && right) + 8 * (x || right) + 16 * !x));
}

template <class Net, class Number> static void steps(Number start) {
    SAME_EFFECT(static_cast<Number>(++x));
    SAME_EFFECT(static_cast<Number>(--x));
    SAME_EFFECT(static_cast<Number>(x++));
    SAME_EFFECT(static_cast<Number>(x--));
    SAME_EFFECT(static_cast<Number>(-x));
    SAME_EFFECT(static_cast<Number>(+x));
    SAME_EFFECT(static_cast<Number>(++(++x)));
    SAME_EFFECT(static_cast<Number>((x += 1) += 2));
}

static void bits(int start, int right) {
    typedef NET_INT Net;
    typedef int Number;
    SAME_EFFECT(x %= right);
    SAME_EFFECT(x &= right);
    SAME_EFFECT(x |= right);
    SAME_EFFECT(x ^= right);
    SAME_EFFECT(x <<= right);
    SAME_EFFECT(x >>= right);
    SAME_EFFECT((x % right) + (x & right) + (x | right) + (x ^ right) + (x << right) + (x >> right) + ~x);
}

static void check_operators() {
    const int starts[] = {7, 100, 3};
    for (int start : starts) {
        arithmetic<NET_INT, int>(start, 2);
        arithmetic<NET_INT, int>(start, 2.5);
        arithmetic<NET_INT, int>(start, 3L);
        arithmetic<NET_INT, int>(start, NET_INT(2));
        arithmetic<NET_DOUBLE, double>(start + 0.25, 2);
        arithmetic<NET_DOUBLE, double>(start + 0.25, -2.5);
        arithmetic<NET_DOUBLE, double>(start + 0.25, NET_DOUBLE(0.5));
        arithmetic<NET_DOUBLE, double>(start + 0.25, NET_INT(4));
        steps<NET_INT, int>(start);
        steps<NET_DOUBLE, double>(start + 0.25);
        bits(start, 2);
    }
    NET_INT counter{};
    int plain[4] = {1, 2, 3, 4};
    EXPECT(counter == 0 && plain[NET_INT(2)] == 3 && NET_DOUBLE{} == 0.0);
    const NET_INT constant = 5;
    EXPECT(constant + 1 == 6 && std::sqrt(NET_DOUBLE(4.0)) == 2.0);
    switch (static_cast<int>(NET_INT(3))) {
    case 3:
        break;
    default:
        EXPECT(false);
    }
}

#if HETEROGENEOUS_DATA_TYPE
struct Record {
    NET_INT numbers[6];
    NET_DOUBLE prices[6];
};
static_assert(sizeof(Record) == 6 * 8 + 6 * 16, "no padding");

static Record foreign_record() {
    Record record;
    for (int i = 0; i < 6; i++) {
        const spcomm_net_int_t number = spcomm_net_int_byteswap(spcomm_net_int_from(ints[i]));
        const spcomm_net_double_t price = spcomm_net_double_byteswap(spcomm_net_double_from(doubles[i]));
        std::memcpy(static_cast<void *>(&record.numbers[i]), &number, sizeof number);
        std::memcpy(static_cast<void *>(&record.prices[i]), &price, sizeof price);
    }
    return record;
}

/* Values of the other machine are right; reading converts in place, peeking does not, and operators work on them. */
static void check_conversion() {
    Record record = foreign_record();
    for (int i = 0; i < 6; i++) {
        NET_INT &number = record.numbers[i];
        NET_DOUBLE &price = record.prices[i];
        EXPECT(number.IsForeign() && number.Peek() == ints[i] && number.IsForeign());
        EXPECT(price.IsForeign() && same<double>(price.Peek(), doubles[i]) && price.IsForeign());
        const NET_INT copy = number;
        EXPECT(number == ints[i] && !number.IsForeign() && copy.IsForeign() && copy == ints[i]);
        EXPECT(same<double>(price, doubles[i]) && !price.IsForeign());
        spcomm_net_int_t own;
        std::memcpy(&own, &number, sizeof own);
        const spcomm_net_int_t expected = spcomm_net_int_from(ints[i]);
        EXPECT(std::memcmp(&own, &expected, sizeof own) == 0);
        const spcomm_net_int_t there = spcomm_net_int_byteswap(own), back = spcomm_net_int_byteswap(there);
        EXPECT(spcomm_net_int_value(there) == ints[i] && std::memcmp(&back, &own, sizeof own) == 0);
    }
    record = foreign_record();
    record.numbers[3] += 2;
    record.prices[2]++;
    EXPECT(record.numbers[3] == 260 && record.prices[2] == 2.5 && record.numbers[4].IsForeign());
    char memory[24] = {};
    std::memset(&record, 0, sizeof record);
    EXPECT(record.numbers[0] == 0 && record.prices[5] == 0.0 && !record.prices[0].IsForeign());
    const spcomm_net_int_t other = spcomm_net_int_byteswap(spcomm_net_int_from(7));
    char *odd = memory + (8 - reinterpret_cast<std::size_t>(memory) % 8) % 8 + 4;
    std::memcpy(odd, &other, sizeof other);
    EXPECT(spcomm_net_int_read(odd) == 7 && odd[0] == SPCOMM_NET_FOREIGN); /* not at a multiple of 8 */
}

static int write_file(const char *name) {
    Record record;
    for (int i = 0; i < 6; i++) {
        record.numbers[i] = ints[i];
        record.prices[i] = doubles[i];
        const spcomm_net_int_t number = spcomm_net_int_from(ints[i]);
        const spcomm_net_double_t price = spcomm_net_double_from(doubles[i]);
        if (i % 2 == 0) {
            std::memcpy(static_cast<void *>(&record.numbers[i]), &number, sizeof number);
            std::memcpy(static_cast<void *>(&record.prices[i]), &price, sizeof price);
        }
    }
    std::FILE *file = std::fopen(name, "wb");
    return file == nullptr || std::fwrite(&record, sizeof record, 1, file) != 1 || std::fclose(file) != 0;
}

static int read_file(const char *name) {
    Record record;
    std::FILE *file = std::fopen(name, "rb");
    if (file == nullptr || std::fread(&record, sizeof record, 1, file) != 1 || std::fclose(file) != 0) {
        std::printf("cannot read %s\n", name);
        return 1;
    }
    int found = 0;
    for (int i = 0; i < 6; i++) {
        found += record.numbers[i].IsForeign() + record.prices[i].IsForeign();
        EXPECT(record.numbers[i] == ints[i] && same<double>(record.prices[i], doubles[i]));
    }
    std::printf("%d foreign, this machine writes %c\n", found, SPCOMM_NET_OWN);
    return mistakes;
}
#endif

int main(int count, char **arguments) {
#if HETEROGENEOUS_DATA_TYPE
    if (count == 3 && std::strcmp(arguments[1], "write") == 0) {
        return write_file(arguments[2]);
    }
    if (count == 3 && std::strcmp(arguments[1], "read") == 0) {
        return read_file(arguments[2]) != 0;
    }
    check_conversion();
#else
    (void)count, (void)arguments;
#endif
    check_operators();
    return mistakes != 0;
}
