# SPDX-License-Identifier: MIT
"""Names for an exercise's check.py.

A check.py has two functions. `cases(rng)` yields the runs to be made, as `Case`; `rng` is a `random.Random`. If it is a
generator it goes on after each run was judged, so that it may leave out runs that would prove nothing more.
`judge(case, outcome)` looks at the outcome of one of them after the program has ended, and raises `Wrong` or returns.
"""

import math
import re
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.trace.model import Call, Message, Region, Trace, Track


class Wrong(Exception):
    """A solution is wrong; the text is for the student.

    It has the value found, the right one, and where to look: "node 2 returned 7; expected 9 (3 nodes)".
    """


@dataclass(frozen=True)
class Case:
    """One run of the student's program.

    Attributes
    ----------
    nodes
        How many.
    arguments
        Arguments of the function beside `comm`, by name, the same on each node.
    each
        For each node more arguments, over those above; or None.
    function
        Name of the function of exercise.py that is called on each node: `solve(comm, **arguments)`.
    options
        More options of `spcomm run`, as in ``("--rendezvous", "0")``.
    perturb
        Run with ``--perturb``.
    name
        For people: "10 items on 3 nodes". Default: "3 nodes".
    facts
        A value that check.py needs again in `judge`; the program never gets it.
    """

    nodes: int
    arguments: "dict[str, object]" = field(default_factory=dict)
    each: "list[dict[str, object]] | None" = None
    function: str = "solve"
    options: "tuple[str, ...]" = ()
    perturb: bool = True
    name: str = ""
    facts: "dict[str, object]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a case that cannot be run."""
        if isinstance(self.nodes, bool) or not isinstance(self.nodes, int) or not 1 <= self.nodes <= 64:
            raise ValueError(f"Case(nodes={self.nodes!r}): it must be a whole number from 1 to 64")
        if self.each is not None and len(self.each) != self.nodes:
            raise ValueError(f"Case(each=...) is for {len(self.each)} nodes, and there are {self.nodes}")
        if isinstance(self.options, str):
            raise TypeError(f'Case(options={self.options!r}): it must be a tuple, ("--boxes", "2")')
        if not self.name:
            object.__setattr__(self, "name", counted(self.nodes, "node"))

    def arguments_of(self, rank: int) -> "dict[str, object]":
        """Return the function's arguments on a node, beside `comm`."""
        return {**self.arguments, **(self.each[rank] if self.each else {})}


class Outcome:
    """Outcome of a run that ended well.

    Attributes
    ----------
    values : list
        The return values of the function, by rank.
    output : str
        The output of the program, of all nodes.
    trace : spcomm.trace.model.Trace
        Its trace. The times in it are those of a busy machine: do not judge by them.
    """

    def __init__(self, values: "Sequence[object]", output: str = "", trace: "Trace | None" = None) -> None:
        self.values = list(values)
        self.output = output
        self._trace = trace

    @property
    def trace(self) -> "Trace":
        """Results of the program."""
        if self._trace is None:
            raise ValueError("this outcome was made without a trace")
        return self._trace

    @cached_property
    def calls(self) -> "list[Counter[str]]":
        """By rank: the name of a method of `Comm`, and how often the program called it, or MPI's counterpart."""
        counts = [Counter() for _ in range(self.trace.nodes)]
        for track in self.trace.tracks:
            end = -math.inf
            for call in _calls(track):  # by time, outer ones first: those within another are spcomm's own
                if call.end > end or call.begin >= end:
                    name = _of_comm(call.name)
                    counts[track.rank].update([name] if name else ())
                    end = max(end, call.end)
        return counts

    @cached_property
    def messages(self) -> "list[Message]":
        """The messages that the program sent itself, by time."""
        return [message for message in self.trace.messages if message.context == "user"]

    @cached_property
    def _times(self) -> "object":
        from spcomm.trace.errors import TraceError
        from spcomm.trace.virtual import replay

        try:
            return replay(self.trace)
        except TraceError as error:  # as of calls from several threads
            raise Wrong(f"the virtual clock cannot be computed: {error}") from None

    @property
    def work(self) -> "list[float]":
        """By rank: the units of work it declared by `comm.work`."""
        return list(self._times.work)

    @property
    def finish(self) -> "list[float]":
        """By rank: the virtual time at which it ended, in units of work."""
        return list(self._times.finish)

    @property
    def makespan(self) -> float:
        """The virtual time at which the last node ended, in units of work."""
        return self._times.makespan


