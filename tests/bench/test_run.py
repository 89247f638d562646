# SPDX-License-Identifier: MIT
"""The real programs on real nodes, for as short a time as there is."""

import shutil

import pytest

from spcomm.bench import measure, peers
from spcomm.bench.cases import alone, mpi, paths, sweep
from spcomm.bench.measure import grouped, one_start
from spcomm.bench.plain_c import CannotMeasureError
from spcomm.bench.rows import MPI4PY, MPI_C, Row, Sweep


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A spinning program that shares its cores with other tests may take longer than a measurement waits."""
    monkeypatch.setattr(measure, "TIMEOUT", 170.0)


WORKS = [
    Row("array", "", "array_pingpong", 2),
    Row("dict", "", "object_pingpong", 2),
    Row("written", "", "written_pingpong", 2, {"size": 1 << 20}),
    Row("ring", "", "ring", 2),
    Row("barrier", "", "barrier", 2),
    Row("sum", "", "float_sum", 2),
]


BOXES = [Row(row.key, "", row.work, 2, row.parameters, boxes=2) for row in WORKS]
STALL = [
    Row(str(stops), "", "exchange", 3, {"size": 8, "stops": stops}, program="stall", boxes=3)
    for stops in (False, True)
]
MANY = [
    Row(work, "", work, 3, {"seconds": 0.1}, program="many", boxes=3)
    for work in ("message", "slowest_message", "server_memory")
]
EVENTS = [Row(kind, "", f"{kind}_events", 2, program="events", traced=True) for kind in ("call", "region")]
RELAY = [
    Row(f"{way}-{waits}", "", "plain_c", 2, {"waits": waits, "way": way, "size": size}, program="relay")
    for way, size in (("pingpong", 8), ("stream", 1 << 20))
    for waits in ("sleep", "spin")
]
LOOP = [
    Row(f"{work}-{n}", "", "plain_c", n, {"work": work, "processes": n}, program="loop")
    for work in ("barrier", "ring")
    for n in (2, 8)
]

FLOOR = [
    Row(f"{way}-{size}", "", "plain_c", 2, {"way": way, "size": size}, program="floor")
    for way in ("pingpong", "memcpy", "loopback")
    for size in (1, 57, 100_000)
]
LAYERS = [
    Row(f"{way}-{size}", "", "plain_c", 2, {"way": way, "size": size}, program="layers")
    for way in ("one_way", "pingpong")
    for size in (1, 100_000)
]

CLUSTERS = [
    Row(what, "", "cluster", 2, {"whose": whose, "what": what}, program=whose)
    for whose in ("spcomm", "pool", "ipyparallel")
    for what in ("start", "call")
]


def check(rows, contender, *more):
    """One start measures each of the rows; returns the times."""
    if contender.missing:
        pytest.skip(contender.missing)
    results = one_start(rows, contender.suited(rows[0]), 0.001, *more)
    assert sorted(results) == sorted(row.key for row in rows)
    assert all(times and all(time > 0 for time in times) for times in results.values())
    return results


def contenders():
    return [peers.spcomm(), *(make() for make in peers.MPIS.values())]


@pytest.mark.parametrize("contender", contenders(), ids=lambda contender: contender.name)
@pytest.mark.parametrize(
    "rows", [WORKS, BOXES, [Row("launch", "", "launch", 3)]], ids=["works", "boxes", "launch"]
)
def test_every_work(contender, rows):
    check(rows, contender)


@pytest.mark.parametrize("contender", contenders(), ids=lambda contender: contender.name)
@pytest.mark.parametrize("transport", ["memory", "tcp"])
@pytest.mark.slow
def test_every_operation_of_the_sweep(contender, transport):
    """With more nodes than two, and sizes of one element, of several slots, and of blocks."""
    buffers = ["hot", "cold"] if transport == "memory" else ["hot"]
    check(sweep.rows((3,), Sweep(sizes=(1, 8, 70_000), transports=[transport], buffers=buffers)), contender)


@pytest.mark.slow
def test_every_path():
    """Each kind of start with two and with three nodes, at two sizes."""
    chosen = [row for row in paths.rows((2, 3)) if row.size_bytes in (8, 32 << 10)]
    groups = grouped(chosen)
    assert len(groups) == 6
    for group in groups:
        check(group, peers.spcomm())


@pytest.mark.parametrize("name", ["multiprocessing", "pyzmq"])
@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_peers_without_a_launcher(name, transport):
    """They have only some of the operations, and the rest is not given to them."""
    contender = peers.PEERS[name]()
    if contender.missing:
        pytest.skip(contender.missing)
    rows = sweep.rows((3,), Sweep(sizes=(1, 70_000), transports=[transport]))
    mine = [row for row in rows if contender.can_run(row)]
    assert {row.operation for row in mine} == {
        ("multiprocessing", "memory"): {"one_way", "pingpong", "barrier"},
        ("multiprocessing", "tcp"): set(),
        ("pyzmq", "memory"): {"one_way", "pingpong"},
        ("pyzmq", "tcp"): {"one_way", "pingpong"},
    }[name, transport]
    if mine:
        check(mine, contender)
    assert not contender.can_run(WORKS[0])


@pytest.mark.parametrize("contender", contenders(), ids=lambda contender: contender.name)
@pytest.mark.parametrize("dialect", [MPI4PY, MPI_C])
def test_every_program_of_mpi(contender, dialect):
    """The same program with three nodes, by each library."""
    if contender.missing:
        pytest.skip(contender.missing)
    rows = [row for row in mpi.works(3) if row.dialect == dialect and row.size_bytes != 16 << 20]
    mine = [row for row in rows if contender.can_run(row)]
    if not mine:
        pytest.skip(contender.without_c)
    assert mine == rows and len(grouped(rows)) == 1
    try:
        results = check(rows, contender, 3)
    except CannotMeasureError as error:
        pytest.skip(str(error))
    assert all(len(times) >= 3 for times in results.values())


@pytest.mark.parametrize(
    "rows",
    [STALL, pytest.param(EVENTS, marks=pytest.mark.slow)],
    ids=["beside a stopped node", "events of a trace"],
)
def test_spcomm_alone(rows):
    check(rows, peers.spcomm())


def test_many_boxes():
    results = check(MANY, peers.spcomm())
    assert 0 < results["message"][0] <= results["slowest_message"][0]
    assert 1 << 20 < results["server_memory"][0] < 1 << 30


def test_imbalance_of_a_balanced_program():
    row = alone.balance(2)
    (imbalance,) = one_start([row], peers.spcomm().suited(row), 0.001)[row.key]
    assert 0 < imbalance < 1  # 1: one node computes twice as long as the mean, so the other not at all


@pytest.mark.parametrize("whose", ["spcomm", "pool", "ipyparallel"])
def test_nodes_for_a_notebook(whose):
    try:
        check([row for row in CLUSTERS if row.program == whose], peers.spcomm())
    except CannotMeasureError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [RELAY, LOOP, FLOOR, LAYERS], ids=["relay", "loop", "floor", "layers"])
def test_plain_c(rows):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    check(rows, peers.spcomm())
