# SPDX-License-Identifier: MIT
"""Programs of an MPI course, one after another in one run: course.py [--without MARK]... [NAME]...

Each is a function of a module beside this one, with the communicator as its parameter; node 0 prints what expected/ has
for this number of nodes. Marks: `shared` needs memory that all nodes share, `buffered` needs sends that do not wait.
"""

import argparse
import sys

from mpi4py import MPI

MODULES = ("messages", "collectives", "algorithms", "datatypes", "communicators", "onesided", "files")
PROGRAMS = {}


def program(*marks):
    """Add a function to the course."""

    def add(function):
        PROGRAMS[function.__name__] = (function, frozenset(marks))
        return function

    return add


def say(comm, *words):
    """Node 0 prints."""
    if comm.rank == 0:
        print(*words, flush=True)


def say_all(comm, text):
    """Node 0 prints a line of each node, in order."""
    lines = comm.gather(str(text))
    if comm.rank == 0:
        print("\n".join(lines), flush=True)


def number(value):
    """As many digits as do not depend on the order of additions."""
    return f"{value:.8g}"


def main():
    for module in MODULES:
        __import__(module)
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    for name in options.name or PROGRAMS:
        function, marks = PROGRAMS[name]
        if not marks & set(options.without):
            say(comm, f"== {name}")
            function(comm)
            comm.Barrier()


if __name__ == "__main__":
    sys.modules["course"] = sys.modules["__main__"]
    main()
