/* SPDX-License-Identifier: MIT */
/* Calls that the paper's functions refuse; run by one node alone, or several. */
#include <climits>

#include "check.hpp"

static void before_startup() {
    int nbytes = 3;
    CHECK_THROWS(SpComm_GetNodeId(), SPCOMM_EINVAL, "SpComm_StartUp has not been called");
    CHECK_THROWS(SpComm_GetNumNodes(), SPCOMM_EINVAL, "SpComm_GetNumNodes: ");
    CHECK_THROWS(SpComm_Send(0, 1, 0, nullptr), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK_THROWS(SpComm_Receive(1, nbytes), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK_THROWS(SpComm_CoordinatedReceive(nbytes), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK_THROWS(SpComm_BarrierSync(), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK_THROWS(SpComm_ShutDown(), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK_THROWS(SpComm_Net_Redop(), SPCOMM_EINVAL, "SpComm_Net_Redop: SpComm_StartUp");
    CHECK_THROWS(SpComm_Net_Send(1, 0, nullptr), SPCOMM_EINVAL, "SpComm_StartUp");
    CHECK(nbytes == 3);
}

static void wrong_types() {
    int nbytes = 0;
    char byte = 0;
    SpDestination set;
    CHECK_THROWS(SpComm_Send(0, 256, 1, &byte), SPCOMM_ETAG, "there is no type 256; types are 0 to 255");
    CHECK_THROWS(SpComm_Send(0, -1, 1, &byte), SPCOMM_ETAG, "type -1");
    CHECK_THROWS(SpComm_Send(&set, 256, 1, &byte), SPCOMM_ETAG, "type 256");
    CHECK_THROWS(SpComm_Send(256, 1, &byte), SPCOMM_ETAG, "type 256");
    CHECK_THROWS(SpComm_Receive(256, nbytes), SPCOMM_ETAG, "type 256");
    CHECK_THROWS(SpComm_Receive(-1, nbytes), SPCOMM_ETAG, "type -1");
    CHECK_THROWS(SpComm_GetPendingMessage(-1, nbytes), SPCOMM_ETAG, "SpComm_GetPendingMessage");
}

static void wrong_destinations(int nodes) {
    char byte = 0;
    SpDestination far, *none = nullptr;
    far.Set(nodes);
    CHECK_THROWS(SpComm_Send(nodes, 1, 1, &byte), SPCOMM_ERANK, "there is no node");
    CHECK_THROWS(SpComm_Send(-1, 1, 1, &byte), SPCOMM_ERANK, "there is no node -1");
    CHECK_THROWS(SpComm_Send(&far, 1, 1, &byte), SPCOMM_ERANK, "nothing was sent");
    CHECK_THROWS(SpComm_Send(none, 1, 1, &byte), SPCOMM_EINVAL, "dest is NULL");
    CHECK_THROWS(SpComm_CoordinatedSend(nodes, 1, &byte), SPCOMM_ERANK, "there is no node");
    CHECK_THROWS(SpComm_CoordinatedSend(&far, 1, &byte), SPCOMM_ERANK, "is in the set");
    CHECK_THROWS(SpComm_CoordinatedSend(none, 1, &byte), SPCOMM_EINVAL, "dest is NULL");
}

static void wrong_buffers() {
    char byte = 0;
    CHECK_THROWS(SpComm_Send(0, 1, -1, &byte), SPCOMM_EINVAL, "nbytes is -1");
    CHECK_THROWS(SpComm_Send(0, 1, INT_MIN, &byte), SPCOMM_EINVAL, "a length is 0 or more");
    CHECK_THROWS(SpComm_Send(0, 1, 5, nullptr), SPCOMM_EINVAL, "buff is NULL, and nbytes is 5");
    CHECK_THROWS(SpComm_CoordinatedSend(0, -1, &byte), SPCOMM_EINVAL, "nbytes is -1");
    CHECK_THROWS(SpComm_CoordinatedSend(5, nullptr), SPCOMM_EINVAL, "buff is NULL");
}

static void wrong_sums(int nodes) {
    if (nodes > 1) {
        CHECK_THROWS(SpComm_GlobalSum(INT_MAX), SPCOMM_EWIDE, "does not fit into an int");
    }
    CHECK(SpComm_GlobalMax(INT_MAX) == INT_MAX && SpComm_GlobalMin(INT_MIN) == INT_MIN);
}

int main() {
    alarm(60);
    int nbytes = 0;
    char path[] = "no/such.infile";
    before_startup();
    CHECK_THROWS(SpComm_StartUp(3, 2, 0, nullptr), SPCOMM_EINVAL, "total_nodes=2");
    CHECK_THROWS(SpComm_StartUp(-1, 0, 0, nullptr), SPCOMM_EINVAL, "local_nodes=-1");
    CHECK_THROWS(SpComm_StartUp(0, 0, 0, path), SPCOMM_ESYSTEM, "no/such.infile");
    SpComm_StartUp(0, 0, 0, nullptr);
    SpComm_StartUp(0, 0, 0, nullptr); /* does nothing */
    const int nodes = SpComm_GetNumNodes();
    CHECK_THROWS(SpComm_StartUp(nodes + 1, 0, 0, nullptr), SPCOMM_EINVAL, "local_nodes=");
    wrong_types();
    wrong_destinations(nodes);
    wrong_buffers();
    wrong_sums(nodes);
    CHECK_THROWS(SpComm_ExitFuzzyBarrier(), SPCOMM_EINVAL, "in no fuzzy barrier");
    SpComm_BarrierSync();
    CHECK(SpComm_Receive(1, nbytes) == nullptr); /* nothing was sent by any of these */
    SpComm_ShutDown();
    CHECK_THROWS(SpComm_ShutDown(), SPCOMM_ECLOSED, "has closed this communicator");
    CHECK_THROWS(SpComm_BarrierSync(), SPCOMM_ECLOSED, "SpComm_BarrierSync");
    CHECK_THROWS(SpComm_StartUp(0, 0, 0, nullptr), SPCOMM_ECLOSED, "SpComm_StartUp");
    std::printf("all is refused\n");
    return 0;
}
