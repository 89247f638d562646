/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_gathering: what the two files of collectives that move data share. Nobody else includes it; what it is for,
 * and what callers see, stands in spc_comm.h.
 *
 *   spc_comm_gathering.c       entering the phase, moving what finds no room in the arena
 *   spc_comm_gathering_told.c  what a node tells in the phase, and what it hears of the others
 *
 * All of it is called by the thread that is inside the collective, without the node's lock.
 */
#ifndef SPC_COMM_GATHERING_H
#define SPC_COMM_GATHERING_H

#include "spc_comm_private.h"

#define SPC_GATHERING_TOLD_BYTES 16384 /* of all that a node tells */

enum { /* the way of a payload */
       SPC_WAY_NOTHING,
       SPC_WAY_WITH_PHASE, /* behind the parts, in order, each in a multiple of 8 bytes */
       SPC_WAY_IN_BLOCK,
       SPC_WAY_BY_MESSAGE,
       SPC_WAY_FAILURE, /* there is none; behind the part stands why */
};

typedef struct spc_gathering_slot {
    spc_block_shared_t *block; /* the payload for this rank (slot 0: for all) lies here; NULL: no */
    uint8_t way;               /* of that payload */
    bool awaited;              /* a message from this rank is missing */
    bool suspected;            /* and it had left when this was last asked */
} spc_gathering_slot_t;

/* ---- who gives what to whom ---- */

static inline bool spc_gathering_is_for_each(const spc_gathering_t *call) {
    return call->operation == SPC_OPERATION_DATA_SCATTER || call->operation == SPC_OPERATION_DATA_ALLTOALL;
}

static inline bool spc_gathering_gives(const spc_gathering_t *call, uint32_t from, uint32_t to) {
    switch (call->operation) {
    case SPC_OPERATION_DATA_BCAST:
    case SPC_OPERATION_DATA_SCATTER:
        return from != to && from == call->root;
    case SPC_OPERATION_DATA_GATHER:
        return from != to && to == call->root;
    default:
        return from != to;
    }
}

static inline bool spc_gathering_gives_to_others(const spc_comm_t *comm, const spc_gathering_t *call) {
    return comm->size > 1
           && (spc_gathering_gives(call, comm->rank, call->root)
               || spc_gathering_gives(call, comm->rank, comm->rank == 0 ? 1 : 0));
}

static inline uint32_t spc_gathering_messages(const spc_comm_t *comm, const spc_gathering_t *call) {
    bool from_one =
        call->operation == SPC_OPERATION_DATA_BCAST || call->operation == SPC_OPERATION_DATA_SCATTER;
    return from_one ? 1 : comm->size;
}

static inline spc_message_t *spc_gathering_message(const spc_comm_t *comm, const spc_gathering_t *call,
                                                   uint32_t rank) {
    return &call->messages[spc_gathering_messages(comm, call) == 1 ? 0 : rank];
}

/* To whom this node's payload goes, as ranks of the segment: how many. */
uint32_t spc_gathering_members(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number,
                               int32_t members[]);

/* ---- telling and hearing: spc_comm_gathering_told.c ---- */

/* Before the phase. Chooses the way of each payload, copies long ones into blocks, and writes what is told into
 * SPC_GATHERING_TOLD_BYTES: how many bytes. Without room for the parts it is nothing, and all go as messages. */
uint64_t spc_gathering_tell(const spc_comm_t *comm, spc_gathering_t *call, unsigned char *told);

/* The blocks of a phase that did not match, or never will be complete: no receiver takes them. */
void spc_gathering_take_back(const spc_comm_t *comm, spc_gathering_t *call);

/* After a phase that matched: the message from `rank`, or that it is awaited. */
void spc_gathering_hear(const spc_comm_t *comm, spc_gathering_t *call, uint32_t rank);

#endif
