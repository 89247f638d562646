/* SPDX-License-Identifier: MIT */
/* The operators that only arrays have, and three-address combinations, against plain C. */
#include "check.h"

#include <math.h>

#include "base/spc_error.h"
#include "reduce/spc_ops.h"
#include "spcomm/simtime.h"

enum { ELEMENTS = 67 }; /* more than one vector block, and a rest */

/* Small numbers and zeros, so that logical operators see both; and all bits, for the others. */
#define RANDOM_OF(ctype) ((ctype)(int64_t)(check_below(&state, 4) == 0 ? 0 : check_random(&state)))

/* For every length, into `to` apart from both, into the left and into the right: the right elements, none beyond. */
#define CHECK_OPERATOR(name, ctype, operator, EXPRESSION)                                           \
    for (uint32_t count = 0; count <= ELEMENTS; count++) {                                          \
        const spc_field_t field = {SPC_TYPE_##name, count};                                         \
        for (int where = 0; where < 3; where++) {                                                   \
            ctype left[ELEMENTS + 1], right[ELEMENTS + 1], apart[ELEMENTS + 1];                     \
            ctype before[2][ELEMENTS + 1];                                                          \
            ctype *to = where == 0 ? apart : where == 1 ? left : right;                             \
            for (uint32_t i = 0; i <= ELEMENTS; i++) {                                              \
                left[i] = before[0][i] = RANDOM_OF(ctype);                                          \
                right[i] = before[1][i] = check_below(&state, 4) == 0 ? left[i] : RANDOM_OF(ctype); \
                apart[i] = 77;                                                                      \
            }                                                                                       \
            const ctype beyond = to[count];                                                         \
            CHECK_OK(spc_ops_combine_to(operator, &field, 1, to, left, right));                     \
            for (uint32_t i = 0; i < count; i++) {                                                  \
                const ctype l = before[0][i], r = before[1][i];                                     \
                const ctype expected = (ctype)(EXPRESSION);                                         \
                CHECK(to[i] == expected);                                                           \
                CHECK(where == 1 || left[i] == l);                                                  \
                CHECK(where == 2 || right[i] == r);                                                 \
            }                                                                                       \
            CHECK(to[count] == beyond);                                                             \
        }                                                                                           \
    }

#define LOGICAL_CASES(name, ctype)                                         \
    CHECK_OPERATOR(name, ctype, SPC_LOGICAL_AND, l != 0 && r != 0 ? 1 : 0) \
    CHECK_OPERATOR(name, ctype, SPC_LOGICAL_OR, l != 0 || r != 0 ? 1 : 0)  \
    CHECK_OPERATOR(name, ctype, SPC_LOGICAL_XOR, (l != 0) != (r != 0) ? 1 : 0)

#define DEFINE_INTEGER_CASE(name, ctype)                                 \
    static void arrays_of_##name(void) {                                 \
        uint64_t state = SPC_TYPE_##name;                                \
        CHECK_OPERATOR(name, ctype, SPC_SUM, (uint64_t)l + (uint64_t)r)  \
        CHECK_OPERATOR(name, ctype, SPC_PROD, (uint64_t)l * (uint64_t)r) \
        CHECK_OPERATOR(name, ctype, SPC_MIN, r < l ? r : l)              \
        CHECK_OPERATOR(name, ctype, SPC_MAX, r > l ? r : l)              \
        LOGICAL_CASES(name, ctype)                                       \
        CHECK_OPERATOR(name, ctype, SPC_BITWISE_AND, l & r)              \
        CHECK_OPERATOR(name, ctype, SPC_BITWISE_OR, l | r)               \
        CHECK_OPERATOR(name, ctype, SPC_BITWISE_XOR, l ^ r)              \
    }
SPC_INTEGER_TYPES(DEFINE_INTEGER_CASE)

#define DEFINE_FLOAT_CASE(name, ctype)                      \
    static void arrays_of_##name(void) {                    \
        uint64_t state = SPC_TYPE_##name;                   \
        CHECK_OPERATOR(name, ctype, SPC_SUM, l + r)         \
        CHECK_OPERATOR(name, ctype, SPC_PROD, l * r)        \
        CHECK_OPERATOR(name, ctype, SPC_MIN, r < l ? r : l) \
        CHECK_OPERATOR(name, ctype, SPC_MAX, r > l ? r : l) \
        LOGICAL_CASES(name, ctype)                          \
    }
