# SPDX-License-Identifier: MIT
"""A node killed at a named point: whoever needs it gets a NodeLostError that names it, nobody hangs.

The launcher ends such a run with TERM, so the survivors of these programs ignore that signal until they have said
what they saw; then they leave.
"""

import pytest

from operations import waiting
from pairwise import each
from programs import HEAD, run, write

# `needs_lost(call, node)`: the call must raise because of that node, and say these words; prints one line about it.
SURVIVE = """
import psutil
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def die():
    os.kill(os.getpid(), signal.SIGKILL)
    while True: pass
def report(text):
    sys.stdout.write(f"{rank}: {text}\\n")
    sys.stdout.flush()
def needs_lost(call, node, *words):
    try:
        result = call()
    except spcomm.NodeLostError as error:
        told = all(word in str(error) for word in (f"node {node}", *words))
        report("lost" if told else f"unnamed: {error}")
    else:
        report(f"returned {result!r:.80}")
def asleep(process):
    while psutil.Process(process).status() != "sleeping":
        os.sched_yield()
def kill_when_asleep(process):
    asleep(process)
    os.kill(process, signal.SIGKILL)
comm.barrier()
"""
PARTS = ["--slots", "2", "--ring", "4096", "--arena", "0"]


def survivors(tmp_path, nodes, text, *options):
    """Runs the program; the exit code must be that of the killed node. Returns what the survivors reported."""
    path = write(tmp_path, text, HEAD + SURVIVE)
    result = run(tmp_path, nodes, "", "--grace", "60", *options, program=path)
    assert result.code == 137, str(result)
    assert "node 1" in result.err and "KILL" in result.err.upper(), str(result)
    return result.lines()


@pytest.mark.smoke
def test_while_sending_a_long_message_in_parts(tmp_path):
    """The message had begun to arrive; its rest never comes, and the receiver is told."""
    text = """
        if rank == 1:
            comm.send("whole", 0)
            comm.send(bytes(10_000_000), 0)   # far more than fits: most of it is still queued
            die()
        if rank == 0:
            report(comm.recv(1))
            needs_lost(lambda: comm.recv(1), 1)
    """
    assert survivors(tmp_path, 3, text, *PARTS) == ["0: lost", "0: whole"]


def test_while_sending_a_multicast_in_parts(tmp_path):
    text = """
        if rank == 1:
            comm.send(bytes(10_000_000), spcomm.OTHERS)
            die()
        needs_lost(lambda: comm.recv(1), 1)
        needs_lost(lambda: comm.recv(1, timeout=100), 1)
    """
    assert survivors(tmp_path, 4, text, *PARTS) == [f"{rank}: lost" for rank in (0, 0, 2, 2, 3, 3)]


@pytest.mark.parametrize("options", [[], PARTS], ids=["default", "parts"])
def test_while_receiving(tmp_path, options):
    """Node 1 sleeps in recv when node 2 kills it; node 0 has sent it more than it can take."""
    text = """
        if rank == 1:
            comm.send(os.getpid(), 2)
            comm.recv(2, tag=5)
        elif rank == 0:
            for number in range(50):
                comm.send((number, bytes(50_000)), 1)
            needs_lost(lambda: comm.recv(1), 1)
        elif rank == 2:
            kill_when_asleep(comm.recv(1))
            needs_lost(lambda: comm.recv(1), 1)
            needs_lost(lambda: comm.probe(1), 1)
    """
    assert survivors(tmp_path, 3, text, *options) == ["0: lost", "2: lost", "2: lost"]


CALLS = waiting("all")


@pytest.mark.parametrize("options", [[], ["--fanin", "2"]], ids=["flat", "tree"])
@pytest.mark.parametrize("call", each(2, CALLS))
def test_inside_a_collective(tmp_path, call, options):
    """Node 1 is killed while it waits in the collective, by node 0, which enters after that.

    Node 1 has arrived, so the operation may complete without it; the next one cannot, for anybody.
    """
    call = CALLS[call].by(own=0, peer=1)
    text = f"""
        import numpy as np
        if rank == 0:
            kill_when_asleep(comm.recv(1))
            needs_lost(lambda: comm.recv(1), 1)
        elif rank == 1:
            comm.send(os.getpid(), 0)
        try:
            {call}
        except spcomm.NodeLostError as error:
            report("lost" if "node 1" in str(error) else f"unnamed: {{error}}")
        else:
            needs_lost(lambda: {call}, 1)
        for other in (0, 2, 3, 4):  # nobody leaves before all have reported
            comm.send("reported", other)
        for other in (0, 2, 3, 4):
            comm.recv(other)
    """
    assert survivors(tmp_path, 5, text, *options) == ["0: lost", "0: lost", "2: lost", "3: lost", "4: lost"]


