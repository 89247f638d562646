/* SPDX-License-Identifier: MIT */
/* Pi by adding up strips: each node takes its share of them, one global sum puts them together.
 *
 *     cc -O2 pi.c $(spcomm config --cflags --libs) -o pi && spcomm run -n 4 ./pi
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <spcomm/spcomm.h>

#define STRIPS 10000000

/* A program says which call failed, and ends. The launcher ends the other nodes. */
static void check(int status) {
    if (status != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        exit(1);
    }
}

int main(void) {
    spcomm_t *comm;
    check(spcomm_startup(0, 0, 0, NULL, &comm));
    const int rank = spcomm_rank(comm), size = spcomm_size(comm);

    double mine = 0.0, pi;
    for (long i = rank; i < STRIPS; i += size) {
        double x = (i + 0.5) / STRIPS;
        mine += 4.0 / (1.0 + x * x) / STRIPS;
    }
    check(spcomm_global_sum_double(comm, mine, SPCOMM_FOREVER,
                                   &pi)); /* every node gets it, the same to the last bit */

    if (rank == 0) {
        printf("pi is %.12f, from %d nodes\n", pi, size);
    }
    check(spcomm_shutdown(comm, SPCOMM_SECONDS(10)));
    return fabs(pi - acos(-1.0)) < 1e-9 ? 0 : 2;
}
