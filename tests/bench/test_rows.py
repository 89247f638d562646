# SPDX-License-Identifier: MIT
"""The rows that the benchmarks declare; both libraries' programs can measure them."""

import ast
import functools
import operator
import re
from pathlib import Path

import pytest

from spcomm.bench.cases import BENCHMARKS, SUMMARIES, sweep
from spcomm.bench.command import rows_at
from spcomm.bench.measure import BALANCE, CLUSTER, DIAGNOSE, LAUNCH, PLAIN_C, grouped
from spcomm.bench.peers import PROGRAMS
from spcomm.bench.rows import MPI_C, PEERS, Goal, Sweep

ROWS = [row for one in BENCHMARKS.values() for row in one.rows(one.nodes)]


@functools.cache
def functions(library):
    """Those of a library's file, with their parameters: also by another name, and where all libraries share one."""
    found = {}
    for name in ("payload.py", f"with_{library}.py"):
        for node in ast.parse(Path(PROGRAMS, name).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = [a.arg for a in node.args.args]
            if isinstance(node, ast.Assign):
                new, old = (
                    ast.unparse(side).strip("()").split(", ") for side in (node.targets[0], node.value)
                )
                found |= {one: found[other] for one, other in zip(new, old, strict=False) if other in found}
    return found


@functools.cache
def functions_in_c(name):
    """Those of its table of works."""
    text = Path(PROGRAMS, name).read_text(encoding="utf-8")
    return set(re.findall(r'\{"(\w+)", \1, \w+\}', text))


def test_order_and_names():
    assert list(BENCHMARKS)[:5] == ["pingpong", "ring", "barrier", "reduce", "launch"]


@pytest.mark.parametrize("name", ["barrier", "ring"])
def test_eight_nodes_are_compared_with_plain_c(name):
    """The loop does the same work, with as many processes."""
    rows = {row.key: row for row in BENCHMARKS[name].rows((2, 8))}
    row = rows[f"{name}-8-beside-loop"]
    loop = rows[row.goal.against]
    assert (row.work, row.nodes, row.goal.ratio) == (name, 8, 1.5) and not row.peers
    assert (loop.program, loop.parameters) == ("loop", {"work": name, "processes": 8})


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_says_what_it_is(name):
    assert SUMMARIES[name].endswith(".")


def test_keys_are_unique():
    assert len({row.key for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_goals_compare_with_something_that_is_there(row):
    if row.goal is not None:
        assert (row.goal.ratio or row.goal.bytes or row.goal.seconds or row.goal.share) > 0
        assert row.goal.against == PEERS or row.goal.against in {other.key for other in ROWS}
        assert row.goal.against != PEERS or row.peers or row.goal.ratio is None


@pytest.mark.parametrize("library", ["spcomm", "mpi4py"])
def test_every_work_has_its_function(library):
    for row in ROWS:
        if row.work not in (LAUNCH, DIAGNOSE, BALANCE, PLAIN_C, CLUSTER) and (
            library == "spcomm" or row.peers
        ):
            if row.dialect == MPI_C:
                assert row.work in functions_in_c(f"{row.program}.c") and set(row.parameters) <= {"size"}
            else:
                known = functions(row.dialect or library)
                assert known[f"{row.program}_{row.work}"] == ["comm", "count", *row.parameters]
    assert (PROGRAMS / f"meet_{library}.py").is_file()


def test_programs_of_mpi_are_compared_with_the_best_peer():
    rows = [row for row in ROWS if row.dialect]
    assert {row.nodes for row in rows} == {2, 4, 8}
    assert all(row.goal.against == PEERS and row.goal.ratio <= 0.9 for row in rows)
    assert {row.peers for row in rows if row.work == LAUNCH} == {("openmpi",), ("mpich",)}


@pytest.mark.parametrize("program", ["works", "arrays", "sweep"])
def test_both_libraries_have_the_same_works(program):
    ours, theirs = (
        [(name, told) for name, told in functions(library).items() if name.startswith(f"{program}_")]
        for library in ("spcomm", "mpi4py")
    )
    assert ours and ours == theirs


SURROUNDINGS = operator.attrgetter(
    *"program dialect nodes computing peers boxes direct encrypted traced".split()
)


def test_groups_share_nodes_and_surroundings():
    groups = grouped(ROWS)
    assert sorted(row.key for group in groups for row in group) == sorted(row.key for row in ROWS)
    for group in groups:
        assert len({(SURROUNDINGS(row), str(row.environment)) for row in group}) == 1
        assert len(group) == 1 or not {LAUNCH, DIAGNOSE, BALANCE} & {row.work for row in group}


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("nodes", [(2,), (3, 5), (8,), (64,)])
def test_other_node_counts(name, nodes):
    rows = rows_at(BENCHMARKS[name], nodes)
    assert {row.nodes for row in rows} == {n for n in nodes if n >= BENCHMARKS[name].least}
    assert all(1 <= row.boxes <= row.nodes for row in rows)
    keys = {row.key for row in rows}
    assert all(row.goal is None or row.goal.against in keys | {PEERS} for row in rows)


def test_a_sweep_is_the_product_of_what_was_chosen():
    chosen = Sweep(["pingpong", "broadcast", "barrier"], (8, 64), ("memory", "tcp"), ("hot", "cold"))
    rows = sweep.rows((2, 4), chosen)
    assert len({row.key for row in rows}) == len(rows) == 2 * (2 * 2 + 2 * 2 * 2 + 2)
    assert {(row.operation, row.nodes) for row in rows if row.operation == "pingpong"} == {("pingpong", 2)}
    assert {row.boxes for row in rows if row.transport == "tcp"} == {2, 4}
    assert all(row.boxes == 1 for row in rows if row.transport == "memory")
    assert {row.buffers for row in rows if row.operation == "barrier"} == {""}
    assert rows[0].title == "ping-pong, 8 bytes, 2 nodes"
    assert rows[-1].title == "barrier, 4 nodes, TCP"


def test_sums_of_arrays_have_whole_doubles():
    assert [row.size_bytes for row in sweep.rows((2,), Sweep(["reduce"], (1, 8, 15, 100)))] == [8, 96]


def test_goals_of_other_kinds():
    assert str(Goal(0.5)) == "≤ 0.5" and str(Goal(1.0, seconds=150e-6)) == "≤ 1, 150 µs"
    assert str(Goal(None, seconds=0.5)) == "≤ 500 ms"
    memory = Goal(None, bytes=64 << 20)
    assert str(memory) == "≤ 64 MiB"
    assert memory.is_reached(64 << 20, None) and not memory.is_reached((64 << 20) + 1, None)
    imbalance = Goal(None, share=0.03)
    assert (
        str(imbalance) == "≤ 3 %"
        and imbalance.is_reached(0.02, None)
        and not imbalance.is_reached(0.04, None)
    )
    assert Goal(0.5).is_reached(1.0, None) is None
    assert Goal(0.5).is_reached(1.0, 0.5) and not Goal(0.5, seconds=0.5).is_reached(1.0, 0.5)
