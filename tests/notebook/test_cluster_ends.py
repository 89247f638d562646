# SPDX-License-Identifier: MIT
"""Ends of calls and clusters at a bad moment: two reasons at once, other threads, forks, the caller's end."""

import os
import signal
import threading

import pytest

import spcomm
from owners import KEPT, Owner, have_ended
from spcomm.notebook import calls
from spcomm.notebook.nodes import Nodes
from spcomm.notebook.screen import Screen

# ---- a call has one reason to end early


@pytest.mark.slow
def test_a_failure_before_a_timeout_does_not_kill(cluster, monkeypatch):
    """Node 0 fails; the timeout passes before the others are given up, and what was set for that comes to nothing."""
    monkeypatch.setattr(calls, "SETTLE_S", 1.0)
    cluster.execute("import time")
    before = cluster.processes
    with pytest.raises(spcomm.WaitTimeoutError) as error:
        cluster.execute(
            """
if comm.rank == 0:
    raise ValueError
for _ in range(2):  # the second interrupt comes when the first has not helped
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        pass
""",
            0.5,
        )
    assert str(error.value).endswith(KEPT)
    assert cluster.processes == before


@pytest.mark.slow
def test_a_first_ctrl_c_while_a_call_fails_does_not_kill(cluster):
    cluster.execute("import os, signal, time")
    cluster.push(owner=os.getpid())
    before = cluster.processes
    with pytest.raises(spcomm.ClusterError, match=r"^node 0 raised ValueError"):
        cluster.execute("""
if comm.rank == 0:
    raise ValueError
try:
    time.sleep(1000)
except KeyboardInterrupt:
    if comm.rank == 1:
        os.kill(owner, signal.SIGINT)
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        pass
""")
    assert cluster.processes == before


@pytest.mark.slow
def test_failures_one_after_the_other_keep_the_nodes(cluster):
    cluster.execute("mark = 5")
    for _ in range(4):
        with pytest.raises(spcomm.ClusterError, match="node 0 raised OSError; nodes 1-2 were interrupted"):
            cluster.execute("if comm.rank == 0: raise OSError\nwhile True: pass")
    assert cluster.pull("mark") == [5, 5, 5]


@pytest.mark.slow
def test_an_interrupt_that_comes_late_does_not_hit_the_next_call(cluster, monkeypatch, tmp_path):
    """The process that interrupts the nodes is stopped, and goes on in the next call; the nodes end by themselves."""
    (fork_client,) = set(cluster.run(lambda comm: os.getppid()))
    cluster.push(fork_client=fork_client, owner=os.getpid(), gate=str(tmp_path / "gate"))
    interrupt = Nodes.interrupt

    def tell(nodes):
        interrupt(nodes)
        (tmp_path / "gate").touch()

    monkeypatch.setattr(Nodes, "interrupt", tell)
    with pytest.raises(KeyboardInterrupt):
        cluster.execute("""
import os, signal, threading
if comm.rank == 0:
    os.kill(fork_client, signal.SIGSTOP)
    os.kill(owner, signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while not os.path.exists(gate):
        pass
""")
    assert cluster.execute("""
if comm.rank == 0:
    os.kill(fork_client, signal.SIGCONT)
threading.Event().wait(0.5)  # for what is not to come
comm.rank
""") == [0, 1, 2]


def test_an_interrupt_that_comes_before_a_node_has_begun():
    with spcomm.Cluster(3) as cluster:
        before = cluster.processes
        for process in before:
            os.kill(process, signal.SIGINT)
        assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]
        assert cluster.processes == before


def test_a_ctrl_c_at_the_last_moment_is_heard(cluster, monkeypatch):
    """It comes when all nodes are back."""
    settle = Screen.settle

    def press(screen):
        settle(screen)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as changed:
        changed.setattr(Screen, "settle", press)
        with pytest.raises(KeyboardInterrupt, match="keep their variables"):
            cluster.run(lambda comm: comm.rank)
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


@pytest.mark.linux("reads /proc")
def test_a_node_that_has_no_memory_left_for_a_call_stays(cluster):
    before = cluster.processes
    cluster.execute("""
import resource
limits = resource.getrlimit(resource.RLIMIT_AS)
def limit(bytes):
    resource.setrlimit(resource.RLIMIT_AS, (bytes, limits[1]))
mark = comm.rank
if comm.rank == 1:
    import threading
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit(used)
""")
    with pytest.raises(spcomm.ClusterError, match=r"^node 1 raised \w+"):
        cluster.run(lambda comm: comm.rank)
    assert cluster.processes == before


# ---- close


