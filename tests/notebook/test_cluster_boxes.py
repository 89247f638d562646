# SPDX-License-Identifier: MIT
"""Nodes of a cluster in one box, in several, and on members of a room: calls, failures, and processes that are left."""

import json
import os
import re

import pytest

import spcomm
from owners import KEPT, Owner, have_ended, is_well
from spcomm.notebook import calls


@pytest.fixture
def boxes():
    """Three nodes, of which the last one is in a box of its own."""
    with spcomm.Cluster(3, boxes=2) as found:
        yield found


def test_calls_cross_boxes_and_variables_stay(placed):
    before = placed.processes
    places = placed.execute("comm.box, comm.local_rank, comm.sendrecv(comm.rank, (comm.rank + 1) % 3)")
    assert places == [(0, 0, 2), (0, 1, 0), (0, 2, 1) if placed.boxes == 1 else (1, 0, 1)]
    placed.push(base=10)
    placed.execute("x = base + comm.bcast(comm.rank, root=2)")
    assert placed.pull("x") == [12, 12, 12] and placed.map(abs, [-1, 2, -3, 4]) == [1, 2, 3, 4]
    assert placed.processes == before


def test_a_deadlock_is_reported_with_its_lines(placed):
    def step(comm):
        return comm.recv(source=(comm.rank + 1) % comm.size, tag=7)

    with pytest.raises(spcomm.DeadlockError) as error:
        placed.run(step)
    text = str(error.value)
    assert text.startswith("DEADLOCK — all 3 nodes wait, and no message is on its way\n")
    assert "recv(source=rank+1, tag=7)  test_cluster_boxes.py:" in text and " in step" in text
    assert text.endswith(KEPT) and is_well(placed)


def test_a_failure_has_its_line_and_releases_the_others(placed, monkeypatch):
    monkeypatch.setattr(calls, "SETTLE_S", 60.0)  # nobody is interrupted before it hears of the failure
    placed.execute("mark = 100 + comm.rank")

    def work(comm):
        if comm.rank == 2:
            raise ValueError("here")
        comm.recv(source=2)

    with pytest.raises(spcomm.ClusterError) as error:
        placed.run(work)
    text = str(error.value)
    assert text.startswith("node 2 raised ValueError; nodes 0-1 raised NodeLostError because of it\n")
    assert f'[2]   File "{__file__}", line ' in text and 'raise ValueError("here")' in text
    assert text.endswith("[2] ValueError: here") and "worker.py" not in text
    assert error.value.rank == 2 and repr(error.value.error) == "ValueError('here')"
    assert is_well(placed) and placed.pull("mark") == [100, 101, 102]


def test_a_timeout_shows_lines_and_keeps_the_nodes(placed):
    placed.execute("x = 1")
    with pytest.raises(spcomm.WaitTimeoutError) as error:
        placed.execute("while comm.rank == 2:\n    pass\ncomm.recv(source=2)", 1.0, name="In[2]")
    text = str(error.value)
    assert text.startswith("In[2]: the nodes were not done in 1 s; they were here:\n")
    assert re.search(r"nodes 0-1  recv\(source=2, tag=ANY\)  In\[2\]:3\n  node 2     In\[2\]:[12]\n", text)
    assert text.endswith(KEPT) and is_well(placed) and placed.pull("x") == [1, 1, 1]


def test_ctrl_c_keeps_the_nodes(placed):
    placed.execute("import signal, os")
    placed.push(owner=os.getpid())  # the members of a room are processes of the same machine
    with pytest.raises(KeyboardInterrupt):
        placed.execute("if comm.rank == 2: os.kill(owner, signal.SIGINT)\nwhile True: pass")
    assert is_well(placed) and placed.pull("owner") == [os.getpid()] * 3


def test_a_killed_node_is_replaced_and_all_boxes_hear_of_it(monkeypatch, capsys):
    monkeypatch.setattr(calls, "SETTLE_S", 10.0)
    with spcomm.Cluster(4, boxes=2) as cluster:
        with pytest.raises(
            spcomm.NodeLostError, match=r"node 3 was killed \(SIGKILL\) in box 1: the nodes are new"
        ):
            cluster.execute("""
import os, spcomm
if comm.rank == 3:
    os.kill(os.getpid(), 9)
try:
    comm.recv(source=3)
except spcomm.NodeLostError as error:
    print(error)
    raise
""")
        assert capsys.readouterr().out.count("node 3 has died (killed by signal 9") == 3
        assert is_well(cluster)


