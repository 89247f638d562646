# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The class `Comm`: a node's view of its run. Its methods document the calls; their functions are in p2p.pyx,
arrays.pyx, collectives.pyx, reductions.pyx and regions.pyx."""

from cpython.ref cimport Py_REFCNT
from libc.stdint cimport int32_t, int64_t, uint32_t

from spcomm._core.arguments cimport send_tag
from spcomm._core.arrays cimport make_array, move_array
from spcomm._core.collectives cimport (
    broadcast,
    enter_fuzzy_barrier,
    exchange_items,
    gather_on_all,
    gather_on_root,
    scatter_items,
    wait_at_barrier,
)
from spcomm._core.handle cimport Handle, Part, deadline_of, fail, first_of, limit_of, timeout_to_ns
from libspc cimport *
from spcomm._core.p2p cimport (
    coordinated_receive,
    coordinated_send,
    exchange,
    forget_handlers,
    iterate_cycle,
    poll_messages,
    probe_message,
    receive_data,
    receive_message,
    register_handler,
    take_received,
    transmit,
    transmit_and_wait,
    try_receive,
)
from spcomm._core.reductions cimport reduce_along, reduce_and_divide, reduce_globally, reduce_on_all, reduce_on_root

from operator import index

import numpy as np

from spcomm._core import errors, exit_text, handle, names, operators, regions
from spcomm._core.names import NodeLayout

if False:  # for the stub alone
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Literal, SupportsFloat, SupportsIndex, TypeVar

    from numpy.typing import DTypeLike

    from spcomm._core.collectives import FuzzyBarrier
    from spcomm._core.names import Message
    from spcomm._core.operators import Op
    from spcomm._core.p2p import CoordinatedMessages
    from spcomm._core.regions import Region

    _T = TypeVar("_T")
    _Function = TypeVar("_Function", bound=Callable[[Message], Any])

cdef object ANY = names.ANY
cdef object SUM = operators.SUM

size_asked: bool = False  # whether the program has asked for the number of nodes
current: Comm | None = None  # what startup() returns; here, because this module cannot be reloaded


cdef class Comm(Handle):
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
    Calls that can wait are marked so, and go on sending and receiving meanwhile. Messages and collective operations of
    different communicators never meet. SpeedesComm 2; the ACLMPL and MPI calls beside it.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> 0 <= comm.rank < comm.size
    True
    """

    def __cinit__(self, descriptor: int | Part | None = None, rank: int | None = None, group_id: int = 0):
        self.start_ns = <int64_t>spc_comm_config(self.core).made_ns
        self.group = group_id

    def __repr__(self):
        whole = "" if self.parent is None else f" (node {spc_comm_rank_in_run(self.core, self.rank_number)} of the run)"
        return f"<Comm: node {self.rank_number} of {self.node_count}{whole}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        try:
            self.close(timeout=0)  # the block's own error is what counts
        except errors.WaitTimeoutError:
            pass

    def __reduce__(self):
        raise TypeError("a Comm cannot be pickled or sent: every node has its own, from spcomm.startup()")

    def __getattr__(self, name):
        raise names.missing(name, Comm)

    @property
    def rank(self) -> int:
        """This node's number, an int from 0 to ``size - 1`` (SpeedesComm 2.1, GetNodeId)."""
        return self.rank_number

    @property
    def size(self) -> int:
        """Number of nodes of the run, an int (SpeedesComm 2.1, GetNumNodes)."""
        global size_asked
        size_asked = True
        return self.node_count

    @property
    def local_rank(self) -> int:
        """This node's number within its box, an int from 0 (SpeedesComm 3.3, local node id)."""
        return local_rank(first_of(self), spc_comm_rank_in_run(self.core, self.rank_number))

    @property
    def box(self) -> int:
        """The number of the machine that this node is on, an int from 0 (SpeedesComm 3.3)."""
        return spc_comm_box(self.core, self.rank_number)

    @property
    def group_id(self) -> int:
        """The number given to `startup`, an int: it distinguishes jobs (SpeedesComm 2.1)."""
        return self.group

    @property
    def layout(self) -> tuple[NodeLayout, ...]:
        """Places of all nodes: a tuple of `NodeLayout`, by rank (SpeedesComm 3.3, Table 1).

        Examples
        --------
        >>> import spcomm
        >>> spcomm.startup().layout[0]
        NodeLayout(rank=0, box=0, local_rank=0, local_zero=0)
        """
        return tuple(layout_of(self))

    @property
    def members(self) -> tuple[int, ...]:
        """Nodes of the run that take part: a tuple of their ranks there, by rank here.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.members == tuple(range(comm.size))
        True
        """
        return tuple([spc_comm_rank_in_run(self.core, rank) for rank in range(self.node_count)])

    def send(
        self, obj: Any, dest: SupportsIndex | Iterable[SupportsIndex], tag: SupportsIndex = 0,
        timeout: SupportsFloat | None = None
    ) -> None:
        """Send an object to one node or several.

        Parameters
        ----------
        obj : object
            Anything that can be pickled. None, bool, int, float, `SimTime`, str, bytes, tuples of these and NumPy
            arrays go without pickle. It is copied: it may be changed as soon as the call returns.
        dest : int, iterable of ints, Destination, ALL, OTHERS or PROC_NULL
            The receiver's rank, 0 to ``size - 1``. If there are several, each node gets the message once, however often
            it is named. `ALL` is every node, this one too; `OTHERS` every node but this one; `PROC_NULL` is
            no node.
        tag : int, optional
            A number for the receiver to choose by, 0 to 2**31 - 1.
        timeout : float, optional
            Seconds to wait where the call has to wait. None: for ever.

        Raises
        ------
        RankError, TagError
            There is no such node or tag; nothing was sent.
        TypeError
            `obj` cannot be pickled, or an argument is of the wrong type; nothing was sent.
        WaitTimeoutError
            The queue stayed at its limit for `timeout` seconds; nothing was sent.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Does not wait for the receiver. A message without room in shared memory is queued in private memory
        and sent by later calls. send waits only while this node's messages that no node has received are at the
        limit (``--queue-limit``). Messages from one node to another arrive in the order sent. A message to a
        node that has ended is dropped.

        Cost: one copy of the payload, however many receivers; about 0.1 µs for 40 bytes or less. Arrays that
        are not contiguous, and objects that are pickled, are copied once more.

        SpeedesComm 2.3 (asynchronous messages).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.send({"step": 1}, dest=comm.rank, tag=7)
        >>> comm.recv(tag=7)
        {'step': 1}
        """
        transmit(self, "send", obj, dest, tag, limit_of(timeout, "send"))

    def ssend(
        self, obj: Any, dest: SupportsIndex, tag: SupportsIndex = 0, timeout: SupportsFloat | None = None
    ) -> None:
        """Send an object to one node, and wait until it has been received there.

        Parameters
        ----------
        obj, tag
            As for `send`.
        dest : int or PROC_NULL
            The receiver's rank.
        timeout : float, optional
            Seconds to wait. None: for ever.

        Raises
        ------
        WaitTimeoutError
            It was not received in `timeout` seconds. It stays sent, and may be received later.
        NodeLostError
            `dest` has ended without receiving it.
        RankError, TagError, TypeError
            As for `send`; nothing was sent. Also RankError: `dest` is this node, and it has no other thread.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Waits until a receive of `dest` has taken this message, in whatever order, also one that then fails
        because it does not fit into `out`. So two nodes that call it for each other first, and receive then,
        wait for ever: `sendrecv` does not. Costs a `send`, and about the way back.

        ACLMPL 4 (synchronous send).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> if comm.rank == 0 and comm.size > 1:
        ...     comm.ssend("received when this returns", dest=1)
        ... elif comm.rank == 1:
        ...     text = comm.recv(source=0)
        """
        transmit_and_wait(self, obj, dest, tag, limit_of(timeout, "ssend"))

    def recv(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, out: np.ndarray[Any, Any] | None = None,
        timeout: SupportsFloat | None = None, copy: bool = True
    ) -> Any:
        """Wait for a message and return what was sent.

        Parameters
        ----------
        source : int, ANY or PROC_NULL, optional
            The sender's rank; `ANY` (default): any node. A receive from `PROC_NULL` returns None at once.
        tag : int or ANY, optional
            The message's tag; `ANY` (default): whichever.
        out : numpy.ndarray, optional
            A writable array to put the elements into, of the same dtype as the array sent (byte order aside).
            It may have another shape if it is C-contiguous and large enough: then it is filled from its
            start.
        timeout : float, optional
            Seconds to wait. None: for ever.
        copy : bool, optional
            False: where a large array was sent to several nodes, give the memory that they share, read-only,
            instead of a copy.

        Returns
        -------
        object
            The object, new, of the type that was sent, writable and seen by no other node (unless
            ``copy=False``). With `out`: `out` itself if it was filled, else a one-dimensional view of the
            part that was.

        Raises
        ------
        WaitTimeoutError
            No such message came in `timeout` seconds.
        NodeLostError
            `source` (with `ANY`: every other node) has ended, and no such message of it is left.
        TruncationError
            The array has more elements than `out`. The message stays queued, in its place.
        TypeError
            The message is no array of `out`'s dtype (it stays queued), or an argument is of the wrong type.
        RankError, TagError
            There is no such node or tag.
        SpcommError
            The communicator is closed; or the message cannot be unpickled, then it is gone.

        Notes
        -----
        Waits, while other threads of this node run. The first message that matches is taken, in order of
        arrival; messages of one sender never overtake each other. A large array is not copied: it lies in
        shared memory, which is freed when the last view of it dies; of several receivers all but the last copy it.
        `out` costs one copy from there, and may have been written to when the call fails.

        SpeedesComm 2.3.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> comm.send(np.arange(3.0), dest=comm.rank)
        >>> comm.recv()
        array([0., 1., 2.])
        """
        return receive_data(self, "recv", source, tag, out, limit_of(timeout, "recv"), copy)

    def recv_message(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, timeout: SupportsFloat | None = None,
        copy: bool = True
    ) -> Message:
        """Wait for a message and return it with its sender and its tag.

        Parameters
        ----------
        source, tag, timeout, copy
            As for `recv`.

        Returns
        -------
        Message
            A tuple ``(data, source, tag)`` with these names. From `PROC_NULL`: ``(None, PROC_NULL, tag)``.

        Raises
        ------
        WaitTimeoutError, NodeLostError, RankError, TagError, TypeError, SpcommError
            As for `recv`.

        Notes
        -----
        Waits, and costs, as `recv`. SpeedesComm 2.3.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.send("hello", dest=comm.rank, tag=3)
        >>> comm.recv_message()
        Message(data='hello', source=0, tag=3)
        """
        return receive_message(self, source, tag, limit_of(timeout, "recv_message"), copy)

    def try_recv_message(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, copy: bool = True
    ) -> Message | None:
        """Return the next message if there is one, without waiting.

        Parameters
        ----------
        source, tag, copy
            As for `recv`.

        Returns
        -------
        Message or None
            None: no such message has arrived yet.

        Raises
        ------
        RankError, TagError, TypeError, SpcommError
            As for `recv`.

        Notes
        -----
        Never waits. Takes from what has been received, then from what has arrived. Sends what was queued.
        SpeedesComm 2.3, Receive(type).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.try_recv_message(tag=99) is None
        True
        """
        return try_receive(self, source, tag, copy)

    def take_message(self, tag: SupportsIndex = ANY) -> Message | None:
        """Return a message that this node has received before, without looking for new ones.

        Parameters
        ----------
        tag : int or ANY, optional
            The message's tag.

        Returns
        -------
        Message or None
            None: there is none in the queues. `poll` moves what has arrived into them.

        Raises
        ------
        TagError, TypeError, SpcommError
            As for `recv`.

        Notes
        -----
        Never waits. SpeedesComm 2.3, GetPendingMessage.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.send(1.5, dest=comm.rank, tag=4)
        >>> comm.poll()
        1
        >>> comm.take_message(tag=4).data
        1.5
        """
        return take_received(self, tag)

    def poll(self) -> int:
        """Move arrivals into this node's queues, and send what was queued.

        Returns
        -------
        int
            How many messages wait in the queues.

        Raises
        ------
        SpcommError
            The communicator is closed.

        Notes
        -----
        Never waits. Worth calling now and then in a long computation that has much to send, or whose handlers are to
        run (`handler`). SpeedesComm 2.3, Receive().

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.poll()
        0
        """
        return poll_messages(self)

    def probe(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, timeout: SupportsFloat | None = None
    ) -> Message:
        """Wait for a message, return its source, tag and size, and leave it in place.

        Parameters
        ----------
        source, tag, timeout
            As for `recv`.

        Returns
        -------
        Message
            With data None. From `PROC_NULL`: ``(None, PROC_NULL, tag)`` at once.

        Raises
        ------
        WaitTimeoutError, NodeLostError, RankError, TagError, TypeError, SpcommError
            As for `recv`.

        Notes
        -----
        Waits, while other threads of this node run; one of them may take the message afterwards.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.send(b"abc", dest=comm.rank, tag=5)
        >>> comm.probe().tag
        5
        >>> comm.recv()
        b'abc'
        """
        return probe_message(self, source, tag, limit_of(timeout, "probe"))

    def sendrecv(
        self, obj: Any, dest: SupportsIndex | Iterable[SupportsIndex], source: SupportsIndex = ANY,
        tag: SupportsIndex = 0, recv_tag: SupportsIndex | None = None,
        out: np.ndarray[Any, Any] | None = None, timeout: SupportsFloat | None = None
    ) -> Any:
        """Send an object, and wait for one: an exchange in which no circle of waiting nodes can form.

        Parameters
        ----------
        obj, dest, tag
            As for `send`.
        source, out
            As for `recv`.
        recv_tag : int or ANY, optional
            The tag of the message to receive. None: `tag`.
        timeout : float, optional
            Seconds for each of the two halves. None: for ever.

        Returns
        -------
        object
            As `recv`.

        Raises
        ------
        RankError, TagError, TypeError, WaitTimeoutError, NodeLostError, TruncationError, SpcommError
            As `send` and `recv`. All arguments are checked before anything is sent; after a timeout of the
            receiving half the message has been sent.

        Notes
        -----
        Waits as `recv` does, and makes the same copies as `send` and `recv`. A message without room is queued, however
        long it is, and the call does not wait for room: so exchanges in circles, of all nodes with all, and with the
        node itself, complete. ACLMPL 4 (send-and-receive).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        >>> comm.sendrecv(comm.rank, dest=right, source=left) == left
        True
        """
        return exchange(self, obj, dest, source, tag, recv_tag, out, limit_of(timeout, "sendrecv"))

    def empty(
        self, shape: SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex],
        dtype: DTypeLike = float, order: Literal["C", "F"] = "C"
    ) -> np.ndarray[Any, Any]:
        """Make an array that lives in shared memory, so that `move` can hand it to another node without a copy.

        Parameters
        ----------
        shape : int or sequence of ints
            Its lengths.
        dtype : data-type, optional
            Anything NumPy takes but dtypes that hold Python objects.
        order : {'C', 'F'}, optional
            Whether the last index runs fastest, or the first.

        Returns
        -------
        numpy.ndarray
            Its contents are undefined, its data start at a multiple of 64 bytes. It is this node's alone, and an
            array like any other: it may be kept, changed, sliced, and sent with `send`, which copies it.

        Raises
        ------
        TypeError, ValueError
            `shape`, `dtype` or `order` is none, or the dtype holds Python objects.
        MemoryError
            There is no memory for it at all.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Never waits; costs 1 to 2 µs, and the first touch of fresh pages. The memory is a block of this node's arena
        (``--arena``), which goes back when the last view of it dies, in this process or in the one it was moved to.
        Where the arena has no room the array lies in private memory; then `move` copies it.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> grid = comm.empty((100, 100))
        >>> grid[:] = 1.5
        >>> grid.shape, grid.dtype
        ((100, 100), dtype('float64'))
        """
        return make_array(self, shape, dtype, order)

    def move(
        self, a: np.ndarray[Any, Any], dest: SupportsIndex, tag: SupportsIndex = 0,
        timeout: SupportsFloat | None = None
    ) -> None:
        """Hand an array over to another node, without a copy.

        Parameters
        ----------
        a : numpy.ndarray
            An array from `empty`, or one that was received. It is empty afterwards: its first length is 0, of an
            array without dimensions the shape becomes ``(0,)``.
        dest : int or PROC_NULL
            The receiver's rank; this node's own, too. With `PROC_NULL` no node gets it, but it is emptied all the same.
        tag : int, optional
            A number for the receiver to choose by, 0 to 2**31 - 1.
        timeout : float, optional
            Seconds to wait where the call has to wait. None: for ever.

        Raises
        ------
        BufferInUseError
            Another array in this process sees the memory (a slice, a reshaped array); or `a` is a view of a part, or
            of memory that is not its own; or other nodes see it (``copy=False``). Nothing has happened.
        TypeError
            `a` is no array, of a subclass, or holds Python objects; or there is more than one receiver.
        RankError, TagError
            There is no such node or tag; nothing has happened.
        WaitTimeoutError
            An array that has to be copied found no room in `timeout` seconds; nothing has happened.
        SpcommError
            The communicator is closed.

        Notes
        -----
        The receiver gets an ordinary message, in order with all others, and a writable array of the same shape, dtype
        and order: the very same memory, whichever arena it belongs to. Costs a few microseconds at any size. Does not
        wait for the receiver. The memory of an array for a node that has ended is free again. `a` is empty and
        read-only afterwards: ``a[:] = 1`` raises ValueError.

        These are copied, once, as `send` does, and emptied all the same: arrays in ordinary memory; arrays that came
        within an object (a dict, a list); and arrays to which more refers than variables of the calling function and
        of its module: a container, an attribute, an outer function, a memoryview. Other names for the array see it
        empty.

        ACLMPL 4 (transfer without a copy).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> a = comm.empty(1000)
        >>> a[:] = 7
        >>> comm.move(a, dest=comm.rank)
        >>> a.shape
        (0,)
        >>> b = comm.recv()
        >>> b.shape, b[0]
        ((1000,), np.float64(7.0))
        """
        move_array(self, a, Py_REFCNT(a), dest, tag, timeout)

    def handler(self, tag: SupportsIndex) -> Callable[[_Function], _Function]:
        """Decorate a function that handles each message of a tag (an active message).

        Parameters
        ----------
        tag : int
            0 to 2**31 - 1. A second function for the same tag replaces the first.

        Returns
        -------
        callable
            The decorator. It gives the function back.

        Raises
        ------
        TagError, TypeError
            There is no such tag, or the decorated object cannot be called.
        SpcommError
            The communicator is closed.

        Notes
        -----
        The sender knows nothing of it: it calls `send`, or any other call that sends. The function is called with one
        argument, a `Message`, whose data is this node's own: by `poll`, by receiving calls before they look for their
        message, and while this node waits in any call; by one of the waiting threads at a time. Nothing else calls it:
        while a node computes, messages wait. Receives never see messages of this tag, and a receive with the tag raises
        `TagError`. The function also gets messages that came before it was installed. Messages that have come when the
        node ends, and were not handled, count as never received.

        The function may send and receive; while it waits itself, other messages are handled within. It must not take
        part in a collective operation of the same communicator. Its exceptions leave the call that ran it, which then
        has done nothing: a receive has taken no message, a collective operation stays entered, as after Ctrl-C.

        Cost: with no handler, one test. A handled message costs as much as its receive would.

        ACLMPL 4 (active messages).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> found = []
        >>> @comm.handler(tag=17)
        ... def keep(message):
        ...     found.append(message.data)
        >>> comm.send("something", dest=comm.rank, tag=17)
        >>> comm.poll()
        0
        >>> found
        ['something']
        """
        cdef int32_t number = send_tag(tag, "handler", "tag")

        def decorate(function):
            register_handler(self, number, function)
            return function

        return decorate

    def coordinated_send(
        self, obj: Any, dest: SupportsIndex | Iterable[SupportsIndex], timeout: SupportsFloat | None = None
    ) -> None:
        """Send an object to one node or several, within a cycle of coordinated messages.

        A cycle: every node sends as many coordinated messages as it likes, to any nodes, then every node
        receives until there are no more. It begins with the first of these calls and ends when
        `coordinated_recv` returns None; then the next may begin. All nodes take part in all cycles, with or
        without messages.

        Parameters
        ----------
        obj, dest
            As for `send`.
        timeout : float, optional
            Seconds to wait where the call has to wait. None: for ever.

        Raises
        ------
        CycleError
            This node has called `coordinated_recv` in this cycle; nothing was sent, and the cycle goes on.
        MismatchError
            A timeout has left a collective call of this node, which must be ended first; nothing was sent.
        RankError
            There is no such node; nothing was sent.
        TypeError
            `obj` cannot be pickled, or an argument is of the wrong type; nothing was sent.
        WaitTimeoutError
            The queue stayed at its limit for `timeout` seconds; nothing was sent.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Does not wait for the receiver; waits, copies and costs as `send`. Messages from one node to another
        arrive in the order sent. Receives of ordinary messages never see them. A message to `PROC_NULL` goes
        nowhere, but begins a cycle, too.

        SpeedesComm 2.3, CoordinatedSend.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.coordinated_send("hello", dest=spcomm.ALL)
        >>> sorted(message.source for message in comm.coordinated_messages()) == list(range(comm.size))
        True
        """
        coordinated_send(self, obj, dest, timeout)

    def coordinated_recv(self, timeout: SupportsFloat | None = None, copy: bool = True) -> Message | None:
        """Return the next message of this cycle, or None when this node has been given all of them.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait. None: for ever.
        copy : bool, optional
            As for `recv`.

        Returns
        -------
        Message or None
            A tuple ``(data, source, tag)`` with these names; coordinated messages have no type, and the tag
            is 0. None: the cycle is over for this node, and the next one may begin.

        Raises
        ------
        WaitTimeoutError
            In `timeout` seconds no message came, and the cycle did not end. It stays open: call it again.
        MismatchError
            Another node called something else. Nothing is lost: all that was sent in this cycle counts, and
            the next call takes part again. Or a timeout has left a collective call of this node, which must
            be ended first.
        NodeLostError
            A node has ended without receiving in this cycle, or before it could send the messages that it had
            announced. Messages that are here are received first.
        TypeError, ValueError
            An argument is of the wrong type, or `timeout` is negative.
        SpcommError
            The communicator is closed; another thread of this node is inside this or a collective call; or
            the message cannot be unpickled, then it is gone.

        Notes
        -----
        Waits, while other threads of this node run, as long as there is no message and another node has not
        come here yet, or a message to this node is on its way. A message that is here is returned at once,
        also while other nodes still send. The first call of a cycle ends sending: from then on
        `coordinated_send` raises `CycleError`. So do, from the beginning of the cycle to its end, all calls
        that synchronise (`barrier`, `fuzzy_barrier` and its ``wait()``, reductions, `split`); asking an
        older fuzzy barrier whether it is ``done()`` is allowed.

        Messages come in any order of senders, but from each in the order sent. Copies as `recv`. Cost: of a
        cycle that of a `fuzzy_barrier`, and `size` numbers written and read per node.

        SpeedesComm 2.3, CoordinatedReceive.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.coordinated_send(comm.rank * 10, dest=(comm.rank + 1) % comm.size)
        >>> message = comm.coordinated_recv()
        >>> message.data == message.source * 10
        True
        >>> comm.coordinated_recv() is None
        True
        """
        return coordinated_receive(self, timeout_to_ns(timeout, "coordinated_recv"), copy)

    def coordinated_messages(
        self, timeout: SupportsFloat | None = None, copy: bool = True
    ) -> CoordinatedMessages:
        """Return an iterator over the messages of this cycle: `coordinated_recv` until None.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for each message. None: for ever.
        copy : bool, optional
            As for `recv`.

        Returns
        -------
        iterator of Message

        Raises
        ------
        WaitTimeoutError, MismatchError, NodeLostError, TypeError, ValueError, SpcommError
            As for `coordinated_recv`, mostly in the loop. After a `WaitTimeoutError` or `MismatchError` it
            may be used again.

        Notes
        -----
        Waits as `coordinated_recv`. Leaving the loop early, by ``break`` or an exception, leaves the cycle
        open: another loop, or `coordinated_recv`, goes on with it.

        SpeedesComm 2.3, CoordinatedReceive.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> for step in range(3):
        ...     comm.coordinated_send(step, dest=spcomm.ALL)
        ...     total = sum(message.data for message in comm.coordinated_messages())
        >>> total == 2 * comm.size
        True
        """
        return iterate_cycle(self, timeout_to_ns(timeout, "coordinated_messages"), copy)

    def barrier(self, timeout: SupportsFloat | None = None) -> None:
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
        wait_at_barrier(self, timeout)

    def fuzzy_barrier(self) -> FuzzyBarrier:
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
        return enter_fuzzy_barrier(self)

    def global_sum(self, x: _T) -> _T:
        """Return the sum of all nodes' values, on every node.

        Parameters
        ----------
        x : int, float, complex, bool, SimTime, numpy.ndarray of numbers or times, or a tuple of these
            Of the same type, and of arrays the same shape and dtype, on every node. A bool counts as int, a
            NumPy integer as int and a numpy.float64 as float. Times in an array are of `SimTime.dtype`.

        Returns
        -------
        int, float, complex, SimTime, numpy.ndarray or tuple
            For ints the exact sum, of any size. For `SimTime` the sum of the times, with priorities 0. For arrays
            the sum element by element, a new array of the same shape and dtype (integers wrap as NumPy's do; for
            bool arrays the counts, int64). For a tuple the sums of its items.

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
        arrays go through shared memory in tiles, and of a tuple each array by itself.

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
        return reduce_globally(self, SPC_SUM, "global_sum", x)

    def global_min(self, x: _T) -> _T:
        """Return the least of all nodes' values, on every node.

        Parameters
        ----------
        x : int, float, bool, SimTime, numpy.ndarray of real numbers or times, or a tuple of these
            As for `global_sum`, but not complex.

        Returns
        -------
        int, float, bool, SimTime, numpy.ndarray or tuple
            For `SimTime` the earliest, by time and then priorities; of equal ones that of the lowest rank. For an
            array the minimum element by element, a new array of the same shape and dtype; for a tuple the minima
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
        return reduce_globally(self, SPC_MIN, "global_min", x)

    def global_max(self, x: _T) -> _T:
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
        return reduce_globally(self, SPC_MAX, "global_max", x)

    def bcast(self, obj: _T, root: SupportsIndex = 0, copy: bool = True) -> _T:
        """Give an object of one node to all.

        Parameters
        ----------
        obj : object
            On the root, the object for all: anything that can be sent. On the others it is ignored; give None, say.
        root : int, optional
            The rank of the node whose object it is; the same on all nodes.
        copy : bool, optional
            False: where several nodes get the same large array, this one gets a read-only view of it in shared
            memory instead of a copy of its own, for as long as it likes. Each node decides for itself.

        Returns
        -------
        object
            On the root `obj` itself, elsewhere the root's object as it was sent: of the same type, private to the node.

        Raises
        ------
        RankError
            There is no such node; nothing was done.
        MismatchError
            Another node called something else, or gave another root. Raised on all nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError
            On the root: `obj` cannot be pickled. The others raise `SpcommError` with the reason; all have taken part.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits until all nodes have called it, while other threads of this node run. Interrupted by Ctrl-C it stays
        entered: the same call goes on, with the object given before.

        Cost: that of a `barrier`, and up to 4 KiB no more. Longer ones the root copies once, before it enters, and each
        of the others once (not at all with ``copy=False``, or where there is only one).

        ACLMPL 4 (broadcast).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> settings = {"steps": 10} if comm.rank == 0 else None
        >>> comm.bcast(settings)
        {'steps': 10}
        """
        return broadcast(self, obj, root, copy)

    def gather(self, obj: _T, root: SupportsIndex = 0) -> list[_T] | None:
        """Collect an object of each node on one node.

        Parameters
        ----------
        obj : object
            Anything that can be sent. The nodes may give objects of different types and sizes.
        root : int, optional
            The rank of the node that gets them; the same on all nodes.

        Returns
        -------
        list or None
            On the root the objects of all nodes, by rank; its own is a copy, as the others are. Elsewhere None.

        Raises
        ------
        RankError, MismatchError, NodeLostError
            As for `bcast`.
        TypeError
            `obj` cannot be pickled. Then the root raises `SpcommError` with the reason; all have taken part.
        SpcommError
            As for `bcast`; or on the root, what a node sent cannot be unpickled.

        Notes
        -----
        Waits until all nodes have called it, and on the root until all objects are there. Interrupted, it goes on as
        `bcast` does. Cost: that of a `barrier`, and up to 4 KiB no more. A longer object is copied once, by who gives
        it; a large array on the root is that memory.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> ranks = comm.gather(comm.rank)
        >>> ranks == (list(range(comm.size)) if comm.rank == 0 else None)
        True
        """
        return gather_on_root(self, obj, root)

    def allgather(self, obj: _T, copy: bool = True) -> list[_T]:
        """Collect an object of each node on all nodes.

        Parameters
        ----------
        obj : object
            As for `gather`.
        copy : bool, optional
            As for `bcast`.

        Returns
        -------
        list
            The objects of all nodes, by rank. This node's own is a copy, as the others are.

        Raises
        ------
        MismatchError, NodeLostError
            As for `bcast`.
        TypeError
            `obj` cannot be pickled. The others raise `SpcommError` with the reason; all have taken part.
        SpcommError
            As for `gather`.

        Notes
        -----
        Waits until all nodes have called it and all objects are here. Interrupted, it goes on as `bcast` does. Cost:
        that of a `barrier`, and up to 4 KiB no more; longer ones are copied as in `bcast`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.allgather(comm.rank * 10) == [rank * 10 for rank in range(comm.size)]
        True
        """
        return gather_on_all(self, obj, copy)

    def scatter(self, objs: Iterable[Any] | None, root: SupportsIndex = 0) -> Any:
        """Divide a sequence of one node among all nodes.

        Parameters
        ----------
        objs : sequence, iterable or numpy.ndarray
            On the root, one item for each node, in the order of their ranks; the first axis of an array has that
            length. The items may be of different types and sizes: ``numpy.array_split(a, comm.size)`` divides any
            array. On the others it is ignored; give None, say.
        root : int, optional
            The rank of the node whose sequence it is; the same on all nodes.

        Returns
        -------
        object
            The item for this node. The root gets a copy of its own, as the others do.

        Raises
        ------
        RankError, MismatchError, NodeLostError
            As for `bcast`.
        ValueError
            On the root: there are not as many items as nodes.
        TypeError
            On the root: `objs` is no sequence, or an item cannot be pickled. After either error the others raise
            `SpcommError`; all have taken part.
        SpcommError
            As for `bcast`; or the item cannot be unpickled.

        Notes
        -----
        Waits until all nodes have called it and the item is here. Interrupted, it goes on as `bcast` does. Cost: that
        of a `barrier`, and up to 4 KiB an item and 16 KiB in all no more. Longer items are copied once, by the root.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> whole = np.arange(10) if comm.rank == 0 else None
        >>> mine = comm.scatter(None if whole is None else np.array_split(whole, comm.size))
        >>> comm.global_sum(int(mine.sum()))
        45
        """
        return scatter_items(self, objs, root)

    def alltoall(self, objs: Iterable[Any]) -> list[Any]:
        """Give each node an object of its own, and get one of each.

        Parameters
        ----------
        objs : sequence, iterable or numpy.ndarray
            One item for each node, as for `scatter`.

        Returns
        -------
        list
            What the nodes gave to this one, by rank. This node's own item is a copy, as the others are.

        Raises
        ------
        MismatchError, NodeLostError
            As for `bcast`.
        ValueError, TypeError
            As for `scatter`. The others raise `SpcommError` with the reason; all have taken part.
        SpcommError
            As for `gather`.

        Notes
        -----
        Waits until all nodes have called it and all items are here. Interrupted, it goes on as `bcast` does. Costs as
        `scatter`, of every node.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> got = comm.alltoall([f"from {comm.rank} to {rank}" for rank in range(comm.size)])
        >>> got == [f"from {rank} to {comm.rank}" for rank in range(comm.size)]
        True
        """
        return exchange_items(self, objs)

    def reduce(self, x: _T, op: Op = SUM, root: SupportsIndex = 0, algorithm: str | None = None) -> _T | None:
        """Combine the values of all nodes, for one of them.

        Parameters
        ----------
        x, op, algorithm
            As for `allreduce`.
        root : int, optional
            The rank of the node that gets the result; the same on all nodes.

        Returns
        -------
        object or None
            On the root what `allreduce` would give, elsewhere None.

        Raises
        ------
        RankError
            There is no such node; nothing was done.
        MismatchError, NodeLostError, TypeError, ValueError, SpcommError
            As for `allreduce`. An exception of a program's operator is raised on the root, which applies it.

        Notes
        -----
        Waits, goes on after Ctrl-C and costs as `allreduce`, without the result where it is not wanted.

        ACLMPL 4.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> highest = comm.reduce(comm.rank, op=spcomm.MAX)
        >>> highest == (comm.size - 1 if comm.rank == 0 else None)
        True
        """
        return reduce_on_root(self, x, op, root, algorithm)

    def allreduce(self, x: _T, op: Op = SUM, algorithm: str | None = None) -> _T:
        """Combine the values of all nodes, for every node.

        Parameters
        ----------
        x : object
            For the operators of spcomm: int, float, complex, bool, SimTime, numpy.ndarray of numbers, bools or times,
            or a tuple of these; of the same type on every node, and of arrays the same shape and dtype. For `MINLOC`
            and `MAXLOC`: a tuple (value, index), or an array of dtype ``[('value', T), ('index', 'i8')]``. For an
            operator of the program: anything that can be sent.
        op : Op, optional
            `SUM`, `PROD`, `MIN`, `MAX`, `MINLOC`, `MAXLOC`; `LAND`, `LOR`, `LXOR`, also for floats, `BAND`, `BOR`,
            `BXOR` for ints and bools; or one made by `op`. The same on all nodes.
        algorithm : {None, 'tree', 'binary-swap', 'slices', 'flat'}, optional
            How values are combined. 'tree': the core's in steps, by the last node to come; those of a program's
            operator by pairs of nodes, then by pairs of these. 'flat': by each node that needs the result. 'slices':
            each node combines its slice of all arrays. 'binary-swap': two nodes exchange halves of their arrays, then
            halves of these with others. None: the one that was measured to be fastest. The same on all nodes.
            'slices' and 'binary-swap' are for arrays, and for operators that are elementwise; other values go 'flat'.

        Returns
        -------
        object
            Of the type of `x`, private to the node. `SUM` and `PROD` count bools, as ints, and those in arrays as
            int64; otherwise an array's dtype stays, in the machine's byte order, and its ints wrap, as NumPy's do. The
            logical ones give 0 or 1 of the type of `x`. For a tuple, the results of its items.

        Raises
        ------
        MismatchError
            Another node called something else, or gave another operator, algorithm, type, shape or dtype. Raised on all
            nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError
            `op` is no operator, or not one for such values; nothing was done. Or `x` cannot be pickled; then the
            others raise `SpcommError` with the reason.
        ValueError
            There is no such algorithm, or not for such an operator, or `x` has no axes for elements that have some;
            nothing was done.
        Exception
            An exception of a program's operator is raised on all nodes that applied it to those values: with 'flat' on
            all of them. With the others on some, and then the rest raise `SpcommError` with the reason; in `reduce`
            only those that need the result are sure to.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits until all nodes have called it, while other threads of this node run. Values are combined along one fixed
        tree over the ranks, ``v[i] = v[i] op v[i + 2**k]``, whatever the algorithm: floating-point results are bitwise
        the same on all nodes, in all runs of that many nodes. Interrupted by Ctrl-C it stays entered: the same call
        goes on with the value given before, which must not be changed meanwhile if it is an array.

        Cost: numbers by `SUM`, `MIN` and `MAX` as a `barrier`. Arrays of ints, float32, float64, complex64, complex128,
        bool, times and pairs are combined in shared memory; a large array is copied once, and the result not at all.
        Other arrays go by 'slices' from 64 KiB on, if `op` is elementwise: an `alltoall` and an `allgather`. All else
        costs an `allgather`, and one application of `op` less than there are nodes, on each node; if it takes long,
        'tree' applies it as often in all.

        ACLMPL 4; SpeedesComm 2.2.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> bool((comm.allreduce(np.ones(3)) == comm.size).all())
        True
        >>> comm.allreduce((comm.rank * 2.5, comm.rank), op=spcomm.MINLOC)
        (0.0, 0)
        """
        return reduce_on_all(self, x, op, algorithm)

    def scan(self, x: _T, op: Op = SUM) -> _T:
        """Combine the values of this node and of all of lower ranks.

        Parameters
        ----------
        x, op
            As for `allreduce`.

        Returns
        -------
        object
            What `allreduce` would give if there were no nodes of higher ranks; bitwise, too.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `allreduce`. An exception of a program's operator is raised on the nodes that applied it to those
            values.

        Notes
        -----
        Waits until all nodes have called it, and goes on after Ctrl-C, as `allreduce`. Cost: of arrays as `allreduce`,
        of all else an `allgather`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.scan(1) == comm.rank + 1
        True
        """
        return reduce_along(self, SPC_OPERATION_ARRAY_SCAN, "scan", op, x)

    def exscan(self, x: _T, op: Op = SUM) -> _T | None:
        """Combine the values of all nodes of lower ranks.

        Parameters
        ----------
        x, op
            As for `allreduce`.

        Returns
        -------
        object or None
            What `scan` gives on the node before; None on node 0.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `scan`.

        Notes
        -----
        Waits, and costs, as `scan`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> mine = 100  # elements of a file, say: where do they begin?
        >>> (comm.exscan(mine) or 0) == 100 * comm.rank
        True
        """
        return reduce_along(self, SPC_OPERATION_ARRAY_EXSCAN, "exscan", op, x)

    def reduce_scatter(
        self, x: Iterable[Any], op: Op = SUM, counts: Sequence[SupportsIndex] | None = None
    ) -> Any:
        """Combine what all nodes give, and divide the result among them.

        Parameters
        ----------
        x : numpy.ndarray, sequence or iterable
            An array, whose first axis is divided; the same shape and dtype on every node. Or one item for each node, in
            the order of their ranks, each of which may be of another type.
        op : Op, optional
            As for `allreduce`. One of the program is given a node's rows of an array, or two items.
        counts : sequence of ints, optional
            How many rows of an array each node gets, by rank; the same on all nodes. None: equally many, and one more
            on the first nodes if there is a rest.

        Returns
        -------
        object
            This node's rows of the combined array, or its combined item.

        Raises
        ------
        MismatchError, NodeLostError, SpcommError
            As for `allreduce`, and for other counts.
        TypeError, ValueError
            As for `allreduce`; or the counts are negative, not one for each node, or not as many together as there are
            rows; an array has no axes; there is not one item for each node. Nothing was done.
        Exception
            What an operator of the program raises comes out on the node whose part it was applied to.

        Notes
        -----
        Waits until all nodes have called it, and goes on after Ctrl-C, as `allreduce`. Cost: of arrays that the core
        combines, each is copied once, and each node combines its own rows; of all else an `alltoall`.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> rows = comm.reduce_scatter(np.ones((2 * comm.size, 3)))
        >>> rows.shape, float(rows[0, 0]) == comm.size
        ((2, 3), True)
        """
        return reduce_and_divide(self, x, op, counts)

    def split(self, color: SupportsIndex | None = 0, key: SupportsIndex = 0) -> Comm | None:
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
            The shared memory has no room for another communicator (``--arena``); or 16,383 are open, the most there
            may be at once, among which one with nodes of several boxes counts even when it is closed; or as for
            `barrier`.

        Notes
        -----
        Waits until all nodes have called it: one collective operation, two where nodes have split differently before,
        and one message to each member. All operations of a `Comm` are there, and those of different communicators
        never meet: neither messages, with `ANY` or not, nor barriers. Memory: about 10 KiB a member in the arena of the
        part's node 0, until all members have closed and dropped it.

        The part lives until its `close`, the end of its ``with`` block, or the end of the program. A wait for a
        node that has closed it raises `NodeLostError`; messages sent to that node and not received are dropped.

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
        return divide(self, color, key)

    def region(self, name: str) -> Region:
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

    def work(self, cost: SupportsFloat) -> None:
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
        Local: it waits for no other node, and neither sends nor receives. While it sleeps other threads of this node
        run, as do other nodes, so that eight nodes work side by side on two cores; Ctrl-C ends it at once.

        ``spcomm run --virtual`` shows how long the program takes where only declared work takes time: exact numbers,
        however busy the machine is. Traces show the call as computing, with its cost.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.work(2.5)
        """
        regions.work(self, cost)

    def time(self) -> float:
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

    def rng(self, seed: int | Sequence[int]) -> np.random.Generator:
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
        return np.random.default_rng(seed_of(self, seed))

    def close(self, timeout: SupportsFloat | None = 10.0) -> None:
        """Send queued messages, and leave. The normal end of a program does it by itself.

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
        leave(self, timeout)


