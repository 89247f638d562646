# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The node's handle on the C core: its life cycle, signals, the gate from statuses to exceptions, and its notes."""

from libc.errno cimport errno
from libc.math cimport isnan
from libc.stdint cimport INT32_MIN, int32_t, int64_t, uint64_t
from libc.stdio cimport FILE, fclose
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from spcomm._core.diagnose cimport open_memstream
from libspc cimport *

import os
import sys

from spcomm import config
from spcomm._core import call_site, error_text, errors, exit_text

if False:  # for the stub alone
    from collections.abc import Callable

    _Place = tuple[str, int, str]

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
    unsigned long PyThread_get_thread_ident() noexcept
    double PyFloat_AsDouble(object) except? -1.0

cdef double FOREVER_S = 9.0e9  # close to the longest time that 64 bits of nanoseconds hold


cdef int check_signals(void *argument) noexcept with gil:
    """Run signal handlers; the core calls this in waiting threads, without a lock. An exception ends the wait."""
    cdef Handle handle = <Handle>argument
    spc_fork_check(handle.fork)
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        return interrupt(handle, error)
    return 0


cdef int handle_messages(void *argument) noexcept with gil:
    """Run message handlers; the core calls this in one waiting thread, without a lock, when their messages come."""
    cdef Handle handle = <Handle>argument
    try:
        for communicator in tuple(handle.handling):
            handle.run_handlers(communicator)
    except BaseException as error:
        return interrupt(handle, error)
    return 0


cdef int interrupt(Handle handle, object error):
    """Keep the exception for this thread's call; fail raises it."""
    handle.interruptions[PyThread_get_thread_ident()] = error
    return 1


cdef int32_t locate(void *argument, spc_board_entry_t *entry, uint64_t *own_signals) noexcept with gil:
    """Return the caller's line and the number of other threads that may act; the core calls this in a long wait.

    Threads unknown to Python may call back into it: they count unless they wait for others of this process.
    """
    try:
        file, line, function = call_site.of_caller()
        file = config.cell(file) or file
        copy_text(entry.file, SPC_BOARD_FILE_BYTES, call_site.tail(file, SPC_BOARD_FILE_BYTES - 1))
        copy_text(entry.function, SPC_BOARD_FUNCTION_BYTES, function.encode())
        entry.line = line
        own_signals[0] |= signals_of_python()
        frames = sys._current_frames()
        threads = len(frames) - 1
        if threads > 0 and has_main_ended(frames):
            if threads == 1 and is_joined_by_main(frames):
                threads = 0
            else:
                entry.doubts |= SPC_BOARD_AT_END
        return threads if threads > 0 else <int32_t>spc_process_busy_threads()
    except BaseException as error:  # a signal handler raised meanwhile
        interrupt(<Handle>argument, error)
        return INT32_MIN


cdef bint has_main_ended(dict frames) except -1:
    """Whether the main program has ended, and its thread is in the end of Python, where it waits for other threads."""
    threading = sys.modules.get("threading")
    if threading is None:
        return False
    main = threading.main_thread()
    frame = frames.get(main.ident)
    while frame is not None and frame.f_code is not threading._shutdown.__code__:
        frame = frame.f_back
    return frame is not None or not main.is_alive()


cdef bint is_joined_by_main(dict frames) except -1:
    """Whether the main thread, in the end of Python, only waits for this one. Pools have their threads joined first."""
    threading = sys.modules["threading"]
    main = threading.main_thread()
    frame = frames.get(main.ident)
    while main.is_alive() and frame is not None and frame.f_code.co_name in ("join", "_wait_for_tstate_lock"):
        if frame.f_globals.get("__name__") != "threading" or frame.f_locals.get("timeout") not in (None, -1):
            return False
        frame = frame.f_back
    is_joining = not main.is_alive() or frame is not frames.get(main.ident)
    return is_joining and not threading.current_thread().daemon