def test_a_crash_names_the_line_and_the_box(placed):
    with pytest.raises(spcomm.NodeLostError) as error:
        placed.execute(
            "import ctypes\nif comm.rank == 2:\n    ctypes.string_at(0)\ncomm.barrier()", name="In[3]"
        )
    place = " on bob" if placed.room else " in box 1" if placed.boxes == 2 else ""
    assert str(error.value).startswith(
        f"node 2 was killed (SIGSEGV) at In[3]:3{place}: the nodes are new, and their variables are gone"
    ), error.value
    assert error.value.rank == 2 and is_well(placed)


def test_messages_that_nobody_received_are_told(placed, capsys):
    placed.execute(
        "if comm.rank == 0: comm.send('lost', 2, 1); comm.send('read', 2, 2)\n"
        "if comm.rank == 2: comm.recv(tag=2)  # so that the other one has arrived before the node is done"
    )
    assert "1 message  from node 0  to node 2  tag 1" in capsys.readouterr().err
    assert is_well(placed) and not capsys.readouterr().err


def test_a_trace_has_the_nodes_of_all_boxes(placed, tmp_path, capsys):
    path = tmp_path / "t.json"
    for _call in range(2):
        placed.execute("comm.sendrecv(comm.rank, (comm.rank + 1) % 3)", trace=path)
        trace = json.loads(path.read_text())
        last = placed.boxes - 1
        assert trace["otherData"]["map"] == [0, 0, last]
        named = [one for one in trace["traceEvents"] if one.get("name") == "sendrecv" and one["ph"] == "X"]
        assert sorted((one["pid"], one["tid"]) for one in named) == [(0, 0), (0, 1), (last, 2)], named
    assert is_well(placed) and "trace" not in capsys.readouterr().err


def transports(cluster):
    """The process that starts the gateways."""
    return cluster._pool.nodes._transports.process


FIND = """
import os, psutil
def gateways():
    return {child.name(): child.pid for child in psutil.Process(transports).children()}
"""


def test_a_gateway_that_is_killed_ends_the_call_and_not_the_nodes(boxes):
    boxes.execute(FIND)
    boxes.push(transports=transports(boxes))
    with pytest.raises(spcomm.ConnectionLostError, match=r"the gateway of box 1 was killed by SIGKILL"):
        boxes.execute(
            "comm.barrier()  # by way of the gateways\nif comm.rank == 0: os.kill(gateways()['spcomm gw 1'], 9)\n"
            "comm.recv(source=(comm.rank + 2) % 3)"
        )
    assert is_well(boxes) and boxes.pull("transports") == [transports(boxes)] * 3


def test_the_process_that_starts_gateways_is_replaced(boxes):
    boxes.execute("x = 1")
    before = transports(boxes)
    os.kill(before, 9)
    assert have_ended([before])
    assert is_well(boxes) and boxes.pull("x") == [1, 1, 1] and transports(boxes) != before


def test_boxes_change_with_a_restart(boxes):
    assert repr(boxes) == "<Cluster: 3 nodes in 2 boxes>"
    boxes.restart(2)
    assert boxes.execute("comm.box") == [0, 1]
    boxes.restart(boxes=1)
    assert boxes.execute("comm.box") == [0, 0] and boxes.boxes == 1
    with pytest.raises(spcomm.ConfigError, match="2 nodes may be in 1 to 2 boxes"):
        boxes.restart(boxes=3)
    assert is_well(boxes)


@pytest.mark.parametrize("wrong", [0, 3, -1])
def test_numbers_of_boxes_that_cannot_be(wrong):
    with pytest.raises(spcomm.ConfigError, match="2 nodes may be in 1 to 2 boxes"):
        spcomm.Cluster(2, boxes=wrong)


@pytest.mark.parametrize("wrong", ["2", True, None])
def test_boxes_are_a_whole_number(wrong):
    with pytest.raises(TypeError, match="the number of boxes is an int"):
        spcomm.Cluster(2, boxes=wrong)


def test_nothing_outlives_the_caller(tmp_path):
    """It is killed in the middle of a call, when a server and two gateways run."""
    owner = Owner(
        """
        import os, sys, spcomm
        cluster = spcomm.Cluster(2, boxes=2)
        cluster.push(owner=os.getpid(), path=sys.argv[2])
        cluster.push(transports=cluster._pool.nodes._transports.process)
        cluster.execute(sys.argv[1])
        """,
        FIND
        + """
comm.barrier()
if comm.rank == 0:
    with open(path, "w") as file:
        print(os.getpid(), transports, *gateways().values(), file=file)
    os.kill(owner, 9)
comm.recv(source=0)
""",
        tmp_path / "processes",
    )
    assert owner.finish()[0] == -9
    processes = [int(word) for word in (tmp_path / "processes").read_text().split()]
    assert len(processes) == 5 and have_ended(processes)
