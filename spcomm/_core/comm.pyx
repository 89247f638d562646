# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The class `Comm`: a node's view of its run. Its calls are in messages.pyx, coordinated.pyx, collectives.pyx,
gatherings.pyx and folds.pyx."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from spcomm._core.handle cimport Handle, Part, deadline_of, fail, first_of, timeout_to_ns
from spcomm._core.libspc cimport (
    SPC_ECLOSED,
    SPC_EFORKED,
    SPC_ELIMIT,
    SPC_ENOMEM,
    SPC_NO_DEADLINE,
    SPC_OK,
    spc_clock_now_ns,
    spc_comm_box,
    spc_comm_close,
    spc_comm_config,
    spc_comm_rank_in_run,
    spc_comm_split,
    spc_comm_usable,
)

from operator import index

import numpy as np

from spcomm._core import collectives, endings, errors, handlers, names, notes, regions, work

FuzzyBarrier = collectives.FuzzyBarrier
Message = names.Message
NodeLayout = names.NodeLayout

current = None  # what startup() returns; here, because this module cannot be reloaded


cdef class Comm(Folds):
    """A node's view of its run: who it is, and all that it can do together with the other nodes.

    `spcomm.startup` makes that of the whole run, of which there is one per process; `split` makes those of some of
    the nodes. Any thread may call any method at any time, except that collective calls (barriers, reductions and
    those that move data) of one node on one communicator come one after another.

    As a context manager it is closed at the end of the block.

    Attributes
    ----------
    rank : int
        This node's number, 0 to ``size - 1``.
    size : int
        How many nodes the run has.

    Notes
    -----
    What can wait says so, and goes on sending and receiving meanwhile. Messages and collective operations of different
    communicators never meet. SpeedesComm 2; the ACLMPL and MPI calls beside it.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> 0 <= comm.rank < comm.size
    True
    """

    def __cinit__(self, descriptor=None, rank=None, group_id=0):
        self.start_ns = <int64_t>spc_comm_config(self.core).made_ns
        self.group = group_id

    def __repr__(self):
        whole = "" if self.parent is None else f" (node {spc_comm_rank_in_run(self.core, self.rank_number)} of the run)"
        return f"<Comm: node {self.rank_number} of {self.node_count}{whole}>"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.close()
            return
        try:
            self.close(timeout=0)  # the block's own error is what counts
        except errors.WaitTimeoutError:
            pass

    def __reduce__(self):
        raise TypeError("a Comm cannot be pickled or sent: every node has its own, from spcomm.startup()")

    @property
    def rank(self):
        """This node's number, an int from 0 to ``size - 1`` (SpeedesComm 2.1, GetNodeId)."""
        return self.rank_number

    @property
    def size(self):
        """How many nodes the run has, an int (SpeedesComm 2.1, GetNumNodes)."""
        return self.node_count

    @property
    def local_rank(self):
        """This node's number within its box, an int from 0 (SpeedesComm 3.3, local node id)."""
        return local_rank(first_of(self), spc_comm_rank_in_run(self.core, self.rank_number))

    @property
    def box(self):
        """The number of the machine that this node is on, an int from 0 (SpeedesComm 3.3)."""
        return spc_comm_box(self.core, self.rank_number)

    @property
    def group_id(self):
        """The number given to `startup`, an int: it tells jobs apart (SpeedesComm 2.1)."""
        return self.group

    @property
    def layout(self):
        """Where all nodes are: a tuple of `NodeLayout`, by rank (SpeedesComm 3.3, Table 1).

        Examples
        --------
        >>> import spcomm
        >>> spcomm.startup().layout[0]
        NodeLayout(rank=0, box=0, local_rank=0, local_zero=0)
        """
        whole = first_of(self)
        places = [box_of(whole, member) for member in range(whole.node_count)]
        return tuple([
            NodeLayout(rank, places[member], local_rank(whole, member), places.index(places[member]))
            for rank, member in enumerate(self.members)
        ])

    @property
    def members(self):
        """Which nodes of the run take part: a tuple of their ranks there, by rank here.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.members == tuple(range(comm.size))
        True
        """
        return tuple([spc_comm_rank_in_run(self.core, rank) for rank in range(self.node_count)])

    def split(self, color=0, key=0):
        """Divide the nodes: those that give the same color get a communicator of their own.

        Parameters
        ----------
        color : int or None, optional
            Which part this node goes to, 0 or more. None: to no part.
        key : int, optional
            Ranks in the part follow the keys; of equal keys, the ranks here.

        Returns
        -------
        Comm or None
            The communicator of the part, with ranks from 0. None for a node that gave None.

        Raises
        ------
        MismatchError
            Another node called something else. Raised on all nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError, ValueError
            `color` or `key` is no int, or too large.
        SpcommError
            The shared memory has no room for another communicator (``--arena``); or this node has taken part in
            16,383 splits, the most there may be in a run; or as for `barrier`.

        Notes
        -----
        Waits until all nodes have called it: one collective operation, two where nodes have split differently before,
        and one message to each member. All operations of a `Comm` are there, and those of different communicators
        never meet: neither messages, with `ANY` or not, nor barriers. Memory: about 10 KiB a member in the arena of the
        part's node 0, until all members have closed and dropped it.

        The part lives until its `close`, the end of its ``with`` block, or the end of the program. Who waits for a
        node that has closed it gets `NodeLostError`; what was sent to it and not received is dropped.

        SpeedesComm 2.1 separates groups when they start; this does it within a run.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> with comm.split(comm.rank % 2) as half:
        ...     members = half.global_sum(1)
        >>> members == (comm.size + 1 - comm.rank % 2) // 2
        True
        """
        cdef Part part = Part.__new__(Part)
        cdef int64_t color_number = -1 if color is None else split_number("color", color)
        cdef int64_t key_number = split_number("key", key)
        cdef int status
        if color is not None and color_number < 0:
            raise errors.bad_color(color)
        part.parent = self
        with nogil:
            status = spc_comm_split(self.core, color_number, key_number, SPC_NO_DEADLINE, &part.core)
        if status == SPC_ENOMEM or status == SPC_ELIMIT:
            raise errors.cannot_split(color, status == SPC_ELIMIT)
        if status != SPC_OK:
            fail(self, status, f"split(color={color}, key={key})")
        return None if part.core == NULL else type(self)(part, None, self.group)

    def region(self, name):
        """Give a part of the program a name, which ``spcomm run --trace`` shows.

        Parameters
        ----------
        name : str
            What is shown.

        Returns
        -------
        context manager
            The time within its ``with`` block is the region. Regions may lie within each other.

        Raises
        ------
        TypeError
            `name` is no str.

        Notes
        -----
        Local, and never waits. In a run that is not traced it does nothing, in about 100 ns.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> with comm.region("interior"):
        ...     total = sum(range(1000))
        """
        if not isinstance(name, str):
            raise TypeError(f"region({errors.shown(name)}): a name is a str, not a {type(name).__name__}")
        return regions.Region(self, name)

    def work(self, cost):
        """Do work of a known cost: what stands for computing where the schedule is the subject, not the numbers.

        Parameters
        ----------
        cost : float
            Units of work, 0 or more and finite. The node sleeps so many milliseconds.

        Raises
        ------
        ValueError
            `cost` is something else; nothing was done.

        Notes
        -----
        Local: it waits for nobody, and neither sends nor receives. While it sleeps other threads of this node run, as
        do other nodes, so that eight nodes work side by side on two cores; Ctrl-C ends it at once.

        ``spcomm run --virtual`` tells how long the program takes where only declared work takes time: exact numbers,
        whatever the machine has to do besides. Traces show the call as computing, with its cost.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.work(2.5)
        """
        work.work(self, cost)

    def time(self):
        """Return the seconds since the run began.

        Returns
        -------
        float
            Seconds, with a resolution of nanoseconds. It never goes back, and is the same clock for all nodes
            of a machine: times of two of them may be compared.

        Notes
        -----
        Never waits; about 40 ns.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> before = comm.time()
        >>> comm.time() >= before
        True
        """
        return (<int64_t>spc_clock_now_ns() - self.start_ns) * 1e-9

    def rng(self, seed):
        """Make a generator of random numbers whose stream is independent of all other nodes'.

        Parameters
        ----------
        seed : int or sequence of ints
            0 or more; the same on all nodes. Another one gives other streams.

        Returns
        -------
        numpy.random.Generator
            The same numbers in every run, for this seed and rank.

        Raises
        ------
        ValueError, TypeError
            `seed` is something else.

        Notes
        -----
        Not a collective call. It is
        ``numpy.random.default_rng(numpy.random.SeedSequence(seed, spawn_key=(comm.rank,)))``.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.rng(1).random() == comm.rng(1).random()
        True
        """
        try:
            sequence = np.random.SeedSequence(seed, spawn_key=(self.rank_number,))
        except (TypeError, ValueError) as error:
            raise errors.bad_seed(seed, error) from None
        return np.random.default_rng(sequence)

    def close(self, timeout=10.0):
        """Send what is queued, and leave. Done by itself at the normal end of a program.

        Parameters
        ----------
        timeout : float, optional
            Seconds to go on sending. None: for ever.

        Raises
        ------
        WaitTimeoutError
            Some messages could not be sent in `timeout` seconds. They are lost, and the node has left all the
            same.

        Notes
        -----
        Waits only while messages are queued that have no room. The other nodes still receive everything that
        was sent; who then waits for more of this node gets `NodeLostError`. Afterwards every other call
        raises `SpcommError`; received arrays stay valid. Closing again does nothing, nor does it in a process
        that a node has forked. Closing a part of a `split` leaves the run, and other parts, as they are.

        SpeedesComm 2.1; the paper's unnamed 25th function.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.send("the last one", dest=spcomm.OTHERS)
        >>> comm.close()
        """
        cdef int64_t limit = timeout_to_ns(timeout, "close")
        cdef int status
        before_close(self)
        with nogil:
            status = spc_comm_close(self.core, deadline_of(limit))
        if self.handlers is not None and spc_comm_usable(self.core) != SPC_OK:
            handlers.forget(self)
        if status != SPC_OK and status != SPC_ECLOSED and status != SPC_EFORKED:
            fail(self, status, f"close(timeout={timeout})")