cdef uint64_t signals_of_python() except? 0:
    """Return the signals, as bits, whose handlers are Python's own: they end no wait but by KeyboardInterrupt.

    A handler of the program's that was there before the readline module's is called by that.
    """
    import signal

    cdef uint64_t found = 0
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        found |= 1 << (<int>signal.SIGINT - 1)
    if "readline" in sys.modules and not callable(signal.getsignal(signal.SIGWINCH)):
        found |= 1 << (<int>signal.SIGWINCH - 1)
    return found


cdef int copy_text(char *room, int room_bytes, bytes text) except -1:
    text = text[:room_bytes - 1]
    memset(room, 0, room_bytes)
    memcpy(room, <const char *>text, len(text))
    return 0


cdef Handle first_of(Handle handle):
    """Return the communicator of the whole run, which has the signals."""
    while handle.parent is not None:
        handle = handle.parent
    return handle


cdef class Handle:
    """Base of `Comm`. Not public.

    Parameters
    ----------
    descriptor : int
        The segment's; it may be closed afterwards.
    rank : int
        This node's rank.
    """

    def __cinit__(self, descriptor: int | Part | None = None, rank: int | None = None, *_more: Any, **_named: Any):
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
            exit_text.watch(self)

    def __dealloc__(self):
        # Arrays in shared memory hold a reference to this object, so none is left. In a forked child closing has no
        # effect.
        if self.core != NULL and not self.abandoned:
            spc_comm_close(self.core, 0)
            spc_comm_destroy(self.core)
        free(self.everyone)


cdef class Part:
    def __dealloc__(self):
        if self.core != NULL:  # ownership is still here
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
    options.own_signals = call_site.OWN_SIGNALS
    status = spc_comm_create(&options, &self.core)
    if status != SPC_OK:
        self.core = NULL
        fail(self, status, f"startup() as node {rank}")
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
    """Convert seconds, or None, to nanoseconds; -1: for ever."""
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


cdef int fail(Handle handle, int status, object call) except -1:
    """Raise the exception for a status other than SPC_OK. `call` is its text, or a function and its arguments."""
    cdef int number = errno
    cdef int32_t reason = 0
    cdef spc_node_state_t state = SPC_NODE_STARTING
    if status == SPC_EINTERRUPTED:
        raise first_of(handle).interruptions.pop(PyThread_get_thread_ident())
    if status == SPC_ENOMEM:
        raise MemoryError
    if status == SPC_EDEADLOCK:
        raise errors.DeadlockError(wait_report(first_of(handle)))
    if not isinstance(call, str):
        call = call[0](*call[1:])
    if status == SPC_ESYSTEM:
        raise OSError(number, f"{call}: {os.strerror(number)}")
    if handle.parent is not None:
        call = errors.in_a_part(call, handle.rank_number, handle.node_count)
    if status == SPC_EMISMATCH:
        words, handle.doing = handle.doing, None
        raise errors.MismatchError(f"{call}: {explain_mismatch(handle, words or '')}")
    error = error_text.failure(spc_error_name(status).decode(), call, explain_failure(handle, status, call))
    if isinstance(error, errors.NodeLostError):
        error.rank = spc_comm_culprit(handle.core, &state, &reason)
    raise error


cdef str explain_failure(Handle handle, int status, str call):
    """Return why the call has failed."""
    cdef bytes words = call.encode("utf-8", "replace")
    cdef bytes since = b""
    if status == SPC_ECYCLE:
        since = error_text.since(call, handle.cycle_begun, handle.cycle_receiving).encode("utf-8", "replace")
    return taken(spc_comm_explain(handle.core, status, words, since))


cdef str taken(char *text):
    """Return the text that the core has made, and free it."""
    if text == NULL:
        raise MemoryError
    try:
        return (<bytes>text).decode("utf-8", "replace")
    finally:
        free(text)


def watch_itself(Handle handle, advice: Callable[[], str]) -> None:
    """From now on the endless waits of a run of one node raise DeadlockError, and doubtful ones warn once.

    `advice` is a function; its str ends the report, where that has no better one.
    """
    if spc_comm_watch_itself(handle.core, warn) != SPC_OK:
        raise MemoryError
    handle.advice = advice


