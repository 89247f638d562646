/* SPDX-License-Identifier: MIT */
/* Heat in a rod: each node has a piece of it, and gives its two ends to its neighbours before every step.
 *
 *     cc -O2 heat.c $(spcomm config --cflags --libs) -o heat && spcomm run -n 4 ./heat
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spcomm/spcomm.h>

#define CELLS 64 /* of the whole rod; its left end is kept at 1, its right end at 0 */
#define STEPS 8000

static void check(int status) {
    if (status != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        exit(1);
    }
}

/* Sends this end to the neighbour, and returns what comes from there. */
static double exchange(spcomm_t *comm, int neighbour, double end) {
    spcomm_message_t message;
    check(spcomm_sendrecv(comm, neighbour, 0, spcomm_float64(end), neighbour, 0, SPCOMM_FOREVER, &message));
    double found = *(double *)message.data;
    spcomm_message_free(&message);
    return found;
}

int main(void) {
    spcomm_t *comm;
    check(spcomm_startup(0, 0, 0, NULL, &comm));
    const int rank = spcomm_rank(comm), size = spcomm_size(comm);
    const int used = size < CELLS ? size : CELLS; /* the nodes beyond have no cells */
    const int first = rank < used ? CELLS * rank / used : CELLS;
    const int n = rank < used ? CELLS * (rank + 1) / used - first : 0;
    double old[CELLS + 2] = {0.0}, new[CELLS + 2] = {0.0}; /* with the neighbours' ends */

    for (int step = 0; step < STEPS; step++) {
        old[0] = rank > 0 && rank < used ? exchange(comm, rank - 1, old[1]) : 1.0;
        old[n + 1] = rank + 1 < used ? exchange(comm, rank + 1, old[n]) : 0.0;
        for (int i = 1; i <= n; i++) {
            new[i] = old[i] + 0.5 * (old[i - 1] - 2.0 * old[i] + old[i + 1]);
        }
        memcpy(old + 1, new + 1, n * sizeof(double));
    }
    double error = 0.0, worst; /* in the end the temperature falls evenly from 1 to 0 */
    for (int i = 1; i <= n; i++) {
        error = fmax(error, fabs(old[i] - (1.0 - (first + i) / (CELLS + 1.0))));
    }
    check(spcomm_global_max_double(comm, error, SPCOMM_FOREVER, &worst));
    if (rank == 0) {
        printf("%d steps on %d nodes: all within %.4f of the final temperature\n", STEPS, size, worst);
    }
    return worst < 0.02 ? 0 : 2; /* the normal end of the program shuts down by itself */
}
