# SPDX-License-Identifier: MIT
"""Calls of a Cluster that go wrong, and owners that end: what is said, what stays, and that nothing is left behind."""

import os
import signal

import psutil
import pytest

import spcomm
from owners import KEPT, WATCHDOG_S, Owner, have_ended
from pairwise import each
from spcomm._core import segments
from spcomm.notebook import calls

NEW = "the nodes are new, and their variables are gone"


@pytest.fixture
def marked(cluster):
    """Nodes that have a variable, by which one knows them again."""
    cluster.execute("mark = 100 + comm.rank")
    yield cluster
    assert cluster.execute("mark, comm.global_sum(1)") == [(100, 3), (101, 3), (102, 3)]


@pytest.fixture
def patient(monkeypatch):
    """Nobody is interrupted only because the machine is busy."""
    monkeypatch.setattr(calls, "SETTLE_S", 60.0)


def message(error):
    return str(error.value)


# ---- exceptions


def test_who_waits_for_a_failing_node_learns_why(marked, patient):
    with pytest.raises(spcomm.ClusterError, match="node 1 raised ValueError"):
        marked.execute(
            """
import spcomm
if comm.rank == 1:
    raise ValueError
try:
    comm.recv(source=1)
except spcomm.NodeLostError as error:
    why = str(error)
""",
            name="In[3]",
        )
    assert (
        "node 1 has died (an uncaught ValueError at In[3]:4)" in marked.execute("comm.rank != 1 and why")[2]
    )


def test_the_same_exception_everywhere_is_shown_once(marked, patient):
    with pytest.raises(spcomm.ClusterError) as error:
        marked.execute("comm.barrier()\nx = 1 / 0", name="In[5]")
    assert "failed in the same way" in message(error)
    assert message(error).count("Traceback") == 1
    assert 'File "In[5]", line 2, in <module>' in message(error)
    assert "x = 1 / 0" in message(error)


def test_who_computes_is_interrupted(marked):
    with pytest.raises(spcomm.ClusterError) as error:
        marked.execute("""
comm.barrier()
if comm.rank == 0:
    raise OSError("disk")
elif comm.rank == 1:
    while True:
        pass
""")
    assert message(error).startswith("node 0 raised OSError; node 1 was interrupted")


def test_what_a_failing_node_has_sent_is_received(marked, patient):
    marked.execute("""
if comm.rank == 0:
    comm.send("last words", 1)
    failing = True
""")
    with pytest.raises(spcomm.ClusterError, match="node 0 raised KeyError"):
        marked.execute("""
if comm.rank == 0:
    comm.send("last words", 1)
    raise KeyError
heard = comm.recv(source=0) if comm.rank == 1 else None
""")
    assert marked.pull("mark") == [100, 101, 102]
    assert marked.execute("heard if comm.rank == 1 else None")[1] == "last words"


def test_an_exception_that_only_the_node_knows(marked, patient):
    with pytest.raises(spcomm.ClusterError, match="Strange: 5") as error:
        marked.execute("""
class Strange(Exception):
    def __reduce__(self):
        raise TypeError("never")
raise Strange(5)
""")
    assert error.value.error is None


def _raises(body):
    """An exception of whose own methods one fails, too."""
    return f"class Evil(Exception):\n    {body}\nraise Evil('a')"


@pytest.mark.parametrize(
    "body",
    each(
        2,
        [
            "__notes__ = property(lambda self: 1 / 0)",
            "def __str__(self): raise SystemExit(3)",
            "def __repr__(self): raise KeyboardInterrupt",
            "def __reduce__(self): raise SystemExit(3)",
            "def __reduce__(self): raise RecursionError",
            "__traceback__ = property(lambda self: 1 / 0)",
            "def __getattribute__(self, name): raise SystemExit(3)",
        ],
    ),
)
def test_an_exception_that_fails_itself_is_told_and_ends_no_node(cluster, body):
    before = cluster.processes
    with pytest.raises(spcomm.ClusterError, match=r"raised .*Evil"):
        cluster.execute(_raises(body))
    assert cluster.processes == before
    assert cluster.execute("comm.rank") == list(range(cluster.size))


def test_an_exception_in_map_names_the_item(marked, tmp_path):
    def work(item):
        (tmp_path / str(item)).touch()
        return 1 / (item - 3)

    with pytest.raises(spcomm.ClusterError, match=r"raised ZeroDivisionError \(item 3\)"):
        marked.map(work, range(2000))
    assert len(list(tmp_path.iterdir())) < 2000  # no more were handed out