cdef int box_of(Handle whole, int32_t rank):
    return <int>spc_comm_box(whole.core, <uint32_t>rank)


cdef int local_rank(Handle whole, int32_t rank):
    """The number of nodes before it in the same box."""
    cdef int32_t other
    cdef int found = 0
    for other in range(rank):
        found += spc_comm_box(whole.core, <uint32_t>other) == spc_comm_box(whole.core, <uint32_t>rank)
    return found


cdef list layout_of(Comm comm):
    cdef Handle whole = first_of(comm)
    places = [box_of(whole, member) for member in range(whole.node_count)]
    return [NodeLayout(rank, places[member], local_rank(whole, member), places.index(places[member]))
            for rank, member in enumerate(comm.members)]


cdef object seed_of(Comm comm, object seed):
    """The seed of this node's stream of random numbers."""
    try:
        return np.random.SeedSequence(seed, spawn_key=(comm.rank_number,))
    except (TypeError, ValueError) as error:
        raise errors.bad_seed(seed, error) from None


cdef object divide(Comm comm, object color, object key):
    """This node's part of the communicator, or None."""
    cdef Part part = Part.__new__(Part)
    cdef int64_t color_number = -1 if color is None else split_number("color", color)
    cdef int64_t key_number = split_number("key", key)
    cdef int status
    if color is not None and color_number < 0:
        raise errors.bad_color(color)
    part.parent = comm
    with nogil:
        status = spc_comm_split(comm.core, color_number, key_number, SPC_NO_DEADLINE, &part.core)
    if status == SPC_ENOMEM or status == SPC_ELIMIT:
        raise errors.cannot_split(color, status == SPC_ELIMIT)
    if status != SPC_OK:
        fail(comm, status, f"split(color={color}, key={key})")
    return None if part.core == NULL else type(comm)(part, None, comm.group)


