/* SPDX-License-Identifier: MIT */
/*
 * speedescomm.hpp: SpeedesComm as its paper prints it (section 2), for C++11 and later: 24 functions, SpSimTime,
 * SpDestination, NET_INT and NET_DOUBLE (net_types.hpp), and SpComm_ShutDown; of the network's calls (3.3 to 3.5) those
 * that mean something to a program. A layer over spcomm.h, whose functions may be used beside it: spcomm_current() is
 * the communicator. docs/reference/cxx.md has examples.
 *
 *     c++ program.cpp $(spcomm config --cflags --libs) -o program && spcomm run -n 4 ./program
 *
 * Errors. The paper's functions have no way to tell of one: they throw SpCommError, whose what() says what was called,
 * what was found and what is allowed. After an error in the arguments nothing has happened.
 *
 * Memory. What a receive returns was made by new char[n]: delete[] it, as a char *. One without bytes is not NULL.
 *
 * Waiting. The reductions, the barrier, SpComm_CoordinatedReceive and SpComm_ShutDown may wait, without limit (the last
 * one ten seconds); sends only while --queue-limit is reached by what the node has sent and nobody has received. Any
 * thread may call; synchronising calls one after another.
 */
#ifndef SPCOMM_SPEEDESCOMM_HPP
#define SPCOMM_SPEEDESCOMM_HPP

#include <climits>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "spcomm/net_types.hpp"
#include "spcomm/spcomm.h"

/* An error of a call; Status() is one of the SPCOMM_E numbers. */
class SpCommError : public std::runtime_error {
  public:
    SpCommError(int status, const std::string &sentence) : std::runtime_error(sentence), status_(status) {
    }
    int Status() const {
        return status_;
    }

  private:
    int status_;
};

/* The time of a simulation: a double, and four priorities that break ties, the first one first. */
class SpSimTime {
  public:
    SpSimTime(double time = 0.0) : value_(spcomm_simtime_from(time)) {
    }
    SpSimTime(double time, int first, int second = 0, int third = 0, int fourth = 0)
        : value_(spcomm_simtime_from(time)) {
        value_.priority[0] = first;
        value_.priority[1] = second;
        value_.priority[2] = third;
        value_.priority[3] = fourth;
    }
    SpSimTime(const spcomm_simtime_t &value) : value_(value) {
    }
    operator double() const {
        return value_.time;
    }
    /* Index 0 to 3. */
    int GetPriority(int index) const {
        return value_.priority[Checked(index)];
    }
    void SetPriority(int index, int priority) {
        value_.priority[Checked(index)] = priority;
    }
    const spcomm_simtime_t &Value() const {
        return value_;
    }

  private:
    static int Checked(int index) {
        if (index < 0 || index >= SPCOMM_SIMTIME_PRIORITIES) {
            throw SpCommError(SPCOMM_EINVAL, "SpSimTime: there is no priority " + std::to_string(index)
                                                 + "; there are 0 to 3");
        }
        return index;
    }
    spcomm_simtime_t value_;
};

/* Comparisons, also with plain numbers, whose priorities are 0. */
#define SPCOMM_COMPARE_SIMTIMES(op)                                                     \
    inline bool operator op(const SpSimTime &left, const SpSimTime &right) {            \
        return spcomm_simtime_compare(left.Value(), right.Value()) op 0;                \
    }                                                                                   \
    template <typename Number>                                                          \
    typename std::enable_if<std::is_arithmetic<Number>::value, bool>::type operator op( \
        const SpSimTime &left, Number right) {                                          \
        return left op SpSimTime(static_cast<double>(right));                           \
    }                                                                                   \
    template <typename Number>                                                          \
    typename std::enable_if<std::is_arithmetic<Number>::value, bool>::type operator op( \
        Number left, const SpSimTime &right) {                                          \
        return SpSimTime(static_cast<double>(left)) op right;                           \
    }
