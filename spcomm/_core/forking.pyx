# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Nodes without a launcher: forks this process, meets other boxes, reads infiles. Imports no NumPy."""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport errno
from libc.stdint cimport uint32_t
from libc.stdio cimport fflush

from spcomm._core.handle cimport Handle
from libspc cimport *

import os

from spcomm._core import call_site, errors

cdef extern from "Python.h":
    void PyOS_BeforeFork()
    void PyOS_AfterFork_Parent()
    void PyOS_AfterFork_Child()


def other_threads() -> int:
    """Return the number of threads of any kind that a fork would lose; 0 also if the number is unknown."""
    return spc_fork_other_threads()


cdef class Fork:
    """This process's part of a run that `fork_nodes` made. Never freed: node 0 still needs it at process exit."""

    cdef spc_fork_t *core
    cdef readonly int rank

    @property
    def is_caller(self) -> bool:
        """Whether this process is the caller, for which the shell waits."""
        return bool(spc_fork_is_caller(self.core))

    @property
    def report_descriptor(self) -> int:
        """The descriptor on which this node reports its failure: see launch.report."""
        return spc_fork_report_descriptor(self.core)

    def wait(self, own_code: int) -> int:
        """Wait in node 0, which would exit with `own_code`, for the other nodes; return the run's exit code."""
        cdef int mine = own_code
        cdef int code = 0
        with nogil:
            spc_fork_wait(self.core, mine, &code)
        return code

    def wait_at_exit(self) -> bool:
        """Have the process wait by itself once Python is finalized. False if that is impossible."""
        return spc_fork_wait_at_exit(self.core) == SPC_OK


cdef class Meeting:
    """A box of a run that has come together at a server: see csrc/fork/spc_meet.h."""

    cdef spc_meet_t core

    def __cinit__(self):
        self.core.descriptor = -1

    @property
    def fd(self) -> int:
        """The descriptor of the segment."""
        return self.core.descriptor

    @property
    def nodes(self) -> int:
        """The number of nodes of the run."""
        return self.core.total_nodes

    def close(self) -> None:
        """Give up the descriptors, in each node."""
        spc_meet_close(&self.core)


cdef int check_signals(void *raised) noexcept with gil:
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        (<list>raised).append(error)
        return SPC_EINTERRUPTED
    return SPC_OK


cdef enum:
    MOST_WORDS = 17


cdef void point_at(list kept, const char **words):
    cdef int at
    for at in range(len(kept)):
        words[at] = kept[at]
    words[len(kept)] = NULL


cdef object error_of(int status):
    return {
        SPC_EINVAL: errors.ConfigError,
        SPC_EDISCONNECTED: errors.ConnectionLostError,
        SPC_ETIMEDOUT: errors.WaitTimeoutError,
        SPC_EVERSION: errors.VersionError,
    }.get(status, OSError)


def meet(
    call: str, command: list[str], numbers: tuple[int, int, int], infile: str | os.PathLike[str], program: str
) -> Meeting:
    """Wait at the infile's server until all nodes of the run have come.

    Parameters
    ----------
    call : str
        The text of the call, for errors.
    command : list of str
        Starts the box process; at most 16 words.
    numbers : tuple of int
        Nodes of this box, nodes of the run, and the group.
    infile, program : str

    Returns
    -------
    Meeting

    Raises
    ------
    ConfigError, ConnectionLostError, VersionError, WaitTimeoutError, OSError
    """
    cdef const char *words[MOST_WORDS]
    cdef char message[SPC_MEET_MESSAGE_BYTES]
    cdef spc_meet_options_t options
    cdef Meeting made = Meeting()
    cdef list raised = []
    cdef list kept = [os.fsencode(word) for word in command]
    cdef bytes path = os.fsencode(infile)
    cdef bytes name = os.fsencode(program)
    cdef int status
    point_at(kept, words)
    options.command = words
    options.local_nodes, options.total_nodes, options.group_id = numbers
    options.infile = path
    options.program = name
    options.check = check_signals
    options.check_argument = <void *>raised
    with nogil:
        status = spc_meet(&options, &made.core, message, SPC_MEET_MESSAGE_BYTES)
    if raised:
        raise raised[0]
    if status != SPC_OK:
        text = f"{call}: {(<bytes>message).decode('utf-8', 'replace')}"
        raise error_of(status)(text)
    return made


def fork_nodes(
    descriptor: int, nodes: int, conclude: list[str], grace: float = 0.0, Meeting meeting=None
) -> Fork:
    """Fork this process, so that `nodes` processes return: see csrc/fork/spc_fork.h.

    Parameters
    ----------
    descriptor : int
        A fresh segment for that many nodes.
    nodes : int
    conclude : list of str
        Reports how the run has ended: at most 8 words.
    grace : float, optional
        Seconds from SIGTERM to SIGKILL when the run is to end; 0: the default.
    meeting : Meeting, optional
        Only its nodes are here.

    Returns
    -------
    Fork
        Its `is_caller` is true in this process.

    Raises
    ------
    OSError
        The system cannot start that many processes. None of them is left.
    """
    cdef const char *words[MOST_WORDS]
    cdef list kept = [os.fsencode(word) for word in conclude]
    cdef spc_fork_options_t options
    cdef Fork made = Fork()
    cdef uint32_t rank = 0
    cdef int status, number
    options.descriptor = descriptor
    options.nodes = nodes
    options.grace_s = grace
    options.meet = NULL if meeting is None else &meeting.core
    point_at(kept, words)
    options.conclude = words
    PyOS_BeforeFork()
    fflush(NULL)
    status = spc_fork_nodes(&options, &made.core, &rank)
    number = errno
    if status == SPC_OK and made.core != NULL and not spc_fork_is_caller(made.core):
        PyOS_AfterFork_Child()
    else:
        PyOS_AfterFork_Parent()
    if status == SPC_ENOMEM:
        raise MemoryError
    if status == SPC_ESYSTEM:
        raise OSError(number, os.strerror(number))
    if status != SPC_OK:
        raise errors.SpcommError(f"fork_nodes({nodes}): {spc_error_message(status).decode()}")
    made.rank = rank
    call_site.OWN_SIGNALS |= spc_fork_own_signals(made.core)
    return made


