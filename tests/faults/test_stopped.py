# SPDX-License-Identifier: MIT
"""A node stopped by SIGSTOP costs the others nothing but its own answers, and catches up when it goes on."""

import textwrap

import pytest

from programs import ok, run

STATE = """
import psutil
def state(process):
    return psutil.Process(process).status()
"""
STOPPED = """
if rank == 1:
    comm.send(os.getpid(), spcomm.OTHERS)
    os.kill(os.getpid(), signal.SIGSTOP)
else:
    stopped = comm.recv(1)
    while state(stopped) != "stopped":
        os.sched_yield()
"""
OPTIONS = {
    "default": [],
    "tiny": ["--slots", "2", "--ring", "4096", "--arena", "0"],
    "small-arena": ["--slots", "4", "--ring", "8192", "--arena", "200000"],
}


def program(text):
    return STATE + STOPPED + textwrap.dedent(text)


@pytest.mark.parametrize("options", OPTIONS)
def test_others_exchange_thousands(tmp_path, options):
    """Nodes 0, 2 and 3 talk while node 1 is stopped, and everything is multicast to it, too."""
    text = program("""
        others = [0, 2, 3]
        rounds, sizes = 1000, [0, 8, 100, 700, 3000, 12_000]
        if rank != 1:
            following = others[(others.index(rank) + 1) % 3]
            previous = others[(others.index(rank) - 1) % 3]
            for number in range(rounds):
                size = sizes[number % len(sizes)]
                comm.send((number, bytes(size)), following)
                assert comm.recv(previous) == (number, bytes(size))
                if number % 20 == 0:
                    comm.send((rank, number, bytes(size)), [1, following], tag=2)
                    assert comm.recv(previous, tag=2)[1] == number
            comm.send("finished", 0, tag=3)
            if rank == 0:
                for other in others:
                    comm.recv(other, tag=3)
                os.kill(stopped, signal.SIGCONT)
        else:
            for source in others:
                for number in range(0, rounds, 20):
                    assert comm.recv(source, 2)[:2] == (source, number)
        comm.barrier()
        print("caught up")
    """)
    assert ok(run(tmp_path, 4, text, *OPTIONS[options])).out == "caught up\n" * 4


def test_a_collective_waits_for_it(tmp_path):
    """The others give up by their timeouts, wake it, and then the same barrier ends."""
    text = program("""
        if rank != 1:
            try:
                comm.barrier(timeout=0.05)
            except spcomm.WaitTimeoutError:
                print("still stopped")
        if rank == 0:
            os.kill(stopped, signal.SIGCONT)
        comm.barrier()
    """)
    assert ok(run(tmp_path, 2, text)).out == "still stopped\n"


def test_stopped_inside_a_barrier(tmp_path):
    """Stopped while it waits, woken after all others have entered: it is released as well."""
    text = """
        if rank == 1:
            comm.send(os.getpid(), 0)
        elif rank == 0:
            process = comm.recv(1)
            while state(process) != "sleeping":
                os.sched_yield()
            os.kill(process, signal.SIGSTOP)
            try:
                comm.barrier(timeout=0.2)
                os.kill(process, signal.SIGCONT)
            except spcomm.WaitTimeoutError:  # it slept before it had entered
                os.kill(process, signal.SIGCONT)
                comm.barrier()
        if rank != 0:
            comm.barrier()
        print("released")
    """
    text = STATE + textwrap.dedent(text)
    assert ok(run(tmp_path, 3, text)).lines() == ["released"] * 3


def test_stopped_and_killed(tmp_path):
    """A stopped node can be killed, and the others are told."""
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ncomm.barrier()\n"
    text = ignore + program("""
        if rank == 0:
            comm.send(bytes(5_000_000), 1)
            comm.recv(2)
            os.kill(stopped, signal.SIGKILL)
        else:
            comm.send("has seen it stopped", 0)
        try:
            comm.recv(1)
        except spcomm.NodeLostError as error:
            print("lost" if "node 1" in str(error) else error)
    """)
    result = run(tmp_path, 3, text, "--grace", "60")
    assert result.code == 137 and result.lines() == ["lost", "lost"], str(result)