def test_a_node_that_has_finished_sends_nothing_more(marked, patient):
    with pytest.raises(spcomm.ClusterError) as error:
        marked.execute("comm.recv(source=0) if comm.rank == 1 else None", name="In[7]")
    assert "node 0 has finished (the end of In[7])" in message(error)


def test_a_mismatch(marked, patient):
    with pytest.raises(spcomm.ClusterError, match="raised MismatchError"):
        marked.execute("comm.global_sum(1) if comm.rank else comm.barrier()")


# ---- deadlocks, timeouts, Ctrl-C


def test_a_deadlock_of_a_cell_names_its_lines(marked):
    with pytest.raises(spcomm.DeadlockError, match=r"recv\(source=2, tag=ANY\)  In\[4\]:3 in f"):
        marked.execute("\ndef f():\n    return comm.recv(source=2)\nf()", name="In[4]")


def test_idle_nodes_are_part_of_no_deadlock(marked, tmp_path):
    """In a call that two nodes have ended the third one computes: nothing is wrong."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reader = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert marked.run(lambda comm: comm.rank or gate.write_text("x")) == [1, 1, 2]
        assert os.read(reader, 1) == b"x"
    finally:
        os.close(reader)


def test_a_timeout_of_map(marked):
    with pytest.raises(spcomm.WaitTimeoutError, match=r"map\(wait\): the nodes were not done in 0.2 s"):

        def wait(item):
            while item != 1:
                pass

        marked.map(wait, range(2), timeout=0.2)


@pytest.mark.parametrize("code", ["while True: pass", "comm.recv(source=0)", "input_of.read()"])
def test_ctrl_c_interrupts_the_nodes_only(marked, capfd, code):
    """It comes when node 0 says so, in its output."""
    marked.execute("import os, signal\nends = os.pipe()\ninput_of = os.fdopen(ends[0])")
    marked.push(owner=os.getpid())
    with pytest.raises(KeyboardInterrupt, match="where the nodes were") as error:
        marked.execute(f"if comm.rank == 0:\n    os.kill(owner, signal.SIGINT)\n    signal.pause()\n{code}")
    assert message(error).endswith(KEPT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_does_not_stop_is_killed(cluster, monkeypatch):
    monkeypatch.setattr(calls, "GRACE_S", 0.3)
    cluster.execute("import time")
    before = cluster.processes
    with pytest.raises(spcomm.WaitTimeoutError) as error:
        cluster.execute(
            """
while True:
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        pass
""",
            1.0,
        )
    assert f"nodes 0-2 did not stop when interrupted, and were killed: {NEW}." in message(error)
    assert have_ended(before)
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3


def test_a_stopped_node_is_ended_by_a_timeout(cluster, monkeypatch):
    monkeypatch.setattr(calls, "GRACE_S", 0.3)
    with pytest.raises(spcomm.WaitTimeoutError, match="did not stop when interrupted"):
        cluster.execute(
            "import os, signal\nif comm.rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\ncomm.barrier()", 0.5
        )
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


# ---- nodes that end


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", r"was killed \(SIGKILL\)"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"was killed \(SIGSEGV\) at code:2"),
        ("os._exit(7)", "ended with exit code 7"),
        ("os._exit(0)", "ended with exit code 0"),
    ],
)
def test_a_node_that_ends_in_a_call(cluster, end, how):
    before = cluster.processes
    with pytest.raises(spcomm.NodeLostError, match=f"^node 2 {how}: {NEW}") as error:
        cluster.execute(f"import os, signal\nif comm.rank == 2: {end}\ncomm.barrier()")
    assert error.value.rank == 2
    assert have_ended(before)
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3


def test_a_node_that_the_kernel_kills_for_memory(cluster, monkeypatch):
    """Its control group has counted one more such kill since the call began."""
    kills = iter(range(100))
    monkeypatch.setattr(segments, "oom_kills", lambda: next(kills))
    with pytest.raises(spcomm.NodeLostError, match=f"^node 2 was killed by the kernel: out of memory: {NEW}"):
        cluster.execute("import os, signal\nif comm.rank == 2: os.kill(os.getpid(), 9)\ncomm.barrier()")


def test_a_node_that_ends_between_calls(cluster, capfd):
    before = cluster.processes
    os.kill(before[1], signal.SIGKILL)
    [fork_client] = cluster._pool.nodes.run_processes
    assert fork_client.has_news(WATCHDOG_S)  # its parent has reported it: the next call knows
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3
    assert f"spcomm: node 1 was killed (SIGKILL): {NEW}" in capfd.readouterr().err
    assert not set(before) & set(cluster.processes)


def test_the_process_that_starts_the_nodes_is_killed(cluster):
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3
    before = cluster.processes
    (fork_client,) = set(cluster.run(lambda comm: os.getppid()))
    os.kill(fork_client, signal.SIGKILL)
    assert have_ended(before)
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3
    assert not set(before) & set(cluster.processes)
    with pytest.raises(spcomm.NodeLostError) as error:
        cluster.execute("import os\nif comm.rank == 0: os.kill(os.getppid(), 9)\ncomm.recv()")
    how = "nodes 0-2 were killed (SIGKILL) together with the process that starts the nodes"
    assert message(error) == f"{how}: {NEW}"


@pytest.mark.slow
def test_a_node_that_closes_what_is_not_its_own(cluster):
    """It cannot answer any more, and a thread keeps it from ending."""
    how = "node 1 closed its connection to the caller, and was killed"
    with pytest.raises(spcomm.NodeLostError, match=f"^{how}: {NEW}"):
        cluster.execute("""
