/* SPDX-License-Identifier: MIT */
/* Each of the paper's functions, as its section 2 describes it. */
#include <sched.h>

#include <climits>

#include "check.hpp"

static int node, nodes;

static void test_state() {
    CHECK(nodes >= 1 && node >= 0 && node < nodes);
    SpComm_BarrierSync();
}

static void test_reductions() {
    CHECK(SpComm_GlobalMin(node - 3) == -3);
    CHECK(SpComm_GlobalMax(node - 3) == nodes - 4);
    CHECK(SpComm_GlobalSum(node) == nodes * (nodes - 1) / 2);
    CHECK(SpComm_GlobalMin(0.5 + node) == 0.5);
    CHECK(SpComm_GlobalMax(0.5 + node) == nodes - 0.5);
    CHECK(SpComm_GlobalSum(0.25) == 0.25 * nodes);
    const SpSimTime mine(1.0, nodes - node, 5);
    const SpSimTime least = SpComm_GlobalMin(mine), greatest = SpComm_GlobalMax(mine);
    CHECK(least == SpSimTime(1.0, 1, 5) && greatest == SpSimTime(1.0, nodes, 5));
    CHECK(SpComm_GlobalMax(SpSimTime(node)) == nodes - 1);
}

static void test_simtime() {
    SpSimTime time = 2.5;
    const double demoted = time;
    CHECK(demoted == 2.5 && time.GetPriority(0) == 0);
    time.SetPriority(3, -1);
    CHECK(time < SpSimTime(2.5) && time <= 2.5 && time != 2.5 && time < 3 && 2 < time && 2.5 > time);
    CHECK(SpSimTime(2.5, 0, 1) > SpSimTime(2.5, 0, 0, 9, 9) && SpSimTime(1) >= SpSimTime(1));
    CHECK(time + 1.0 == 3.5);
    CHECK_THROWS(time.GetPriority(4), SPCOMM_EINVAL, "0 to 3");
}

static void test_destination() {
    SpDestination set;
    CHECK(set.GetFirstNode() == -1 && set.GetNextNode() == -1);
    set.Set(70);
    set.Set(0);
    set.Set(3);
    set.Set(3);
    set.Reset(0);
    set.Reset(1);
    CHECK(set.GetFirstNode() == 3 && set.GetNextNode() == 70 && set.GetNextNode() == -1);
    CHECK_THROWS(set.Set(-1), SPCOMM_ERANK, "0 to 1023");
    CHECK_THROWS(set.Reset(1024), SPCOMM_ERANK, "Reset(1024)");
}

/* A node that enters is told 0 until all have. */
static void test_fuzzy_barrier() {
    int nbytes = -1;
    if (node != 0) {
        SpComm_EnterFuzzyBarrier();
        CHECK(SpComm_ExitFuzzyBarrier() == 0);
        CHECK_THROWS(SpComm_EnterFuzzyBarrier(), SPCOMM_ELIMIT,
                     "SpComm_EnterFuzzyBarrier: this node is in a");
        SpComm_Send(0, 1, 0, nullptr);
    }
    for (int missing = node == 0 ? nodes - 1 : 0; missing > 0;) {
        char *message = static_cast<char *>(SpComm_Receive(1, nbytes));
        missing -= message != nullptr;
        delete[] message;
    }
    if (node == 0) {
        SpComm_EnterFuzzyBarrier();
    }
    CHECK_THROWS(SpComm_EnterFuzzyBarrier(), SPCOMM_ELIMIT, "already");
    while (SpComm_ExitFuzzyBarrier() == 0) {
        sched_yield();
    }
    CHECK_THROWS(SpComm_ExitFuzzyBarrier(), SPCOMM_EINVAL, "in no fuzzy barrier");
}

static char *wait_for(int type, int &nbytes) {
    for (;;) {
        if (void *message = SpComm_Receive(type, nbytes)) {
            return static_cast<char *>(message);
        }
        sched_yield();
    }
}

static void test_messages() {
    int nbytes = -1;
    char text[] = "from node 0";
    text[10] = static_cast<char>('0' + node);
    SpComm_Send((node + 1) % nodes, 255, sizeof(text), text);
    text[10] = 'x'; /* it was copied */
    char *message = wait_for(255, nbytes);
    CHECK(nbytes == sizeof(text) && message[10] == '0' + (node + nodes - 1) % nodes);
    message[0] = 'x'; /* it is ours */
    delete[] message;
    CHECK(SpComm_Receive(255, nbytes) == nullptr && nbytes == 0);

    SpDestination ends;
    ends.Set(0);
    ends.Set(nodes - 1);
    SpComm_Send(&ends, 0, sizeof(node), &node);
    const int expected = node == 0 || node == nodes - 1 ? nodes : 0;
    for (int i = 0; i < expected; i++) {
        delete[] wait_for(0, nbytes);
        CHECK(nbytes == sizeof(node));
    }
    SpComm_Send(7, sizeof(node), &node); /* to all: this node, too */
    int sum = 0;
    for (int i = 0; i < nodes; i++) {
        message = wait_for(7, nbytes);
        int source;
        std::memcpy(&source, message, sizeof(source));
        sum += source;
        delete[] message;
    }
    CHECK(sum == nodes * (nodes - 1) / 2);
    SpComm_BarrierSync();
    CHECK(SpComm_Receive(0, nbytes) == nullptr && SpComm_Receive(7, nbytes) == nullptr);
}