SPCOMM_COMPARE_SIMTIMES(<)
SPCOMM_COMPARE_SIMTIMES(<=)
SPCOMM_COMPARE_SIMTIMES(>)
SPCOMM_COMPARE_SIMTIMES(>=)
SPCOMM_COMPARE_SIMTIMES(==)
SPCOMM_COMPARE_SIMTIMES(!=)
#undef SPCOMM_COMPARE_SIMTIMES

/* A set of nodes to send to; begins empty. Nodes are 0 to 1023; whether the run has them is seen when it is used. */
class SpDestination {
  public:
    SpDestination() {
        spcomm_destination_clear(&value_);
    }
    void Set(int node) {
        Check(spcomm_destination_set(&value_, node), "Set", node);
    }
    void Reset(int node) {
        Check(spcomm_destination_reset(&value_, node), "Reset", node);
    }
    /* The lowest node, then the next higher one each time; -1 after the last. */
    int GetFirstNode() {
        return spcomm_destination_first(&value_);
    }
    int GetNextNode() {
        return spcomm_destination_next(&value_);
    }
    const spcomm_destination_t *Value() const {
        return &value_;
    }

  private:
    static void Check(int status, const char *name, int node) {
        if (status != 0) {
            throw SpCommError(SPCOMM_ERANK, std::string("SpDestination::") + name + "(" + std::to_string(node)
                                                + "): nodes are 0 to "
                                                + std::to_string(SPCOMM_DESTINATION_RANKS - 1));
        }
    }
    spcomm_destination_t value_;
};

