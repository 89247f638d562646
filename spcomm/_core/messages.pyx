# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The half of `Comm` that sends and receives. What the methods do is in exchange.pyx."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from spcomm._core.arguments cimport NOBODY, source_from, tag_or_any
from spcomm._core.exchange cimport (
    as_message,
    before_receive,
    check_receive,
    fail_receive,
    receive,
    receive_data,
    run_handlers,
    transmit,
    transmit_and_wait,
)
from spcomm._core.handle cimport deadline_of, fail, timeout_to_ns
from spcomm._core.libspc cimport (
    SPC_ANY_SOURCE,
    SPC_CONTEXT_USER,
    SPC_EAGAIN,
    SPC_OK,
    spc_comm_poll,
    spc_comm_probe,
    spc_comm_take,
    spc_comm_try_recv,
    spc_message_t,
)

from spcomm._core import errors, names

cdef object ANY = names.ANY
cdef object PROC_NULL = names.PROC_NULL
cdef object Message = names.Message
cdef object recv_call = errors.recv_call


cdef class Messages(Collectives):
    """Sending and receiving. See `Comm`."""

    def send(self, obj, dest, tag=0, timeout=None):
        """Send an object to one node or several.

        Parameters
        ----------
        obj : object
            Anything that can be pickled. None, bool, int, float, `SimTime`, str, bytes, tuples of these and NumPy
            arrays go without pickle. It is copied: it may be changed as soon as the call returns.
        dest : int, iterable of ints, Destination, ALL, OTHERS or PROC_NULL
            The receiver's rank, 0 to ``size - 1``. Of several, each node gets the message once, however often
            it is named. `ALL` is every node, this one too; `OTHERS` every node but this one; `PROC_NULL`
            nobody.
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
        and sent by later calls. send waits only while the messages that this node has sent and nobody has
        received are at the limit (``--queue-limit``). Messages from one node to another arrive in the order
        sent. A message to a node that has ended is dropped.

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
        transmit(self, "send", obj, dest, tag, -1 if timeout is None else timeout_to_ns(timeout, "send"))

    def ssend(self, obj, dest, tag=0, timeout=None):
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
            The communicator is closed; or 256 messages to `dest` whose `ssend` timed out are still there.

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
        transmit_and_wait(self, obj, dest, tag, -1 if timeout is None else timeout_to_ns(timeout, "ssend"))

    def recv(self, source=ANY, tag=ANY, out=None, timeout=None, copy=True):
        """Wait for a message and return what was sent.

        Parameters
        ----------
        source : int, ANY or PROC_NULL, optional
            The sender's rank; `ANY` (default): whoever. From `PROC_NULL` None comes at once.
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
            The object, new, of the type that was sent, writable and seen by nobody else (unless
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
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "recv")
        return receive_data(self, "recv", source, tag, out, limit, copy)

    def recv_message(self, source=ANY, tag=ANY, timeout=None, copy=True):
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
        cdef spc_message_t message
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "recv_message")
        if receive(self, "recv_message", source, tag, limit, &message) != 0:
            return Message(None, PROC_NULL, tag)
        return as_message(self, &message, copy)

    def try_recv_message(self, source=ANY, tag=ANY, copy=True):
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
        cdef spc_message_t message
        cdef int32_t number = tag_or_any(tag, "try_recv_message", "tag")
        cdef int32_t rank = source_from(self, source, "try_recv_message")
        cdef int status
        if rank == NOBODY:
            return Message(None, PROC_NULL, tag)
        if self.handlers is not None:
            before_receive(self, "try_recv_message", number)
        status = spc_comm_try_recv(self.core, SPC_CONTEXT_USER, rank, number, &message)
        if status == SPC_EAGAIN:
            return None
        if status != SPC_OK:
            fail(self, status, (recv_call, "try_recv_message", source, tag))
        return as_message(self, &message, copy)

    def take_message(self, tag=ANY):
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
        cdef spc_message_t message
        cdef int32_t number = tag_or_any(tag, "take_message", "tag")
        cdef int status
        with nogil:
            status = spc_comm_take(self.core, SPC_CONTEXT_USER, SPC_ANY_SOURCE, number, &message)
        if status == SPC_EAGAIN:
            return None
        if status != SPC_OK:
            fail(self, status, (recv_call, "take_message", ANY, tag))
        return as_message(self, &message, True)

    def poll(self):
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
        cdef uint64_t waiting = 0
        cdef int status
        if self.handlers is not None:
            run_handlers(self)
        with nogil:
            status = spc_comm_poll(self.core, SPC_CONTEXT_USER, &waiting)
        if status != SPC_OK:
            fail(self, status, "poll()")
        return waiting

    def probe(self, source=ANY, tag=ANY, timeout=None):
        """Wait for a message, say from whom and with which tag it is, and leave it where it is.

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
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "probe")
        cdef int32_t number = tag_or_any(tag, "probe", "tag")
        cdef int32_t rank = source_from(self, source, "probe")
        cdef int32_t found_source = 0
        cdef int32_t found_tag = 0
        cdef uint64_t length = 0
        cdef int status
        if rank == NOBODY:
            return Message(None, PROC_NULL, tag)
        if self.handlers is not None:
            before_receive(self, "probe", number)
        with nogil:
            status = spc_comm_probe(self.core, SPC_CONTEXT_USER, rank, number, deadline_of(limit),
                                    &found_source, &found_tag, &length)
        if status != SPC_OK:
            fail_receive(self, status, rank, number, (recv_call, "probe", source, tag, limit))
        return Message(None, found_source, found_tag)

    def sendrecv(self, obj, dest, source=ANY, tag=0, recv_tag=None, out=None, timeout=None):
        """Send an object, and wait for one: an exchange in which nobody can wait in a circle.

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
        Waits as `recv` does, and makes the same copies as `send` and `recv`. What has no room is queued, however
        long it is, and not waited for: so exchanges in circles, of all nodes with all and with oneself come to
        their end. ACLMPL 4 (send-and-receive).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        >>> comm.sendrecv(comm.rank, dest=right, source=left) == left
        True
        """
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "sendrecv")
        if recv_tag is None:
            recv_tag = tag
        check_receive(self, source, recv_tag, out)
        transmit(self, "sendrecv", obj, dest, tag, limit)
        return receive_data(self, "sendrecv", source, recv_tag, out, limit, True)
