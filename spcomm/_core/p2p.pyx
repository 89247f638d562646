# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Messages, underneath the methods of `Comm`: ordinary ones, handlers of active ones, and coordinated ones. This module
joins arguments, codec and core.

Each call tries first with the interpreter's lock held, which is cheapest when there is something to do, and releases it
only to wait or to copy much; a receive of much into `out` releases it at once. No lock of the core is held while Python
code runs.
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from spcomm._core.arguments cimport (
    NOBODY,
    Targets,
    find_targets,
    one_target,
    send_tag,
    source_from,
    tag_or_any,
)
from spcomm._core.arrays cimport Encoded, check_out, encode_array, is_array, receive_into
from spcomm._core.codec cimport decode, encode
from spcomm._core.handle cimport Handle, add_near, deadline_of, fail, first_of, timeout_to_ns
from libspc cimport *
from spcomm._core.regions cimport record_handling

import sys
from sys import _getframe

from spcomm._core import call_site, error_text, errors, names

if False:  # for the stub alone
    from spcomm._core.names import Message

cnp.import_array()

cdef enum:
    SINK_BYTES = 262144      # below this, a message in parts does not justify releasing the interpreter's lock at once

cdef extern from *:
    """
    /* A tuple subclass without a dict is filled in like a tuple: much cheaper than calling it. */
    static PyObject *spcpy_new_triple(PyObject *type, PyObject *a, PyObject *b, PyObject *c) {
        PyObject *triple = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 3);
        if (triple != NULL) {
            PyTuple_SET_ITEM(triple, 0, Py_NewRef(a));
            PyTuple_SET_ITEM(triple, 1, Py_NewRef(b));
            PyTuple_SET_ITEM(triple, 2, Py_NewRef(c));
        }
        return triple;
    }
    """
    object spcpy_new_triple(object type, object a, object b, object c)

cdef object ANY = names.ANY
cdef object PROC_NULL = names.PROC_NULL
cdef object Message = names.Message
cdef object send_call = errors.send_call
cdef object recv_call = errors.recv_call


# ---- sending


cdef int transmit(Handle self, str name, object value, object dest, object tag,
                  int64_t timeout_ns) except -1:
    cdef Encoded encoded
    cdef Targets targets
    cdef int32_t number = send_tag(tag, name, "tag")
    cdef object _targets = find_targets(self, dest, &targets, name)
    cdef object _payload  # keeps the memory behind `encoded` alive, as _targets does for `targets`
    cdef spc_send_call_t call
    cdef bint receives_next = name == "sendrecv"
    cdef int status
    if targets.count == 0:
        status = spc_comm_usable(self.core)
        return 0 if status == SPC_OK else fail(self, status, (send_call, name, dest, tag))
    if self.strict:
        remember(self, &targets, number)
    _payload = encode(value, &encoded, name)
    status = spc_comm_try_send(self.core, targets.ranks, targets.count, SPC_CONTEXT_USER, number, &encoded.payload,
                               &call)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_finish_send(self.core, &call, receives_next, deadline_of(timeout_ns))
    if status != SPC_OK:
        fail(self, status, (send_call, name, dest, tag))
    return 0


cdef int transmit_and_wait(Handle self, object value, object dest, object tag, int64_t timeout_ns) except -1:
    cdef Encoded encoded
    cdef int32_t number = send_tag(tag, "ssend", "tag")
    cdef int32_t rank = one_target(self, dest, "ssend")
    cdef object _payload  # keeps the memory behind `encoded` alive
    cdef int status = spc_comm_usable(self.core)
    if status != SPC_OK:
        fail(self, status, (send_call, "ssend", dest, tag))
    if rank == NOBODY:
        return 0
    if rank == self.rank_number and len(sys._current_frames()) == 1:
        raise errors.ssend_to_itself(dest)
    _payload = encode(value, &encoded, "ssend")
    with nogil:
        status = spc_comm_ssend(self.core, rank, SPC_CONTEXT_USER, number, &encoded.payload,
                                deadline_of(timeout_ns))
    if status != SPC_OK:
        fail(self, status, (send_call, "ssend", dest, tag))
    return 0


cdef int remember(Handle self, const Targets *targets, int32_t tag) except -1:
    """Record the line of the last message to each node, for warnings about unreceived messages (--strict)."""
    cdef uint32_t i
    cdef object place = call_site.of_caller()
    if self.sent is None:
        self.sent = {}
    for i in range(targets.count):
        self.sent.pop((targets.ranks[i], tag), None)
        self.sent[(targets.ranks[i], tag)] = place
    return 0


# ---- receiving


