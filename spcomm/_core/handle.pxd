# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t, uint64_t

from spcomm._core.libspc cimport (
    SPC_EFINISHED,
    SPC_ELOST,
    SPC_NODE_STARTING,
    SPC_NO_DEADLINE,
    spc_clock_deadline_ns,
    spc_comm_culprit,
    spc_comm_t,
    spc_node_state_t,
)


cdef class Part:
    """A communicator that a split has made, on its way to the object that will own it."""
    cdef spc_comm_t *core
    cdef Handle parent


cdef class Handle:
    cdef spc_comm_t *core         # never NULL in an object that was made; closed, it refuses
    cdef int32_t rank_number
    cdef int32_t node_count
    cdef int32_t *everyone        # 0 .. size - 1
    cdef int32_t *the_others      # the same without rank
    cdef Handle parent            # what it was split from; it outlives this one
    cdef object pending           # a reduction that was left in the middle, to be resumed
    cdef object gathering         # the same of a collective that moves data
    cdef object folding           # of a reduction of an array
    cdef tuple folded             # of one that Python combines in rounds: what it is, its rounds, and where it is
    cdef dict interruptions       # exceptions that ended a wait: thread -> what some handler raised
    cdef dict handlers            # of messages: tag -> function; None: there are none
    cdef list handling            # the communicators that have some; of the first one
    cdef object run_handlers      # calls what has come for such a communicator; of the first one
    cdef object cycle_begun       # where the cycle of coordinated messages began by a send: (call, file, line)
    cdef object cycle_receiving   # the same of its first receive
    cdef object doing             # its call in words, for a mismatch that is about to be raised
    cdef bint strict              # remembers where messages are sent and fuzzy barriers are entered
    cdef dict sent                # of messages: (rank, tag) -> file, line, function of the last; None: none
    cdef dict entered             # of fuzzy barriers that are open, in the same way: phase -> ...
    cdef bint abandoned           # its end is not to be announced
    cdef void *fork               # a spc_fork_t, where startup() has forked the nodes
    cdef object forked            # keeps it
    cdef object __weakref__


cdef Handle first_of(Handle handle)
cdef int raise_status(Handle handle, int status, object call, int32_t culprit, int state,
                      int32_t reason) except -1
cdef int64_t timeout_to_ns(object timeout, object call) except -2


cdef inline int fail(Handle handle, int status, object call) except -1:
    """Raise what a status other than SPC_OK means. `call` is its text, or a function and its arguments.

    Inline, so that the culprit is asked for in the module that made the call.
    """
    cdef spc_node_state_t state = SPC_NODE_STARTING
    cdef int32_t reason = 0
    cdef int32_t culprit = -1
    if status == SPC_ELOST or status == SPC_EFINISHED:
        culprit = spc_comm_culprit(handle.core, &state, &reason)
    return raise_status(handle, status, call, culprit, <int>state, reason)


cdef inline uint64_t deadline_of(int64_t timeout_ns) noexcept nogil:
    return SPC_NO_DEADLINE if timeout_ns < 0 else spc_clock_deadline_ns(timeout_ns)


cdef inline int64_t limit_of(object timeout, str call) except -2:
    """As timeout_to_ns, and quicker without a timeout."""
    return -1 if timeout is None else timeout_to_ns(timeout, call)
