/* SPDX-License-Identifier: MIT */
/* Pi by adding up strips: each node takes its share of them, one global sum puts them together.
 *
 *     c++ -O2 pi.cpp $(spcomm config --cflags --libs) -o pi && spcomm run -n 4 ./pi
 */
#include <cmath>
#include <cstdio>

#include <spcomm/speedescomm.hpp>

int main() {
    SpComm_StartUp(0, 0, 0, NULL);
    const int node = SpComm_GetNodeId(), nodes = SpComm_GetNumNodes();
    const long strips = 10000000;

    double mine = 0.0;
    for (long i = node; i < strips; i += nodes) {
        const double x = (i + 0.5) / strips;
        mine += 4.0 / (1.0 + x * x) / strips;
    }
    const double pi = SpComm_GlobalSum(mine); /* every node gets it, the same to the last bit */

    if (node == 0) {
        std::printf("pi is %.12f, from %d nodes\n", pi, nodes);
    }
    SpComm_ShutDown();
    return std::fabs(pi - std::acos(-1.0)) < 1e-9 ? 0 : 2;
}