cdef int box_of(Handle whole, int32_t rank):
    return <int>spc_comm_box(whole.core, <uint32_t>rank)


cdef int local_rank(Handle whole, int32_t rank):
    """How many nodes before it are in the same box."""
    cdef int32_t other
    cdef int found = 0
    for other in range(rank):
        found += spc_comm_box(whole.core, <uint32_t>other) == spc_comm_box(whole.core, <uint32_t>rank)
    return found


cdef int before_close(Comm comm) except -1:
    """Leave word of where this happens, and of what is open."""
    if spc_comm_usable(comm.core) != SPC_OK:
        return 0
    if comm.parent is None:
        endings.closed()
    begun = comm.cycle_begun or comm.cycle_receiving
    entered = next(iter(comm.entered.values()), None) if comm.entered else None
    notes.leave_open(comm, entered, (begun[1], begun[2], "") if begun is not None else None)
    notes.tell_sent(comm)
    return 0


cdef int64_t split_number(str name, object value) except? -1:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise errors.bad_split_type(name, value)
    try:
        return index(value)
    except OverflowError:
        raise errors.bad_split_number(name, value) from None


def abandon(Comm comm):
    """Leave the news of this node's end to whoever watches its process: it fails, so it has not finished."""
    comm.abandoned = True


def is_open(Comm comm):
    """Whether the node may communicate: not closed, and not a forked copy."""
    return spc_comm_usable(comm.core) == SPC_OK


def limits(Comm comm):
    """What the nodes of this run agreed on: a dict of numbers, for tests and tools."""
    config = spc_comm_config(comm.core)[0]
    return {key: index(value) for key, value in config.items()}