def test_close_ends_a_call_of_another_thread(cluster, tmp_path):
    gate, found = tmp_path / "gate", []
    os.mkfifo(gate)
    processes = cluster.processes
    cluster.push(gate=str(gate))

    def work():
        try:
            cluster.execute("if comm.rank == 0: open(gate, 'w').close()\nwhile True: pass", name="In[2]")
        except spcomm.SpcommError as error:
            found.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    open(gate).close()
    cluster.close()
    thread.join()
    assert found == ["In[2]: another thread has closed the Cluster meanwhile"]
    assert have_ended(processes)


@pytest.mark.slow
def test_close_within_a_call_is_refused(cluster):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    with pytest.raises(
        spcomm.SpcommError, match=r"^close\(\): a call of this Cluster is under way in this thread"
    ):
        cluster.execute(
            "import matplotlib.pyplot as plt\nif comm.rank == 1: plt.plot([1])",
            figure=lambda rank, png: cluster.close(),
        )
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda cluster: cluster.run(len),
        lambda cluster: cluster.map(len, []),
        lambda cluster: cluster.execute("1"),
        lambda cluster: cluster.push(x=1),
        lambda cluster: cluster.pull("x"),
        lambda cluster: cluster.restart(),
    ],
)
def test_a_closed_cluster(use):
    cluster = spcomm.Cluster(1)
    cluster.close()
    cluster.close()
    with pytest.raises(
        spcomm.SpcommError, match=r"^\w+\(.*\): this Cluster is closed; make another one$|^code: "
    ):
        use(cluster)
    assert (cluster.processes, cluster.since) == ([], 0.0)


def test_a_fork_during_a_call_can_end(tmp_path):
    """Its copy of the cluster is in a call for ever."""
    owner = Owner(
        """
    import os, sys, threading, spcomm
    cluster = spcomm.Cluster(2)
    gate, door = sys.argv[1:]
    def work():
        cluster.execute(f"if comm.rank == 0: open({gate!r}, 'w').close()\\nopen({door!r}).close()")
    thread = threading.Thread(target=work)
    thread.start()
    open(gate).close()
    fork = os.fork()
    if fork == 0:
        cluster.close()
        print("closed")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(fork, 0)
    with open(door, "w"):
        thread.join()
    print(cluster.run(lambda comm: comm.rank))
    """,
        *(make_fifo(tmp_path / name) for name in ("gate", "door")),
    )
    assert owner.finish() == (0, "closed\n[0, 1]\n", "")


def make_fifo(path):
    os.mkfifo(path)
    return path


# ---- the caller's end


MEETING = """
import atexit
@atexit.register
def meet():
    for way in ways:
        open(way, "w" if way == mine else "r").close()
    open(mine + ".met", "w").close()
"""


def test_clusters_end_together(tmp_path):
    """The nodes of each wait, at their end, for those of the other."""
    owner = Owner(
        f"""
    import sys, spcomm
    clusters = [spcomm.Cluster(1), spcomm.Cluster(1)]
    for cluster, way in zip(clusters, sys.argv[1:]):
        cluster.push(ways=sys.argv[1:], mine=way)
        cluster.execute({MEETING!r})
    """,
        *(make_fifo(tmp_path / name) for name in ("a", "b")),
    )
    assert owner.finish() == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "a.met", "b.met"}


def test_a_call_of_a_daemon_thread_ends_with_the_caller(tmp_path):
    owner = Owner(
        """
    import sys, threading, spcomm
    cluster = spcomm.Cluster(2)
    print(*cluster.processes)
    gate = sys.argv[1]
    code = f"if comm.rank == 0: open({gate!r}, 'w').close()\\nwhile True: pass"
    threading.excepthook = lambda about: print(about.exc_value)
    threading.Thread(target=cluster.execute, args=(code,), daemon=True).start()
    open(gate).close()
    """,
        make_fifo(tmp_path / "gate"),
    )
    processes = owner.numbers()
    code, out, err = owner.finish()
    assert (code, err) == (0, "")
    # The end of the interpreter may stop the thread anywhere, before the end of its line, too.
    assert out.rstrip("\n") in ("", "code: another thread has closed the Cluster meanwhile")
    assert have_ended(processes)


@pytest.mark.slow
def test_many_interrupts_in_sequence(cluster):
    cluster.execute("import os, signal\nmark = comm.rank")
    cluster.push(owner=os.getpid())
    before = cluster.processes
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt, match="keep their variables"):
            cluster.execute(
                "comm.barrier()\nif comm.rank == 0: os.kill(owner, signal.SIGINT)\nwhile True: pass"
            )
    assert cluster.pull("mark") == [0, 1, 2]
    assert cluster.processes == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
