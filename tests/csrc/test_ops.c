/* SPDX-License-Identifier: MIT */
/* The operators against plain C, one type after the other. */
#include "check.h"

#include <math.h>

#include "base/spc_error.h"
#include "reduce/spc_ops.h"
#include "spcomm/simtime.h"

enum { ELEMENTS = 67 }; /* more than one vector block, and a rest */

/* The expected element of each operator; integers wrap. */
#define EXPECTED_SUM(ctype, l, r) ((ctype)((l) + (r)))
#define EXPECTED_WRAPPED(ctype, l, r) ((ctype)((uint64_t)(l) + (uint64_t)(r)))
#define EXPECTED_MIN(ctype, l, r) ((l) < (r) ? (l) : (r))
#define EXPECTED_MAX(ctype, l, r) ((l) > (r) ? (l) : (r))

/* For every length from 0 to ELEMENTS: the right elements, and none beyond. */
#define CHECK_OPERATOR(name, ctype, operator, EXPECTED)                      \
    for (uint32_t count = 0; count <= ELEMENTS; count++) {                   \
        const spc_field_t field = {SPC_TYPE_##name, count};                  \
        ctype left[ELEMENTS + 1], right[ELEMENTS + 1], before[ELEMENTS + 1]; \
        for (uint32_t i = 0; i <= ELEMENTS; i++) {                           \
            left[i] = before[i] = (ctype)(int64_t)check_random(&state);      \
            right[i] = (ctype)(int64_t)check_random(&state);                 \
        }                                                                    \
        CHECK_OK(spc_ops_combine(operator, &field, 1, left, right));         \
        for (uint32_t i = 0; i < count; i++) {                               \
            CHECK(left[i] == EXPECTED(ctype, before[i], right[i]));          \
        }                                                                    \
        CHECK(left[count] == before[count]);                                 \
    }

#define DEFINE_INTEGER_CASE(name, ctype)                           \
    static void combines_##name(void) {                            \
        uint64_t state = SPC_TYPE_##name;                          \
        CHECK_EQ_U(spc_type_size(SPC_TYPE_##name), sizeof(ctype)); \
        CHECK_OPERATOR(name, ctype, SPC_SUM, EXPECTED_WRAPPED)     \
        CHECK_OPERATOR(name, ctype, SPC_MIN, EXPECTED_MIN)         \
        CHECK_OPERATOR(name, ctype, SPC_MAX, EXPECTED_MAX)         \
    }
SPC_INTEGER_TYPES(DEFINE_INTEGER_CASE)

#define DEFINE_FLOAT_CASE(name, ctype)                             \
    static void combines_##name(void) {                            \
        uint64_t state = SPC_TYPE_##name;                          \
        CHECK_EQ_U(spc_type_size(SPC_TYPE_##name), sizeof(ctype)); \
        CHECK_OPERATOR(name, ctype, SPC_SUM, EXPECTED_SUM)         \
        CHECK_OPERATOR(name, ctype, SPC_MIN, EXPECTED_MIN)         \
        CHECK_OPERATOR(name, ctype, SPC_MAX, EXPECTED_MAX)         \
    }
SPC_FLOAT_TYPES(DEFINE_FLOAT_CASE)

/* Both in the vector part and in the rest. */
#define DEFINE_SPECIAL_CASE(name, ctype)                                                              \
    static void special_values_of_##name(void) {                                                      \
        static const ctype values[] = {(ctype) - INFINITY, -1, (ctype) - 0.0, 0, 1, (ctype)INFINITY}; \
        const int count = sizeof values / sizeof values[0];                                           \
        const spc_field_t field = {SPC_TYPE_##name, ELEMENTS};                                        \
        ctype left[ELEMENTS], right[ELEMENTS];                                                        \
        for (int operator = SPC_MIN; operator <= SPC_MAX; operator++) {                               \
            for (int l = 0; l <= count; l++) {                                                        \
                for (int r = 0; r <= count; r++) {                                                    \
                    for (int i = 0; i < ELEMENTS; i++) {                                              \
                        left[i] = l < count ? values[l] : (ctype)NAN;                                 \
                        right[i] = r < count ? values[r] : (ctype)NAN;                                \
                    }                                                                                 \
                    CHECK_OK(spc_ops_combine((spc_operator_t)operator, &field, 1, left, right));      \
                    const int wins = operator == SPC_MIN ? (l < r ? l : r) : (l > r ? l : r);         \
                    for (int i = 0; i < ELEMENTS; i++) {                                              \
                        if (l == count || r == count) {                                               \
                            CHECK(isnan(left[i]));                                                    \
                        } else {                                                                      \
                            CHECK(left[i] == values[wins]);                                           \
                            CHECK(!signbit(left[i]) == !signbit(values[wins]));                       \
                        }                                                                             \
                    }                                                                                 \
                }                                                                                     \
            }                                                                                         \
        }                                                                                             \
    }
SPC_FLOAT_TYPES(DEFINE_SPECIAL_CASE)

static int combine_ints(spc_operator_t operator, int64_t left, int64_t right, int64_t *result) {
    const spc_field_t field = {SPC_TYPE_INT, 1};
    *result = left;
    return spc_ops_combine(operator, &field, 1, result, &right);
}

static void python_integers_do_not_wrap(void) {
    int64_t result;
    CHECK_OK(combine_ints(SPC_SUM, INT64_MAX - 1, 1, &result));
    CHECK_EQ(result, INT64_MAX);
    CHECK_OK(combine_ints(SPC_SUM, INT64_MIN, INT64_MAX, &result));
    CHECK_EQ(result, -1);
    CHECK_EQ(combine_ints(SPC_SUM, INT64_MAX, 1, &result), SPC_EWIDE);
    CHECK_EQ(combine_ints(SPC_SUM, INT64_MIN, -1, &result), SPC_EWIDE);
    CHECK_OK(combine_ints(SPC_MIN, INT64_MAX, INT64_MIN, &result));
    CHECK_EQ(result, INT64_MIN);
    CHECK_OK(combine_ints(SPC_MAX, INT64_MAX, INT64_MIN, &result));
    CHECK_EQ(result, INT64_MAX);
}

static void one_overflow_among_many_is_found(void) {
    const spc_field_t field = {SPC_TYPE_INT, ELEMENTS};
    for (int at = 0; at < ELEMENTS; at++) {
        int64_t left[ELEMENTS] = {0}, right[ELEMENTS] = {0};
        left[at] = right[at] = INT64_MAX;
        CHECK_EQ(spc_ops_combine(SPC_SUM, &field, 1, left, right), SPC_EWIDE);
    }
}

static void wide_integers_are_always_refused(void) {
    const spc_field_t fields[] = {{SPC_TYPE_INT, 1}, {SPC_TYPE_WIDE, 1}, {SPC_TYPE_INT, 1}};
    for (int operator = SPC_SUM; operator <= SPC_BITWISE_XOR; operator++) {
        int64_t left[3] = {0}, right[3] = {0};
        CHECK_EQ(spc_ops_combine((spc_operator_t)operator, fields, 3, left, right), SPC_EWIDE);
        CHECK_EQ(spc_ops_combine((spc_operator_t)operator, &fields[1], 1, left, right), SPC_EWIDE);
    }
}

/* Every kind of time, each in its place: sorted by the order, with no two equal. */
static const spcomm_simtime_t times[] = {
    {-INFINITY, {0, 0, 0, 0}}, {-2, {9, 9, 9, 9}},          {0, {INT32_MIN, 0, 0, 0}},
    {-0.0, {0, 0, 0, -1}},     {0, {0, 0, 0, 0}},           {-0.0, {0, 0, 0, 1}},
    {0, {0, 0, 1, -5}},        {0, {0, 1, -5, -5}},         {0, {1, -5, -5, -5}},
    {0, {INT32_MAX, 0, 0, 0}}, {1, {-1, 0, 0, 0}},          {INFINITY, {-1, 0, 0, 0}},
    {INFINITY, {0, 0, 0, 0}},  {NAN, {INT32_MIN, 0, 0, 0}}, {NAN, {0, 0, 0, 0}},
};
enum { TIMES = sizeof times / sizeof times[0] };

static void times_are_ordered_lexicographically(void) {
    for (int i = 0; i < TIMES; i++) {
        for (int j = 0; j < TIMES; j++) {
            CHECK_EQ(spcomm_simtime_compare(times[i], times[j]), (i > j) - (i < j));
            CHECK_EQ(spcomm_simtime_equal(times[i], times[j]), i == j);
        }
    }
    const spcomm_simtime_t zero = spcomm_simtime_from(-0.0);
    CHECK(spcomm_simtime_equal(zero, times[4]));
    CHECK(signbit(spcomm_simtime_time(zero)));
}

static void combines_SIMTIME(void) {
    CHECK_EQ_U(spc_type_size(SPC_TYPE_SIMTIME), 24);
    for (int i = 0; i < TIMES; i++) {
        for (int j = 0; j < TIMES; j++) {
            const spc_field_t field = {SPC_TYPE_SIMTIME, 3};
            const spcomm_simtime_t right[] = {times[j], times[i], times[j], times[j]};
            for (int operator = SPC_SUM; operator <= SPC_MAX; operator++) {
                spcomm_simtime_t left[] = {times[i], times[j], times[i], times[0]};
                CHECK_OK(spc_ops_combine((spc_operator_t)operator, &field, 1, left, right));
                const spcomm_simtime_t sum = spcomm_simtime_from(times[i].time + times[j].time);
                const int wins = operator == SPC_MIN ? (i < j ? i : j) : (i > j ? i : j);
                for (int k = 0; k < 3; k++) {
                    if (operator == SPC_SUM) {
                        CHECK(spcomm_simtime_equal(left[k], sum));
                    } else {
                        CHECK_MEM(&left[k], &times[wins], sizeof sum);
                    }
                }
                CHECK_MEM(&left[3], &times[0], sizeof sum); /* none beyond */
            }
        }
    }
}

/* Equal, but not to the last bit. */
static void of_equal_times_the_left_one_stays(void) {
    const spc_field_t field = {SPC_TYPE_SIMTIME, 1};
    for (int operator = SPC_MIN; operator <= SPC_MAX; operator++) {
        spcomm_simtime_t minus = spcomm_simtime_from(-0.0), plus = spcomm_simtime_from(0.0), left = minus;
        CHECK_OK(spc_ops_combine((spc_operator_t)operator, &field, 1, &left, &plus));
        CHECK_MEM(&left, &minus, sizeof left);
        left = plus;
        CHECK_OK(spc_ops_combine((spc_operator_t)operator, &field, 1, &left, &minus));
        CHECK_MEM(&left, &plus, sizeof left);
    }
}

/* The paper's Net_Min, Net_Max and Net_Sum: an int, a double and a time in one exchange. */
static void times_among_other_fields(void) {
    typedef struct {
        int64_t whole;
        double real;
        spcomm_simtime_t time;
        int32_t last[2];
    } value_t;
    const spc_field_t fields[] = {
        {SPC_TYPE_INT, 1}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_SIMTIME, 1}, {SPC_TYPE_INT32, 2}};
    const value_t left = {3, 1.5, {2, {1, 0, 0, 0}}, {10, -10}}, right = {-4, 2.5, {2, {0, 7, 7, 7}}, {5, 5}};
    const value_t expected[] = {
        [SPC_SUM] = {-1, 4.0, {4, {0, 0, 0, 0}}, {15, -5}},
        [SPC_MIN] = {-4, 1.5, {2, {0, 7, 7, 7}}, {5, -10}},
        [SPC_MAX] = {3, 2.5, {2, {1, 0, 0, 0}}, {10, 5}},
    };
    CHECK_EQ_U(spc_fields_bytes(fields, 4), sizeof(value_t));
    for (int operator = SPC_SUM; operator <= SPC_MAX; operator++) {
        value_t value = left;
        CHECK_OK(spc_ops_combine((spc_operator_t)operator, fields, 4, &value, &right));
        CHECK_MEM(&value, &expected[operator], sizeof value);
    }
}

/* A tuple: (three bytes, a double, nothing, two floats). */
static void fields_start_at_multiples_of_8_bytes(void) {
    typedef struct {
        int8_t bytes[3];
        int8_t gap[5];
        double number;
        float floats[2];
    } value_t;
    const spc_field_t fields[] = {
        {SPC_TYPE_INT8, 3}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_NONE, 0}, {SPC_TYPE_FLOAT32, 2}};
    value_t left = {{1, 2, 3}, {9, 9, 9, 9, 9}, 0.5, {1.5F, 2.5F}};
    const value_t right = {{10, 20, 30}, {7, 7, 7, 7, 7}, 0.25, {0.5F, -0.5F}};
    CHECK_EQ_U(spc_fields_bytes(fields, 4), sizeof(value_t));
    CHECK_OK(spc_ops_combine(SPC_SUM, fields, 4, &left, &right));
    const value_t expected = {{11, 22, 33}, {9, 9, 9, 9, 9}, 0.75, {2.0F, 2.0F}};
    CHECK_MEM(&left, &expected, sizeof left);
}

static void sizes(void) {
    const spc_field_t large = {SPC_TYPE_FLOAT64, UINT32_MAX};
    CHECK_EQ_U(spc_type_size(SPC_TYPE_NONE), 0);
    CHECK_EQ_U(spc_type_size(SPC_TYPE_INT), 8);
    CHECK_EQ_U(spc_type_size(SPC_TYPE_WIDE), 8);
    CHECK_EQ_U(spc_type_size(SPC_TYPE_COUNT), 0);
    CHECK_EQ_U(spc_fields_bytes(NULL, 0), 0);
    CHECK_EQ_U(spc_fields_bytes(&large, 1), UINT64_C(8) * UINT32_MAX);
}

static void unknown_operators_and_types_are_refused(void) {
    const spc_field_t good = {SPC_TYPE_FLOAT64, 1}, bad = {SPC_TYPE_COUNT, 1};
    double left = 1, right = 2;
    CHECK_EQ(spc_ops_combine(SPC_OPERATOR_COUNT, &good, 1, &left, &right), SPC_EINVAL);
    CHECK_EQ(spc_ops_combine(SPC_SUM, &bad, 1, &left, &right), SPC_EINVAL);
    CHECK_EQ_D(left, 1);
}

int main(void) {
#define RUN_NUMBER_CASE(name, ctype) RUN(combines_##name);
    SPC_NUMBER_TYPES(RUN_NUMBER_CASE)
#define RUN_SPECIAL_CASE(name, ctype) RUN(special_values_of_##name);
    SPC_FLOAT_TYPES(RUN_SPECIAL_CASE)
    RUN(python_integers_do_not_wrap);
    RUN(one_overflow_among_many_is_found);
    RUN(wide_integers_are_always_refused);
    RUN(times_are_ordered_lexicographically);
    RUN(combines_SIMTIME);
    RUN(of_equal_times_the_left_one_stays);
    RUN(times_among_other_fields);
    RUN(fields_start_at_multiples_of_8_bytes);
    RUN(sizes);
    RUN(unknown_operators_and_types_are_refused);
    return check_done();
}
