/* SPDX-License-Identifier: MIT */
// run: -n 2
// says: SP101 both nodes wait, and no message is on its way
// circle: 0 → 1 → 0
// hint: let one node send before it receives
/* Two nodes receive from each other before they send, in C. */
#include <spcomm/spcomm.h>

int main(void) {
    spcomm_t *comm;
    spcomm_message_t message;
    if (spcomm_startup(0, 0, 0, NULL, &comm) != SPCOMM_OK) {
        return 1;
    }
    const int other = 1 - spcomm_rank(comm);
    /* <- node 0: recv(source=1, tag=3) | node 1: recv(source=0, tag=3) */
    spcomm_recv(comm, other, 3, SPCOMM_FOREVER, &message);
    return spcomm_send(comm, other, 3, spcomm_int64(1), SPCOMM_FOREVER);
}