/* Parts of the functions below. */
namespace spcomm_detail {

[[noreturn]] inline void refuse(int status, const char *name, const std::string &reason) {
    throw SpCommError(status, std::string(name) + ": " + reason);
}

/* The sentence of spcomm.h, under another name; its arguments are told if the name has none. */
inline void check(int status, const char *name) {
    if (status == SPCOMM_OK) {
        return;
    }
    const std::string sentence = spcomm_last_error();
    const size_t open = sentence.find('('), close = sentence.find("): ");
    if (open == std::string::npos || close == std::string::npos || close < open) {
        refuse(status, name, sentence);
    }
    if (close == open + 1 || std::strchr(name, '(') != nullptr) {
        refuse(status, name, sentence.substr(close + 3));
    }
    refuse(status, (name + sentence.substr(open, close + 1 - open)).c_str(), sentence.substr(close + 3));
}

inline spcomm_t *comm(const char *name) {
    spcomm_t *current = spcomm_current();
    if (current == nullptr) {
        refuse(SPCOMM_EINVAL, name, "SpComm_StartUp has not been called yet");
    }
    return current;
}

inline void check_type(int type, const char *name) {
    if (type < 0 || type > 255) {
        refuse(SPCOMM_ETAG, name, "there is no type " + std::to_string(type) + "; types are 0 to 255");
    }
}

inline spcomm_data_t bytes(int nbytes, const void *buff, const char *name) {
    if (nbytes < 0) {
        refuse(SPCOMM_EINVAL, name, "nbytes is " + std::to_string(nbytes) + "; a length is 0 or more");
    }
    if (buff == nullptr && nbytes > 0) {
        refuse(SPCOMM_EINVAL, name, "buff is NULL, and nbytes is " + std::to_string(nbytes));
    }
    return spcomm_raw(buff, static_cast<size_t>(nbytes));
}

inline const spcomm_destination_t *set(const SpDestination *dest, const char *name) {
    if (dest == nullptr) {
        refuse(SPCOMM_EINVAL, name, "dest is NULL; give an SpDestination, which may be empty");
    }
    return dest->Value();
}

/* The message as memory of new char[]; ends it. */
inline void *own(spcomm_message_t &message, int &nbytes, const char *name) {
    struct Ender {
        spcomm_message_t &message;
        ~Ender() {
            spcomm_message_free(&message);
        }
    } ender = {message};
    if (message.bytes > static_cast<size_t>(INT_MAX)) {
        refuse(
            SPCOMM_ETRUNCATED, name,
            "a message of " + std::to_string(message.bytes)
                + " bytes is longer than an int can tell, and is dropped; receive such ones by spcomm_recv");
    }
    char *memory = new char[message.bytes];
    std::memcpy(memory, ender.message.data, message.bytes);
    nbytes = static_cast<int>(message.bytes);
    return memory;
}

inline spcomm_layout_t layout(spcomm_t *current, int node, const char *name) {
    spcomm_layout_t found;
    check(spcomm_layout(current, node, &found), name);
    return found;
}

/* Three values in one exchange, in place. */
inline void reduce(int (*call)(spcomm_t *, const spcomm_values_t *, int64_t, spcomm_values_t *), int *ival,
                   double *dval, SpSimTime *simTime, const char *name) {
    spcomm_t *current = comm(name);
    if (ival == nullptr || dval == nullptr || simTime == nullptr) {
        refuse(SPCOMM_EINVAL, name, "ival, dval and simTime are where the values are, and none may be NULL");
    }
    spcomm_values_t values = {*ival, *dval, simTime->Value()};
    check(call(current, &values, SPCOMM_FOREVER, &values), name);
    if (values.integer < INT_MIN || values.integer > INT_MAX) {
        refuse(SPCOMM_EWIDE, name, "the sum " + std::to_string(values.integer) + " does not fit into an int");
    }
    *ival = static_cast<int>(values.integer);
    *dval = values.real;
    *simTime = SpSimTime(values.simtime);
}

inline void send(const SpDestination &dest, int type, int nbytes, const void *buff, const char *name) {
    spcomm_t *current = comm(name);
    check_type(type, name);
    check(spcomm_send_set(current, dest.Value(), type, bytes(nbytes, buff, name), SPCOMM_FOREVER), name);
}

inline void *receive(int (*call)(spcomm_t *, int32_t, int32_t, spcomm_message_t *), int type, int &nbytes,
                     const char *name) {
    spcomm_message_t message;
    spcomm_t *current = comm(name);
    check_type(type, name);
    const int status = call(current, SPCOMM_ANY, type, &message);
    if (status == SPCOMM_EAGAIN) {
        nbytes = 0;
        return nullptr;
    }
    check(status, name);
    return own(message, nbytes, name);
}

inline int reduce(int (*call)(spcomm_t *, int64_t, int64_t, int64_t *), int value, const char *name) {
    int64_t result = 0;
    check(call(comm(name), value, SPCOMM_FOREVER, &result), name);
    if (result < INT_MIN || result > INT_MAX) {
        refuse(SPCOMM_EWIDE, name, "the sum " + std::to_string(result) + " does not fit into an int");
    }
    return static_cast<int>(result);
}

inline double reduce(int (*call)(spcomm_t *, double, int64_t, double *), double value, const char *name) {
    double result = 0.0;
    check(call(comm(name), value, SPCOMM_FOREVER, &result), name);
    return result;
}

inline SpSimTime reduce(int (*call)(spcomm_t *, spcomm_simtime_t, int64_t, spcomm_simtime_t *),
                        const SpSimTime &value, const char *name) {
    spcomm_simtime_t result = spcomm_simtime_from(0.0);
    check(call(comm(name), value.Value(), SPCOMM_FOREVER, &result), name);
    return SpSimTime(result);
}

} // namespace spcomm_detail

/* ---- 2.1 initialization and state ---- */

/* Joins the run: under `spcomm run` with 0, 0, 0, NULL. Outside of it localNodes > 1 forks that many. `infile` (TOML)
 * gives the numbers that are 0. */
inline void SpComm_StartUp(int localNodes, int totalNodes, int groupID, char *infile) {
    spcomm_t *made = nullptr;
    spcomm_detail::check(spcomm_startup(localNodes, totalNodes, groupID, infile, &made), "SpComm_StartUp");
}