SPC_FLOAT_TYPES(DEFINE_FLOAT_CASE)

/* Bytes of 0 and 1. NumPy adds them by or, and multiplies them by and. */
static void arrays_of_BOOL(void) {
    for (unsigned l = 0; l < 2; l++) {
        for (unsigned r = 0; r < 2; r++) {
            const unsigned expected[] = {
                [SPC_SUM] = l | r,         [SPC_PROD] = l & r,        [SPC_MIN] = l & r,
                [SPC_MAX] = l | r,         [SPC_LOGICAL_AND] = l & r, [SPC_LOGICAL_OR] = l | r,
                [SPC_LOGICAL_XOR] = l ^ r, [SPC_BITWISE_AND] = l & r, [SPC_BITWISE_OR] = l | r,
                [SPC_BITWISE_XOR] = l ^ r,
            };
            for (int operator = 0; operator <= SPC_BITWISE_XOR; operator++) {
                const spc_field_t field = {SPC_TYPE_BOOL, ELEMENTS};
                uint8_t left[ELEMENTS], right[ELEMENTS], to[ELEMENTS];
                memset(left, (int)l, sizeof left);
                memset(right, (int)r, sizeof right);
                CHECK_OK(spc_ops_combine_to((spc_operator_t)operator, &field, 1, to, left, right));
                for (int i = 0; i < ELEMENTS; i++) {
                    CHECK_EQ_U(to[i], expected[operator]);
                }
            }
        }
    }
}

#define DEFINE_COMPLEX_CASE(name, ctype)                                                             \
    static void arrays_of_##name(void) {                                                             \
        uint64_t state = SPC_TYPE_##name;                                                            \
        for (uint32_t count = 0; count <= ELEMENTS; count++) {                                       \
            const spc_field_t field = {SPC_TYPE_##name, count};                                      \
            ctype left[2 * ELEMENTS], right[2 * ELEMENTS], sum[2 * ELEMENTS];                        \
            for (uint32_t i = 0; i < 2 * ELEMENTS; i++) {                                            \
                left[i] = (ctype)(int64_t)check_random(&state);                                      \
                right[i] = (ctype)(int64_t)check_random(&state);                                     \
            }                                                                                        \
            CHECK_EQ_U(spc_type_size(SPC_TYPE_##name), 2 * sizeof(ctype));                           \
            CHECK_OK(spc_ops_combine_to(SPC_SUM, &field, 1, sum, left, right));                      \
            for (uint32_t i = 0; i < count; i++) {                                                   \
                CHECK(sum[2 * i] == left[2 * i] + right[2 * i]);                                     \
                CHECK(sum[2 * i + 1] == left[2 * i + 1] + right[2 * i + 1]);                         \
            }                                                                                        \
            for (uint32_t i = 0; i < count; i++) {                                                   \
                const ctype real = left[2 * i] * right[2 * i] - left[2 * i + 1] * right[2 * i + 1];  \
                const ctype other = left[2 * i] * right[2 * i + 1] + left[2 * i + 1] * right[2 * i]; \
                sum[2 * i] = real;                                                                   \
                sum[2 * i + 1] = other;                                                              \
            }                                                                                        \
            CHECK_OK(spc_ops_combine(SPC_PROD, &field, 1, left, right));                             \
            CHECK_MEM(left, sum, 2 * count * sizeof(ctype));                                         \
        }                                                                                            \
    }
DEFINE_COMPLEX_CASE(COMPLEX64, float)
DEFINE_COMPLEX_CASE(COMPLEX128, double)

static void a_nan_is_true(void) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, 3};
    const double left[] = {(double)NAN, (double)NAN, -0.0}, right[] = {1, 0, 0};
    double to[3];
    CHECK_OK(spc_ops_combine_to(SPC_LOGICAL_AND, &field, 1, to, left, right));
    CHECK(to[0] == 1 && to[1] == 0 && to[2] == 0);
    CHECK_OK(spc_ops_combine_to(SPC_LOGICAL_XOR, &field, 1, to, left, right));
    CHECK(to[0] == 0 && to[1] == 1 && to[2] == 0);
}

