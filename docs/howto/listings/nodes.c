/* SPDX-License-Identifier: MIT */
/* Every node sends its square to node 0, which adds them up. */
#include <stdio.h>
#include <spcomm/spcomm.h>

static int fail(void) {
    fprintf(stderr, "%s\n", spcomm_last_error());
    return 1;
}

int main(void) {
    spcomm_t *comm;
    if (spcomm_startup(0, 0, 0, NULL, &comm) != SPCOMM_OK) {
        return fail();
    }
    int64_t rank = spcomm_rank(comm), total = 0;
    if (spcomm_send(comm, 0, 7, spcomm_int64(rank * rank), SPCOMM_FOREVER) != SPCOMM_OK) {
        return fail();
    }
    if (rank == 0) {
        for (int i = 0; i < spcomm_size(comm); i++) {
            spcomm_message_t message;
            if (spcomm_recv(comm, SPCOMM_ANY, 7, SPCOMM_FOREVER, &message) != SPCOMM_OK) {
                return fail();
            }
            total += *(int64_t *)message.data;
            spcomm_message_free(&message);
        }
        printf("the sum of all squares is %lld\n", (long long)total);
    }
    return 0;
}