inline int SpComm_GetNumNodes() {
    return spcomm_size(spcomm_detail::comm("SpComm_GetNumNodes"));
}

inline int SpComm_GetNodeId() {
    return spcomm_rank(spcomm_detail::comm("SpComm_GetNodeId"));
}

/* The paper's unnamed 25th function: sends what is queued, and leaves. A normal end of the program does it, too. */
inline void SpComm_ShutDown() {
    spcomm_detail::check(spcomm_shutdown(spcomm_detail::comm("SpComm_ShutDown"), SPCOMM_SECONDS(10)),
                         "SpComm_ShutDown");
}

/* ---- 2.2 synchronization ---- */

inline void SpComm_BarrierSync() {
    spcomm_detail::check(spcomm_barrier(spcomm_detail::comm("SpComm_BarrierSync"), SPCOMM_FOREVER),
                         "SpComm_BarrierSync");
}

inline int SpComm_GlobalMin(int ival) {
    return spcomm_detail::reduce(spcomm_global_min_int64, ival, "SpComm_GlobalMin(int)");
}

inline int SpComm_GlobalMax(int ival) {
    return spcomm_detail::reduce(spcomm_global_max_int64, ival, "SpComm_GlobalMax(int)");
}

/* A sum that does not fit into an int throws, on all nodes. */
inline int SpComm_GlobalSum(int ival) {
    return spcomm_detail::reduce(spcomm_global_sum_int64, ival, "SpComm_GlobalSum(int)");
}

inline double SpComm_GlobalMin(double dval) {
    return spcomm_detail::reduce(spcomm_global_min_double, dval, "SpComm_GlobalMin(double)");
}

inline double SpComm_GlobalMax(double dval) {
    return spcomm_detail::reduce(spcomm_global_max_double, dval, "SpComm_GlobalMax(double)");
}

inline double SpComm_GlobalSum(double dval) {
    return spcomm_detail::reduce(spcomm_global_sum_double, dval, "SpComm_GlobalSum(double)");
}

inline SpSimTime SpComm_GlobalMin(SpSimTime simTime) {
    return spcomm_detail::reduce(spcomm_global_min_simtime, simTime, "SpComm_GlobalMin(SpSimTime)");
}

inline SpSimTime SpComm_GlobalMax(SpSimTime simTime) {
    return spcomm_detail::reduce(spcomm_global_max_simtime, simTime, "SpComm_GlobalMax(SpSimTime)");
}

/* One at a time: throws until SpComm_ExitFuzzyBarrier has given 1 for the one before. */
inline void SpComm_EnterFuzzyBarrier() {
    spcomm_detail::check(spcomm_enter_fuzzy_barrier(spcomm_detail::comm("SpComm_EnterFuzzyBarrier")),
                         "SpComm_EnterFuzzyBarrier");
}

/* 1: everybody has entered, and the barrier is over; 0: not yet. */
inline int SpComm_ExitFuzzyBarrier() {
    int done = 0;
    spcomm_detail::check(spcomm_exit_fuzzy_barrier(spcomm_detail::comm("SpComm_ExitFuzzyBarrier"), &done),
                         "SpComm_ExitFuzzyBarrier");
    return done;
}

/* ---- 2.3 message passing ---- */

