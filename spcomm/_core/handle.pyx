# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The node's hold on the C core: its life, its signals, and the gate that turns statuses into exceptions."""

from libc.errno cimport errno
from libc.math cimport isnan
from libc.stdint cimport INT32_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from spcomm._core.libfork cimport spc_fork_check
from spcomm._core.libspc cimport (
    SPC_BOARD_FILE_BYTES,
    SPC_BOARD_FUNCTION_BYTES,
    SPC_ECYCLE,
    SPC_EDISCONNECTED,
    SPC_EINTERRUPTED,
    SPC_EMISMATCH,
    SPC_ENOMEM,
    SPC_ESYSTEM,
    SPC_OK,
    spc_board_entry_t,
    spc_comm_close,
    spc_comm_create,
    spc_comm_destroy,
    spc_comm_lost_box,
    spc_comm_options_t,
    spc_comm_rank,
    spc_comm_rank_in_run,
    spc_comm_size,
    spc_error_message,
    spc_error_name,
    spc_process_busy_threads,
)

import os
import sys

from spcomm import config
from spcomm._core import endings, errors, places

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
    unsigned long PyThread_get_thread_ident() noexcept
    double PyFloat_AsDouble(object) except? -1.0

cdef double FOREVER_S = 9.0e9  # close to the longest time that 64 bits hold in nanoseconds


cdef int check_signals(void *argument) noexcept with gil:
    """The core calls this in waiting threads, holding no lock. A signal handler that raises ends the wait."""
    cdef Handle handle = <Handle>argument
    spc_fork_check(handle.fork)
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        return interrupt(handle, error)
    return 0


cdef int handle_messages(void *argument) noexcept with gil:
    """The core calls this in one waiting thread, holding no lock, when messages for handlers have come."""
    cdef Handle handle = <Handle>argument
    try:
        for communicator in tuple(handle.handling):
            handle.run_handlers(communicator)
    except BaseException as error:
        return interrupt(handle, error)
    return 0


cdef int interrupt(Handle handle, object error):
    """Keep the exception for this thread's call, which raises it: raise_status."""
    handle.interruptions[PyThread_get_thread_ident()] = error
    return 1


cdef int32_t locate(void *argument, spc_board_entry_t *entry) noexcept with gil:
    """The core calls this in a long wait: where the caller is, and how many other threads may do something meanwhile.

    Those that Python does not know may call back into it: they count unless they wait for others of this process.
    """
    try:
        file, line, function = places.of_caller()
        copy_text(entry.file, SPC_BOARD_FILE_BYTES, places.tail(file, SPC_BOARD_FILE_BYTES - 1))
        copy_text(entry.function, SPC_BOARD_FUNCTION_BYTES, function.encode()[:SPC_BOARD_FUNCTION_BYTES - 1])
        entry.line = line
        threads = len(sys._current_frames()) - 1
        return threads if threads > 0 else <int32_t>spc_process_busy_threads()
    except BaseException as error:  # a signal came meanwhile, and its handler raised
        interrupt(<Handle>argument, error)
        return INT32_MIN


cdef int copy_text(char *room, int room_bytes, bytes text) except -1:
    memset(room, 0, room_bytes)
    memcpy(room, <const char *>text, len(text))
    return 0


cdef Handle first_of(Handle handle):
    """The communicator of the whole run, which has the signals."""
    while handle.parent is not None:
        handle = handle.parent
    return handle


cdef class Handle:
    """What `Comm` is built on. Not public.

    Parameters
    ----------
    descriptor : int
        Of the segment; it may be closed afterwards.
    rank : int
        This node's.
    """

    def __cinit__(self, descriptor=None, rank=None, *_more, **_named):
        if isinstance(descriptor, Part):
            adopt(self, descriptor)
        elif descriptor is None or rank is None:
            raise TypeError(f"{type(self).__name__}(): a node gets its own from spcomm.startup()")
        else:
            join(self, descriptor, rank)
        self.rank_number = <int32_t>spc_comm_rank(self.core)
        self.node_count = <int32_t>spc_comm_size(self.core)
        make_lists(self)
        self.strict = config.strict()
        if self.parent is None:
            endings.watch(self)

    def __dealloc__(self):
        # Arrays that lie in shared memory hold a reference to this object, so none is left. In a forked child
        # closing does nothing.
        if self.core != NULL and not self.abandoned:
            spc_comm_close(self.core, 0)
            spc_comm_destroy(self.core)
        free(self.everyone)


