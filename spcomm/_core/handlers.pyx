# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The part of `Comm` for active messages: messages that a function of the receiver takes, whenever it waits."""

from libc.stdint cimport int32_t

from spcomm._core.arguments cimport send_tag
from spcomm._core.exchange cimport run_handlers
from spcomm._core.handle cimport Handle, fail, first_of
from spcomm._core.libspc cimport SPC_OK, spc_comm_handle

from spcomm._core import value_errors


def call_handlers(Handle handle):
    """What a wait calls: see handle.pyx."""
    run_handlers(handle)


def forget(Handle handle):
    """After it has closed: nothing comes any more."""
    cdef Handle first = first_of(handle)
    if handle in first.handling:
        first.handling.remove(handle)


cdef int register(Handle self, int32_t tag, object function) except -1:
    cdef Handle first = first_of(self)
    cdef int status
    cdef object before
    if not callable(function):
        raise value_errors.bad_handler(tag, function)
    if self.handlers is None:
        self.handlers = {}
        first.run_handlers = call_handlers
        first.handling.append(self)
    before = self.handlers.get(tag)
    self.handlers[tag] = function  # before any message of it is filed as one for handlers
    status = spc_comm_handle(self.core, tag)
    if status != SPC_OK:
        if before is None:
            del self.handlers[tag]
        else:
            self.handlers[tag] = before
        if not self.handlers:
            self.handlers = None
            first.handling.remove(self)
        fail(self, status, f"handler(tag={tag})")
    return 0


cdef class Handlers(Blocks):
    """Active messages. See `Comm`."""

    def handler(self, tag):
        """Decorate a function that is to be called with each message of a tag (an active message).

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
            There is no such tag, or what is decorated cannot be called.
        SpcommError
            The communicator is closed.

        Notes
        -----
        The sender knows nothing of it: it calls `send`, or any other call that sends. The function is called with one
        argument, a `Message`, whose data is this node's own, by `poll`, by receiving calls before they look for their
        message, and while this node waits in any call; by one thread at a time of those that wait. Nothing else calls
        it: while a node computes, messages wait. Receives never see messages of this tag, and asking for the tag raises
        `TagError`. What came before there was a function is handed to it, too. Messages that have come when the node
        ends, and were not handled, count as never received.

        The function may send and receive; while it waits itself, other messages are handled within. It takes part in no
        collective operation of the same communicator. What it raises comes out of the call that called it, which then
        has done nothing: a receive has taken no message, a collective operation stays entered, as after Ctrl-C.

        Cost: with no handler, nothing but a test for it. A handled message costs what its receive would have.

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
            register(self, number, function)
            return function

        return decorate
