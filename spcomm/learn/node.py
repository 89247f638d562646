# SPDX-License-Identifier: MIT
"""The program that `spcomm check` runs on each node: calls a function of the student's file and tells what it returned.

Standard input holds a line for each node: what to import and call, with which arguments, and a secret word that makes a
line of output a result. It is read to its end, and the word kept in this function alone, before the student's file is
imported; a result goes to where standard output led then.
"""

import base64
import fcntl
import importlib.util
import inspect
import json
import os
import resource
import sys

import spcomm
from spcomm.learn import values

_PIECE = 2700  # bytes of a line: a pipe takes lines of 4096 as a whole, whoever else writes


def main() -> None:
    """Run the node's part of a case."""
    comm = spcomm.startup()
    told = json.loads(sys.stdin.buffer.read().split(b"\n")[comm.rank])
    secret, out = told.pop("secret"), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    write, dumps, text_of = os.write, json.dumps, values.to_text
    arguments = values.from_text(told["arguments"])
    _limit(told["limits"])
    problem, function = _function(told["file"], told["function"], arguments)
    if problem is None:
        value = function(comm, **arguments)
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


def _limit(limits: "dict[str, int]") -> None:
    """For this process and all that it starts; the launcher's own memory file is larger than any of these files."""
    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))


def _function(file: str, name: str, arguments: "dict[str, object]") -> "tuple[str | None, object]":
    """The function, or what is the matter with it. Errors of the file itself are raised."""
    stem = os.path.splitext(os.path.basename(file))[0]
    if stem in sys.modules or stem in sys.stdlib_module_names:
        stem = f"student_{stem}"  # a solution may be called json.py
    spec = importlib.util.spec_from_file_location(stem, os.path.abspath(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
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