def guard(Handle handle, Fork fork) -> None:
    """Have the waits of this node check on the supervisor."""
    handle.fork = fork.core
    handle.forked = fork


def read_infile(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> dict[str, Any]:
    """Return the values of an infile, by key; a missing value is 0, "" or an empty list.

    Raises
    ------
    ConfigError
        The file is unreadable, or holds an invalid value: file, line, what was found, what is allowed.
    """
    cdef spc_infile_t found
    cdef char message[SPC_INFILE_MESSAGE_BYTES]
    cdef bytes name = os.fsencode(path)
    if b"\0" in name:
        raise errors.ConfigError(f"infile={errors.shown(path)}: a path cannot contain the character 0")
    if spc_infile_read(name, &found, message, SPC_INFILE_MESSAGE_BYTES) != SPC_OK:
        raise errors.ConfigError((<bytes>message).decode("utf-8", "replace"))
    return {"local_nodes": found.local_nodes, "total_nodes": found.total_nodes, "group_id": found.group_id,
            "timeout": found.timeout_s, "server": os.fsdecode(<bytes>found.server),
            "code": os.fsdecode(<bytes>found.code), "ranks": [found.ranks[at] for at in range(found.rank_count)]}


cdef class Place:
    """The place that another launcher has given to this process: see csrc/fork/spc_launcher.h."""

    cdef spc_launcher_place_t core

    @property
    def rank(self) -> int:
        """The rank among all processes of the launcher."""
        return self.core.rank

    @property
    def size(self) -> int:
        """The number of these processes."""
        return self.core.size

    @property
    def is_first(self) -> bool:
        """Whether this is the first process of its machine, which makes the run there."""
        return self.core.local_rank == 0

    @property
    def is_one_machine(self) -> bool:
        """Whether all processes of the launcher are on this machine."""
        return self.core.local_size == self.core.size

    @property
    def launcher(self) -> str:
        """The command of the launcher."""
        return self.core.launcher.decode()


def find_launcher(program: str) -> tuple[Place | None, str, bool]:
    """Return the `Place` of this process, or None, and a note; and whether a launcher has started it at all.

    Without a place the note is a sentence for the user, or empty. `program` is a str: the text after ``spcomm run -n
    N`` in the suggested command.

    Raises
    ------
    ConfigError
        The processes of the launcher cannot be one run.
    """
    cdef char note[SPC_LAUNCHER_NOTE_BYTES]
    cdef bytes name = os.fsencode(program)
    cdef Place found = Place()
    cdef int status = spc_launcher_find(&found.core, name, note, SPC_LAUNCHER_NOTE_BYTES)
    text = os.fsdecode(<bytes>note)
    if status == SPC_EINVAL:
        raise errors.ConfigError(f"startup(): {text}")
    return found if status == SPC_OK else None, text, found.core.size > 0


def join_launched(
    Place place, segment: int, command: list[str], conclude: list[str], group: int, program: str
) -> tuple[Fork, int]:
    """Join the run of all processes of another launcher: see csrc/fork/spc_fork.h.

    Parameters
    ----------
    place : Place
    segment : int
        The descriptor of a fresh segment, in the first process of the only machine.
    command : list of str
        Starts the box process in the first process of each of several machines; at most 16 words.
    conclude : list of str
        Reports how the run has ended: at most 8 words.
    group : int
    program : str

    Returns
    -------
    Fork
    int
        The descriptor of the segment, which the caller closes.

    Raises
    ------
    ConfigError, ConnectionLostError, VersionError, WaitTimeoutError, OSError
    SystemExit
        The first process of this machine has failed, and says why.
    """
    cdef const char *words[MOST_WORDS]
    cdef const char *conclude_words[MOST_WORDS]
    cdef char message[SPC_JOIN_MESSAGE_BYTES]
    cdef spc_fork_join_options_t options
    cdef spc_meet_options_t meeting
    cdef list kept = [os.fsencode(word) for word in command]
    cdef list kept_conclude = [os.fsencode(word) for word in conclude]
    cdef bytes name = os.fsencode(program)
    cdef Fork made = Fork()
    cdef list raised = []
    cdef int status, descriptor = -1
    point_at(kept, words)
    point_at(kept_conclude, conclude_words)
    options.conclude = conclude_words
    meeting.command = words
    meeting.local_nodes, meeting.total_nodes, meeting.group_id = place.core.local_size, place.core.size, group
    meeting.infile = b""
    meeting.program = name
    meeting.check = check_signals
    meeting.check_argument = <void *>raised
    options.place = &place.core
    options.descriptor = segment
    options.meet = NULL if place.is_one_machine else &meeting
    options.check = check_signals
    options.check_argument = <void *>raised
    fflush(NULL)
    with nogil:
        status = spc_fork_join(&options, &made.core, &descriptor, message, SPC_JOIN_MESSAGE_BYTES)
    if raised:
        raise raised[0]
    if status == SPC_ENOMEM:
        raise MemoryError
    if status == SPC_ELOST:
        raise SystemExit(1)
    if status != SPC_OK:
        raise error_of(status)(f"startup(): {(<bytes>message).decode('utf-8', 'replace')}")
    made.rank = place.core.rank
    call_site.OWN_SIGNALS |= spc_fork_own_signals(made.core)
    return made, descriptor
