# SPDX-License-Identifier: MIT
"""`spcomm.Cluster`: calls that go well, and what a caller can do wrong."""

import functools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import spcomm
from spcomm.notebook import nodes, pickling

SIZES = (1, 2, 4, 8)


@pytest.mark.parametrize("size", SIZES)
def test_a_function_runs_on_all_nodes(size):
    with spcomm.Cluster(size) as cluster:
        assert cluster.size == size == len(set(cluster.processes))
        assert cluster.run(lambda comm: (comm.rank, comm.size)) == [(rank, size) for rank in range(size)]
        assert cluster.run(lambda comm, a, b: comm.global_sum(a * b), 2, 3) == [6 * size] * size
        ring = cluster.run(lambda comm: comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size))
        assert ring == [(rank - 1) % size for rank in range(size)]


@pytest.mark.parametrize("start", ["", "--start exec"])
def test_both_ways_to_start_nodes(monkeypatch, start):
    monkeypatch.setattr(nodes, "START", start)
    with spcomm.Cluster(2) as cluster:
        assert cluster.execute("import sys\nx = comm.rank\ncomm.allgather(x)") == [[0, 1], [0, 1]]
        with pytest.raises(spcomm.DeadlockError):
            cluster.run(lambda comm: comm.recv())
        assert cluster.execute("x") == [0, 1]
        cluster.restart(3)
        assert cluster.run(lambda comm: comm.size) == [3, 3, 3]


SEARCHING = """
import sys
sys.path[:] = {path!r}
import spcomm
from spcomm.notebook import nodes
nodes.START = {start!r}
with spcomm.Cluster(2) as cluster:
    print(cluster.run(lambda comm: __import__("beside").value + comm.global_sum(1)))
"""


@pytest.mark.parametrize("start", ["", "--start exec"])
def test_nodes_find_modules_where_the_caller_does(tmp_path, start):
    """NumPy and spcomm may be in folders that only sys.path names, as after pip install --target."""
    (tmp_path / "beside.py").write_text("value = 40")
    program = SEARCHING.format(path=[str(tmp_path), *sys.path], start=start)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[42, 42]\n", done.stderr


def test_nodes_are_processes_that_stay(cluster):
    processes = cluster.processes
    assert cluster.run(lambda comm: os.getpid()) == processes
    assert cluster.run(lambda comm: os.getpid()) == processes
    assert os.getpid() not in processes


def test_closures_partials_methods_and_classes(cluster):
    base = [1, 2]

    class Adder:
        def __init__(self, more):
            self.more = more

        def add(self, comm):
            return sum(base) + self.more + comm.rank

    def nested(comm):
        def inner():
            return base[0] + comm.rank

        return inner()

    assert cluster.run(nested) == [1, 2, 3]
    assert cluster.run(Adder(10).add) == [13, 14, 15]
    assert cluster.run(functools.partial(lambda comm, x, y: x - y + comm.rank, y=1), 5) == [4, 5, 6]
    assert cluster.run(lambda comm: Adder(comm.rank))[2].more == 2
    assert base == [1, 2]


def test_a_node_has_its_own_copy(cluster):
    mine = [0]

    def change(comm, values):
        values.append(comm.rank)
        return values

    assert cluster.run(change, mine) == [[0, 0], [0, 1], [0, 2]]
    assert mine == [0]


def test_startup_gives_the_same_communicator(cluster):
    assert cluster.run(lambda comm: spcomm.startup() is comm) == [True] * 3
    assert cluster.execute("import spcomm; spcomm.startup() is comm") == [True] * 3


@pytest.mark.slow
def test_large_objects_both_ways(cluster):
    data = np.arange(3 << 20)
    results = cluster.run(lambda comm, x: x[comm.rank :], data)
    assert [len(result) for result in results] == [len(data), len(data) - 1, len(data) - 2]
    assert np.array_equal(results[2], data[2:])


