# SPDX-License-Identifier: MIT
"""Many nodes on few cores, limits of the launcher, runs that hang, a launcher that dies."""

import os
import signal
import sys

import pytest

from nodepool import command
from pairwise import each
from programs import finish, ok, run, start, write

RING = """
    for _ in range(20):
        comm.barrier()
    token = rank
    for _ in range(size):
        token = comm.sendrecv(token, (rank + 1) % size, (rank - 1) % size)
    assert token == rank
    total = comm.global_sum((rank, 1.0))
    comm.send("x" * 5000, (rank + 1) % size)
    comm.recv((rank - 1) % size)
    if rank == 0:
        print(total)
"""


@pytest.mark.parametrize(
    "options", each(3, [[], ["--fanin", "2"], ["--slots", "1", "--ring", "2048", "--arena", "0"]]), ids=str
)
def test_sixty_four_nodes(tmp_path, options):
    assert ok(run(tmp_path, 64, RING, *options)).out == "(2016, 64.0)\n"


@pytest.mark.slow
def test_a_hundred_nodes_and_all_to_all(tmp_path):
    text = """
        comm.send(rank, spcomm.ALL)
        assert sorted(comm.recv() for _ in range(size)) == list(range(size))
        comm.barrier()
    """
    ok(run(tmp_path, 100, text))


BAD = {
    "nodes-0": (["-n", "0"], "0"),
    "nodes-negative": (["-n", "-3"], "-3"),
    "nodes-text": (["-n", "many"], "many"),
    "nodes-too-many": (["-n", "1000000"], "1000000"),
    "slots-0": (["-n", "2", "--slots", "0"], "slots"),
    "slots-large": (["-n", "2", "--slots", "5000000"], "slots"),
    "ring-small": (["-n", "2", "--ring", "10"], "ring"),
    "arena-negative": (["-n", "2", "--arena", "-1"], "arena"),
    "queue-limit": (["-n", "2", "--queue-limit", "1"], "queue-limit"),
    "fanin-1": (["-n", "2", "--fanin", "1"], "fanin"),
    "unknown": (["-n", "2", "--colour-of-the-sky"], "--colour-of-the-sky"),
}


@pytest.mark.parametrize("key", BAD)
def test_options_out_of_their_limits(tmp_path, key):
    options, named = BAD[key]
    result = finish(start(command("run", *options, write(tmp_path, "")), cwd=tmp_path))
    assert result.code == 125 and named in result.err and "Traceback" not in result.err, str(result)


def test_a_run_that_hangs_is_ended(tmp_path):
    line = command("run", "-n", "3", "--timeout", "1", write(tmp_path, "comm.recv(comm.rank, timeout=1000)"))
    result = finish(start(line, cwd=tmp_path))
    assert result.code == 124 and "timeout" in result.err.lower(), str(result)


def test_nodes_die_with_their_launcher(tmp_path):
    """kill -9 of the launcher: the pipes that the nodes hold open close, as no process is left."""
    text = """
        print("ready", flush=True)
        comm.recv(rank, timeout=1000)
    """
    process = start(command("run", "-n", "4", "--no-label", write(tmp_path, text)), cwd=tmp_path)
    assert [process.stdout.readline() for _ in range(4)] == ["ready\n"] * 4
    process.kill()
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL


def test_ctrl_c_while_all_wait(tmp_path):
    text = """
        print("ready", flush=True)
        comm.barrier(timeout=1000) if rank else comm.recv(0, timeout=1000)
    """
    process = start(command("run", "-n", "3", "--no-label", write(tmp_path, text)), cwd=tmp_path)
    assert [process.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert result.code == 130, str(result)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="affinity is set with Linux's call")
def test_on_one_core(tmp_path):
    """All nodes share one core: nobody burns it while others should run."""
    text = """
        for step in range(200):
            comm.barrier()
            assert comm.sendrecv(step, (rank + 1) % size, (rank - 1) % size) == step
        print("through")
    """
    core = min(os.sched_getaffinity(0))
    line = command("run", "-n", "4", "--no-label", write(tmp_path, text))
    result = finish(start(line, cwd=tmp_path, preexec_fn=lambda: os.sched_setaffinity(0, {core})))
    assert ok(result).out == "through\n" * 4


def test_beside_computing_processes(tmp_path):
    """Two of five nodes compute without a pause until the others have met often enough."""
    text = """
        if rank >= 3:
            flag = rank
            while not os.path.exists("enough"):
                flag = (flag * 7) % 1000
        else:
            for _ in range(300):
                comm.sendrecv(1, (rank + 1) % 3, (rank - 1) % 3)
            if rank == 0:
                open("enough", "w").close()
        comm.barrier()
    """
    ok(run(tmp_path, 5, text))
