# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The part of `Comm` for coordinated messages: cycles in which nobody knows beforehand how much will come."""

from libc.stdint cimport int64_t

from spcomm._core.arguments cimport Targets, find_targets
from spcomm._core.arrays cimport NOGIL_BYTES, Encoded
from spcomm._core.codec cimport encode
from spcomm._core.exchange cimport as_message
from spcomm._core.handle cimport Handle, deadline_of, fail, timeout_to_ns
from spcomm._core.libspc cimport (
    SPC_EAGAIN,
    SPC_OK,
    spc_bool,
    spc_comm_coordinated_poll,
    spc_comm_coordinated_recv,
    spc_comm_coordinated_send,
    spc_comm_coordinated_try_send,
    spc_message_t,
)

from sys import _getframe

from spcomm._core import errors


cdef object here(str call):
    """The call that begins something, and its line in the program: for the words of a CycleError."""
    try:
        frame = _getframe(0)  # the caller's: compiled functions have none
    except ValueError:  # a thread that C has made
        return (call, "", 0)
    if frame.f_back is not None and frame.f_globals.get("__name__") == "spcomm.speedes":
        frame = frame.f_back
    return (call, frame.f_code.co_filename, frame.f_lineno)


cdef int send(Handle self, object value, object dest, object timeout) except -1:
    cdef Encoded encoded
    cdef Targets targets
    cdef int64_t limit = timeout_to_ns(timeout, "coordinated_send")
    cdef object _targets = find_targets(self, dest, &targets, "coordinated_send")
    cdef object _payload = encode(value, &encoded, "coordinated_send")  # both keep alive what C points to
    cdef int status = SPC_EAGAIN
    if encoded.payload.data_bytes < NOGIL_BYTES:
        status = spc_comm_coordinated_try_send(self.core, targets.ranks, targets.count, &encoded.payload)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_coordinated_send(self.core, targets.ranks, targets.count, &encoded.payload,
                                               deadline_of(limit))
    if status != SPC_OK:
        fail(self, status, (errors.send_call, "coordinated_send", dest, 0))
    if self.cycle_begun is None:
        self.cycle_begun = here("coordinated_send()")
    return 0


cdef str words(object timeout_ns):
    return "coordinated_recv()" if timeout_ns < 0 else f"coordinated_recv(timeout={timeout_ns / 1e9:g})"


cdef object receive(Handle self, int64_t timeout_ns, bint copy):
    """The next message, or None at the end of the cycle."""
    cdef spc_message_t message
    cdef spc_bool over = False
    cdef object receiving = self.cycle_receiving
    cdef int status
    if receiving is None:
        receiving = self.cycle_receiving = here("coordinated_recv()")
    status = spc_comm_coordinated_poll(self.core, &message, &over)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_coordinated_recv(self.core, deadline_of(timeout_ns), &message, &over)
    if status != SPC_OK:
        fail(self, status, (words, timeout_ns))
    if over:
        self.cycle_begun = None
        self.cycle_receiving = None
        return None
    message.tag = 0  # the cycle's number is nobody's concern
    return as_message(self, &message, copy)


cdef class CoordinatedMessages:
    """The messages of a cycle, one after another. Made by `Comm.coordinated_messages`."""

    def __init__(self):
        raise TypeError("CoordinatedMessages(): it is made by comm.coordinated_messages()")

    def __iter__(self):
        return self

    def __next__(self):
        cdef object message
        if self.over or self.handle is None:
            raise StopIteration  # also when the next cycle has begun
        message = receive(self.handle, self.timeout_ns, self.copy)
        if message is None:
            self.over = True
            raise StopIteration
        return message


cdef class Coordinated(Handlers):
    """Coordinated messages. See `Comm`."""

    def coordinated_send(self, obj, dest, timeout=None):
        """Send an object to one node or several, within a cycle of coordinated messages.

        A cycle: every node sends as many coordinated messages as it likes, to whom it likes, then every node
        receives until it is told that there are no more. It begins with the first of these calls and ends
        when `coordinated_recv` returns None; then the next may begin. All nodes take part in all cycles,
        with or without messages.

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
        Does not wait for the receiver; waits, copies and costs as `send`. Messages of one node to another
        arrive in the order sent. Receives of ordinary messages never see them. A message to `PROC_NULL` is
        sent to nobody, and begins a cycle, too.

        SpeedesComm 2.3, CoordinatedSend.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.coordinated_send("hello", dest=spcomm.ALL)
        >>> sorted(message.source for message in comm.coordinated_messages()) == list(range(comm.size))
        True
        """
        send(self, obj, dest, timeout)

    def coordinated_recv(self, timeout=None, copy=True):
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
            A node has ended without receiving in this cycle, or before it could send what it had announced.
            Messages that are here are handed over first.
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
        return receive(self, timeout_to_ns(timeout, "coordinated_recv"), copy)

    def coordinated_messages(self, timeout=None, copy=True):
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
        cdef CoordinatedMessages messages = CoordinatedMessages.__new__(CoordinatedMessages)
        messages.handle = self
        messages.timeout_ns = timeout_to_ns(timeout, "coordinated_messages")
        messages.copy = copy
        return messages
