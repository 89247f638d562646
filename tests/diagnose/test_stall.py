# SPDX-License-Identifier: MIT
"""SP102 and SP103: runs that stand still, though they might go on, are warned of, and go on.

And where the nodes were, which Ctrl-C and --timeout tell.
"""

import signal
from types import SimpleNamespace

import pytest

import cases
from pairwise import each
from spcomm.diagnose import stall
from spcomm.launch.supervise import watchdog

LIMIT = ("--timeout", 40, "--grace", 0.2)  # runs that never say what they must end, too
START_OF_PLACES = "spcomm: where the nodes were:"
PLACES = """
    import spcomm
    comm = spcomm.startup()
    def crunch():
        return sum(range(10**15))
    def step():
        return comm.recv((comm.rank + 1) % comm.size, tag=7)
    crunch() if comm.rank == 0 else comm.barrier() if comm.rank == 4 else step()
"""
TABLE = """\
  node 0     program.py:5 in crunch
  nodes 1-3  recv(source=rank+1, tag=7)  program.py:7 in step
  node 4     barrier()                   program.py:8
"""


def read_until(process, is_enough):
    """The text that a run writes to stderr, until that is enough, or all there is."""
    text = ""
    while not is_enough(text):
        line = process.stderr.readline().decode()
        if not line:
            break
        text += line
    return text


def last_report(case, text):
    """From the last headline on: a node that comes later to its wait is told of in another report."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if cases.is_head(case, line)]
    return "\n".join(lines[heads[-1] :]) if heads else ""


@pytest.mark.parametrize(
    "case", each(4, cases.found("SP102") + cases.found("SP103")), ids=lambda case: case.name
)
def test_is_told(launch, written, case):
    process = launch.start(*LIMIT, *case.command(written(case)))
    text = read_until(process, lambda text: cases.differences(case, last_report(case, text)) == "")
    assert cases.differences(case, last_report(case, text)) == "", text
    assert process.poll() is None, text  # it was a warning only
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and START_OF_PLACES in result.err, result


def places(err):
    """The table of a run that was ended."""
    return err.partition(START_OF_PLACES + "\n")[2].rpartition("spcomm: ")[0]


def test_a_node_that_copies_gets_no_advice():
    """A large message that gets on between two looks; one that does not is no news."""
    found = [(False, 1_600_000_000, 5), (True, 20_000_000, 7)]
    segment = SimpleNamespace(fd=3, moving=lambda rank: found[rank])
    group = SimpleNamespace(segment=lambda rank: segment)
    watched = watchdog._Watched(5.0)
    assert watched.copies(group, [0, 1]) == {}
    found[0] = (False, 1_600_000_000, 6)
    assert watched.copies(group, [0, 1]) == {0: "receives 1.60 GB"}
    assert watched.copies(group, [0, 1]) == {}, "it has not moved since"
    found[:] = [None, (True, 20_000_000, 8)]
    assert watched.copies(group, [0, 1]) == {1: "sends 20.0 MB"}
    found[:] = [(True, 30_000_000, 30_000_000), None]
    assert watched.copies(group, [0, 1]) == {0: "sends 30.0 MB"}, "one copy of all of it has no steps"
    text = stall.report({}, {0: ("receives 1.60 GB", "t.py:5")}, 5.0)
    assert "node 0  receives 1.60 GB  t.py:5" in text and "Try:" not in text


def test_ctrl_c_tells_calls_and_lines(launch):
    process = launch.start("-n", 5, "--stall", 0.3, "--grace", 0.2, launch.script(PLACES))
    head = "spcomm: warning: nodes 1-4 have been waiting for"
    text = read_until(process, lambda text: head in text)
    assert head in text
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and places(result.err) == TABLE, result


@pytest.mark.slow
def test_a_timeout_tells_the_same(launch):
    for limit in (2, 8, 30):  # a busy machine may need longer to come to these lines
        result = launch.program(PLACES, options=("-n", 5, "--timeout", limit, "--grace", 0.2))
        assert result.code == 124, result
        if places(result.err) == TABLE:
            return
    pytest.fail(repr(result))
