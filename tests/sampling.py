# SPDX-License-Identifier: MIT
"""A seeded, rotating sample of the large test matrices: one run stays short, and many runs see everything.

A matrix is a test function with more than twelve cases, one parameter of which is the number of nodes (``n``,
``nodes``, or an object that has ``nodes``), or one that is marked ``matrix``. Of its cases as many are kept as it
takes for every value of every parameter to occur, and at least an eighth, or the number of ``matrix(keep=...)``.
Which ones depends on the seed, which follows the commit: one commit always runs the same cases, the next others.
``--everything`` runs all; tests named on the command line (``file.py::test``) are never sampled.
"""

import dataclasses
import datetime
import hashlib
import math
import random
import subprocess
from collections import defaultdict
from pathlib import Path

SMALL = 12
PART = 1 / 8


def default_seed():
    """The current commit, or without git, today."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        answer = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        return answer.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return datetime.date.today().isoformat()


def takes_all(config):
    """Nothing is sampled: everything was asked for, or tests by name."""
    return config.option.everything or any("::" in argument for argument in config.args)


def function_of(item):
    return item.nodeid.split("[", 1)[0]


def is_matrix(item):
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("whole"):
        return False
    if item.get_closest_marker("matrix") or {"n", "nodes"} & callspec.params.keys():
        return True
    return any(hasattr(value, "nodes") for value in callspec.params.values())


def values(item):
    """What a case stands for: each parameter's value, by identity, or its fields if it has some."""
    for name, value in item.callspec.params.items():
        if dataclasses.is_dataclass(value):
            yield from (
                (name, field.name, repr(getattr(value, field.name))) for field in dataclasses.fields(value)
            )
        else:
            yield name, id(value)


def choose(items, seed):
    """The items of one matrix to keep: every value of every parameter, then more up to the wanted number."""
    marker = items[0].get_closest_marker("matrix")
    keep = (marker.kwargs.get("keep") if marker else None) or math.ceil(PART * len(items))
    if len(items) <= max(SMALL, keep) and not (marker and marker.kwargs):
        return items
    digest = hashlib.sha256(f"{seed} {function_of(items[0])}".encode()).digest()
    seen, first, rest = set(), [], []
    for item in random.Random(digest).sample(items, len(items)):
        mine = set(values(item))
        (rest if mine <= seen else first).append(item)
        seen |= mine
    kept = set(first + rest[: max(0, keep - len(first))])
    return [item for item in items if item in kept]


def sample(items, seed):
    """Split items into those to run and those sampled out; {function: (how many run, of how many)}."""
    matrices = defaultdict(list)
    for item in items:
        if is_matrix(item):
            matrices[function_of(item)].append(item)
    dropped, numbers = set(), {}
    for function, cases in matrices.items():
        kept = choose(cases, seed)
        if len(kept) < len(cases):
            numbers[function] = (len(kept), len(cases))
            dropped |= set(cases) - set(kept)
    kept = [item for item in items if item not in dropped]
    return kept, [item for item in items if item in dropped], numbers