cdef int warn(void *argument) noexcept with gil:
    """Print the report of a wait that only this program itself can end; the core calls this once, in that wait."""
    try:
        if sys.stderr is not None:
            print(f"spcomm: {wait_report(<Handle>argument)}", file=sys.stderr)
    except Exception:  # no stderr is no reason for the wait to fail
        return 0
    except BaseException as error:
        return interrupt(<Handle>argument, error)
    return 0


cdef str wait_report(Handle handle):
    """Return the report of the last wait of this thread, in a run of one node."""
    cdef char *text = NULL
    cdef size_t length_bytes = 0
    cdef bytes advice = os.fsencode(handle.advice())
    cdef FILE *out = open_memstream(&text, &length_bytes)
    if out == NULL:
        raise MemoryError
    try:
        if (spc_comm_report_wait(handle.core, advice, out) != SPC_OK) | (fclose(out) != 0):
            raise MemoryError
        return os.fsdecode(text[:length_bytes]).removeprefix("spcomm: ").rstrip()
    finally:
        free(text)


# ---- what a node leaves written for others: where it ended, its line in a mismatch, what it has left open


cdef int fill(spc_note_t *note, str words, str file, int line, str function) except -1:
    memset(note, 0, sizeof(spc_note_t))
    copy_text(note.words, SPC_NOTE_WORDS_BYTES, words.encode())
    copy_text(note.function, SPC_NOTE_FUNCTION_BYTES, function.encode())
    copy_text(note.file, SPC_NOTE_FILE_BYTES, call_site.tail(file, SPC_NOTE_FILE_BYTES - 1))
    note.line = line
    return 0


def end(Handle handle, str words, str file, int line, str function, int code) -> None:
    """Record how and where this node ends, and its exit code. The first record stays."""
    cdef spc_note_t note
    if not spc_comm_has_note(handle.core, SPC_NOTE_END):
        fill(&note, words, file, line, function)
        spc_comm_note(handle.core, SPC_NOTE_END, &note)
        if code != 0:
            spc_comm_note_failure(handle.core, code)


def raised(Handle handle, int change) -> None:
    """Count one more (1) or one less (-1) live error that this node reports to others."""
    spc_comm_note_raised(handle.core, change)


def leave_open(Handle handle, fuzzy: _Place | None, cycle: _Place | None) -> None:
    """Record where the open operation began: (file, line, function), or None."""
    cdef spc_note_t note
    for kind, place in ((SPC_NOTE_FUZZY, fuzzy), (SPC_NOTE_CYCLE, cycle)):
        if place is not None:
            fill(&note, "", place[0], place[1], place[2])
            spc_comm_note(handle.core, kind, &note)


def tell_sent(Handle handle) -> None:
    """Record where this node's messages were sent, the last first, if it records them."""
    cdef spc_note_sent_t sent
    if not handle.sent:
        return
    for (rank, tag), (file, line, _function) in list(handle.sent.items())[:-SPC_NOTE_LEFT_MAX - 1:-1]:
        memset(&sent, 0, sizeof(sent))
        sent.destination, sent.tag, sent.line = spc_comm_rank_in_run(handle.core, rank), tag, line
        copy_text(sent.file, SPC_NOTE_SENT_FILE_BYTES, call_site.tail(file, SPC_NOTE_SENT_FILE_BYTES - 1))
        spc_comm_note_sent(handle.core, &sent)


cdef str explain_mismatch(Handle handle, str words):
    """Return what the nodes called in the operation that did not match. `words`: this node's call, with its values."""
    cdef spc_note_t mine
    cdef char *text
    file, line, function = call_site.of_caller()
    fill(&mine, words, file, line, function)
    with nogil:
        text = spc_comm_explain_mismatch(handle.core, &mine)
    return taken(text)


cdef int add_near(Handle handle, object error, int32_t source, int32_t tag) except -1:
    """`error`: a receive has failed; its text mentions a message that nearly matches."""
    cdef char *text = spc_comm_explain_near(handle.core, SPC_CONTEXT_USER, source, tag)
    if text != NULL:
        end = "" if str(error).endswith((".", ")")) else "."
        error.args = (f"{error}{end}\n{taken(text)}",)
    return 0
