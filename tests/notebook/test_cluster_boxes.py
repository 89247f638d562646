# SPDX-License-Identifier: MIT
"""Nodes of a cluster in several boxes: calls that cross them, what goes wrong, and what is left."""

import json
import os

import pytest

import spcomm
from owners import Owner, have_ended
from spcomm.notebook import calls

KEPT = "The nodes were interrupted, and keep their variables."


@pytest.fixture
def boxes():
    """Three nodes, of which the last one is in a box of its own."""
    with spcomm.Cluster(3, boxes=2) as found:
        yield found


def is_well(cluster):
    return cluster.execute("comm.global_sum(comm.rank)") == [sum(range(cluster.size))] * cluster.size


def test_calls_cross_boxes_and_variables_stay(boxes):
    assert repr(boxes) == "<Cluster: 3 nodes in 2 boxes>" and boxes.boxes == 2
    before = boxes.processes
    assert boxes.execute("comm.box, comm.local_rank, comm.sendrecv(comm.rank, (comm.rank + 1) % 3)") == [
        (0, 0, 2),
        (0, 1, 0),
        (1, 0, 1),
    ]
    boxes.push(base=10)
    boxes.execute("x = base + comm.bcast(comm.rank, root=2)")
    assert boxes.pull("x") == [12, 12, 12] and boxes.map(abs, [-1, 2]) == [1, 2]
    assert boxes.processes == before


def test_a_deadlock_over_boxes_is_reported(boxes):
    with pytest.raises(spcomm.DeadlockError) as error:
        boxes.execute("comm.recv(source=(comm.rank + 1) % 3)")
    assert "all 3 nodes wait" in str(error.value) and str(error.value).endswith(KEPT)
    assert is_well(boxes)


def test_a_failure_reaches_the_nodes_of_all_boxes(monkeypatch):
    monkeypatch.setattr(calls, "SETTLE_S", 10.0)  # nobody is interrupted before it hears of the failure
    text = "node 3 raised ZeroDivisionError; nodes 0-2 raised NodeLostError because of it"
    with spcomm.Cluster(4, boxes=2) as cluster:
        with pytest.raises(spcomm.ClusterError, match=text):
            cluster.execute("1 / 0 if comm.rank == 3 else comm.recv(source=3)")
        assert is_well(cluster)


def test_a_timeout_keeps_the_nodes(boxes):
    boxes.execute("x = 1")
    with pytest.raises(spcomm.WaitTimeoutError):
        boxes.execute("while comm.rank == 2: pass\ncomm.recv(source=2)", 0.5)
    assert is_well(boxes) and boxes.pull("x") == [1, 1, 1]


def test_ctrl_c_keeps_the_nodes(boxes):
    boxes.execute("import signal, os")
    boxes.push(owner=os.getpid())
    with pytest.raises(KeyboardInterrupt):
        boxes.execute("if comm.rank == 2: os.kill(owner, signal.SIGINT)\nwhile True: pass")
    assert is_well(boxes) and boxes.pull("owner") == [os.getpid()] * 3


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


def test_a_crash_names_the_line_and_the_box(boxes):
    with pytest.raises(spcomm.NodeLostError) as error:
        boxes.execute(
            "import ctypes\nif comm.rank == 2:\n    ctypes.string_at(0)\ncomm.barrier()", name="In[3]"
        )
    assert str(error.value).startswith("node 2 was killed (SIGSEGV) at In[3]:3 in box 1: the nodes are new")
    assert is_well(boxes)


def test_messages_that_nobody_received_are_told(boxes, capsys):
    boxes.execute(
        "if comm.rank == 0: comm.send('lost', 2, 1); comm.send('read', 2, 2)\n"
        "if comm.rank == 2: comm.recv(tag=2)  # so that the other one has arrived before the node is done"
    )
    assert "1 message  from node 0  to node 2  tag 1" in capsys.readouterr().err


def transports(cluster):
    """The process that starts the gateways."""
    return cluster._pool.nodes._transports.process


FIND = """
import os
def gateways():
    with open(f"/proc/{transports}/task/{transports}/children") as file:
        found = [int(word) for word in file.read().split()]
    return {open(f"/proc/{pid}/comm").read().strip(): pid for pid in found}
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


def test_a_trace_has_the_nodes_of_all_boxes(boxes, tmp_path):
    path = tmp_path / "t.json"
    boxes.execute("comm.sendrecv(comm.rank, (comm.rank + 1) % 3)", trace=path)
    assert json.loads(path.read_text())["otherData"]["map"] == [0, 0, 1]


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
