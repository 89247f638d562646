# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Collectives underneath the methods of `Comm`: barriers, fuzzy barriers, and those that move data.

In a collective that moves data, each node's contribution is encoded first; then the core does the rest in one call
(spc_comm_collective.c). A node that cannot contribute its value takes part all the same and reports that, since the
others wait for it; then it raises.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

from spcomm._core.arguments cimport root_from
from spcomm._core.arrays cimport NOGIL_BYTES, Encoded
from spcomm._core.codec cimport copy_pickle, decode, encode
from spcomm._core.handle cimport Handle, deadline_of, fail, first_of, limit_of, timeout_to_ns
from libspc cimport *

import numpy as np

from spcomm._core import call_site, error_text, errors, exit_text

if False:  # for the stub alone
    from types import TracebackType
    from typing import SupportsFloat

cnp.import_array()

cdef tuple WITHOUT_RANKS = (str, bytes, bytearray, set, frozenset)
cdef spc_signature_t BARRIER
memset(&BARRIER, 0, sizeof(BARRIER))
BARRIER.operation = SPC_OPERATION_BARRIER


cdef class FuzzyBarrier:
    """A barrier that a node has entered and may wait for later. Made by `Comm.fuzzy_barrier`.

    As a context manager it waits at the end of the block, unless the block raises: then the other nodes may
    never come, and the barrier stays open.

    Notes
    -----
    SpeedesComm 2.2.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> with comm.fuzzy_barrier() as fb:
    ...     work = sum(range(1000))  # while the others arrive
    >>> fb.done()
    True
    """

    def __init__(self):
        raise TypeError("FuzzyBarrier(): a fuzzy barrier is made by comm.fuzzy_barrier()")

    def done(self) -> bool:
        """Return whether all nodes have entered this barrier.

        Returns
        -------
        bool
            Once True, always True.

        Raises
        ------
        MismatchError
            Another node called a different operation.
        NodeLostError
            A node ended without entering it.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Never waits. Also sends queued messages and receives those that have arrived. Cost: one look at shared memory.

        SpeedesComm 2.2, ExitFuzzyBarrier.

        Examples
        --------
        >>> import spcomm
        >>> fb = spcomm.startup().fuzzy_barrier()
        >>> while not fb.done():
        ...     pass  # a piece of work
        """
        cdef int status
        if self.outcome is not None or self.handle is None:
            return look_at(self)
        with nogil:
            status = spc_comm_fuzzy_done(self.handle.core, self.phase)
        if status == SPC_EAGAIN:
            return False
        return conclude(self, status, "fuzzy_barrier().done()")

    def wait(self, timeout: SupportsFloat | None = None) -> None:
        """Wait until all nodes have entered this barrier.

        Parameters
        ----------
        timeout : float, optional
            Seconds. None: for ever.

        Raises
        ------
        WaitTimeoutError
            Some node has not entered within `timeout` seconds. The barrier stays open.
        MismatchError, NodeLostError, SpcommError
            As for `done`.

        Notes
        -----
        Waits, while other threads of this node run. Cost: as `done` if all are here, else as `Comm.barrier`.

        SpeedesComm 2.2, ExitFuzzyBarrier.

        Examples
        --------
        >>> import spcomm
        >>> fb = spcomm.startup().fuzzy_barrier()
        >>> fb.wait(timeout=60)
        """
        cdef int64_t limit = timeout_to_ns(timeout, "fuzzy_barrier().wait")
        cdef int status
        if self.outcome is not None or self.handle is None:
            look_at(self)
            return
        with nogil:
            status = spc_comm_fuzzy_wait(self.handle.core, self.phase, deadline_of(limit))
        conclude(self, status, f"fuzzy_barrier().wait({'' if timeout is None else timeout})")

    def __enter__(self) -> FuzzyBarrier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is None:
            self.wait()
        return False

    def __repr__(self):
        if self.handle is None:
            return "<FuzzyBarrier of no node>"
        state = "open" if self.outcome is None else "over"
        return f"<FuzzyBarrier of node {self.handle.rank_number}, {state}>"


