# SPDX-License-Identifier: MIT
"""A seeded, rotating sample of the cases of parametrized tests: one run stays short, and many runs see everything.

Two kinds of functions are sampled:

- A matrix: more than six cases, one parameter of which is the number of nodes (``n``, ``nodes``, or an object that has
  ``nodes``), or which is marked ``matrix``. Of its cases as many are kept as it takes for every value of every
  parameter to occur, and at least a sixteenth, or the number of ``matrix(keep=...)``. Fields of dataclasses with
  ``metadata={"rotates": True}`` do not count as values: which of them occur, the seed says alone.
- Those marked ``rota(n)``, whose cases each start a run or more: one case in n is kept, whatever its values. A mark of
  a file (``pytestmark``) holds for its functions that have cases; of the others one in three is kept, unless files are
  named on the command line. ``rota(1)`` of a function takes it back, and smoke tests always run.

Which ones depends on the seed, which follows the commit: one commit always runs the same cases, the next others.
``--everything`` runs all; tests named on the command line (``file.py::test``), and those of ``--last-failed``, are
never sampled.
"""

import dataclasses
import datetime
import hashlib
import math
import random
import subprocess
from collections import defaultdict
from pathlib import Path

SMALL = 6
PART = 1 / 16
ALONE = 3


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
    """Nothing is sampled: everything was asked for, or what has failed, or tests by name."""
    named = any("::" in argument for argument in config.args)
    return config.option.everything or config.getoption("lf", False) or named


def names_files(config):
    return any(".py" in argument for argument in config.args)


def function_of(item):
    return item.nodeid.split("[", 1)[0]


def has_turns(item):
    """Whether it is marked ``rota``, as a function or by its file."""
    return bool(item.get_closest_marker("rota")) and not item.get_closest_marker("smoke")


def is_matrix(item):
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("whole"):
        return False
    if item.get_closest_marker("matrix") or {"n", "nodes"} & callspec.params.keys():
        return True
    return any(hasattr(value, "nodes") for value in callspec.params.values())


def group_of(item, alone):
    """What is sampled together: the cases of a function, or a file's functions without cases (if `alone`), or None."""
    if has_turns(item) and not item.get_closest_marker("whole"):
        if hasattr(item, "callspec"):
            return function_of(item)
        taken_back = item.get_closest_marker("rota").args[0] == 1
        return item.nodeid.partition("::")[0] if alone and not taken_back else None
    return function_of(item) if is_matrix(item) else None


def values(item):
    """What a case stands for: each parameter's value, by identity, or its fields if it has some."""
    for name, value in item.callspec.params.items():
        if dataclasses.is_dataclass(value):
            yield from (
                (name, field.name, repr(getattr(value, field.name)))
                for field in dataclasses.fields(value)
                if not field.metadata.get("rotates")
            )
        else:
            yield name, id(value)


def choose(group, items, seed):
    """The items of one group to keep."""
    digest = hashlib.sha256(f"{seed} {group}".encode()).digest()
    shuffled = random.Random(digest).sample(items, len(items))
    if has_turns(items[0]):
        part = items[0].get_closest_marker("rota").args[0] if hasattr(items[0], "callspec") else ALONE
        kept = set(shuffled[: math.ceil(len(items) / part)])
    else:
        kept = choose_of_matrix(shuffled)
    return [item for item in items if item in kept]


def choose_of_matrix(items):
    """Every value of every parameter, then more up to the wanted number."""
    marker = items[0].get_closest_marker("matrix")
    keep = (marker.kwargs.get("keep") if marker else None) or math.ceil(PART * len(items))
    if len(items) <= max(SMALL, keep) and not (marker and marker.kwargs):
        return set(items)
    seen, first, rest = set(), [], []
    for item in items:
        mine = set(values(item))
        (rest if mine <= seen else first).append(item)
        seen |= mine
    return set(first + rest[: max(0, keep - len(first))])


def sample(items, seed, alone=True):
    """Split items into those to run and those sampled out; {group: (how many run, of how many)}."""
    groups = defaultdict(list)
    for item in items:
        if group := group_of(item, alone):
            groups[group].append(item)
    dropped, numbers = set(), {}
    for group, cases in groups.items():
        kept = choose(group, cases, seed)
        if len(kept) < len(cases):
            numbers[group] = (len(kept), len(cases))
            dropped |= set(cases) - set(kept)
    kept = [item for item in items if item not in dropped]
    return kept, [item for item in items if item in dropped], numbers


def by_file(numbers):
    """{file: (cases run, of how many)} of what sample() counted."""
    found = {}
    for group, (kept, total) in numbers.items():
        file = group.partition("::")[0]
        before = found.get(file, (0, 0))
        found[file] = (before[0] + kept, before[1] + total)
    return found