cdef int leave(Comm comm, object timeout) except -1:
    cdef int64_t limit = timeout_to_ns(timeout, "close")
    cdef int status
    before_close(comm)
    with nogil:
        status = spc_comm_close(comm.core, deadline_of(limit))
    if comm.handlers is not None and spc_comm_usable(comm.core) != SPC_OK:
        forget_handlers(comm)
    if status != SPC_OK and status != SPC_ECLOSED and status != SPC_EFORKED:
        fail(comm, status, f"close(timeout={timeout})")
    return 0


cdef int before_close(Comm comm) except -1:
    """Write a note of the place, and of what is open."""
    if spc_comm_usable(comm.core) != SPC_OK:
        return 0
    if comm.parent is None:
        exit_text.closed()
    begun = comm.cycle_begun or comm.cycle_receiving
    entered = next(iter(comm.entered.values()), None) if comm.entered else None
    handle.leave_open(comm, entered, (begun[1], begun[2], "") if begun is not None else None)
    handle.tell_sent(comm)
    return 0


cdef int64_t split_number(str name, object value) except? -1:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise errors.bad_split_type(name, value)
    try:
        return index(value)
    except OverflowError:
        raise errors.bad_split_number(name, value) from None


def abandon(Comm comm) -> None:
    """Leave the news of this node's end to whoever watches its process: it fails, so it has not finished."""
    comm.abandoned = True


def is_open(Comm comm) -> bool:
    """Whether the node may communicate: not closed, and not a forked copy."""
    return spc_comm_usable(comm.core) == SPC_OK


def limits(Comm comm) -> dict[str, Any]:
    """The configuration that the nodes of this run agreed on: a dict of numbers, for tests and tools."""
    config = spc_comm_config(comm.core)[0]
    return {key: index(value) for key, value in config.items()}


cdef int hide_annotations() except -1:
    """Leave them to the stubs: `help(comm.send)` would show them in quotes, longer than the names."""
    from spcomm._core import arguments, collectives, p2p, simtime

    for owner in (Comm, arguments.RankSet, arguments.Destination, collectives.FuzzyBarrier, p2p.CoordinatedMessages,
                  regions.Region, simtime.SimTime):
        for found in vars(owner).values():
            method = getattr(found, "__func__", found)
            if getattr(method, "__annotations__", None):
                method.__annotations__ = {}
    return 0


hide_annotations()