cdef object look_at(FuzzyBarrier self):
    if self.handle is None:
        self.__init__()
    if self.outcome is not True:
        raise self.outcome
    return True


cdef object conclude(FuzzyBarrier self, int status, str call):
    if status == SPC_EINVAL and self.outcome is not None:
        return look_at(self)  # another thread has completed it meanwhile
    if self.handle.entered is not None and (status == SPC_OK or status == SPC_EMISMATCH):
        self.handle.entered.pop(self.phase, None)
    if status == SPC_OK:
        self.outcome = True
        return True
    try:
        fail(self.handle, status, call)
    except errors.MismatchError as error:
        self.outcome = error
        raise


cdef int wait_at_barrier(Handle self, object timeout) except -1:
    cdef int64_t limit = limit_of(timeout, "barrier")
    cdef int status = spc_comm_collective_poll(self.core, &BARRIER, NULL, NULL, 0, NULL)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_collective(self.core, &BARRIER, NULL, NULL, 0, NULL, deadline_of(limit))
    if status != SPC_OK:
        fail(self, status, "barrier()" if timeout is None else f"barrier(timeout={timeout})")
    return 0


cdef FuzzyBarrier enter_fuzzy_barrier(Handle self):
    cdef FuzzyBarrier barrier
    cdef uint64_t phase = 0
    cdef int status = spc_comm_fuzzy_enter(self.core, &phase)
    if status != SPC_OK:
        fail(self, status, "fuzzy_barrier()")
    if self.strict:
        self.entered = {**(self.entered or {}), phase: call_site.of_caller()}
    barrier = FuzzyBarrier.__new__(FuzzyBarrier)
    barrier.handle = self
    barrier.phase = phase
    return barrier


# ---- moving data


cdef object words(str name, int operation, uint32_t root):
    """Return the call, for messages."""
    if operation == SPC_OPERATION_DATA_ALLGATHER or operation == SPC_OPERATION_DATA_ALLTOALL:
        return f"{name}()"
    return f"{name}(root={root})"


cdef object words_of(Gathering self):
    """Return the call, or the call that it is a step of."""
    return words(self.name, self.call.operation, self.call.root) if self.doing is None else self.name


cdef bint is_constant(uint8_t format) noexcept:
    """Whether an object of this format is deeply immutable, so that it need not be copied."""
    return (format != SPC_FORMAT_ARRAY and format != SPC_FORMAT_PICKLE and format != SPC_FORMAT_LIST
            and format != SPC_FORMAT_DICT and format != SPC_FORMAT_TUPLE)