cdef int receive(Handle self, str name, object source, object tag, int64_t timeout_ns,
                 spc_message_t *message, spc_sink_t *sink=NULL) except -1:
    """Wait for a message; with `sink`, its data may go there. Return 0, or 1 if the source is PROC_NULL."""
    cdef int32_t number = tag_or_any(tag, name, "tag")
    cdef int32_t rank = source_from(self, source, name)
    cdef spc_recv_call_t call
    cdef int status
    if rank == NOBODY:
        status = spc_comm_usable(self.core)
        return 1 if status == SPC_OK else fail(self, status, (recv_call, name, source, tag))
    if self.handlers is not None:
        before_receive(self, name, number)
    if sink != NULL:
        with nogil:
            status = spc_comm_recv_into(self.core, SPC_CONTEXT_USER, rank, number, deadline_of(timeout_ns), sink,
                                        message)
    else:
        status = spc_comm_poll_recv(self.core, SPC_CONTEXT_USER, rank, number, message, &call)
        if status == SPC_EAGAIN:
            with nogil:
                status = spc_comm_finish_recv(self.core, &call, deadline_of(timeout_ns))
    if status != SPC_OK:
        fail_receive(self, status, rank, number, (recv_call, name, source, tag, timeout_ns))
    return 0


cdef int fail_receive(Handle self, int status, int32_t source, int32_t tag, object call) except -1:
    """Raise as `fail` does; the text mentions a message that nearly matches."""
    try:
        fail(self, status, call)
    except (errors.NodeLostError, errors.WaitTimeoutError) as error:
        add_near(self, error, source, tag)
        raise


cdef object receive_data(Handle self, str name, object source, object tag, object out, int64_t timeout_ns,
                         bint copy):
    cdef spc_message_t message
    if out is not None:
        check_out(out)
        return receive_out(self, name, source, tag, out, timeout_ns)
    if receive(self, name, source, tag, timeout_ns, &message) != 0:
        return None
    return decode(self, &message, copy)


cdef object as_sink(object out, Encoded *expected, spc_sink_t *sink):
    """Point the receive at the data of an array like `out`. Return the object that must stay alive, or None."""
    cdef cnp.ndarray target = <cnp.ndarray>out
    cdef int needed = cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED
    cdef object kept
    if not is_array(out) or cnp.PyArray_NBYTES(target) < SINK_BYTES or cnp.PyArray_FLAGS(target) & needed != needed:
        return None
    kept = encode_array(out, expected)
    sink.data = cnp.PyArray_DATA(target)
    sink.data_bytes = expected.payload.data_bytes
    sink.meta = expected.payload.meta
    sink.meta_bytes = expected.payload.meta_bytes
    sink.format = expected.payload.format
    return kept


cdef object receive_out(Handle self, str name, object source, object tag, object out, int64_t timeout_ns):
    cdef spc_message_t message
    cdef Encoded expected
    cdef spc_sink_t sink
    cdef object _expected = as_sink(out, &expected, &sink)  # keeps the memory behind `sink` alive
    sink.filled = False
    if receive(self, name, source, tag, timeout_ns, &message, NULL if _expected is None else &sink) != 0:
        return None
    if not sink.filled:
        return receive_into(self, &message, out)
    spc_message_release(self.core, &message)
    return out


cdef object receive_message(Handle self, object source, object tag, int64_t timeout_ns, bint copy):
    cdef spc_message_t message
    if receive(self, "recv_message", source, tag, timeout_ns, &message) != 0:
        return Message(None, PROC_NULL, tag)
    return as_message(self, &message, copy)


cdef object as_message(Handle self, spc_message_t *message, bint copy):
    cdef int32_t source = message.source
    cdef int32_t tag = message.tag
    return spcpy_new_triple(Message, decode(self, message, copy), source, tag)


cdef object try_receive(Handle self, object source, object tag, bint copy):
    """Return a message, or None."""
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


cdef object take_received(Handle self, object tag):
    """Return a message from the queues, or None."""
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


cdef object poll_messages(Handle self):
    """Return the number of messages in the queues."""
    cdef uint64_t waiting = 0
    cdef int status
    if self.handlers is not None:
        run_handlers(self)
    with nogil:
        status = spc_comm_poll(self.core, SPC_CONTEXT_USER, &waiting)
    if status != SPC_OK:
        fail(self, status, "poll()")
    return waiting


cdef object probe_message(Handle self, object source, object tag, int64_t timeout_ns):
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
        status = spc_comm_probe(self.core, SPC_CONTEXT_USER, rank, number, deadline_of(timeout_ns),
                                &found_source, &found_tag, &length)
    if status != SPC_OK:
        fail_receive(self, status, rank, number, (recv_call, "probe", source, tag, timeout_ns))
    return Message(None, found_source, found_tag)


# ---- both


cdef object exchange(Handle self, object value, object dest, object source, object tag, object recv_tag, object out,
                     int64_t timeout_ns):
    if recv_tag is None:
        recv_tag = send_tag(tag, "sendrecv", "tag")
    check_receive(self, source, recv_tag, out)
    transmit(self, "sendrecv", value, dest, tag, timeout_ns)
    return receive_data(self, "sendrecv", source, recv_tag, out, timeout_ns, True)