_LOCAL = re.compile(
    r"(Comm|Get|Type|Op|Group|Info|Status|Request|Query|Wait|Test|Init|Final|Is_|Err|Alloc|Free)"
)
_MEANT = "s?send|recv|probe|bcast|(?:all)?gather|scatter|alltoall|(?:all)?reduce|reduce_scatter|(?:ex)?scan|barrier"
_FORM = re.compile(rf"i?[brm]?({_MEANT})(?:[vw]|_block|_init)?|i?(sendrecv)_replace")


def _of_comm(name: str) -> str:
    """The method of `Comm` for MPI_Allgatherv_c, `allgather`; "" for what sends nothing, such as MPI_Comm_rank."""
    if not name.startswith("MPI_"):
        return name
    word = name.removeprefix("MPI_").removesuffix("_c")
    if _LOCAL.match(word):
        return ""
    form = _FORM.fullmatch(word.lower())
    return (form[1] or form[2]) if form else word.lower()


def _calls(track: "Track") -> "list[Call | Region]":
    """Calls of a track by time; a region of spcomm.learn.node, "mpi4py allreduce", is one."""
    regions = [replace(one, name=one.name[7:]) for one in track.regions if one.name.startswith("mpi4py ")]
    return sorted([*regions, *track.calls], key=lambda one: one.begin) if regions else track.calls


def same(value: object, expected: object) -> bool:
    """Whether a value is the expected one, exactly.

    A list is never a tuple, True is not 1, and 3 is 3.0. NumPy's scalars are as Python's numbers. Arrays have to have
    the same shape and the same numbers; NaN is as NaN.
    """
    return _alike(value, expected, lambda a, b: a == b or (a != a and b != b))


def close(value: object, expected: object, tolerance: float = 1e-9) -> bool:
    """Whether a value is the expected one, but for rounding.

    As `same`; numbers may differ by `tolerance`, of the larger one or, near 0, absolutely.
    """

    def near(a: complex, b: complex) -> bool:
        if a == b or (a != a and b != b):
            return True
        try:
            return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b)) < math.inf
        except OverflowError:  # of a whole number that no float can be
            return False

    return _alike(value, expected, near)


def per_node(
    case: Case, outcome: Outcome, expected: "Sequence[object]", tolerance: "float | None" = None
) -> None:
    """Raise `Wrong` if a node did not return the expected value: "node 1 returned None; expected 42 (3 nodes)".

    Parameters
    ----------
    case, outcome
        The argument of `judge`.
    expected
        Values by rank.
    tolerance
        That of `close`; None: exactly, as `same`.
    """
    for rank, (value, right) in enumerate(zip(outcome.values, expected, strict=True)):
        good = same(value, right) if tolerance is None else close(value, right, tolerance)
        if not good:
            raise Wrong(f"node {rank} returned {short(value)}; expected {short(right)} ({case.name})")


def short(value: object) -> str:
    """Return a value as Python writes it, but never a page of it."""
    try:
        return " ".join(_SHORT.repr(value).split())  # arrays have lines
    except Exception:  # thousands of digits, or deeper than Python goes
        return f"a value of type {type(value).__name__}"


def _alike(value: object, expected: object, equal: "object") -> bool:
    todo = [(value, expected)]
    while todo:  # without recursion: a program may return a deep value
        found, right = todo.pop()
        if _is_array(found) or _is_array(right):
            if not _arrays(found, right, equal):
                return False
        elif isinstance(right, (list, tuple)):
            if type(found) is not type(right) or len(found) != len(right):
                return False
            todo.extend(zip(found, right, strict=True))
        elif isinstance(right, Mapping):
            if not isinstance(found, Mapping) or found.keys() != right.keys():
                return False
            todo.extend((found[key], right[key]) for key in right)
        elif not _scalars(found, right, equal):
            return False
    return True


def _is_array(value: object) -> bool:
    return type(value).__name__ == "ndarray" and hasattr(value, "shape")


def _arrays(found: object, right: object, equal: "object") -> bool:
    if not (_is_array(found) and _is_array(right)) or found.shape != right.shape:
        return False
    pairs = zip(found.ravel().tolist(), right.ravel().tolist(), strict=True)
    return all(_scalars(a, b, equal) for a, b in pairs)


def _scalars(found: object, right: object, equal: "object") -> bool:
    found, right = (v.item() if hasattr(v, "item") else v for v in (found, right))
    if isinstance(found, bool) or isinstance(right, bool):
        return found is right
    if isinstance(found, (int, float, complex)) and isinstance(right, (int, float, complex)):
        return equal(found, right)
    return type(found) is type(right) and found == right


_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = 12
_SHORT.maxstring = _SHORT.maxlong = 80
_SHORT.maxother = 160
_SHORT.maxlevel = 4