def test_a_dead_nodes_arrival_counts(tmp_path):
    """It had entered the fuzzy barrier before it died: for the others, that barrier is complete."""
    text = """
        fuzzy = comm.fuzzy_barrier()
        if rank == 1:
            die()
        needs_lost(lambda: comm.recv(1), 1)
        fuzzy.wait()
        report("complete")
    """
    assert survivors(tmp_path, 3, text) == ["0: complete", "0: lost", "2: complete", "2: lost"]


@pytest.mark.parametrize(
    "wait", ["recv(1, 99)", "recv(1, 99, timeout=100)", "probe(1, 99)", "recv_message(1, 99)"]
)
def test_what_a_dead_node_had_announced_is_delivered(tmp_path, wait):
    """Inline, ring and arena messages; first the death is seen, then all of them are received, whole and in order."""
    text = f"""
        sizes = [0, 8, 40, 41, 1000, 8000, 20_000, 300_000]
        if rank == 1:
            for number, size in enumerate(sizes):
                comm.send((number, bytes([number]) * size), spcomm.OTHERS)
            die()
        needs_lost(lambda: comm.{wait}, 1)
        for number, size in enumerate(sizes):
            assert comm.recv(1) == (number, bytes([number]) * size), number
        needs_lost(lambda: comm.recv(1), 1)
        assert comm.try_recv_message(1) is None
        report("all")
    """
    assert survivors(tmp_path, 3, text) == [
        line for rank in (0, 2) for line in (f"{rank}: all", f"{rank}: lost", f"{rank}: lost")
    ]


def test_others_go_on_without_it(tmp_path):
    """Messages between survivors are not disturbed, and sends to the dead node neither hang nor fill anything."""
    text = """
        if rank == 1:
            die()
        needs_lost(lambda: comm.recv(1), 1)
        partner = {0: 2, 2: 0}[rank]
        for number in range(2000):
            try:
                comm.send(bytes(2000), 1)
            except spcomm.NodeLostError:
                pass
            comm.send((number, bytes(1000)), partner)
            assert comm.recv(partner) == (number, bytes(1000))
        report("went on")
    """
    for options in ([], [*PARTS, "--queue-limit", "65536"]):
        assert survivors(tmp_path, 3, text, *options) == ["0: lost", "0: went on", "2: lost", "2: went on"]


def test_a_send_that_waits_for_a_node_that_dies(tmp_path):
    """Node 0's queue is full of messages for node 1; when node 1 dies, node 0 goes on."""
    text = """
        if rank == 1:
            while True:     # computes, and receives nothing
                if os.path.exists("full"):
                    die()
        if rank == 0:
            try:
                while True:
                    try:
                        comm.send(bytes(500), 1, timeout=0)
                    except spcomm.WaitTimeoutError:
                        open("full", "w").close()
                        comm.send(bytes(500), 1)
                        comm.send(bytes(500), 1)
                        needs_lost(lambda: comm.recv(1), 1)
                        break
            except spcomm.NodeLostError:
                report("lost")
    """
    assert survivors(tmp_path, 2, text, *PARTS, "--queue-limit", "16384") == ["0: lost"]


def test_dead_receivers_do_not_keep_the_ring(tmp_path):
    """Six nodes die with the ring full of messages for them: what they had not read no longer takes room."""
    text = """
        dying = range(1, 7)
        if rank in dying:
            while not os.path.exists("full"):     # computes, and receives nothing
                pass
            die()
        if rank == 0:
            for number in range(60):
                for other in dying:
                    comm.send(bytes(300), other)
            open("full", "w").close()
            for other in dying:
                needs_lost(lambda: comm.recv(other), other)
            for number in range(300):
                comm.send((number, bytes(200)), 7)
            report(comm.recv(7))
        else:
            for number in range(300):
                assert comm.recv(0) == (number, bytes(200))
            comm.send("all", 0)
    """
    path = write(tmp_path, text, HEAD + SURVIVE)
    result = run(tmp_path, 8, "", "--grace", "60", *PARTS, program=path)
    assert result.code == 137 and result.lines() == ["0: all"] + ["0: lost"] * 6, str(result)


def test_from_any_while_others_live(tmp_path):
    """A receive from ANY still can be served: it goes on waiting, and gets what another node sends."""
    text = """
        if rank == 1:
            die()
        if rank == 0:
            needs_lost(lambda: comm.recv(1), 1)
            comm.send("now", 2)
            report(comm.recv())
        else:
            comm.recv(0)
            comm.send("from 2", 0)
    """
    lines = survivors(tmp_path, 3, text)
    assert lines == ["0: from 2", "0: lost"]


def test_two_die(tmp_path):
    """The first failure gives the exit code; the survivor hears of both."""
    text = """
        if rank in (1, 2):
            die()
        needs_lost(lambda: comm.recv(1), 1)
        needs_lost(lambda: comm.recv(2), 2)
    """
    path = write(tmp_path, text, HEAD + SURVIVE)
    result = run(tmp_path, 3, "", "--grace", "60", program=path)
    assert result.code == 137 and result.lines() == ["0: lost", "0: lost"], str(result)
