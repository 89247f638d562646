# SPDX-License-Identifier: MIT
"""The launcher reports the same of nodes on other hosts as of its own: stalls, where they were, what they have left."""

import os
import re
import signal

import pytest

from processes import parent, read_lines

HOSTS = ("--host", "a:2,b:2")
PLACES = """
    import os, spcomm
    comm = spcomm.startup(); print(comm.rank, os.getpid(), flush=True)
    def crunch():
        return sum(range(10**15))
    def step():
        return comm.recv((comm.rank + 1) % comm.size, tag=7)
    crunch() if comm.rank == 2 else comm.barrier() if comm.rank == 3 else step()
"""
WAITS = """\
  node 0  recv(source=1, tag=7)  program.py:7 in step
  node 1  recv(source=2, tag=7)  program.py:7 in step
"""
STALL = f"{WAITS}  node 3  barrier()              program.py:8\n"
STALL += "  node 2  computes               program.py:5 in crunch\n"
TABLE = f"{WAITS}  node 2  program.py:5 in crunch\n  node 3  barrier()  program.py:8\n"
POLLS = """
    import spcomm
    comm = spcomm.startup()
    if comm.rank == 3:
        while comm.try_recv_message(0) is None:
            pass
    comm.recv(3)
"""
LEAVES = """
    import spcomm
    comm = spcomm.startup()
    comm.send("to all", spcomm.OTHERS, tag=comm.rank // 2)
    comm.fuzzy_barrier()
    comm.send("all is there", spcomm.OTHERS, tag=9)
    for _ in range(comm.size - 1):
        comm.recv(tag=9)
"""


def run_of(launch, ssh, where):
    """The options of a run of four nodes."""
    return (*where, "--ssh", ssh) if where else ("-n", 4)


def read_until(process, *words):
    """The text that a run writes to stderr, from a headline on, until all of these words have come."""
    text = ""
    while not all(word in text for word in words):
        line = process.stderr.readline().decode()
        assert line, f"{words} did not come, but\n{text}"
        text = line if line.startswith("spcomm: warning: ") else text + line
    return text


def rows(text):
    """Its lines, with columns two blanks apart."""
    return [re.sub(r"(\S) {2,}", r"\1  ", line) for line in text.splitlines()]


def places(result):
    """The table of a run that was ended."""
    text = result.err.partition("spcomm: where the nodes were:\n")[2].rpartition("spcomm: ")[0]
    return "".join(f"{row}\n" for row in rows(text))


@pytest.mark.slow
@pytest.mark.parametrize("where", [(), HOSTS, ("--host", "localhost:2,b:2"), ("--host", "a:4")], ids=" ".join)
def test_a_stall_and_where_the_nodes_were(launch, ssh, where):
    process = launch.start(*run_of(launch, ssh, where), "--stall", 0.3, "--grace", 0.2, launch.script(PLACES))
    text = read_until(process, STALL, "Try: check that the loop there ends")
    assert re.match(
        r"spcomm: warning: nodes 0-1, 3 have been waiting for \d+ s     \(spcomm explain SP102\)\n", text
    ), text
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and places(result) == TABLE, result


@pytest.mark.slow
@pytest.mark.parametrize("where", [(), HOSTS], ids=" ".join)
def test_polling_in_vain(launch, ssh, where):
    process = launch.start(*run_of(launch, ssh, where), "--stall", 0.3, "--grace", 0.2, launch.script(POLLS))
    text = read_until(process, "(spcomm explain SP103)\n", "Try: find the node that should send")
    assert re.search(r"  node 3     polls +program.py:[56]\n", text), text
    assert "  nodes 0-2  recv(source=3, tag=ANY)  program.py:7\n" in text, text
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--strict",)], ids=" ".join)
def test_what_is_left(launch, ssh, options):
    path = launch.script(LEAVES)
    one = launch("-n", 4, *options, path)
    assert "12 messages were never received" in one.err and "still open" in one.err, one
    for where in (HOSTS, ("--host", "localhost:1,b:3")):
        several = launch(*where, "--ssh", ssh, *options, path)
        assert (several.code, several.err) == (one.code, one.err), several
    assert one.code == (1 if options else 0)


def test_lines_come_from_a_box_that_has_nothing_left(launch, ssh):
    program = """
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0:
            comm.send(1, 3)
            comm.send("it is there", 3, tag=9)
        elif comm.rank == 3:
            comm.recv(0, tag=9)
    """
    result = launch(*HOSTS, "--ssh", ssh, "--strict", launch.script(program))
    assert "sent at program.py:5" in result.err and result.code == 1, result


@pytest.mark.slow
def test_a_box_that_does_not_answer(launch, ssh):
    """It is shown, and nobody waits for it."""
    process = launch.start(*HOSTS, "--ssh", ssh, "--stall", 0.3, "--grace", 0.2, launch.script(PLACES))
    nodes = dict(map(int, line.split()) for line in read_lines(process, 4))
    read_until(process, STALL)
    box = parent(parent(nodes[3]))
    os.kill(box, signal.SIGSTOP)
    text = read_until(process, "Try: check that machine")
    assert rows(text)[-4:-1] == [*WAITS.splitlines(), "  nodes 2-3  box b does not answer"], text
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130, result
    assert places(result) == f"{WAITS}  nodes 2-3  box b does not answer\n", result
