/* SPDX-License-Identifier: MIT */
/*
 * spc_error: the one list of errors.
 *
 * Every function of the core returns an int: SPC_OK (0), or one of the negative numbers below.
 * Results travel through trailing out-parameters. Any thread may call; no function here has state.
 */
#ifndef SPC_ERROR_H
#define SPC_ERROR_H

/* X(name, number, message). The messages are for C programs; Python has its own texts, with the values found. */
#define SPC_ERRORS(X)                                                             \
    X(OK, 0, "success")                                                           \
    X(EINVAL, -1, "an argument has a value that is not allowed")                  \
    X(ENOMEM, -2, "no memory left")                                               \
    X(ESYSTEM, -3, "a system call failed; errno says why")                        \
    X(EAGAIN, -4, "nothing there yet, or no room yet: try again")                 \
    X(ETIMEDOUT, -5, "the deadline passed")                                       \
    X(EINTERRUPTED, -6, "the caller's own check ended the wait")                  \
    X(ELOST, -7, "a node that this call needs has died")                          \
    X(EFINISHED, -8, "a node that this call needs has finished")                  \
    X(ETRUNCATED, -9, "the message does not fit where it should go")              \
    X(EMISMATCH, -10, "the nodes called different collective operations")         \
    X(EFORMAT, -11, "the message has a format that this language cannot read")    \
    X(ERANK, -12, "no such rank")                                                 \
    X(ETAG, -13, "no such tag")                                                   \
    X(EBUSY, -14, "another thread of this node is inside a collective operation") \
    X(ECLOSED, -15, "the communicator is closed")                                 \
    X(EFORKED, -16, "this process is a fork of a node, not a node")               \
    X(EVERSION, -17, "the segment was made by another version of spcomm")         \
    X(ELIMIT, -18, "too many operations are open at once")                        \
    X(EWIDE, -19, "an integer sum does not fit into 64 bits")                     \
    X(ECYCLE, -20, "a cycle of coordinated messages is not over")                 \
    X(EDISCONNECTED, -21, "the connection to other boxes is lost")                \
    X(EFAILED, -22, "another node failed in this call, and gave nothing")         \
    X(EDEADLOCK, -23, "nobody can end this wait: this node is a run of its own")

enum {
#define SPC_ERROR_ENUM(name, number, message) SPC_##name = (number),
    SPC_ERRORS(SPC_ERROR_ENUM)
#undef SPC_ERROR_ENUM
};

/* "SPC_ELOST"; never NULL, also for numbers that are not in the list. */
const char *spc_error_name(int status);

/* A sentence without a full stop; never NULL. */
const char *spc_error_message(int status);

#endif
