/* SPDX-License-Identifier: MIT */
/* A token goes round: each node adds itself to it and passes it on.
 *
 *     cc -O2 token_ring.c $(spcomm config --cflags --libs) -o token_ring && spcomm run -n 4 ./token_ring
 */
#include <stdio.h>
#include <stdlib.h>

#include <spcomm/spcomm.h>

#define ROUNDS 3

typedef struct {
    int passes;
    long sum;
} token_t;

static void check(int status) {
    if (status != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        exit(1);
    }
}

static token_t wait_for_token(spcomm_t *comm) {
    spcomm_message_t message;
    check(spcomm_recv(comm, SPCOMM_ANY, SPCOMM_ANY, SPCOMM_FOREVER, &message));
    token_t token = *(token_t *)message.data;
    spcomm_message_free(&message); /* what was received is the program's */
    return token;
}

int main(void) {
    spcomm_t *comm;
    check(spcomm_startup(0, 0, 0, NULL, &comm));
    const int rank = spcomm_rank(comm), size = spcomm_size(comm);

    token_t token = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        if (rank > 0 || round > 0) { /* node 0 begins */
            token = wait_for_token(comm);
        }
        token.passes++;
        token.sum += rank;
        check(spcomm_send(comm, (rank + 1) % size, 0, spcomm_raw(&token, sizeof(token)), SPCOMM_FOREVER));
    }
    if (rank > 0) {
        return 0;
    }
    token = wait_for_token(comm);
    printf("the token has been passed on %d times by %d nodes, and carries %ld\n", token.passes, size,
           token.sum);
    return token.passes == ROUNDS * size && token.sum == ROUNDS * (long)size * (size - 1) / 2 ? 0 : 2;
}
