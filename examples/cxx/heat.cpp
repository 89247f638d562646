/* SPDX-License-Identifier: MIT */
/* Heat in a rod: each node has a piece of it, and before every step gives its two ends to its neighbours, as
 * coordinated messages: a receive that returns NULL says that this node has got all that was sent to it in this step.
 *
 *     c++ -O2 heat.cpp $(spcomm config --cflags --libs) -o heat && spcomm run -n 4 ./heat
 */
#include <cmath>
#include <cstdio>
#include <vector>

#include <spcomm/speedescomm.hpp>

struct End {
    int node; /* whose end it is */
    double degrees;
};

int main() {
    SpComm_StartUp(0, 0, 0, NULL);
    const int node = SpComm_GetNodeId(), nodes = SpComm_GetNumNodes();
    const int cells = 64, steps = 8000; /* of the whole rod; its left end is kept at 1, its right end at 0 */
    const int used = nodes < cells ? nodes : cells; /* the nodes beyond have no cells */
    const int first = node < used ? cells * node / used : cells;
    const int n = node < used ? cells * (node + 1) / used - first : 0;

    std::vector<double> rod(n + 2, 0.0), next; /* with the neighbours' ends */
    rod[0] = node == 0 ? 1.0 : 0.0;
    for (int step = 0; step < steps; step++) {
        End left = {node, rod[1]}, right = {node, rod[n]};
        if (node > 0 && node < used) {
            SpComm_CoordinatedSend(node - 1, sizeof(left), &left);
        }
        if (node + 1 < used) {
            SpComm_CoordinatedSend(node + 1, sizeof(right), &right);
        }
        int nbytes;
        while (void *message = SpComm_CoordinatedReceive(nbytes)) {
            const End *end = static_cast<End *>(message);
            rod[end->node < node ? 0 : n + 1] = end->degrees;
            delete[] static_cast<char *>(message);
        }
        next = rod;
        for (int i = 1; i <= n; i++) {
            next[i] = rod[i] + 0.5 * (rod[i - 1] - 2.0 * rod[i] + rod[i + 1]);
        }
        rod.swap(next);
    }
    double error = 0.0; /* in the end the temperature falls evenly from 1 to 0 */
    for (int i = 1; i <= n; i++) {
        error = std::fmax(error, std::fabs(rod[i] - (1.0 - (first + i) / (cells + 1.0))));
    }
    const double worst = SpComm_GlobalMax(error);
    if (node == 0) {
        std::printf("%d steps on %d nodes: all within %.4f of the final temperature\n", steps, nodes, worst);
    }
    return worst < 0.02 ? 0 : 2; /* the normal end of the program shuts down by itself */
}
