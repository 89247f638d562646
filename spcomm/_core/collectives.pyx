# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The half of `Comm` in which all nodes take part: barriers, fuzzy barriers and reductions."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from spcomm._core.handle cimport Handle, deadline_of, fail, timeout_to_ns
from spcomm._core.libspc cimport (
    SPC_EAGAIN,
    SPC_EINVAL,
    SPC_EMISMATCH,
    SPC_MAX,
    SPC_MIN,
    SPC_OK,
    SPC_OPERATION_BARRIER,
    SPC_OPERATION_REDUCE,
    SPC_SUM,
    spc_comm_collective,
    spc_comm_collective_poll,
    spc_comm_fuzzy_done,
    spc_comm_fuzzy_enter,
    spc_comm_fuzzy_wait,
    spc_signature_t,
)
from spcomm._core.reductions cimport reduce_value

from spcomm._core import errors, places

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

    def done(self):
        """Say whether all nodes have entered this barrier.

        Returns
        -------
        bool
            Once True, always True.

        Raises
        ------
        MismatchError
            Another node called something else.
        NodeLostError
            A node has ended without entering it.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Never waits. Also sends what was queued and receives what has arrived. Cost: one look at shared memory.

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

    def wait(self, timeout=None):
        """Wait until all nodes have entered this barrier.

        Parameters
        ----------
        timeout : float, optional
            Seconds. None: for ever.

        Raises
        ------
        WaitTimeoutError
            Not all have entered in `timeout` seconds. The barrier stays open.
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

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
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
        return look_at(self)  # another thread has ended it meanwhile
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


cdef class Collectives(Handle):
    """Barriers and reductions. See `Comm`."""

    def barrier(self, timeout=None):
        """Wait until all nodes have called this.

        Parameters
        ----------
        timeout : float, optional
            Seconds. None: for ever.

        Raises
        ------
        WaitTimeoutError
            Not all came in `timeout` seconds. The barrier stays entered: the next `barrier` goes on with it,
            and another collective call raises `MismatchError`.
        MismatchError
            Another node called something else.
        NodeLostError
            A node has ended without coming.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits, while other threads of this node run; sends and receives meanwhile. It never matches a fuzzy
        barrier. Cost: one store and one addition in shared memory per node; a tree where nodes have cores of
        their own.

        SpeedesComm 2.2, BarrierSync.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.barrier()
        """
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "barrier")
        cdef int status = spc_comm_collective_poll(self.core, &BARRIER, NULL, NULL, 0, NULL)
        if status == SPC_EAGAIN:
            with nogil:
                status = spc_comm_collective(self.core, &BARRIER, NULL, NULL, 0, NULL, deadline_of(limit))
        if status != SPC_OK:
            fail(self, status, "barrier()" if timeout is None else f"barrier(timeout={timeout})")

    def fuzzy_barrier(self):
        """Enter a barrier without waiting for the others.

        Returns
        -------
        FuzzyBarrier
            With ``done()``, ``wait(timeout=None)``, and as a context manager that waits at the end of its
            block.

        Raises
        ------
        SpcommError
            Eight are open already, the most that may be; or the communicator is closed.
        MismatchError
            Another collective call of this node was left by a timeout and is not over.

        Notes
        -----
        Never waits. All nodes enter the same barriers in the same order. Up to eight may be open, and other
        collective calls may be made meanwhile. It completes while the nodes compute: the last to enter ends
        it.

        SpeedesComm 2.2, EnterFuzzyBarrier.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> fb = comm.fuzzy_barrier()
        >>> fb.wait()
        >>> fb.done()
        True
        """
        cdef FuzzyBarrier barrier
        cdef uint64_t phase = 0
        cdef int status = spc_comm_fuzzy_enter(self.core, &phase)
        if status != SPC_OK:
            fail(self, status, "fuzzy_barrier()")
        if self.strict:
            self.entered = {**(self.entered or {}), phase: places.of_caller()}
        barrier = FuzzyBarrier.__new__(FuzzyBarrier)
        barrier.handle = self
        barrier.phase = phase
        return barrier

    def global_sum(self, x):
        """Return the sum of all nodes' values, on every node.

        Parameters
        ----------
        x : int, float, complex, bool, SimTime, numpy.ndarray of numbers or times, or a tuple of these
            Of the same type, and of arrays the same shape and dtype, on every node. A bool counts as int, a
            NumPy integer as int and a numpy.float64 as float. Times in an array are of `SimTime.dtype`.

        Returns
        -------
        int, float, complex, SimTime, numpy.ndarray or tuple
            Of ints the exact sum, of any size. Of `SimTime` the sum of the times, with priorities 0. Of arrays
            the sum element by element, a new array of the same shape and dtype (integers wrap as NumPy's do; of
            bool arrays the counts, int64). Of a tuple the sums of its items.

        Raises
        ------
        MismatchError
            Another node called something else, or gave another type, shape or dtype. Raised on all nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError
            x is of a type that cannot be added up so; nothing was done.
        ValueError
            The sum of `SimTime` is NaN, since inf and -inf are among them. Raised on all nodes, which have all
            taken part.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits until all nodes have called it, while other threads of this node run. Values are added along one
        fixed binary tree over the ranks, so floating-point sums are bitwise the same on all nodes and in all
        runs of that many nodes. Interrupted by Ctrl-C it stays entered: the same call goes on with the values
        given before.

        Cost: numbers, a `SimTime` (24 bytes), and tuples up to 32 bytes, as a `barrier`; longer tuples and
        arrays go through shared memory in tiles.

        SpeedesComm 2.2, GlobalSum; one exchange for several values is the paper's Net_Sum.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> comm.global_sum(1) == comm.size
        True
        >>> count, total = comm.global_sum((1, np.ones(3)))
        >>> bool((total == count).all())
        True
        """
        return reduce_value(self, SPC_SUM, x, "global_sum", SPC_OPERATION_REDUCE, 0)

    def global_min(self, x):
        """Return the least of all nodes' values, on every node.

        Parameters
        ----------
        x : int, float, bool, SimTime, numpy.ndarray of real numbers or times, or a tuple of these
            As for `global_sum`, but not complex.

        Returns
        -------
        int, float, bool, SimTime, numpy.ndarray or tuple
            Of `SimTime` the earliest, by time and then priorities; of equal ones that of the lowest rank. Of an
            array the minimum element by element, a new array of the same shape and dtype; of a tuple the minima
            of its items. NaN if any node gave NaN; but among the times of an array NaN is the latest.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `global_sum`.

        Notes
        -----
        Waits, and costs, as `global_sum`. SpeedesComm 2.2, GlobalMin.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.global_min(comm.rank)
        0
        >>> comm.global_min((comm.rank, 2.5, spcomm.SimTime(7, 1)))  # one exchange for all three
        (0, 2.5, SimTime(7.0, 1))
        """
        return reduce_value(self, SPC_MIN, x, "global_min", SPC_OPERATION_REDUCE, 0)

    def global_max(self, x):
        """Return the greatest of all nodes' values, on every node.

        Parameters
        ----------
        x : int, float, bool, SimTime, numpy.ndarray of real numbers or times, or a tuple of these
            As for `global_min`.

        Returns
        -------
        int, float, bool, SimTime, numpy.ndarray or tuple
            As `global_min`, with the maximum. NaN if any node gave NaN.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `global_sum`.

        Notes
        -----
        Waits, and costs, as `global_sum`. SpeedesComm 2.2, GlobalMax.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.global_max(comm.rank) == comm.size - 1
        True
        """
        return reduce_value(self, SPC_MAX, x, "global_max", SPC_OPERATION_REDUCE, 0)
