# SPDX-License-Identifier: MIT
"""The MPI library (csrc/mpi) joins the run through Python: lines, explanations and ends are those of spcomm."""

import atexit
import os

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from spcomm._core import call_site
from spcomm._core.handle cimport Handle, fail
from libspc cimport *

cdef Handle world = None


cdef str name_call(spc_comm_t *core, str call):
    """Return the text of this node's collective call with MPI's name: `Allreduce(op=SUM) of an array of …`."""
    from spcomm._core.diagnose import worded

    cdef spc_signature_t found
    cdef uint64_t phase = 0
    if not spc_comm_mismatch(core, spc_comm_rank(core), &found, &phase):
        return ""
    words = worded((found.operation, found.op, found.type, found.field_count, found.length_bytes, found.layout,
                    found.root))
    return f"{call}({words.partition('(')[2] or ')'}"


cdef str sentence(spc_comm_t *core, int status, str call):
    """The text of the exception that a call of spcomm's would raise here."""
    cdef spc_comm_t *own = world.core  # the world's handle has what explanations need
    cdef int32_t rank = world.rank_number, size = world.node_count
    world.core, world.rank_number, world.node_count = core, <int32_t>spc_comm_rank(core), <int32_t>spc_comm_size(core)
    try:
        if status == SPC_EMISMATCH:
            world.doing = name_call(core, call.removeprefix("MPI_"))
        fail(world, status, call)
    except MemoryError as error:
        return str(error) or "there is no memory, or no room in the arena; a larger one: --arena"
    except Exception as error:
        return str(error).removeprefix(f"{call}: ")
    finally:
        world.core, world.rank_number, world.node_count = own, rank, size
    return ""


cdef void explain(spc_comm_t *core, int status, const char *call, char *text, size_t room) noexcept with gil:
    cdef bytes words
    try:
        words = sentence(core, status, call.decode()).encode()[: room - 1]
    except KeyboardInterrupt:  # mpi4py raises its own exception in place of it; reports know it by these words
        words = b"interrupted by Ctrl-C"
    except BaseException as error:
        words = repr(error).encode()[: room - 1]
    memcpy(text, <const char *>words, len(words))
    text[len(words)] = 0


cdef int32_t locate(char *file, size_t room) noexcept with gil:
    cdef bytes name
    try:
        path, line, _ = call_site.of_caller()
        name = os.path.basename(path).encode()[: room - 1]
    except BaseException:
        return 0
    memcpy(file, <const char *>name, len(name))
    file[len(name)] = 0
    return line


def report():
    """Let the MPI library report what the program has left open."""
    if spc_api_binding.at_end != NULL:
        spc_api_binding.at_end()


def change_run(Handle node):
    """Go on in another run, whose communicator this is, or in none. The communicator of the last one is closed."""
    global world
    cdef int status = 0
    if spc_api_binding.at_run == NULL:
        return
    status = spc_api_binding.at_run(NULL)  # while the last run still has its memory
    if node is not None and node is not world:
        world = node
        status = spc_api_binding.at_run(node.core)
    spc_api_binding.core = world.core
    if status != 0:
        fail(world, status, "MPI_Init")


def join():
    """Join the run, and tell the MPI library how. Called by MPI_Init in a Python process."""
    import spcomm

    global world
    world = spcomm.startup()
    spc_api_binding.core = world.core
    spc_api_binding.explain = explain
    spc_api_binding.locate = locate
    atexit.register(report)  # runs before spcomm leaves the run
