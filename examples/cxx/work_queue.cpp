/* SPDX-License-Identifier: MIT */
/* Work that makes more work, in rounds of coordinated messages: nobody counts what is on its way, and yet every node
 * knows when it has received all of a round. Here: the Collatz tree, whose numbers each belong to one node.
 *
 *     c++ -O2 work_queue.cpp $(spcomm config --cflags --libs) -o work_queue && spcomm run -n 4 ./work_queue
 */
#include <cstdio>
#include <vector>

#include <spcomm/speedescomm.hpp>

static int Owner(long number) {
    return static_cast<int>(number % SpComm_GetNumNodes());
}

/* The numbers that lead to `number` in one step: its double, and perhaps (number - 1) / 3. */
static void SendPredecessors(long number) {
    long twice = 2 * number, third = (number - 1) / 3;
    SpComm_CoordinatedSend(Owner(twice), sizeof(twice), &twice);
    if ((number - 1) % 6 == 3 && third > 1) {
        SpComm_CoordinatedSend(Owner(third), sizeof(third), &third);
    }
}

int main() {
    SpComm_StartUp(0, 0, 0, NULL);
    const int rounds = 30;

    std::vector<long> work;
    if (Owner(1) == SpComm_GetNodeId()) {
        work.push_back(1);
    }
    int found = 0;
    for (int round = 0; round < rounds; round++) {
        for (long number : work) {
            SendPredecessors(number);
        }
        work.clear();
        int nbytes; /* a receive that returns NULL: this node has all of this round */
        while (void *message = SpComm_CoordinatedReceive(nbytes)) {
            work.push_back(*static_cast<long *>(message));
            delete[] static_cast<char *>(message);
        }
        found = SpComm_GlobalSum(static_cast<int>(work.size()));
    }
    if (SpComm_GetNodeId() == 0) {
        std::printf("%d numbers need %d steps of Collatz's rule to reach 1\n", found, rounds);
    }
    SpComm_ShutDown();
    return found == 732 ? 0 : 2;
}