static void python_integers_do_not_wrap_in_products(void) {
    const spc_field_t field = {SPC_TYPE_INT, 1};
    int64_t left = INT64_C(1) << 31, right = INT64_C(1) << 31;
    CHECK_OK(spc_ops_combine(SPC_PROD, &field, 1, &left, &right));
    CHECK_EQ(left, INT64_C(1) << 62);
    right = 2;
    CHECK_EQ(spc_ops_combine(SPC_PROD, &field, 1, &left, &right), SPC_EWIDE);
    left = INT64_MIN;
    right = -1;
    CHECK_EQ(spc_ops_combine(SPC_PROD, &field, 1, &left, &right), SPC_EWIDE);
}

/* ---- the place of the least and of the greatest */

/* The winner of two pairs: 0 the left one, 1 the right one. */
#define WINNER(name, operator, l, left_index, r, right_index)                                      \
    __extension__({                                                                                \
        const spc_field_t pair_field = {SPC_TYPE_PAIR_##name, 1};                                  \
        spc_pair_t left_pair = {.value.bytes = 0, .index = (left_index)};                          \
        spc_pair_t right_pair = {.value.bytes = 0, .index = (right_index)}, to_pair;               \
        left_pair.value.name = (l);                                                                \
        right_pair.value.name = (r);                                                               \
        CHECK_OK(spc_ops_combine_to(operator, &pair_field, 1, &to_pair, &left_pair, &right_pair)); \
        const int right_won = memcmp(&to_pair, &right_pair, sizeof to_pair) == 0;                  \
        CHECK(right_won || memcmp(&to_pair, &left_pair, sizeof to_pair) == 0);                     \
        right_won;                                                                                 \
    })

#define DEFINE_PAIR_CASE(name, ctype)                                                         \
    static void pairs_of_##name(void) {                                                       \
        const ctype one = (ctype) - 100, other = 100; /* the first is large without a sign */ \
        const ctype low = one < other ? one : other, high = one < other ? other : one;        \
        CHECK_EQ(WINNER(name, SPC_MINLOC, low, 9, high, 1), 0);                               \
        CHECK_EQ(WINNER(name, SPC_MINLOC, high, 1, low, 9), 1);                               \
        CHECK_EQ(WINNER(name, SPC_MAXLOC, low, 1, high, 9), 1);                               \
        CHECK_EQ(WINNER(name, SPC_MAXLOC, high, 9, low, 1), 0);                               \
        for (int operator = SPC_MINLOC; operator <= SPC_MAXLOC; operator++) {                 \
            CHECK_EQ(WINNER(name, (spc_operator_t)operator, high, 3, high, 4), 0);            \
            CHECK_EQ(WINNER(name, (spc_operator_t)operator, high, 4, high, 3), 1);            \
            CHECK_EQ(WINNER(name, (spc_operator_t)operator, high, -4, high, 3), 0);           \
        }                                                                                     \
    }
SPC_NUMBER_TYPES(DEFINE_PAIR_CASE)

#define CHECK_SPECIAL_PAIRS(name, ctype)                                                        \
    for (int operator = SPC_MINLOC; operator <= SPC_MAXLOC; operator++) {                       \
        const spc_operator_t op = (spc_operator_t)operator;                                     \
        const ctype nan = (ctype)NAN, least = (ctype) - INFINITY, most = (ctype)INFINITY;       \
        CHECK_EQ(WINNER(name, op, nan, 9, least, 1), 0); /* as the first NaN in numpy.argmin */ \
        CHECK_EQ(WINNER(name, op, most, 1, nan, 9), 1);                                         \
        CHECK_EQ(WINNER(name, op, nan, 9, nan, 1), 1);                                          \
        CHECK_EQ(WINNER(name, op, nan, 1, nan, 9), 0);                                          \
        CHECK_EQ(WINNER(name, op, (ctype) - 0.0, 9, (ctype)0.0, 1), 1); /* they are equal */    \
        CHECK_EQ(WINNER(name, op, (ctype)0.0, 1, (ctype) - 0.0, 9), 0);                         \
    }

