# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t, uint64_t

from libspc cimport (
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
    """A communicator made by a split, on its way to the object that will own it."""
    cdef spc_comm_t *core
    cdef Handle parent


cdef class Handle:
    cdef spc_comm_t *core         # never NULL in a finished object; after close, it refuses calls
    cdef int32_t rank_number
    cdef int32_t node_count
    cdef int32_t *everyone        # ranks 0 .. size - 1
    cdef int32_t *the_others      # the same without this rank
    cdef Handle parent            # the communicator it was split from, which outlives this one
    cdef object gathering         # an interrupted collective that moves data, to be resumed
    cdef object folding           # the same for a reduction of an array
    cdef tuple folded             # the same for rounds of a reduction in Python, or a tuple's items; a key comes first
    cdef dict interruptions       # exceptions that ended a wait: thread -> the exception a handler raised
    cdef dict handlers            # message handlers: tag -> function; None: there are none
    cdef list handling            # the communicators with handlers; held by the first communicator
    cdef object run_handlers      # calls the handlers for messages of such a communicator; held by the first one
    cdef object cycle_begun       # where a send began the cycle of coordinated messages: (call, file, line)
    cdef object cycle_receiving   # where its first receive was
    cdef object doing             # its call in words, for a mismatch about to be raised
    cdef bint strict              # records where messages are sent and fuzzy barriers are entered
    cdef dict sent                # last send of messages: (rank, tag) -> file, line, function; None: none
    cdef dict entered             # open fuzzy barriers, in the same way: phase -> ...
    cdef bint abandoned           # its end is not announced
    cdef void *fork               # a spc_fork_t, if startup() forked the nodes
    cdef object forked            # keeps it alive
    cdef object advice            # makes the advice of a deadlock's report, if this node watches itself
    cdef object __weakref__


cdef Handle first_of(Handle handle)
cdef int fail(Handle handle, int status, object call) except -1
cdef int64_t timeout_to_ns(object timeout, object call) except -2
cdef int add_near(Handle handle, object error, int32_t source, int32_t tag) except -1


cdef inline uint64_t deadline_of(int64_t timeout_ns) noexcept nogil:
    return SPC_NO_DEADLINE if timeout_ns < 0 else spc_clock_deadline_ns(timeout_ns)


cdef inline int64_t limit_of(object timeout, str call) except -2:
    """Convert like timeout_to_ns, and faster without a timeout."""
    return -1 if timeout is None else timeout_to_ns(timeout, call)
