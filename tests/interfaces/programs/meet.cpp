// SPDX-License-Identifier: MIT
// Two of four nodes, which meet the others at the server of the infile: `meet INFILE`.
#include <cstdio>

#include <spcomm/speedescomm.hpp>

int main(int argc, char **argv) {
    (void)argc;
    try {
        SpComm_StartUp(2, 4, 0, argv[1]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    int sum = SpComm_GlobalSum(1);
    std::printf("node %d of %d: %d\n", SpComm_GetNodeId(), SpComm_GetNumNodes(), sum);
    return 0;
}
