# SPDX-License-Identifier: MIT
"""The tools with which check.py is written, and the catalogue of exercises."""

import math

import numpy as np
import pytest

from spcomm.learn import LearnError, catalogue
from spcomm.learn.case import Case, Outcome, Wrong, close, per_node, same, short
from spcomm.trace.model import Call, Message, Region, Trace, Track

SAME = [
    (3, 3.0, True),
    (3, 4, False),
    (True, 1, False),
    (np.True_, True, True),
    (np.int16(3), 3, True),
    ([1, 2], (1, 2), False),
    ((1, 2), (1, 2), True),
    ([1, [2]], [1, [2, 3]], False),
    ({"a": [1]}, {"a": [1]}, True),
    ({"a": 1}, {"b": 1}, False),
    ({1, 2}, {2, 1}, True),
    (math.nan, math.nan, True),
    (None, 0, False),
    ("a", b"a", False),
    (np.array([1.0, math.nan]), np.array([1, math.nan]), True),
    (np.array([1, 2]), np.array([[1, 2]]), False),
    (np.array([1, 2]), [1, 2], False),
    ([np.array([1])], [np.array([2])], False),
    (0.1 + 0.2, 0.3, False),
]


@pytest.mark.parametrize(("value", "expected", "right"), SAME, ids=str)
def test_same(value, expected, right):
    assert same(value, expected) is right
    assert same(expected, value) is right


def test_close():
    assert close(0.1 + 0.2, 0.3)
    assert close([1e20, np.array([1.0])], [1e20 + 1e5, np.array([1 + 1e-12])])
    assert not close(1.0, 1.1)
    assert close(1.0, 1.1, tolerance=0.2)
    assert not close(math.inf, 1.0)
    assert not close(10**400, 1.5)
    assert not close("a", 1)


def test_deep_values_are_compared():
    def deep():
        value = 1
        for _ in range(100_000):
            value = [value]
        return value

    one, other = deep(), deep()
    assert same(one, other)
    while one:  # Python frees nested lists by recursion, of which it has a limit of its own
        one, other = (one[0], other[0]) if isinstance(one, list) else (None, None)


def test_per_node():
    per_node(Case(2), Outcome([1, 2]), [1, 2])
    per_node(Case(2), Outcome([1, 2.0000000001]), [1, 2], tolerance=1e-6)
    with pytest.raises(Wrong, match=r"^node 1 returned None; expected 42 \(3 nodes\)$"):
        per_node(Case(3), Outcome([42, None, 42]), [42] * 3)


def test_short():
    assert short([1, 2]) == "[1, 2]"
    assert len(short("x" * 10_000)) < 100
    assert len(short(10**4000)) < 100
    assert short(10**100_000)
    assert "\n" not in short(np.zeros((5, 5)))


def test_case():
    case = Case(2, {"a": 1, "b": 2}, each=[{"b": 3}, {}])
    assert (case.name, Case(1).name, Case(1, name="alone").name) == ("2 nodes", "1 node", "alone")
    assert (case.arguments_of(0), case.arguments_of(1)) == ({"a": 1, "b": 3}, {"a": 1, "b": 2})
    for wrong in ({"nodes": 0}, {"nodes": True}, {"nodes": 65}, {"nodes": 2, "each": [{}]}):
        with pytest.raises(ValueError, match=r"Case\("):
            Case(**wrong)
    with pytest.raises(TypeError, match="tuple"):
        Case(1, options="--boxes 2")


def test_outcome_counts_calls_of_the_program_only():
    calls = [Call("scatter", 0, 10), Call("send", 2, 3), Call("send", 20, 30), Call("send", 30, 30)]
    messages = [Message(0, 1, 5, 8, "user", 1.0), Message(0, 1, 0, 8, "collective", 1.0)]
    trace = Trace("p", "1", 1, 1, 0.0, 30.0, [Track(0, 0, 0, 0, 30, calls)], messages, [0], [0.0])
    outcome = Outcome([None], "", trace)
    assert outcome.calls == [{"scatter": 1, "send": 2}]
    assert [message.tag for message in outcome.messages] == [5]
    with pytest.raises(ValueError, match="without a trace"):
        assert Outcome([]).trace


