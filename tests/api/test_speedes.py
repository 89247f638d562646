# SPDX-License-Identifier: MIT
"""spcomm.speedes: the paper's functions under the paper's names, on every number of nodes."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import signatures
import spcomm
from nodepool import environment
from nodetools import refused
from programs import alone, ok, run
from spcomm import speedes
from spcomm.speedes import (
    SpComm_BarrierSync,
    SpComm_CoordinatedReceive,
    SpComm_CoordinatedSend,
    SpComm_EnterFuzzyBarrier,
    SpComm_ExitFuzzyBarrier,
    SpComm_GetNodeId,
    SpComm_GetNumNodes,
    SpComm_GetPendingMessage,
    SpComm_GlobalMax,
    SpComm_GlobalMin,
    SpComm_GlobalSum,
    SpComm_Receive,
    SpComm_Send,
    SpComm_ShutDown,
    SpComm_StartUp,
    SpDestination,
    SpSimTime,
)

# The paper's names are about the whole run: no parts of it.
pytestmark = pytest.mark.options("default", "tiny", "small")

ROOT = Path(__file__).resolve().parents[2]


def begin(comm):
    """Every test, since tests before it may have left the fuzzy barrier open when they failed."""
    SpComm_StartUp(0, 0, 0, None)
    assert (SpComm_GetNodeId(), SpComm_GetNumNodes()) == (comm.rank, comm.size)
    return comm.rank, comm.size


def received(kind):
    """Waits for a message, as the paper's programs do."""
    while (data := SpComm_Receive(kind)) is None:
        pass
    return data


def raised(error, function, *arguments):
    with pytest.raises(error) as caught:
        function(*arguments)
    return str(caught.value)


# ---- the table of the paper


def delivered(size, *arguments):
    """Node 0 sends; who gets it?"""
    rank = SpComm_GetNodeId()
    SpComm_BarrierSync()
    if rank == 0:
        assert SpComm_Send(*arguments) is None
    SpComm_BarrierSync()
    return SpComm_GlobalSum(sum(SpComm_Receive(arguments[-2]) == arguments[-1] for _ in range(2)))


def coordinated(*arguments):
    """Node 0 sends; who gets it?"""
    if SpComm_GetNodeId() == 0:
        assert SpComm_CoordinatedSend(*arguments) is None
    heard = 0
    while (data := SpComm_CoordinatedReceive()) is not None:
        assert data == arguments[-1]
        heard += 1
    return SpComm_GlobalSum(heard)


def fuzzy():
    SpComm_EnterFuzzyBarrier()
    seen = []
    while seen[-1:] != [1]:
        seen.append(SpComm_ExitFuzzyBarrier())
    return set(seen) <= {0, 1} and all(type(value) is int for value in seen)


def pending():
    SpComm_Send(SpComm_GetNodeId(), 9, b"x")
    SpComm_Receive()
    return SpComm_GetPendingMessage(9), SpComm_GetPendingMessage(9)


def last(size):
    dest = SpDestination()
    dest.Set(size - 1)
    dest.Set(0)
    return dest


