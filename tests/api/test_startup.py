# SPDX-License-Identifier: MIT
"""startup(), who a node is, close(), and a process that no launcher started."""

import re
import subprocess
import sys

import pytest

import spcomm
from nodepool import environment
from nodetools import refused
from programs import alone, finish, ok, run, start


def test_who_am_i(comm):
    assert type(comm.rank) is int and type(comm.size) is int
    assert 0 <= comm.rank < comm.size
    line = comm.layout[comm.rank]
    assert (line.rank, line.box, line.local_rank) == (comm.rank, comm.box, comm.local_rank)
    assert 0 <= comm.box < 64 and 0 <= comm.local_rank <= comm.members[comm.rank]
    comm.send(comm.rank, spcomm.ALL)
    assert [comm.recv(source) for source in range(comm.size)] == list(range(comm.size))


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


def test_alone_an_endless_wait_raises(tmp_path):
    text = """
        import time
        for call in (lambda: comm.recv(0, tag=7), comm.recv, comm.probe):
            try:
                call()
            except spcomm.DeadlockError as error:
                assert "SP101" in str(error), error
            else:
                raise SystemExit("no error")
        comm.send("still there", 0, 5)
        assert comm.recv(0, tag=5) == "still there"
        comm.recv()
    """
    result = alone(tmp_path, text)
    assert result.code == 1
    assert "spcomm.DeadlockError: DEADLOCK" in result.err
    assert "This program runs as one node because it was started without spcomm run." in result.err
    assert re.search(r"Try: spcomm run -n 4 \S*\.py", result.err), result.err


def test_alone_advice_about_a_rank_names_the_program_as_it_was_started(tmp_path):
    """By its path or module: a name without its folder would not be found."""
    folder = tmp_path / "lesson"
    folder.mkdir()
    (folder / "ask.py").write_text("import spcomm\nspcomm.startup().recv(1)\n")
    for words, program in [(["lesson/ask.py"], "lesson/ask.py"), (["-m", "lesson.ask"], "-m lesson.ask")]:
        result = finish(start([sys.executable, *words], cwd=tmp_path))
        assert "recv(source=1): there is no node 1; this is a run of one node" in result.err
        assert f"start it with `spcomm run -n 4 {program}`" in result.err


def test_alone_a_wait_that_may_end_is_no_deadlock(tmp_path):
    """The timeout outlives the looks: a first slice, and then one before each sleep."""
    text = """
        import signal, threading
        try:
            comm.recv(timeout=1.5)
        except spcomm.WaitTimeoutError:
            print("timeout")
        go = threading.Event()
        def late():
            go.wait(1.5)
            comm.send("of a thread", 0)
        threading.Thread(target=late).start()
        print(comm.recv())
        signal.signal(signal.SIGALRM, lambda *_: comm.send("of a signal", 0))
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        print(comm.recv())
    """
    assert ok(alone(tmp_path, text)).out.splitlines() == ["timeout", "of a thread", "of a signal"]


@pytest.mark.parametrize(
    ("before", "helper", "words"),
    [
        ("", "threading.Thread(target=lambda: (asked.wait(), comm.send(5, 0))).start()", "another thread"),
        pytest.param(
            "pool = concurrent.futures.ThreadPoolExecutor()\npool.submit(int).result()",
            "pool.submit(lambda: (asked.wait(), comm.send(5, 0)))",
            "another thread",
            marks=pytest.mark.slow,
        ),
        # A handler that is there before the readline module is called by that of the module.
        ("signal.signal(signal.SIGWINCH, send)\nimport readline", "kill('WINCH')", "a signal handler"),
        pytest.param(
            "", "signal.signal(signal.SIGINT, send)\nkill('INT')", "a signal handler", marks=pytest.mark.slow
        ),
    ],
    ids=["thread", "executor", "window", "interrupt"],
)
def test_alone_a_warning_says_what_may_end_a_wait(before, helper, words, tmp_path):
    """The helper does so as soon as the warning has come."""
    head = f"""
import concurrent.futures, signal, subprocess, sys, threading
import spcomm
asked = threading.Event()
children = []
def send(*_):
    comm.send(5, 0)
def kill(name):
    command = ["sh", "-c", f"read line; kill -{{name}} $PPID"]
    children.append(subprocess.Popen(command, stdin=subprocess.PIPE))
class Errors:
    def write(self, text):
        sys.__stderr__.write(text)
        asked.set()
        if children and not children[0].stdin.closed:
            children[0].communicate(b"\\n")
    def flush(self):
        pass
sys.stderr = Errors()
{before}
comm = spcomm.startup()
{helper}
"""
    result = ok(alone(tmp_path, "print(comm.recv(0))", head=head))
    assert result.out == "5\n"
    assert re.match(r"spcomm: warning: the node has been waiting for \d+ s, and only " + words, result.err), (
        result.err
    )
    assert re.search(r"Try: spcomm run -n 4 \S*\.py     \(spcomm explain SP101\)\n$", result.err), result.err


def test_alone_the_interactive_interpreter_has_no_doubts(tmp_path):
    """It imports the readline module, which handles SIGWINCH in C."""
    result = alone(tmp_path, "import readline\ncomm.recv()")
    assert result.code == 1 and "spcomm.DeadlockError: DEADLOCK" in result.err, str(result)


def test_alone_errors_show_the_lines_of_the_program_only(tmp_path):
    """As under the launcher; a hook of the program still gets them."""
    head = "import sys\nhook = sys.__excepthook__\n"
    head += "sys.excepthook = lambda kind, error, trace: hook(kind, error, trace)\n"
    head += "import spcomm\ncomm = spcomm.startup()\n"
    result = alone(tmp_path, "comm.send(1, 7)", head=head)
    assert result.code == 1 and result.err.count("  File ") == 1, result.err
    assert "comm.send(1, 7)" in result.err and ".pyx" not in result.err
    assert "RankError: send(dest=7): there is no node 7" in result.err


def test_alone_a_result_that_only_the_root_has_is_explained(tmp_path):
    text = (
        "total = comm.reduce(1)\ntotal = None if comm.rank == 0 else total  # as on any other node\ntotal / 2"
    )
    result = alone(tmp_path, text)
    assert result.err.endswith(
        "Try: comm.allreduce(): comm.reduce() gives its result to the root, and None to all others\n"
    ), result.err


def test_alone_recv_with_a_status_of_mpi4py_is_explained(tmp_path):
    result = alone(tmp_path, "comm.recv(0, status=None)")
    assert "Try: comm.recv_message(), which returns data, source and tag" in result.err, result.err


def test_alone_a_program_that_asks_for_the_size_learns_how_to_have_more(tmp_path):
    note = r"spcomm: this was a run of one node: start it with `spcomm run -n 4 \S+\.py`\n"
    assert re.fullmatch(note, ok(alone(tmp_path, "comm.size")).err)
    assert ok(alone(tmp_path, "comm.rank", head="import spcomm\ncomm = spcomm.startup()\n")).err == ""
    assert (
        ok(alone(tmp_path, "comm.size", head="import spcomm\ncomm = spcomm.startup(local_nodes=1)\n")).err
        == ""
    )


def test_alone_startup_of_one_names_the_call(tmp_path):
    result = alone(tmp_path, "comm.recv()", head="import spcomm\ncomm = spcomm.startup(local_nodes=1)\n")
    assert result.code == 1 and "because of startup(local_nodes=1)" in result.err, str(result)


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