static void pairs_of_special_values(void) {
    SPC_FLOAT_TYPES(CHECK_SPECIAL_PAIRS)
}

/* ---- what there is, and what becomes of one value */

static void who_knows_which_type(void) {
    for (uint32_t type = 0; type <= SPC_TYPE_COUNT; type++) {
        const bool is_pair = type >= SPC_TYPE_PAIR_INT8 && type < SPC_TYPE_COUNT;
        const bool is_complex = type == SPC_TYPE_COMPLEX64 || type == SPC_TYPE_COMPLEX128;
        const bool is_float = type == SPC_TYPE_FLOAT32 || type == SPC_TYPE_FLOAT64;
        const bool is_time = type == SPC_TYPE_SIMTIME, is_none = type == SPC_TYPE_NONE;
        const bool is_type = type < SPC_TYPE_COUNT;
        CHECK_EQ(spc_ops_has(SPC_SUM, type), is_type && !is_pair);
        CHECK_EQ(spc_ops_has(SPC_PROD, type), is_type && !is_pair && !is_time);
        CHECK_EQ(spc_ops_has(SPC_MIN, type), is_type && !is_pair && !is_complex);
        CHECK_EQ(spc_ops_has(SPC_MAX, type), is_type && !is_pair && !is_complex);
        for (int operator = SPC_LOGICAL_AND; operator <= SPC_BITWISE_XOR; operator++) {
            const bool needs_bits = operator >= SPC_BITWISE_AND;
            CHECK_EQ(spc_ops_has((spc_operator_t)operator, type),
                     is_type && !is_pair && !is_complex && !is_time && !(needs_bits && is_float));
        }
        CHECK_EQ(spc_ops_has(SPC_MINLOC, type), is_pair || is_none);
        CHECK_EQ(spc_ops_has(SPC_MAXLOC, type), is_pair || is_none);
        CHECK(!spc_ops_has(SPC_OPERATOR_COUNT, type));
    }
}

static void what_an_operator_does_not_know_is_refused(void) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, 1};
    double left = 1, right = 2;
    CHECK_EQ(spc_ops_combine(SPC_BITWISE_OR, &field, 1, &left, &right), SPC_EINVAL);
    CHECK_EQ(spc_ops_combine(SPC_MAXLOC, &field, 1, &left, &right), SPC_EINVAL);
    CHECK_EQ_D(left, 1);
}

static void a_logical_value_alone_is_0_or_1(void) {
    typedef struct {
        double real[2];
        int32_t whole[2];
        spcomm_simtime_t time;
    } value_t;
    const spc_field_t fields[] = {{SPC_TYPE_FLOAT64, 2}, {SPC_TYPE_INT32, 2}, {SPC_TYPE_SIMTIME, 1}};
    for (int operator = 0; operator < SPC_OPERATOR_COUNT; operator++) {
        value_t value = {{-2.5, 0}, {0, 6}, {1.5, {1, 2, 3, 4}}}, expected = value;
        if (operator >= SPC_LOGICAL_AND && operator <= SPC_LOGICAL_XOR) {
            expected = (value_t){{1, 0}, {0, 1}, {1.5, {1, 2, 3, 4}}};
        } else if (operator == SPC_SUM) {
            expected.time = spcomm_simtime_from(1.5);
        }
        spc_ops_alone((spc_operator_t)operator, fields, 3, &value);
        CHECK_MEM(&value, &expected, sizeof value);
    }
}

int main(void) {
#define RUN_NUMBER_CASE(name, ctype) \
    RUN(arrays_of_##name);           \
    RUN(pairs_of_##name);
    SPC_NUMBER_TYPES(RUN_NUMBER_CASE)
    RUN(arrays_of_BOOL);
    RUN(arrays_of_COMPLEX64);
    RUN(arrays_of_COMPLEX128);
    RUN(a_nan_is_true);
    RUN(python_integers_do_not_wrap_in_products);
    RUN(pairs_of_special_values);
    RUN(who_knows_which_type);
    RUN(what_an_operator_does_not_know_is_refused);
    RUN(a_logical_value_alone_is_0_or_1);
    return check_done();
}