/* To one node. */
inline void SpComm_Send(int dest, int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Send(dest, type, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check_type(type, name);
    spcomm_detail::check(
        spcomm_send(current, dest, type, spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER), name);
}

/* To several. */
inline void SpComm_Send(SpDestination *dest, int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Send(SpDestination *, type, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check_type(type, name);
    spcomm_detail::check(spcomm_send_set(current, spcomm_detail::set(dest, name), type,
                                         spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER),
                         name);
}

/* To all, this node too. */
inline void SpComm_Send(int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Send(type, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check_type(type, name);
    spcomm_detail::check(
        spcomm_send_all(current, type, spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER), name);
}

/* Moves what has arrived into the incoming queues, and sends what was queued. */
inline void SpComm_Receive(void) {
    spcomm_detail::check(spcomm_poll(spcomm_detail::comm("SpComm_Receive()"), nullptr), "SpComm_Receive()");
}

/* The first message of this type that is queued or has arrived; NULL with nbytes = 0 if there is none. */
inline void *SpComm_Receive(int type, int &nbytes) {
    return spcomm_detail::receive(spcomm_try_recv, type, nbytes, "SpComm_Receive(type, nbytes)");
}

/* The same from the incoming queues only. */
inline void *SpComm_GetPendingMessage(int type, int &nbytes) {
    return spcomm_detail::receive(spcomm_take, type, nbytes, "SpComm_GetPendingMessage(type, nbytes)");
}

/* ---- 2.3 coordinated messages: all send, then all receive until NULL; then the next cycle may begin ---- */

inline void SpComm_CoordinatedSend(int dest, int nbytes, void *buff) {
    static const char name[] = "SpComm_CoordinatedSend(dest, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check(
        spcomm_coordinated_send(current, dest, spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER),
        name);
}

inline void SpComm_CoordinatedSend(SpDestination *dest, int nbytes, void *buff) {
    static const char name[] = "SpComm_CoordinatedSend(SpDestination *, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check(spcomm_coordinated_send_set(current, spcomm_detail::set(dest, name),
                                                     spcomm_detail::bytes(nbytes, buff, name),
                                                     SPCOMM_FOREVER),
                         name);
}

inline void SpComm_CoordinatedSend(int nbytes, void *buff) {
    static const char name[] = "SpComm_CoordinatedSend(nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check(
        spcomm_coordinated_send_all(current, spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER), name);
}

/* A message of this cycle, after waiting for it if one is on its way; NULL with nbytes = 0: there are no more. */
inline void *SpComm_CoordinatedReceive(int &nbytes) {
    static const char name[] = "SpComm_CoordinatedReceive(nbytes)";
    spcomm_message_t message;
    int over = 0;
    spcomm_detail::check(spcomm_coordinated_recv(spcomm_detail::comm(name), SPCOMM_FOREVER, &message, &over),
                         name);
    if (over != 0) {
        nbytes = 0;
        return nullptr;
    }
    return spcomm_detail::own(message, nbytes, name);
}

/* ---- 3.3 to 3.5 the network's calls ----
 * In the paper they carry what the nodes of one box cannot do in shared memory, and only its node 0 calls them. Here
 * any node may; the reductions are made by all nodes, as those of 2.2. */

/* Table 1: of each node its number within its box, and its box, in arrays that were made by new int[]: delete[] them;
 * how many boxes there are, and which one this node is in. */
inline void SpComm_Post_Fork_Net_GetIDs(int **localNodeIds, int &numBoxes, int **nodeBoxNumber,
                                        int &boxNumber) {
    static const char name[] = "SpComm_Post_Fork_Net_GetIDs";
    spcomm_t *current = spcomm_detail::comm(name);
    const int size = spcomm_size(current);
    if (localNodeIds == nullptr || nodeBoxNumber == nullptr) {
        spcomm_detail::refuse(SPCOMM_EINVAL, name, "localNodeIds and nodeBoxNumber are where the arrays go");
    }
    *localNodeIds = new int[static_cast<size_t>(size)];
    *nodeBoxNumber = new int[static_cast<size_t>(size)];
    numBoxes = 0;
    for (int node = 0; node < size; node++) {
        const spcomm_layout_t layout = spcomm_detail::layout(current, node, name);
        (*localNodeIds)[node] = layout.local_rank;
        (*nodeBoxNumber)[node] = layout.box;
        numBoxes = layout.box >= numBoxes ? layout.box + 1 : numBoxes;
    }
    boxNumber = (*nodeBoxNumber)[spcomm_rank(current)];
}

