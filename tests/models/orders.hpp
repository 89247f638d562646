/* SPDX-License-Identifier: MIT */
/*
 * orders: the main program of a model of memory orders, for Relacy (Debian: relacy-dev), which tries every
 * interleaving and every value that a load may return by the C11 memory model, and reports data races between plain
 * variables.
 *
 * A model writes an order of the protocol as ORDER(NAME, order, weaker): -DNAME chooses the weaker one. Threads try
 * each thing once: a loop that waits would make the search endless.
 */
#ifndef ORDERS_HPP
#define ORDERS_HPP

#include <relacy/relacy.hpp>

#include <cstdio>

/* -DNAME defines NAME as 1, which becomes a comma: the weaker order is then the second argument. */
#define ORDER_COMMA_1 ,
#define ORDER_SECOND(first, second, ...) second
#define ORDER_CHOOSE(...) ORDER_SECOND(__VA_ARGS__)
#define ORDER_OF(weakened, order, weaker) \
    ORDER_CHOOSE(ORDER_COMMA_##weakened rl::mo_##weaker, rl::mo_##order, )
#define ORDER(weakened, order, weaker) ORDER_OF(weakened, order, weaker)

/* As run reads it: like the last lines of SPIN's verifier. */
template <typename model_t> int check_orders() {
    rl::test_params parameters;
    parameters.search_type = rl::sched_full;
    const bool holds = rl::simulate<model_t>(parameters);
    std::printf("%u states, stored\nerrors: %d\n", static_cast<unsigned>(parameters.stop_iteration), !holds);
    return 0;
}

#endif