cdef class Part:
    def __dealloc__(self):
        if self.core != NULL:  # nobody has taken it
            spc_comm_close(self.core, 0)
            spc_comm_destroy(self.core)


cdef int join(Handle self, object descriptor, object rank) except -1:
    cdef spc_comm_options_t options
    cdef int status
    self.interruptions = {}
    self.handling = []
    options.descriptor = descriptor
    options.rank = rank
    options.check = check_signals
    options.handle = handle_messages
    options.check_argument = <void *>self
    options.locate = locate
    options.own_signals = places.OWN_SIGNALS
    status = spc_comm_create(&options, &self.core)
    if status != SPC_OK:
        self.core = NULL
        raise_status(self, status, f"startup() as node {rank}", -1, 0, 0)
    return 0


cdef int adopt(Handle self, Part part) except -1:
    self.core, part.core = part.core, NULL
    self.parent = part.parent
    return 0


cdef int make_lists(Handle self) except -1:
    cdef int32_t rank
    self.everyone = <int32_t *>malloc(2 * self.node_count * sizeof(int32_t))
    if self.everyone == NULL:
        raise MemoryError
    self.the_others = self.everyone + self.node_count
    for rank in range(self.node_count):
        self.everyone[rank] = rank
        if rank != self.rank_number:
            self.the_others[rank - (rank > self.rank_number)] = rank
    return 0


cdef int64_t timeout_to_ns(object timeout, object call) except -2:
    """Seconds, or None, as nanoseconds; -1: for ever."""
    cdef double seconds
    if timeout is None:
        return -1
    if isinstance(timeout, (str, bytes)) or not hasattr(type(timeout), "__float__"):
        raise errors.bad_timeout_type(call, timeout)
    try:
        seconds = PyFloat_AsDouble(timeout)
    except OverflowError:  # an int beyond all floats
        seconds = -1.0 if timeout < 0 else FOREVER_S * 2
    except TypeError:  # an array of several elements
        raise errors.bad_timeout_type(call, timeout) from None
    if isnan(seconds) or seconds < 0:
        raise errors.bad_timeout(call, timeout)
    return -1 if seconds > FOREVER_S else <int64_t>(seconds * 1e9)


cdef int raise_status(Handle handle, int status, object call, int32_t culprit, int state,
                      int32_t reason) except -1:
    cdef int number = errno
    if status == SPC_EINTERRUPTED:
        raise first_of(handle).interruptions.pop(PyThread_get_thread_ident())
    if status == SPC_ENOMEM:
        raise MemoryError
    if not isinstance(call, str):
        call = call[0](*call[1:])
    if status == SPC_ESYSTEM:
        raise OSError(number, f"{call}: {os.strerror(number)}")
    if handle.parent is not None:
        call = errors.in_a_part(call, handle.rank_number, handle.node_count)
    rank = <int>spc_comm_rank_in_run(handle.core, handle.rank_number)
    if status == SPC_EMISMATCH:
        words, handle.doing = handle.doing, None
        raise errors.mismatch(call, rank, *late().mismatch(handle, words or ""))
    if status == SPC_EDISCONNECTED:
        raise errors.disconnected(call, spc_comm_lost_box(handle.core))
    if status == SPC_ECYCLE:
        raise errors.in_cycle(call, rank, handle.cycle_begun, handle.cycle_receiving)
    error = errors.failure(
        spc_error_name(status).decode(),
        spc_error_message(status).decode(),
        call,
        rank,
        handle.node_count,
        <int>spc_comm_rank_in_run(handle.core, culprit) if culprit >= 0 else culprit,
        state,
        reason,
        late().end_of(handle, culprit) if culprit >= 0 else None,
    )
    if isinstance(error, errors.NodeLostError):
        error.rank = culprit
    raise error


cdef object late():
    """What is needed when something has gone wrong, and not before."""
    from spcomm._core import notes

    return notes
