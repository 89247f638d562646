# SPDX-License-Identifier: MIT
"""startup(), who a node is, close(), and a process that no launcher started."""

import os
import subprocess
import sys

import numpy as np
import pytest

import spcomm
from nodepool import environment
from nodetools import refused
from programs import alone, ok, run


def test_who_am_i(comm):
    assert type(comm.rank) is int and type(comm.size) is int
    assert 0 <= comm.rank < comm.size
    line = comm.layout[comm.rank]
    assert (line.rank, line.box, line.local_rank) == (comm.rank, comm.box, comm.local_rank)
    assert 0 <= comm.box < 64 and 0 <= comm.local_rank <= comm.members[comm.rank]
    comm.send(comm.rank, spcomm.ALL)
    assert [comm.recv(source) for source in range(comm.size)] == list(range(comm.size))


def test_layout_is_a_table_of_ranks_by_box(comm):
    assert comm.layout is not None
    assert str(comm.size - 1) in str(comm.layout) or str(comm.size) in str(comm.layout)


@pytest.mark.options("default", "exec")
def test_startup_again_gives_the_same(comm):
    assert spcomm.startup() is comm
    assert spcomm.startup(total_nodes=comm.size) is comm
    assert spcomm.startup(local_nodes=[line.box for line in comm.layout].count(comm.box)) is comm


@pytest.mark.options("default", "exec")
def test_contradicting_numbers(comm):
    for wrong in (comm.size + 1, comm.size + 7):
        found = comm.size if comm.size > 1 else "1 node"
        with refused(spcomm.ConfigError, wrong, found, "total_nodes"):
            spcomm.startup(total_nodes=wrong)
        with refused(spcomm.ConfigError, wrong, found, "local_nodes"):
            spcomm.startup(local_nodes=wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, "4", None], ids=repr)
def test_impossible_numbers(comm, wrong):
    for name in ("local_nodes", "total_nodes", "group_id"):
        with refused((spcomm.ConfigError, TypeError, ValueError), name):
            spcomm.startup(**{name: wrong})


def test_repr_tells_rank_and_size(comm):
    assert str(comm.rank) in repr(comm) and str(comm.size) in repr(comm)


def test_public_names_have_documentation(comm):
    for name in ("barrier", "fuzzy_barrier", "global_sum", "global_min", "global_max", "send", "recv", "recv_message",
                 "try_recv_message", "take_message", "poll", "probe", "sendrecv", "time", "rng", "close"):  # fmt: skip
        assert getattr(type(comm), name).__doc__, name


# ---- without a launcher


@pytest.mark.smoke
def test_alone_is_a_run_of_one(tmp_path):
    text = """
        print(rank, size, comm.local_rank, comm.box)
        comm.barrier()
        comm.send([1, 2], 0, 5)
        print(comm.recv_message())
        print(comm.global_sum(3), comm.global_min((1, 2.5)))
        with comm.fuzzy_barrier() as fuzzy: pass
        print(fuzzy.done(), comm.poll(), comm.try_recv_message())
    """
    lines = ok(alone(tmp_path, text)).out.splitlines()
    assert lines[0] == "0 1 0 0" and "[1, 2]" in lines[1]
    assert lines[2:] == ["3 (1, 2.5)", "True 0 None"]


def test_alone_dest_one_says_how_to_start(tmp_path):
    result = alone(tmp_path, "comm.send('x', 1)")
    assert result.code == 1
    last = result.err.strip().splitlines()[-1]
    assert "RankError" in last and "1" in last and "spcomm run -n" in result.err


def test_alone_receiving_what_never_comes_fails_at_once_or_by_its_timeout(tmp_path):
    """Nobody else is there: a timed receive ends by its timeout."""
    result = alone(tmp_path, """
        try:
            comm.recv(timeout=0.01)
        except spcomm.WaitTimeoutError as error:
            print("timeout", isinstance(error, TimeoutError))
    """)  # fmt: skip
    assert ok(result).out == "timeout True\n"


def test_import_costs_no_numpy():
    code = "import sys, spcomm; print('numpy' in sys.modules, 'spcomm._core.comm' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert result.stdout == "False False\n", result.stderr


def test_names_are_listed():
    names = dir(spcomm)
    for name in ("startup", "ANY", "ALL", "OTHERS", "PROC_NULL", "Message", "SpcommError", "NodeLostError"):
        assert name in names and name in spcomm.__all__
        assert getattr(spcomm, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = spcomm.no_such_name
    assert isinstance(spcomm.__version__, str)


def test_stale_environment_means_alone(tmp_path):
    """Leftovers of another run's environment do not lead anywhere strange."""
    for stale in ("99:0:4:1:1:1", "0:0:4:1:1:1", "garbage", "", "1:2:3"):
        result = alone(tmp_path, "print(rank, size)", env={"SPCOMM_NODE": stale})
        assert result.out == "0 1\n" or "SPCOMM_NODE" in result.err, str(result)


# ---- close


def test_calls_after_close_are_refused(tmp_path):
    text = """
        import numpy as np
        comm.send(np.arange(50_000), spcomm.ALL)
        kept = [comm.recv(source) for source in range(size)]
        comm.close()
        comm.close()
        for call in (lambda: comm.send(1, 0), lambda: comm.recv(timeout=0), comm.barrier, lambda: comm.global_sum(1),
                     comm.poll, comm.fuzzy_barrier, comm.take_message, comm.try_recv_message):
            try:
                call()
            except spcomm.SpcommError as error:
                assert "close" in str(error), error
            else:
                raise SystemExit("not refused")
        assert all((array == np.arange(50_000)).all() for array in kept)
        assert (comm.rank, comm.size) == (rank, size)
        print("fine")
    """
    for nodes in (1, 3):
        assert ok(run(tmp_path, nodes, text)).out == "fine\n" * nodes


@pytest.mark.smoke
def test_close_sends_what_is_queued(tmp_path):
    """Node 0 sends far more than fits, and ends; the others still get everything."""
    text = """
        if rank == 0:
            for number in range(500):
                comm.send((number, bytes(3000)), spcomm.OTHERS)
        else:
            for number in range(500):
                assert comm.recv(0) == (number, bytes(3000))
            print("all")
    """
    for options in ([], ["--slots", "2", "--ring", "2048", "--arena", "0"]):
        assert ok(run(tmp_path, 4, text, *options)).out == "all\n" * 3


def test_startup_is_optional(tmp_path):
    """A program that never calls startup runs, and others are told when they wait for it."""
    program = tmp_path / "plain.py"
    program.write_text("print('plain')\n")
    assert ok(run(tmp_path, 3, "", program=program)).out == "plain\n" * 3


def test_size_reaches_every_node(tmp_path):
    for nodes in (1, 5, 17):
        result = ok(run(tmp_path, nodes, "print(rank, size, comm.global_sum(1))"))
        assert result.lines() == sorted(f"{rank} {nodes} {nodes}" for rank in range(nodes))


def test_numpy_is_not_needed_to_start(tmp_path):
    """Scalars and messages without arrays load no NumPy, at least not before it is asked for."""
    assert os.path.exists(np.__file__)
    result = ok(alone(tmp_path, "print(rank, size)"))
    assert result.out == "0 1\n"