# The paper's signature: (how a Python program calls it on node r of n, what comes out).
CALLS = {
    "SpComm_StartUp(int, int, int, char *)": (lambda r, n: SpComm_StartUp(0, n, 0, None), lambda r, n: None),
    "SpComm_GetNumNodes()": (lambda r, n: SpComm_GetNumNodes(), lambda r, n: n),
    "SpComm_GetNodeId()": (lambda r, n: SpComm_GetNodeId(), lambda r, n: r),
    "SpComm_BarrierSync()": (lambda r, n: SpComm_BarrierSync(), lambda r, n: None),
    "SpComm_GlobalMin(int)": (lambda r, n: SpComm_GlobalMin(r - 7), lambda r, n: -7),
    "SpComm_GlobalMax(int)": (lambda r, n: SpComm_GlobalMax(r), lambda r, n: n - 1),
    "SpComm_GlobalSum(int)": (lambda r, n: SpComm_GlobalSum(r), lambda r, n: n * (n - 1) // 2),
    "SpComm_GlobalMin(double)": (lambda r, n: SpComm_GlobalMin(0.5 - r), lambda r, n: 1.5 - n),
    "SpComm_GlobalMax(double)": (lambda r, n: SpComm_GlobalMax(0.5 - r), lambda r, n: 0.5),
    "SpComm_GlobalSum(double)": (lambda r, n: SpComm_GlobalSum(0.5), lambda r, n: n / 2),
    "SpComm_GlobalMin(SpSimTime)": (
        lambda r, n: SpComm_GlobalMin(SpSimTime(1.5, -r)), lambda r, n: SpSimTime(1.5, 1 - n)),
    "SpComm_GlobalMax(SpSimTime)": (
        lambda r, n: SpComm_GlobalMax(SpSimTime(1.5, 0, -r)), lambda r, n: SpSimTime(1.5)),
    "SpComm_EnterFuzzyBarrier()": (lambda r, n: fuzzy(), lambda r, n: True),
    "SpComm_ExitFuzzyBarrier()": (lambda r, n: fuzzy(), lambda r, n: True),
    "SpComm_Send(int, int, int, void *)": (lambda r, n: delivered(n, n - 1, 255, b"one"), lambda r, n: 1),
    "SpComm_Send(SpDestination *, int, int, void *)": (
        lambda r, n: delivered(n, last(n), 0, b"some"), lambda r, n: min(n, 2)),
    "SpComm_Send(int, int, void *)": (lambda r, n: delivered(n, 3, b"all"), lambda r, n: n),
    "SpComm_Receive()": (lambda r, n: SpComm_Receive(), lambda r, n: None),
    "SpComm_Receive(int, int &)": (lambda r, n: SpComm_Receive(1), lambda r, n: None),
    "SpComm_GetPendingMessage(int, int &)": (lambda r, n: pending(), lambda r, n: (b"x", None)),
    "SpComm_CoordinatedSend(int, int, void *)": (lambda r, n: coordinated(n - 1, b"one"), lambda r, n: 1),
    "SpComm_CoordinatedSend(SpDestination *, int, void *)": (
        lambda r, n: coordinated(last(n), b"some"), lambda r, n: min(n, 2)),
    "SpComm_CoordinatedSend(int, void *)": (lambda r, n: coordinated(b"all"), lambda r, n: n),
    "SpComm_CoordinatedReceive(int &)": (lambda r, n: SpComm_CoordinatedReceive(), lambda r, n: None),
}  # fmt: skip


def test_the_table_has_the_papers_signatures():
    """And ShutDown, which can be called once only: test_shut_down."""
    assert list(CALLS) == [str(signature) for signature in signatures.PAPER]
    functions = {signature.name for signature in signatures.ALL}
    assert set(speedes.__all__) == functions | {"SpDestination", "SpSimTime"}


@pytest.mark.parametrize("signature", signatures.PAPER, ids=str)
@pytest.mark.options("default")
@pytest.mark.whole
def test_each_signature(comm, signature):
    rank, size = begin(comm)
    call, expected = CALLS[str(signature)]
    result = call(rank, size)
    wanted = expected(rank, size)
    assert (type(result), result) == (type(wanted), wanted)


@pytest.mark.parametrize("signature", signatures.ALL, ids=str)
def test_parameters_have_the_papers_names(signature):
    """Those that are always given; nbytes is not, and buff is called data."""
    function = getattr(speedes, signature.name)
    names = ["data" if name == "buff" else name for name in signature.inputs if name != "nbytes"]
    parameters = inspect.signature(function).parameters
    if "arguments" in parameters:
        assert ", ".join(names) in function.__doc__
    elif signature.name.startswith("SpComm_Global"):
        assert list(parameters) == ["value"]
    else:
        assert list(parameters)[: len(names)] == names


# ---- life


def test_shut_down(tmp_path):
    program = """
    from spcomm.speedes import *
    SpComm_StartUp(0, 0, 0, None)
    SpComm_Send((SpComm_GetNodeId() + 1) % SpComm_GetNumNodes(), 3, b"last words")
    while SpComm_Receive(3) is None: pass
    assert SpComm_ShutDown() is None
    assert SpComm_ShutDown() is None
    assert SpComm_GetNodeId() == rank
    try:
        SpComm_BarrierSync()
    except spcomm.SpcommError as error:
        print(error)
    """
    result = ok(run(tmp_path, 3, program))
    assert result.out.count("closed") == 3


def test_forks_outside_of_the_launcher(tmp_path):
    program = """
    from spcomm.speedes import *
    SpComm_StartUp(3, 0, 5, None)
    assert SpComm_GlobalSum(1) == 3
    print(f"node {SpComm_GetNodeId()} of {SpComm_GetNumNodes()}")
    """
    assert ok(alone(tmp_path, program, head="")).lines() == [f"node {n} of 3" for n in range(3)]


EARLY = [
    "SpComm_ShutDown()", "SpComm_GetNumNodes()", "SpComm_GetNodeId()", "SpComm_BarrierSync()",
    "SpComm_GlobalMin(1)", "SpComm_GlobalMax(1)", "SpComm_GlobalSum(1)", "SpComm_EnterFuzzyBarrier()",
    "SpComm_ExitFuzzyBarrier()", "SpComm_Send(0, 1, b'')", "SpComm_Send(1, b'')", "SpComm_Receive()",
    "SpComm_Receive(1)", "SpComm_GetPendingMessage(1)", "SpComm_CoordinatedSend(0, b'')",
    "SpComm_CoordinatedSend(b'')", "SpComm_CoordinatedReceive()",
]  # fmt: skip


def test_before_start_up(monkeypatch):
    monkeypatch.setattr(speedes, "_comm", None)
    assert {call.partition("(")[0] for call in EARLY} == {name for name in speedes.__all__ if "_" in name} - {
        "SpComm_StartUp"
    }
    for call in EARLY:
        with refused(spcomm.SpcommError, call.partition("(")[0], "SpComm_StartUp has not been called"):
            eval(call)


# ---- fuzzy barrier


def test_one_fuzzy_barrier_at_a_time(comm):
    begin(comm)
    with refused(spcomm.SpcommError, "SpComm_ExitFuzzyBarrier", "in no fuzzy barrier"):
        SpComm_ExitFuzzyBarrier()
    SpComm_EnterFuzzyBarrier()
    with refused(spcomm.SpcommError, "SpComm_EnterFuzzyBarrier", "already"):
        SpComm_EnterFuzzyBarrier()
    while SpComm_ExitFuzzyBarrier() == 0:
        pass
    with refused(spcomm.SpcommError, "in no fuzzy barrier"):
        SpComm_ExitFuzzyBarrier()


@pytest.mark.sizes(2, 3, 4, 8)
def test_exit_is_0_until_all_have_entered(comm):
    rank, size = begin(comm)
    if rank == size - 1:
        for node in range(size - 1):
            assert received(1) is not None, node
        SpComm_EnterFuzzyBarrier()
    else:
        SpComm_EnterFuzzyBarrier()
        assert [SpComm_ExitFuzzyBarrier() for _ in range(20)] == [0] * 20
        SpComm_Send(size - 1, 1, rank)
    while SpComm_ExitFuzzyBarrier() == 0:
        pass


@pytest.mark.sizes(2, 4)
def test_a_mismatch_ends_the_fuzzy_barrier(comm):
    rank, _ = begin(comm)
    if rank == 0:
        with pytest.raises(spcomm.MismatchError):
            SpComm_BarrierSync()
    else:
        SpComm_EnterFuzzyBarrier()
        with pytest.raises(spcomm.MismatchError):
            while SpComm_ExitFuzzyBarrier() == 0:
                pass
    assert fuzzy()


# ---- messages


def test_receive_never_waits_and_looks_into_the_queues_first(comm):
    rank, _ = begin(comm)
    assert SpComm_Receive(5) is None
    assert SpComm_GetPendingMessage(5) is None
    SpComm_Send(rank, 5, "first")
    assert SpComm_GetPendingMessage(5) is None  # it has arrived, and is in no queue
    assert SpComm_Receive() is None
    SpComm_Send(rank, 5, "second")
    SpComm_Send(rank, 6, "other")
    assert SpComm_GetPendingMessage(6) is None
    assert [SpComm_Receive(5) for _ in range(3)] == ["first", "second", None]
    assert SpComm_Receive(6) == "other"


def test_cycles(comm):
    rank, size = begin(comm)
    for cycle in range(5):
        SpComm_CoordinatedSend((cycle, rank, "all"))
        SpComm_CoordinatedSend((rank + 1) % size, (cycle, rank, "next"))
        heard = []
        while (data := SpComm_CoordinatedReceive()) is not None:
            heard.append(data)
            with pytest.raises(spcomm.CycleError):
                SpComm_BarrierSync()
            with pytest.raises(spcomm.CycleError):
                SpComm_CoordinatedSend(b"")
        wanted = [(cycle, node, "all") for node in range(size)] + [(cycle, (rank - 1) % size, "next")]
        assert sorted(heard) == sorted(wanted)
        SpComm_BarrierSync()


@pytest.mark.sizes(1, 2)
def test_a_cycle_error_names_the_line_of_the_program(comm):
    rank, _ = begin(comm)
    SpComm_CoordinatedSend(rank, b"")
    text = raised(spcomm.CycleError, SpComm_BarrierSync)
    assert (
        text.startswith("SpComm_BarrierSync(): ")
        and "since SpComm_CoordinatedSend() at test_speedes.py:" in text
    )
    assert "receive until SpComm_CoordinatedReceive() returns None, then call this" in text
    assert "coordinated_" not in text
    assert SpComm_CoordinatedReceive() == b""
    with refused(spcomm.CycleError, "since SpComm_CoordinatedReceive() at test_speedes.py:"):
        SpComm_CoordinatedSend(rank, b"")
    assert SpComm_CoordinatedReceive() is None


# ---- wrong arguments


@pytest.mark.parametrize("wrong", [-1, 256, 2**31, 10**5000, np.int64(256)], ids=range(5))
@pytest.mark.options("default")
@pytest.mark.sizes(1, 2)
def test_wrong_types(comm, wrong):
    begin(comm)
    shown = "int" if wrong == 10**5000 else str(wrong)
    for name, call in [
        ("SpComm_Send", lambda: SpComm_Send(0, wrong, b"")),
        ("SpComm_Send", lambda: SpComm_Send(wrong, b"")),
        ("SpComm_Receive", lambda: SpComm_Receive(wrong)),
        ("SpComm_GetPendingMessage", lambda: SpComm_GetPendingMessage(wrong)),
    ]:
        with refused(spcomm.TagError, name, shown, "0 to 255"):
            call()


@pytest.mark.options("default")
@pytest.mark.sizes(2)
def test_what_else_is_wrong(comm):
    begin(comm)
    for wrong in (1.0, "1", None, True):
        with refused(TypeError, "SpComm_Send", "0 to 255", type(wrong).__name__):
            SpComm_Send(0, wrong, b"")
        with refused(TypeError, "SpComm_Receive", "0 to 255"):
            SpComm_Receive(wrong)
    with refused(spcomm.TagError, "SpComm_Receive", "0 to 255"):
        SpComm_Receive(spcomm.ANY)
    with refused(TypeError, "SpComm_Send(dest, type, data)", "SpComm_Send(type, data)", "4", "nbytes"):
        SpComm_Send(0, 1, 3, b"abc")
    with refused(TypeError, "1 argument was given"):
        SpComm_Send(b"abc")
    with refused(TypeError, "SpComm_CoordinatedSend(dest, data)", "3"):
        SpComm_CoordinatedSend(0, 3, b"abc")
    for call in (lambda: SpComm_Send(0, 1, None), lambda: SpComm_CoordinatedSend(None)):
        with refused(TypeError, "None"):
            call()
    with refused(spcomm.RankError, "2"):
        SpComm_Send(2, 1, b"")
    with refused(spcomm.RankError, "7"):
        SpComm_Send(SpDestination([0, 7]), 1, b"")


# ---- the two classes


def test_destination():
    dest = SpDestination()
    assert dest.GetFirstNode() == dest.GetNextNode() == -1
    for node in (9, 0, 1023, 9):
        assert dest.Set(node) is None
    nodes, node = [], dest.GetFirstNode()
    while node != -1:
        nodes.append(node)
        node = dest.GetNextNode()
    assert nodes == [0, 9, 1023] == list(dest)
    assert dest.Reset(0) is None
    assert dest.GetFirstNode() == 9
    assert isinstance(dest, spcomm.Destination)
    assert type(dest | {4}) is SpDestination
    for call in (dest.Set, dest.Reset):
        with refused(spcomm.RankError, "1024"):
            call(1024)


def test_simtime():
    assert SpSimTime(1.5) == 1.5
    assert float(SpSimTime(2.5, 1)) == 2.5
    assert SpSimTime(1.5, 0, 0, 0, 1) > SpSimTime(1.5) > SpSimTime(1.5, -1, 9)


# ---- documentation


def documented():
    return [getattr(speedes, name) for name in speedes.__all__ if name != "SpSimTime"]


@pytest.mark.parametrize("thing", documented(), ids=lambda thing: thing.__name__)
def test_docstrings_name_the_section(thing):
    text = inspect.getdoc(thing)
    assert text.partition("\n")[0].endswith((".", "?"))
    sections = {signature.section for signature in signatures.PAPER if signature.name == thing.__name__}
    for section in sections or {"" if thing is SpComm_ShutDown else "2.3"}:
        assert section in text


@pytest.mark.slow
def test_examples_in_docstrings_run():
    """Each in a fresh interpreter."""
    for thing in documented():
        if ">>>" not in (thing.__doc__ or ""):
            continue
        code = (
            "import doctest, spcomm.speedes as s\n"
            f"test = doctest.DocTestFinder(recurse=False).find(s.{thing.__name__}, globs={{}})[0]\n"
            "raise SystemExit(doctest.DocTestRunner().run(test).failed)"
        )
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment(), capture_output=True, text=True
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("signature", signatures.PAPER, ids=str)
def test_the_reference_has_each_signature(signature):
    text = (ROOT / "docs" / "reference" / "speedes.md").read_text()
    row = next(
        line for line in text.splitlines() if line.startswith(f"| `{signature}` | {signature.section} |")
    )
    for name in re.findall(r"`(\w+)`", row.split("|")[5]):
        assert f"spcomm_{name}(" in (ROOT / "csrc" / "include" / "spcomm" / "spcomm.h").read_text()


def test_the_program_of_the_page_runs(tmp_path):
    page = (ROOT / "docs" / "reference" / "speedes.md").read_text()
    (tmp_path / "names.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    result = ok(run(tmp_path, 4, "", program=tmp_path / "names.py"))
    assert result.lines() == [f"node {node} heard from [0, 1, 2, 3], 4 nodes" for node in range(4)]


# ---- errors have the paper's names


def test_wrong_arguments_have_the_papers_names(comm):
    _, size = begin(comm)
    assert raised(spcomm.RankError, SpComm_Send, size, 7, b"x").startswith(f"SpComm_Send(dest={size}): ")
    assert raised(TypeError, SpComm_Send, 0, 7, lambda: 0).startswith(
        "SpComm_Send(data): a function cannot be"
    )
    assert raised(spcomm.RankError, SpComm_CoordinatedSend, size, b"x").startswith(
        "SpComm_CoordinatedSend(dest="
    )
    assert raised(TypeError, SpComm_GlobalSum, [1]).startswith("SpComm_GlobalSum(x): x cannot be a list")
    assert raised(spcomm.ConfigError, SpComm_StartUp, size + 1).startswith(
        f"SpComm_StartUp(localNodes={size + 1}): "
    )
    comm.barrier()


@pytest.mark.sizes(2, 4)
def test_a_mismatch_has_the_papers_names(comm):
    rank, _ = begin(comm)
    text = raised(spcomm.MismatchError, *((SpComm_BarrierSync,) if rank == 0 else (SpComm_GlobalMax, 1)))
    assert text.startswith(
        "SpComm_BarrierSync(): the nodes" if rank == 0 else "SpComm_GlobalMax(): the nodes"
    )
    assert "node 0: SpComm_BarrierSync(), at" in text and ": SpComm_GlobalMax() of an int, at" in text
    if rank == 0:
        text = raised(spcomm.MismatchError, SpComm_BarrierSync)
    else:
        SpComm_EnterFuzzyBarrier()
        text = raised(spcomm.MismatchError, lambda: [SpComm_ExitFuzzyBarrier() for _ in iter(int, 1)])
        assert text.startswith("SpComm_ExitFuzzyBarrier(): the nodes")
    assert "SpComm_EnterFuzzyBarrier()" in text and "fuzzy_barrier" not in text
    comm.barrier()