cdef int check_receive(Handle self, object source, object tag, object out) except -1:
    """Check the second half of an exchange before the first one starts."""
    source_from(self, source, "sendrecv")
    tag_or_any(tag, "sendrecv", "recv_tag")
    if out is not None:
        check_out(out)
    return 0


# ---- handlers of active messages


cdef int register_handler(Handle self, int32_t tag, object function) except -1:
    cdef Handle first = first_of(self)
    cdef int status
    cdef object before
    if not callable(function):
        raise error_text.bad_handler(tag, function)
    if self.handlers is None:
        self.handlers = {}
        first.run_handlers = call_handlers
        first.handling.append(self)
    before = self.handlers.get(tag)
    self.handlers[tag] = function  # before any of its messages is filed for handlers
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


cdef int forget_handlers(Handle handle) except -1:
    """Close the handlers after the communicator has closed: no more messages come."""
    cdef Handle first = first_of(handle)
    if handle in first.handling:
        first.handling.remove(handle)
    return 0


def call_handlers(Handle handle) -> None:
    """Run handlers, as the callback of a wait: see handle.pyx."""
    run_handlers(handle)


cdef int before_receive(Handle self, str name, int32_t tag) except -1:
    """Receive in a communicator that has handlers."""
    if tag in self.handlers:
        raise error_text.tag_has_handler(name, tag, self.handlers[tag])
    return run_handlers(self)


cdef int run_handlers(Handle self) except -1:
    """Call the handlers of messages that have come for them, in order of arrival."""
    cdef spc_message_t message
    cdef object received
    while spc_comm_take_handled(self.core, &message) == SPC_OK:
        received = as_message(self, &message, True)
        call_handler(self, received)
    return 0


cdef int call_handler(Handle self, object received) except -1:
    cdef spc_trace_t *trace = spc_comm_trace(self.core)
    if trace == NULL:
        self.handlers[received.tag](received)
        return 0
    record_handling(trace, SPC_TRACE_HANDLE, spc_comm_rank_in_run(self.core, received.source), received.tag)
    try:
        self.handlers[received.tag](received)
    finally:
        record_handling(trace, SPC_TRACE_HANDLED, 0, 0)
    return 0


# ---- coordinated messages


cdef object here(str call):
    """Return the call that begins an operation, and its line in the program: for the texts of a CycleError."""
    try:
        frame = _getframe(0)  # the caller's frame: compiled functions have none
    except ValueError:  # a thread that C created
        return (call, "", 0)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "spcomm.speedes":
        frame = frame.f_back
    return (call, frame.f_code.co_filename, frame.f_lineno)


cdef int coordinated_send(Handle self, object value, object dest, object timeout) except -1:
    cdef Encoded encoded
    cdef Targets targets
    cdef int64_t limit = timeout_to_ns(timeout, "coordinated_send")
    cdef object _targets = find_targets(self, dest, &targets, "coordinated_send")
    cdef object _payload = encode(value, &encoded, "coordinated_send")  # both keep alive the memory that C points to
    cdef spc_send_call_t call
    cdef int status = spc_comm_coordinated_try_send(self.core, targets.ranks, targets.count, &encoded.payload, &call)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_finish_send(self.core, &call, True, deadline_of(limit))
    if status != SPC_OK:
        fail(self, status, (errors.send_call, "coordinated_send", dest, 0))
    if self.cycle_begun is None:
        self.cycle_begun = here("coordinated_send()")
    return 0


cdef str coordinated_recv_call(object timeout_ns):
    return "coordinated_recv()" if timeout_ns < 0 else f"coordinated_recv(timeout={timeout_ns / 1e9:g})"


cdef object coordinated_receive(Handle self, int64_t timeout_ns, bint copy):
    """Return the next message, or None at the end of the cycle."""
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
        fail(self, status, (coordinated_recv_call, timeout_ns))
    if over:
        self.cycle_begun = None
        self.cycle_receiving = None
        return None
    message.tag = 0  # the cycle's number is internal
    return as_message(self, &message, copy)


cdef class CoordinatedMessages:
    """The messages of a cycle, one after another. Made by `Comm.coordinated_messages`."""

    def __init__(self):
        raise TypeError("CoordinatedMessages(): it is made by comm.coordinated_messages()")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        cdef object message
        if self.over or self.handle is None:
            raise StopIteration  # also after the next cycle has begun
        message = coordinated_receive(self.handle, self.timeout_ns, self.copy)
        if message is None:
            self.over = True
            raise StopIteration
        return message


cdef CoordinatedMessages iterate_cycle(Handle self, int64_t timeout_ns, bint copy):
    cdef CoordinatedMessages messages = CoordinatedMessages.__new__(CoordinatedMessages)
    messages.handle = self
    messages.timeout_ns = timeout_ns
    messages.copy = copy
    return messages