import os, threading
threading.Thread(target=threading.Event().wait).start()
if comm.rank == 1:
    os.closerange(3, 100)
""")
    assert cluster.run(lambda comm: comm.global_sum(1)) == [3] * 3


# ---- owners that end

HAS_A_CHILD = """
import signal, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid
"""
OWNS = f"""
    import os, signal, spcomm
    cluster = spcomm.Cluster(2)
    (fork_client,) = set(cluster.run(lambda comm: os.getppid()))
    print(fork_client, *cluster.processes, *cluster.execute({HAS_A_CHILD!r}))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    "doing", ["signal.pause()", "cluster.execute('while True: pass')", "cluster.execute('comm.recv()', 99)"]
)
def test_an_owner_that_is_killed_takes_its_nodes_with_it(number, doing):
    owner = Owner(f"{OWNS}    {doing}\n")
    processes = owner.numbers()
    assert len(processes) == 5
    owner.process.send_signal(number)
    assert owner.finish()[0] == -number
    assert have_ended(processes)


@pytest.mark.slow
def test_an_owner_whose_fork_lives_on_takes_its_nodes_with_it():
    """The fork has a copy of all that the owner has."""
    owner = Owner(f"""{OWNS}
    fork = os.fork()
    if fork == 0:
        try:
            cluster.run(len)
        except spcomm.SpcommError as error:
            print(error)
        signal.pause()
    signal.pause()
""")
    processes = owner.numbers()
    assert owner.line() == "run(len): the nodes belong to the process that this one was forked from"
    owner.process.kill()
    owner.process.wait()
    assert have_ended(processes)
    for child in psutil.Process().children():
        child.kill()
        child.wait()
    owner.finish()


def test_an_owner_that_ends_without_closing(tmp_path):
    owner = Owner(f"{OWNS}    cluster.execute('x = 1')\n")
    processes = owner.numbers()
    assert owner.finish() == (0, "", "")
    assert have_ended(processes)


def test_an_owner_that_fails_shows_only_what_helps():
    owner = Owner("""
    import spcomm
    with spcomm.Cluster(2) as cluster:
        cluster.execute("comm.barrier(); 1 / 0", name="step")
""")
    code, out, err = owner.finish()
    assert (code, out) == (1, "")
    assert "spcomm.ClusterError: node " in err
    assert "ZeroDivisionError: division by zero" in err
    assert "During handling" not in err


STUBBORN = """
comm.barrier()
import time
if comm.rank == 0:
    print("in", flush=True)
while True:
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        print("no", flush=True)
"""


def test_a_second_ctrl_c_kills():
    owner = Owner(f"""
    import spcomm
    cluster = spcomm.Cluster(2)
    try:
        cluster.execute({STUBBORN!r})
    except KeyboardInterrupt as error:
        print(error)
    print(cluster.run(lambda comm: comm.rank))
""")
    assert owner.line() == "[0] in"
    owner.process.send_signal(signal.SIGINT)
    assert owner.line().endswith("no")
    owner.process.send_signal(signal.SIGINT)
    _code, out, _err = owner.finish()
    assert f"did not stop when interrupted, and were killed: {NEW}" in out
    assert out.endswith("[0, 1]\n")
