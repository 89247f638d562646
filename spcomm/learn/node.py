# SPDX-License-Identifier: MIT
"""The program that `spcomm check` runs on each node: calls a function of the student's file and reports its result.

Standard input holds a line for each node: the module to import, the function to call, its arguments, and a secret word
that makes a line of output a result. A node reads it to its end before it imports the student's file, keeps its own
line, and closes its memory to the other nodes; a result goes to the standard output of that moment.
"""

import base64
import ctypes
import fcntl
import importlib.util
import inspect
import json
import os
import resource
import struct
import sys
from collections.abc import Callable

import spcomm
from spcomm.launch.base import source
from spcomm.learn import values
from spcomm.mpi import bindings

_PIECE = 2700  # bytes of a line: a pipe takes lines of 4096 as a whole, with any other writers
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = (
    444,
    445,
    446,
)  # Landlock's system calls; on MIPS and alpha they fail
_BENEATH = 1  # a kind of rule
_MOVE = 1 << 13  # a right: to move files between folders
_NO_NEW_PRIVILEGES = 38  # of prctl


def main() -> None:
    """Run the node's part of a case."""
    comm = spcomm.startup()
    told = json.loads(_own_line(comm.rank))
    _enter_domain()
    secret, out = told.pop("secret"), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    write, dumps, text_of = os.write, json.dumps, values.to_text
    arguments = values.from_text(told["arguments"])
    _limit(told["limits"])
    world = _world(comm, told["file"])
    problem, function = _function(told["file"], told["function"], arguments)
    if problem is None:
        is_mpi = world is not None and "spcomm" not in getattr(function, "__globals__", ())
        value = function(world if is_mpi else comm, **arguments)
        try:
            result = {"returned": text_of(value)}
        except values.ValueProblem as error:
            result = {"cannot": f"returned {error}"}
    else:
        result = {"cannot": problem}
    text = base64.b64encode(dumps(result).encode()).decode()
    os.set_blocking(out, True)
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    for number, piece in enumerate(pieces):
        write(out, f"\n{secret} {number}/{len(pieces)} {piece}\n".encode())


def _own_line(rank: int) -> bytearray:
    """Line `rank` of standard input. Nothing of the other lines stays in memory, where the solution could find it."""
    piece, line, mine = bytearray(1 << 16), 0, bytearray()
    while length := os.readv(0, [piece]):
        at = 0
        while at < length:
            end = piece.find(b"\n", at, length)
            stop = length if end < 0 else end
            if line == rank:
                mine += memoryview(piece)[at:stop]
            line += end >= 0
            at = stop + 1
    piece[:] = bytes(len(piece))
    return mine


def _enter_domain() -> None:
    """Let no other node look into this process, and this one into no other, by a Landlock domain of its own.

    The kernel lets a process trace others of its own domain and of those below it only: this covers the memory and the
    open files in /proc. Beside that the domain forbids only mounts. Linux before 5.19 has none that would not.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    rights = struct.pack("=Q", _MOVE)
    rules = libc.syscall(_CREATE_RULESET, rights, len(rights), 0)
    if rules < 0:
        return
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    libc.syscall(_ADD_RULE, rules, _BENEATH, struct.pack("=Qi", _MOVE, root), 0)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(root)
    os.close(rules)


def _limit(limits: "dict[str, int]") -> None:
    """Limit this process and all that it starts; the launcher's own memory file is larger than any of these files."""
    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))


def _world(comm: "spcomm.Comm", file: str) -> object:
    """Return MPI.COMM_WORLD for a file that imports mpi4py, or None.

    mpi4py makes its reductions of objects of messages. In the trace a region has their names, for the judge.
    """
    with open(file, "rb") as text:
        if not bindings.is_imported(text.read()):
            return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None  # the file's own import says so

    class World(MPI.Intracomm):
        pass

    def named(name: str) -> "Callable[..., object]":
        def call(self: object, *words: object, **named_words: object) -> object:
            with comm.region(f"mpi4py {name}"):
                return getattr(MPI.Intracomm, name)(self, *words, **named_words)

        return call

    for name in ("reduce", "allreduce", "scan", "exscan"):
        setattr(World, name, named(name))
    MPI.COMM_WORLD = World(MPI.COMM_WORLD)
    return MPI.COMM_WORLD


def _function(file: str, name: str, arguments: "dict[str, object]") -> "tuple[str | None, object]":
    """The function, or the reason why there is none. Errors of the file itself are raised."""
    stem = os.path.splitext(os.path.basename(file))[0]
    if stem in sys.modules or stem in sys.stdlib_module_names:
        stem = f"student_{stem}"  # a solution may be called json.py
    path = os.path.abspath(file)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(stem, path))
    sys.modules[stem] = module
    code = source.compiled(path)
    if code is not None:
        exec(code, vars(module))
    else:  # an import takes Latin-1 in comments, which Python refuses in a program
        source.run(path, vars(module))
    function = getattr(module, name, None)
    wanted = f"{name}({', '.join(['comm', *arguments])})"
    if not callable(function):
        return f"found no function {wanted} in {os.path.basename(file)}", None
    try:
        inspect.signature(function).bind(None, **arguments)
    except TypeError as error:
        return f"cannot call {wanted} of {os.path.basename(file)}: {error}", None
    except ValueError:
        pass  # nothing is known of its parameters
    return None, function


if __name__ == "__main__":
    main()