@cython.no_gc_clear  # __dealloc__ needs the handle, which may hold this object
cdef class Gathering:
    """One node's part of one call. If interrupted, the handle keeps it and it can resume."""

    def __init__(self):
        raise TypeError("Gathering(): it is made by comm.bcast(), comm.gather() and their like")

    def __dealloc__(self):
        if self.handle is not None:
            spc_comm_gathering_end(self.handle.core, &self.call)
        free(self.encoded)

    cdef int make_room(self, Py_ssize_t count) except -1:
        self.encoded = <Encoded *>malloc(count * (sizeof(Encoded) + sizeof(spc_payload_t)))
        if self.encoded == NULL:
            raise MemoryError
        self.payloads = <spc_payload_t *>(self.encoded + count)
        self.kept = []
        return 0

    cdef int give(self, object value) except -1:
        """Encode one object for all nodes. An error is kept for later."""
        try:
            self.encode_all([value])
        except Exception as error:
            return self.fail_with(error)
        self.own, self.own_value = 0, value
        return 0

    cdef int give_each(self, object values) except -1:
        """Encode an object for each node."""
        cdef int32_t rank = self.handle.rank_number
        cdef list items
        try:
            items = as_items(self.name, "objs", values, self.handle.node_count)
            self.encode_all(items)
        except Exception as error:
            return self.fail_with(error)
        self.own, self.own_value = rank, items[rank]
        return 0

    cdef int encode_all(self, list values) except -1:
        cdef Py_ssize_t i
        self.make_room(len(values))
        for i in range(len(values)):
            self.kept.append((values[i], encode(values[i], &self.encoded[i], self.name)))
            self.payloads[i] = self.encoded[i].payload
            if self.payloads[i].data_bytes >= NOGIL_BYTES:
                self.bulk = True
        self.call.payloads = self.payloads
        self.call.payload_count = <uint32_t>len(values)
        return 0

    cdef int fail_with(self, object error) except -1:
        self.error = error
        try:
            error._spcomm_raised = exit_text.Raised(first_of(self.handle))
        except AttributeError:
            pass  # its class refuses attributes; the launcher then waits for its report as for any other's
        self.failure = error_text.reason(error).encode("utf-8", "replace")
        self.call.failure = self.failure
        self.call.failure_bytes = <uint32_t>len(self.failure)
        return 0

    cdef int run(self) except -1:
        """Run the whole call; afterwards the messages are here."""
        cdef Handle handle = self.handle
        cdef spc_comm_t *core = handle.core
        cdef spc_message_t *reason
        cdef int status = SPC_EAGAIN
        if not self.bulk:
            status = spc_comm_gathering_poll(core, &self.call)
        if status == SPC_EAGAIN:
            with nogil:
                status = spc_comm_gathering(core, &self.call, SPC_NO_DEADLINE)
        if status == SPC_EINTERRUPTED:
            handle.gathering = self
        elif handle.gathering is self:
            handle.gathering = None
        if status == SPC_EMISMATCH:
            handle.doing = self.doing[0](*self.doing[1:]) if type(self.doing) is tuple else self.doing
        if self.error is not None and (status == SPC_OK or status == SPC_ELOST or status == SPC_EFINISHED):
            raise self.error  # other nodes may have ended because of this error
        if status != SPC_OK:
            fail(handle, status, (words_of, self))
        if self.call.failed >= 0:
            reason = message_from(&self.call, self.call.failed)
            call = words_of(self)
            if handle.parent is not None:
                call = errors.in_a_part(call, handle.rank_number, handle.node_count)
            raise error_text.gave_nothing(call, <int>spc_comm_rank_in_run(core, self.call.failed),
                                                decode(handle, reason, True))
        return 0

    cdef object own_copy(self):
        """Return this node's contribution to itself: equal, but as private as objects from other nodes."""
        cdef Encoded *encoded = &self.encoded[self.own]
        cdef spc_message_t message
        if is_constant(encoded.payload.format):
            return self.own_value
        if encoded.payload.format == SPC_FORMAT_ARRAY:
            return cnp.PyArray_NewCopy(<cnp.ndarray>self.own_value, cnp.NPY_KEEPORDER)
        if encoded.payload.extents != NULL:  # a pickle with separate arrays
            return copy_pickle(self.kept[self.own][1], self.handle.rank_number)
        memset(&message, 0, sizeof(message))
        message.bytes = <unsigned char *>encoded.payload.data  # without meta, which is already decoded
        message.length_bytes = encoded.payload.data_bytes
        message.format = encoded.payload.format
        message.source = self.handle.rank_number
        return decode(self.handle, &message, True)

    cdef object part_of(self, int32_t rank, bint copy):
        """Return the contribution of a node; of this one a copy."""
        try:
            if rank == self.handle.rank_number:
                return self.own_copy()
            return decode(self.handle, message_from(&self.call, rank), copy)
        except errors.SpcommError as error:
            source = <int>spc_comm_rank_in_run(self.handle.core, rank)
            raise errors.unreadable_part(words_of(self), source, error) from error.__cause__

    cdef list parts(self, bint copy):
        """Return the contributions of all nodes, by rank."""
        cdef int32_t rank
        return [self.part_of(rank, copy) for rank in range(self.handle.node_count)]


