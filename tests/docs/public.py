# SPDX-License-Identifier: MIT
"""Names that users of spcomm can use: for tests of docstrings and of the reference."""

import inspect

CLASSES = ("Cluster", "Comm", "FuzzyBarrier", "Destination", "SimTime")
# Members of these classes that Python's sets have, too, or that a docstring has under Attributes.
ELSEWHERE = {
    *(f"Destination.{name}" for name in ("isdisjoint", "pop", "remove")),
    *(f"SimTime.{name}" for name in ("time", "priorities", "dtype")),
}


def members():
    """`Comm.send` and its like, with what lies in the class."""
    import spcomm

    found = {}
    for owner in CLASSES:
        for name in dir(getattr(spcomm, owner)):
            if not name.startswith("_") and f"{owner}.{name}" not in ELSEWHERE:
                found[f"{owner}.{name}"] = inspect.getattr_static(getattr(spcomm, owner), name)
    return found


def objects():
    """{name: object} of all public names of spcomm, and of the members of its classes."""
    import spcomm

    return {**{name: getattr(spcomm, name) for name in spcomm.__all__}, **members()}


def docstring(name):
    import spcomm

    owner, _, last = name.rpartition(".")
    return inspect.getdoc(getattr(getattr(spcomm, owner) if owner else spcomm, last)) or ""