/* The fuzzy barrier: as SpComm_EnterFuzzyBarrier and SpComm_ExitFuzzyBarrier. */
inline void SpComm_Net_Enter_nbRedop() {
    spcomm_detail::check(spcomm_enter_fuzzy_barrier(spcomm_detail::comm("SpComm_Net_Enter_nbRedop")),
                         "SpComm_Net_Enter_nbRedop");
}

inline int SpComm_Net_nbRedop() {
    int done = 0;
    spcomm_detail::check(spcomm_exit_fuzzy_barrier(spcomm_detail::comm("SpComm_Net_nbRedop"), &done),
                         "SpComm_Net_nbRedop");
    return done;
}

/* The barrier. */
inline void SpComm_Net_Redop() {
    spcomm_detail::check(spcomm_barrier(spcomm_detail::comm("SpComm_Net_Redop"), SPCOMM_FOREVER),
                         "SpComm_Net_Redop");
}

/* Three values in one exchange; the results take their places. comPath is not used: the tree is fixed by the ranks. */
inline void SpComm_Net_Sum(int *ival, double *dval, SpSimTime *simTime, int comPath) {
    (void)comPath;
    spcomm_detail::reduce(spcomm_global_sum, ival, dval, simTime, "SpComm_Net_Sum");
}

inline void SpComm_Net_Max(int *ival, double *dval, SpSimTime *simTime, int comPath) {
    (void)comPath;
    spcomm_detail::reduce(spcomm_global_max, ival, dval, simTime, "SpComm_Net_Max");
}

inline void SpComm_Net_Min(int *ival, double *dval, SpSimTime *simTime, int comPath) {
    (void)comPath;
    spcomm_detail::reduce(spcomm_global_min, ival, dval, simTime, "SpComm_Net_Min");
}

/* To one node, and to several: as SpComm_Send, which goes over the network where it has to. */
inline void SpComm_Net_Send(int dest, int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Net_Send(dest, type, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    spcomm_detail::check_type(type, name);
    spcomm_detail::check(
        spcomm_send(current, dest, type, spcomm_detail::bytes(nbytes, buff, name), SPCOMM_FOREVER), name);
}

inline void SpComm_Net_Send(SpDestination *dest, int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Net_Send(SpDestination *, type, nbytes, buff)";
    (void)spcomm_detail::set(dest, name);
    spcomm_detail::send(*dest, type, nbytes, buff, name);
}

/* dest[0] is how many nodes follow. */
inline void SpComm_Net_Send(int *dest, int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Net_Send(int *, type, nbytes, buff)";
    if (dest == nullptr || dest[0] < 0) {
        spcomm_detail::refuse(SPCOMM_EINVAL, name, "dest is an array: how many nodes, then their numbers");
    }
    SpDestination nodes;
    for (int i = 1; i <= dest[0]; i++) {
        nodes.Set(dest[i]);
    }
    spcomm_detail::send(nodes, type, nbytes, buff, name);
}

/* To all nodes of the other boxes. */
inline void SpComm_Net_Send(int type, int nbytes, void *buff) {
    static const char name[] = "SpComm_Net_Send(type, nbytes, buff)";
    spcomm_t *current = spcomm_detail::comm(name);
    SpDestination nodes;
    const int here = spcomm_box(current);
    for (int node = 0; node < spcomm_size(current); node++) {
        if (spcomm_detail::layout(current, node, name).box != here) {
            nodes.Set(node);
        }
    }
    spcomm_detail::send(nodes, type, nbytes, buff, name);
}

/* As SpComm_Receive(). */
inline void SpComm_Net_Receive() {
    spcomm_detail::check(spcomm_poll(spcomm_detail::comm("SpComm_Net_Receive"), nullptr),
                         "SpComm_Net_Receive");
}

#endif