cdef spc_message_t *message_from(spc_gathering_t *call, int32_t rank) noexcept:
    """Return the single message for all nodes, which the root contributes."""
    if call.operation == SPC_OPERATION_DATA_BCAST or call.operation == SPC_OPERATION_DATA_SCATTER:
        return call.messages
    return &call.messages[rank]


cdef list as_items(str name, str parameter, object values, int32_t size):
    """Return a list with one item for each node."""
    cdef list items
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            raise error_text.no_items(name, parameter, values)
        items = [values[i] for i in range(len(values))] if len(values) == size else [None] * len(values)
    elif not hasattr(values, "__iter__") or has_no_ranks(values):
        raise error_text.no_items(name, parameter, values)
    else:
        items = list(values)
    if len(items) != size:
        raise error_text.wrong_number(name, parameter, len(items), size)
    return items


cdef bint has_no_ranks(object values) except -1:
    """Whether the items of an iterable are not meant for the nodes: letters, members of a set, names of columns."""
    if isinstance(values, WITHOUT_RANKS) or getattr(values, "ndim", 1) == 0:
        return True
    return not hasattr(values, "dtype") and (hasattr(values, "keys") or hasattr(values, "columns"))


cdef Gathering begin(Handle handle, int operation, int32_t root, str name):
    """Start a new call, or resume the same one after an interrupt, which then keeps its first value."""
    cdef Gathering gathering
    if handle.gathering is not None:
        gathering = <Gathering>handle.gathering
        if gathering.call.operation == <uint32_t>operation and gathering.call.root == <uint32_t>root and (
                gathering.call.signature.operation == 0):
            return gathering
    gathering = Gathering.__new__(Gathering)
    gathering.handle = handle
    gathering.name = name
    gathering.call.operation = operation
    gathering.call.root = root
    gathering.own = -1
    return gathering


cdef Gathering begin_step(Handle handle, int operation, const spc_signature_t *signature, str name, object doing):
    """Like `begin`, for a step of another call: `name` is that call, `doing` adds its values, for mismatches."""
    cdef Gathering gathering
    if handle.gathering is not None:
        gathering = <Gathering>handle.gathering
        if memcmp(&gathering.call.signature, signature, sizeof(spc_signature_t)) == 0:
            return gathering
    gathering = Gathering.__new__(Gathering)
    gathering.handle = handle
    gathering.name, gathering.doing = name, doing
    gathering.call.operation = operation
    gathering.call.root = signature.root
    gathering.call.signature = signature[0]
    gathering.own = -1
    return gathering


cdef bint is_new(Gathering gathering) noexcept:
    return gathering.handle.gathering is not gathering


# ---- the calls


cdef object broadcast(Handle self, object value, object root, bint copy):
    cdef int32_t rank = root_from(self, root, "bcast")
    cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_BCAST, rank, "bcast")
    if rank == self.rank_number:
        if is_new(gathering):
            gathering.give(value)
        gathering.run()
        return gathering.own_value
    gathering.run()
    return gathering.part_of(rank, copy)


cdef object gather_on_root(Handle self, object value, object root):
    cdef int32_t rank = root_from(self, root, "gather")
    cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_GATHER, rank, "gather")
    if is_new(gathering):
        gathering.give(value)
    gathering.run()
    return gathering.parts(True) if rank == self.rank_number else None


cdef list gather_on_all(Handle self, object value, bint copy):
    cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_ALLGATHER, 0, "allgather")
    if is_new(gathering):
        gathering.give(value)
    gathering.run()
    return gathering.parts(copy)


cdef object scatter_items(Handle self, object values, object root):
    cdef int32_t rank = root_from(self, root, "scatter")
    cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_SCATTER, rank, "scatter")
    if rank == self.rank_number:
        if is_new(gathering):
            gathering.give_each(values)
        gathering.run()
        return gathering.part_of(rank, True)
    gathering.run()
    return gathering.part_of(rank, True)


cdef list exchange_items(Handle self, object values):
    cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_ALLTOALL, 0, "alltoall")
    if is_new(gathering):
        gathering.give_each(values)
    gathering.run()
    return gathering.parts(True)
