# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Nodes without a launcher: forks this process, reads infiles, recognizes others' launchers. Imports no NumPy."""

from libc.errno cimport errno
from libc.stdint cimport uint32_t
from libc.stdio cimport fflush

from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport (
    SPC_ENOMEM,
    SPC_ESYSTEM,
    SPC_INFILE_MESSAGE_BYTES,
    SPC_LAUNCHER_NOTE_BYTES,
    SPC_OK,
    spc_error_message,
    spc_fork_nodes,
    spc_fork_options_t,
    spc_fork_other_threads,
    spc_fork_own_signals,
    spc_fork_report_descriptor,
    spc_fork_t,
    spc_fork_wait,
    spc_fork_wait_at_exit,
    spc_infile_read,
    spc_infile_t,
    spc_launcher_note,
)

import os

from spcomm._core import call_site, errors

cdef extern from "Python.h":
    void PyOS_BeforeFork()
    void PyOS_AfterFork_Parent()
    void PyOS_AfterFork_Child()


def other_threads():
    """Return the number of threads of any kind that a fork would lose; 0 also if it is unknown."""
    return spc_fork_other_threads()


cdef class Fork:
    """This process's part of a run that `fork_nodes` made. Never freed: node 0 still needs it at process exit."""

    cdef spc_fork_t *core
    cdef readonly int rank

    @property
    def report_descriptor(self):
        """The descriptor on which this node reports its failure: see launch.report."""
        return spc_fork_report_descriptor(self.core)

    def wait(self, own_code):
        """Wait in node 0, which would exit with `own_code`, for the other nodes; return the run's exit code."""
        cdef int mine = own_code
        cdef int code = 0
        with nogil:
            spc_fork_wait(self.core, mine, &code)
        return code

    def wait_at_exit(self):
        """Have the process do that by itself once Python is finalized. False where that is impossible."""
        return spc_fork_wait_at_exit(self.core) == SPC_OK


def fork_nodes(descriptor, nodes, grace=0.0):
    """Fork this process so that `nodes` processes return: see csrc/fork/spc_fork.h.

    Parameters
    ----------
    descriptor : int
        A fresh segment for that many nodes.
    nodes : int
    grace : float, optional
        Seconds from SIGTERM to SIGKILL when the run must end; 0: the default.

    Returns
    -------
    Fork
        Its `rank` is 0 in this process.

    Raises
    ------
    OSError
        The system cannot start that many processes. None of them is left.
    """
    cdef spc_fork_options_t options
    cdef Fork made = Fork()
    cdef uint32_t rank = 0
    cdef int status, number
    options.descriptor = descriptor
    options.nodes = nodes
    options.grace_s = grace
    PyOS_BeforeFork()
    fflush(NULL)
    status = spc_fork_nodes(&options, &made.core, &rank)
    number = errno
    if rank != 0:
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


def guard(Handle handle, Fork fork):
    """Have the waits of this node check on the supervisor."""
    handle.fork = fork.core
    handle.forked = fork


def read_infile(path):
    """Return an infile's values: `local_nodes`, `total_nodes`, `group_id` (0: unset) and `server` ("": unset).

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
            "server": (<bytes>found.server).decode()}


def launcher_note(program):
    """Return the note for a program that another launcher has started several times; "": there is none to print.

    `program` is a str: the text after ``spcomm run -n N`` in the suggested command.
    """
    cdef char note[SPC_LAUNCHER_NOTE_BYTES]
    cdef bytes name = os.fsencode(program)
    return os.fsdecode(<bytes>note) if spc_launcher_note(name, note, SPC_LAUNCHER_NOTE_BYTES) else ""