def test_map_hands_items_to_who_is_free(cluster):
    assert cluster.map(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    assert cluster.map(str, []) == []
    assert cluster.map(len, ["a"]) == [1]
    found = cluster.map(lambda _item: os.getpid(), range(30))
    assert set(found) <= set(cluster.processes)


def test_map_gives_each_item_to_one_node_only(cluster, tmp_path):
    def note(item):
        (tmp_path / f"{item}-{os.getpid()}").touch()
        return item

    assert cluster.map(note, range(12)) == list(range(12))
    assert sorted(int(path.name.partition("-")[0]) for path in tmp_path.iterdir()) == list(range(12))


def test_in_map_a_function_is_alone(cluster):
    assert cluster.map(lambda _item: spcomm.startup().size, range(4)) == [1] * 4
    with pytest.raises(spcomm.ClusterError, match="RankError"):
        cluster.map(lambda _item: spcomm.startup().send(1, 1), range(4))
    assert cluster.run(lambda comm: spcomm.startup().size) == [3] * 3


def test_execute_has_a_namespace_that_stays(cluster):
    assert cluster.execute("x = comm.rank\ndef twice(): return 2 * x") == [None] * 3
    assert cluster.execute("x += 1\ntwice()") == [2, 4, 6]
    assert cluster.execute("class P:\n    pass\nP.__module__, __name__") == [("__main__", "__main__")] * 3
    assert cluster.execute("if comm.rank: 5") == [None] * 3
    assert cluster.execute("") == [None] * 3


def test_a_value_that_cannot_be_pickled_is_shown(cluster):
    values = cluster.execute("(x for x in [comm.rank])")
    assert all(repr(value).startswith("<generator object") for value in values)
    assert "Comm" in repr(cluster.execute("comm")[1])
    with pytest.raises(spcomm.ClusterError, match=r"result of node 0, a generator.*cannot be pickled"):
        cluster.run(lambda comm: (x for x in ()) if comm.rank == 0 else 1)


def test_push_and_pull(cluster):
    cluster.push(a=[1, 2], b="text")
    assert cluster.execute("a.append(comm.rank); b") == ["text"] * 3
    assert cluster.pull("a") == [[1, 2, 0], [1, 2, 1], [1, 2, 2]]
    with pytest.raises(spcomm.ClusterError, match="name 'c' is not defined"):
        cluster.pull("c")
    with pytest.raises(ValueError, match=r"pull\('a b'\): that is not the name of a variable"):
        cluster.pull("a b")
    with pytest.raises(TypeError, match=r"push\(lock=…\): it cannot be pickled"):
        cluster.push(good=1, lock=threading.Lock())
    assert cluster.pull("a")[0] == [1, 2, 0]


def test_messages_of_one_call_never_reach_the_next(cluster, capfd):
    def leave(comm):
        comm.send("old", (comm.rank + 1) % comm.size, tag=5)

    def look(comm):
        comm.barrier()
        found = comm.try_recv_message()
        comm.barrier()
        return found

    for _round in range(3):
        cluster.run(leave)
        assert cluster.run(look) == [None] * 3
    cluster.execute("comm.send('old', 0)")
    assert cluster.execute("comm.barrier()\ncomm.try_recv_message() is None") == [True] * 3
    told = capfd.readouterr().err  # and the caller is told
    assert "SP106" in told
    assert "--strict" not in told, "which calls of a Cluster and cells do not have"


def test_a_communicator_of_an_earlier_call_is_closed(cluster):
    cluster.execute("old = comm; half = comm.split(comm.rank % 2)")
    with pytest.raises(spcomm.ClusterError, match=r"closed this communicator.*; comm is new in each cell"):
        cluster.execute("old.barrier()")
    with pytest.raises(spcomm.ClusterError, match="closed"):
        cluster.execute("half.barrier()")
    assert cluster.execute("comm.global_sum(1)") == [3] * 3


def test_arrays_in_shared_memory_survive_their_call(cluster):
    cluster.execute("""
import numpy as np
got = comm.bcast(np.arange(1 << 18) if comm.rank == 0 else None, copy=False)
mine = comm.empty(1000, float)
mine[:] = comm.rank
""")
    cluster.execute("comm.barrier()")
    assert cluster.execute("int(got.sum()), float(mine.sum())") == [
        (sum(range(1 << 18)), 1000.0 * rank) for rank in range(3)
    ]


def test_sys_exit_ends_the_call_of_a_node(cluster):
    assert cluster.execute("import sys\nsys.exit()") == [None] * 3
    with pytest.raises(spcomm.ClusterError, match=r"node 1 called sys.exit\(3\)"):
        cluster.execute("sys.exit(3) if comm.rank == 1 else comm.barrier()")
    assert cluster.execute("comm.rank") == [0, 1, 2]


def test_a_fork_of_a_node_answers_nothing(cluster, capfd):
    assert cluster.execute("import os\nchild = os.fork()\nif child == 0: print('fork')\n5") == [5] * 3
    assert cluster.execute("os.waitpid(child, 0)[1], comm.global_sum(1)") == [(0, 3)] * 3
    assert capfd.readouterr().out.count("fork") == 3


def test_other_random_numbers_and_the_same_hashes(cluster):
    drawn = cluster.execute("import random, numpy as np\n(random.random(), np.random.random())")
    assert len(set(drawn)) == 3
    assert len(set(cluster.execute("hash('text')"))) == 1


def test_nodes_read_nothing(cluster):
    with pytest.raises(spcomm.ClusterError, match="EOFError"):
        cluster.execute("input()")


def test_restart_and_close(cluster):
    before = cluster.processes
    cluster.execute("x = 1")
    cluster.restart(2)
    assert cluster.size == 2
    assert not set(cluster.processes) & set(before)
    with pytest.raises(spcomm.ClusterError, match="name 'x' is not defined"):
        cluster.execute("x")
    cluster.close()
    assert "closed" in repr(cluster)


def test_nodes_end_as_programs_do(tmp_path):
    with spcomm.Cluster(2) as cluster:
        cluster.push(folder=str(tmp_path))
        cluster.execute("""
import atexit, os
file = open(os.path.join(folder, f"held-{comm.rank}"), "w")
file.write("kept")
atexit.register(open, os.path.join(folder, f"left-{comm.rank}"), "w")
""")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held-0", "held-1", "left-0", "left-1"]
    assert (tmp_path / "held-1").read_text() == "kept"


def test_several_clusters_at_once():
    with spcomm.Cluster(2) as one, spcomm.Cluster(3) as two:
        assert one.run(lambda comm: comm.size) == [2, 2]
        assert two.run(lambda comm: comm.global_sum(1)) == [3, 3, 3]
        assert not set(one.processes) & set(two.processes)


def test_another_thread_may_call_and_start():
    found = []

    def work():
        cluster = spcomm.Cluster(2)  # the nodes outlive the thread that has started them
        found.append(cluster)
        found.append(cluster.run(lambda comm: comm.global_sum(1)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[1] == [2, 2]
    with found[0] as cluster:
        assert cluster.run(lambda comm: comm.rank) == [0, 1]


def test_one_call_at_a_time(cluster, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    done = []

    def wait(comm):
        if comm.rank == 0:
            gate.read_text()
        return 1

    thread = threading.Thread(target=lambda: done.append(cluster.run(wait)))
    thread.start()
    with open(gate, "w"):  # opens when node 0 is in the call
        with pytest.raises(spcomm.SpcommError, match="another call is under way"):
            cluster.run(len)
    thread.join()
    assert done == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("nodes", "error", "text"),
    [
        (0, spcomm.ConfigError, r"Cluster\(0\): there may be 1 to 1024 nodes"),
        (-2, spcomm.ConfigError, r"Cluster\(-2\)"),
        (5000, spcomm.ConfigError, r"Cluster\(5000\)"),
        (2.5, TypeError, r"Cluster\(2.5\): the number of nodes is an int, not a float"),
        (True, TypeError, "not a bool"),
        ("4", TypeError, r"Cluster\('4'\)"),
    ],
)
def test_impossible_numbers_of_nodes(nodes, error, text):
    with pytest.raises(error, match=text):
        spcomm.Cluster(nodes)


def test_wrong_arguments_reach_no_node(cluster):
    for call in (cluster.run, lambda value: cluster.map(value, [])):
        with pytest.raises(TypeError, match="it takes a function"):
            call(5)
    with pytest.raises(TypeError, match=r"execute\(5\): code is a str"):
        cluster.execute(5)
    for wrong in ({"name": 3}, {"shown_as": b"x"}, {"figure": 3}, {"trace": 3}, {"trace": True}):
        [name] = wrong
        with pytest.raises(TypeError, match=rf"execute\({name}={wrong[name]!r}\): it is"):
            cluster.execute("1", **wrong)
    with pytest.raises(
        ValueError, match=r"execute\(name='.ud800'\): it has characters that are not valid text"
    ):
        cluster.execute("1", name="\ud800")
    with pytest.raises(SyntaxError, match="expected ':'"):
        cluster.execute("for x in y\n  pass")
    with pytest.raises(SyntaxError, match="outside function"):
        cluster.execute("return 5")
    with pytest.raises(ValueError, match="timeout"):
        cluster.run(len, timeout=-1)
    with pytest.raises(ValueError, match="timeout"):
        cluster.run(len, timeout=10**400)
    with pytest.raises(TypeError, match="timeout"):
        cluster.run(len, timeout="5")
    with pytest.raises(TypeError, match=r"run\(<lambda>\): it cannot be pickled"):
        cluster.run(lambda comm, lock: 1, threading.Lock())
    with pytest.raises(TypeError, match=r"item 1: it cannot be pickled"):
        cluster.map(str, [1, threading.Lock()])
    assert cluster.run(lambda comm: 1) == [1, 1, 1]


LARGE = list(range(1000))
TOO_LARGE = r"it has \d+ bytes, and 1000 can go to or from a node at once; divide it, or let the nodes make or read it"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda cluster: cluster.run(lambda comm, data: 1, LARGE), r"^run\(<lambda>\): "),
        (lambda cluster: cluster.map(len, [[1], LARGE]), r"^map\(len\): item 1: "),
        (lambda cluster: cluster.push(big=LARGE), r"^push\(big=…\): "),
    ],
)
def test_what_is_too_large_reaches_no_node(cluster, monkeypatch, call, text):
    before = cluster.processes
    with monkeypatch.context() as changed:
        changed.setattr(pickling, "_MOST", 1000)
        with pytest.raises(ValueError, match=text + TOO_LARGE):
            call(cluster)
    assert cluster.processes == before


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda cluster: cluster.run(lambda comm: list(range(1000))), "the result of node 0, a list: "),
        (
            lambda cluster: cluster.map(lambda item: list(range(item)), [1000]),
            "the result of item 0, a list: ",
        ),
        (lambda cluster: cluster.pull("big"), "big of node 0: "),
    ],
)
def test_what_is_too_large_leaves_no_node(cluster, call, what):
    before = cluster.processes
    cluster.execute(
        "import spcomm.notebook.pickling as objects\nobjects._MOST = 1000\nbig = list(range(1000))"
    )
    with pytest.raises(spcomm.ClusterError, match=what + TOO_LARGE):
        call(cluster)
    assert cluster.processes == before


def test_what_is_too_large_is_shown(cluster):
    cluster.execute("import numpy, spcomm.notebook.pickling as objects\nobjects._MOST = 2000")
    (value, *_others) = cluster.execute("numpy.zeros(100000)")
    assert repr(value) == repr(np.zeros(100000))


def test_a_very_long_message_of_an_exception_is_cut(cluster):
    with pytest.raises(spcomm.ClusterError) as error:
        cluster.execute("if comm.rank == 1: raise ValueError('a' + 'x' * 3_000_000 + 'b')")
    text = str(error.value)
    assert "ValueError: axxx" in text
    assert "characters …" in text
    assert text.endswith("xxxb")
    assert len(text) < 2_000_000


def test_a_cluster_cannot_be_sent(cluster):
    with pytest.raises(TypeError, match="a Cluster cannot be pickled"):
        cluster.run(lambda comm, other: 1, cluster)