def test_outcome_counts_calls_of_mpi_under_the_names_of_comm():
    """mpi4py makes a reduction of objects of messages; what sends nothing does not count."""
    names = "MPI_Comm_rank MPI_Isend MPI_Allgatherv_c MPI_Sendrecv_replace MPI_Put MPI_Waitall".split()
    calls = [Call(name, 10 * at, 10 * at + 5) for at, name in enumerate(names)]
    calls += [Call("MPI_Recv_c", 102, 105), Call("MPI_Bcast_c", 106, 108)]
    regions = [Region("mpi4py allreduce", 101, 109), Region("mine", 0, 200)]
    track = Track(0, 0, 0, 0, 200, calls, regions=regions)
    trace = Trace("p", "1", 1, 1, 0.0, 200.0, [track], [], [0], [0.0])
    wanted = {"send": 1, "allgather": 1, "sendrecv": 1, "put": 1, "allreduce": 1}
    assert Outcome([None], "", trace).calls == [wanted]


INFO = """
title = "T"
teaches = "One sentence."
needs = []
hints = ["a", "b", "c"]
stub_says = "returned None"
"""


@pytest.fixture
def room(tmp_path):
    place = tmp_path / "03_ring"
    place.mkdir()
    for name in ("README.md", "exercise.py", "check.py"):
        (place / name).write_text("# T\n")
    (place / "info.toml").write_text(INFO)
    (tmp_path / "solutions").mkdir()
    return tmp_path


def test_catalogue(room):
    [exercise] = catalogue.exercises(room)
    assert (exercise.name, exercise.number, exercise.title) == ("03_ring", 3, "T")
    assert exercise.limits == catalogue.Limits()
    assert exercise.solution == room / "solutions" / "03_ring.py"
    assert exercise.lesson == "# T\n"
    for word in ("3", "03", "03_ring"):
        assert catalogue.find(word, room) == exercise
    assert catalogue.find(str(room / "03_ring")) == exercise
    for file in (room / "03_ring" / "exercise.py", room / "03_ring.py"):
        assert catalogue.exercise_of(file, room) == exercise
    with pytest.raises(LearnError, match="no exercise '4'; there are 03_ring"):
        catalogue.find("4", room)
    with pytest.raises(LearnError, match="--exercise"):
        catalogue.exercise_of(room / "mine.py", room)


def test_limits(room):
    info = room / "03_ring" / "info.toml"
    info.write_text(f"{INFO}[limits]\nseconds = 2.5\nprocesses = 9\n")
    limits = catalogue.load(room / "03_ring").limits
    assert (limits.seconds, limits.processes, limits.memory_mib) == (2.5, 9, 1024.0)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "T"', "", "title is missing; it must be a text"),
        ('title = "T"', "title = 7", "title is 7; it must be a text"),
        ("needs = []", 'needs = ["01", 2]', "needs is .*; it must be a list of texts"),
        ("needs = []", "needs = [", "is not TOML"),
        ("needs = []", "needs = []\nhint = 1", "has unknown keys: hint"),
        ("needs = []", "needs = []\nlimits = 3", "limits is 3; it must be a table"),
        ("needs = []", "needs = []\nlimits.time = 3", "limits.time is 3; it must be one of seconds"),
        (
            "needs = []",
            "needs = []\nlimits.seconds = 0",
            "limits.seconds is 0; it must be a number above 0",
        ),
        ("needs = []", "needs = []\nlimits.processes = 1.5", "limits.processes is 1.5"),
    ],
)
def test_wrong_info(room, old, new, complaint):
    (room / "03_ring" / "info.toml").write_text(INFO.replace(old, new))
    with pytest.raises(LearnError, match=complaint):
        catalogue.load(room / "03_ring")


def test_incomplete_exercise(room):
    (room / "03_ring" / "check.py").unlink()
    with pytest.raises(LearnError, match=r"is not an exercise: it lacks check\.py"):
        catalogue.load(room / "03_ring")