/* GetPendingMessage sees nothing before a receive has moved it into the queues. */
static void test_pending() {
    int nbytes = -1;
    CHECK(SpComm_GetPendingMessage(9, nbytes) == nullptr && nbytes == 0);
    SpComm_Send(node, 9, 0, nullptr);
    void *message = nullptr;
    while (message == nullptr) {
        SpComm_Receive();
        message = SpComm_GetPendingMessage(9, nbytes);
    }
    CHECK(nbytes == 0); /* no bytes, and yet a message */
    delete[] static_cast<char *>(message);
}

static void test_coordinated() {
    for (int cycle = 0; cycle < 10; cycle++) {
        SpDestination last;
        last.Set(nodes - 1);
        int content[2] = {cycle, node}, nbytes = -1, count = 0;
        SpComm_CoordinatedSend((node + cycle) % nodes, sizeof(content), content);
        SpComm_CoordinatedSend(&last, sizeof(content), content);
        SpComm_CoordinatedSend(sizeof(content), content);
        while (void *message = SpComm_CoordinatedReceive(nbytes)) {
            CHECK(nbytes == sizeof(content) && std::memcmp(message, content, sizeof(int)) == 0);
            delete[] static_cast<char *>(message);
            count++;
            CHECK_THROWS(SpComm_BarrierSync(), SPCOMM_ECYCLE, "cycle of coordinated messages");
            CHECK_THROWS(SpComm_GlobalSum(1), SPCOMM_ECYCLE, "SpComm_GlobalSum(int)");
            CHECK_THROWS(SpComm_CoordinatedSend(0, nullptr), SPCOMM_ECYCLE,
                         "receives the coordinated messages");
        }
        CHECK(nbytes == 0 && count == 1 + nodes + (node == nodes - 1 ? nodes : 0));
    }
}

/* Section 3.4: three values at once, a barrier, a fuzzy barrier. */
static void test_network_reductions() {
    int whole = node;
    double real = 0.5;
    SpSimTime time(2.0, node);
    SpComm_Net_Sum(&whole, &real, &time, 0);
    CHECK(whole == nodes * (nodes - 1) / 2 && real == 0.5 * nodes && time == 2.0 * nodes);
    whole = node;
    time = SpSimTime(2.0, node);
    SpComm_Net_Max(&whole, &real, &time, 1);
    CHECK(whole == nodes - 1 && real == 0.5 * nodes && time == SpSimTime(2.0, nodes - 1));
    whole = node;
    SpComm_Net_Min(&whole, &real, &time, 1);
    CHECK(whole == 0);
    CHECK_THROWS(SpComm_Net_Min(nullptr, &real, &time, 1), SPCOMM_EINVAL, "SpComm_Net_Min: ival");
    whole = INT_MAX;
    if (nodes > 1) {
        CHECK_THROWS(SpComm_Net_Sum(&whole, &real, &time, 0), SPCOMM_EWIDE, "does not fit into an int");
    }
    SpComm_Net_Redop();
    SpComm_Net_Enter_nbRedop();
    while (SpComm_Net_nbRedop() == 0) {
        sched_yield();
    }
}

/* Sections 3.3 and 3.5: who is where; messages, of which a broadcast goes to the other boxes only. */
static void test_network_messages() {
    int *places, *boxes, count = 0, box = -1, nbytes = 0, far = 0;
    SpComm_Post_Fork_Net_GetIDs(&places, count, &boxes, box);
    CHECK(count >= 1 && boxes[node] == box && places[0] == 0 && boxes[nodes - 1] == count - 1);
    int list[] = {2, 0, nodes - 1}, negative[] = {-1};
    SpDestination set;
    set.Set(0);
    SpComm_Net_Send(0, 31, sizeof(node), &node);
    SpComm_Net_Send(&set, 32, sizeof(node), &node);
    SpComm_Net_Send(list, 33, sizeof(node), &node);
    SpComm_Net_Send(34, sizeof(node), &node);
    CHECK_THROWS(SpComm_Net_Send(negative, 33, 0, nullptr), SPCOMM_EINVAL, "how many nodes");
    CHECK_THROWS(SpComm_Net_Send(34, -1, nullptr), SPCOMM_EINVAL, "nbytes is -1");
    for (int i = 0; i < nodes; i++) {
        far += boxes[i] != box;
    }
    for (int type = 31; type <= 34; type++) {
        int expected = node == 0 ? nodes : 0;
        expected = type == 33 && node == nodes - 1 ? nodes : expected;
        for (int i = type == 34 ? far : expected; i > 0; i--) {
            delete[] wait_for(type, nbytes);
        }
    }
    SpComm_Net_Redop();
    SpComm_Net_Receive();
    for (int type = 31; type <= 34; type++) {
        CHECK(SpComm_Receive(type, nbytes) == nullptr);
    }
    delete[] places;
    delete[] boxes;
}

int main() {
    alarm(60);
    SpComm_StartUp(0, 0, 0, nullptr);
    node = SpComm_GetNodeId();
    nodes = SpComm_GetNumNodes();
    test_state();
    test_reductions();
    test_simtime();
    test_destination();
    test_fuzzy_barrier();
    SpComm_BarrierSync();
    test_messages();
    SpComm_BarrierSync();
    test_pending();
    test_coordinated();
    test_network_reductions();
    test_network_messages();
    SpComm_ShutDown();
    std::printf("all is well\n");
    return 0;
}
