# SPDX-License-Identifier: MIT
"""Runs without the launcher: `startup(local_nodes=n)` forks. Each script is started by plain Python, as a user does."""

import os
import signal
import subprocess
import sys

import pytest

from forking import HEAD, refusal, well
from processes import read_lines


@pytest.mark.smoke
@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_nodes_talk(forked, nodes):
    text = """
    assert (comm.rank, comm.size) == (comm.local_rank, len(comm.layout))
    comm.send({"from": comm.rank}, (comm.rank + 1) % comm.size)
    assert comm.recv() == {"from": (comm.rank - 1) % comm.size}
    comm.barrier()
    print(comm.rank, comm.global_sum(comm.rank), spcomm.startup() is comm, spcomm.startup(comm.size) is comm)
    """
    total = sum(range(nodes))
    assert sorted(well(forked.nodes(nodes, text)).lines) == [f"{r} {total} True True" for r in range(nodes)]


def test_total_nodes_alone_forks_too(forked):
    head = "import spcomm\ncomm = spcomm.startup(total_nodes=3)\n"
    assert well(forked.nodes(3, "print(comm.size)\n", head)).out == "3\n" * 3


def test_a_node_that_executes_itself_anew_does_not_fork_again(forked):
    result = forked.nodes(2, "os.execv(sys.executable, [sys.executable, *sys.argv])\n")
    assert result.code != 0 and "of 2 until it executed this program in its own place" in result.err, result


def test_what_was_printed_before_comes_once(forked):
    head = "import sys\nprint('before')\nsys.stdout.write('half a line ')\n" + HEAD
    result = well(forked.nodes(4, "comm.barrier()\nprint('after', comm.rank)\n", head))
    assert result.out.startswith("before\nhalf a line after ")
    assert sorted(result.out.split()) == sorted("before half a line after after after after 0 1 2 3".split())


def test_lines_stay_whole(forked):
    text = "for i in range(300): print(comm.rank, 'x' * 100, i)\n"
    lines = well(forked.nodes(4, text)).lines
    assert sorted(lines) == sorted(f"{rank} {'x' * 100} {i}" for rank in range(4) for i in range(300))


def test_random_numbers_differ(forked):
    head = "import random, numpy\nrandom.seed(1)\nnumpy.random.seed(1)\n" + HEAD
    result = well(forked.nodes(4, "print(random.random(), numpy.random.random())\n", head))
    assert len(set(result.out.split())) == 8, result


@pytest.mark.parametrize(
    "text, names",
    [
        ("rng = numpy.random.default_rng(1)", "rng (program.py:2) was made before"),
        (
            "a, b = random.Random(3), numpy.random.RandomState(2)",
            "a (program.py:2) and b (program.py:2) were made",
        ),
        ("keys = random.SystemRandom(); draw = random.random; state = numpy.random.mtrand._rand", ""),
    ],
)
def test_generators_that_would_draw_the_same_are_named(forked, text, names):
    head = f"import random, numpy\n{text}\n{HEAD}rng = random.Random(7)\n"
    result = forked.nodes(2, "comm.barrier()\n", head)
    assert result.code == 0 and (names in result.err if names else result.err == ""), result
    assert len(result.err.splitlines()) == bool(names), result


def test_only_node_0_has_the_standard_input(forked):
    head = "import sys\nfirst = sys.stdin.readline()\n" + HEAD
    process = forked.begin(3, "print(comm.rank, sys.stdin.read().split())\n", head, stdin=subprocess.PIPE)
    result = well(forked.finish(process, b"one\ntwo\nthree\n"))
    assert sorted(result.lines) == ["0 ['two', 'three']", "1 []", "2 []"]


def test_a_program_that_comes_by_standard_input(forked):
    text = HEAD.format(nodes=2) + "print(comm.rank)\n"
    process = forked.start("-", stdin=subprocess.PIPE)
    assert sorted(well(forked.finish(process, text.encode())).lines) == ["0", "1"]


def test_exit_functions_run_once_in_each_node(forked):
    head = "import atexit\natexit.register(lambda: print('early', comm.rank))\n" + HEAD
    text = "atexit.register(lambda: print('late', comm.global_sum(1)))\n"
    lines = well(forked.nodes(3, text, head)).lines
    assert sorted(lines) == ["early 0", "early 1", "early 2", "late 3", "late 3", "late 3"]


def test_fork_callbacks_run(forked):
    head = """
import os
seen = []
os.register_at_fork(
    before=lambda: seen.append("before"),
    after_in_parent=lambda: seen.append("parent"),
    after_in_child=lambda: seen.append("child"),
)
"""
    lines = well(forked.nodes(3, "print(comm.rank, *seen)\n", head + HEAD)).lines
    assert sorted(lines) == ["0 before parent", "1 before child", "2 before child"]


def test_a_daemon_thread_does_not_keep_a_node(forked):
    text = """
    import threading
    event = threading.Event()
    threading.Thread(target=event.wait, daemon=True).start()
    comm.barrier()
    """
    well(forked.nodes(3, text))


def test_node_0_ends_last(forked):
    text = """
    if comm.rank:
        comm.recv(0)
        print("last words")
    else:
        comm.send("go", spcomm.OTHERS)
    """
    assert well(forked.nodes(4, text)).out == "last words\n" * 3


# ---- exit codes and failures, in the words of `spcomm run`


def test_a_long_traceback_is_shown_whole(forked):
    """It is longer than a pipe: the supervisor hands it over while Python, which prints it, starts and reads."""
    result = forked.nodes(2, "if comm.rank == 1: raise KeyError('x' * 300_000)\ntime.sleep(1000)\n")
    assert result.code == 1 and result.err.count("x" * 300_000) == 1, result.last
    assert result.last.startswith("spcomm: node 1 ended with an uncaught KeyError (exit code 1); "), (
        result.last
    )


def test_without_python_one_sentence_is_left(forked):
    head = "import spcomm.forking\nspcomm.forking._command = lambda _module: ['/no/python']\n" + HEAD
    result = forked.nodes(3, "if comm.rank == 1: sys.exit(3)\nwhile True: time.sleep(1000)\n", head)
    why = "the command /no/python, which says more, cannot be executed"
    assert (result.code, result.err) == (3, f"spcomm: node 1 failed first (exit code 3); {why}\n"), result


LEFT = "if comm.rank != 0:\n    comm.send('hello', 0)\n"


@pytest.mark.parametrize("strict", [False, True])
def test_messages_that_nobody_received(forked, strict):
    result = forked.nodes(3, LEFT, env={"SPCOMM_STRICT": "1"} if strict else {})
    assert result.code == strict and "spcomm: warning: 2 messages were never received\n" in result.err, result
    assert ("  sent at program.py:" in result.err) == strict, result
    last = "warnings are errors (SPCOMM_STRICT=1): SP106 of node 0 (exit code 1)"
    assert (result.last == f"spcomm: {last}") == strict, result


def test_nobody_reads_what_nobody_received(forked):
    """The report is no failure: neither where stderr is closed, nor where its reader is gone."""
    for end in ("2>&-", "2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}"):
        path = forked.script("import spcomm\ncomm = spcomm.startup(local_nodes=3)\n" + LEFT)
        command = ["bash", "-c", f"'{sys.executable}' '{path}' {end}"]
        assert forked.call(*command).code == 0, end


def test_barriers_left_open(forked):
    result = forked.nodes(2, "comm.fuzzy_barrier()\n")
    assert result.code == 0 and "spcomm explain SP107" in result.err, result


def test_waiting_for_a_finished_node(forked):
    result = forked.nodes(2, "if comm.rank == 1: comm.recv(0)\n")
    assert result.code == 1 and "NodeLostError" in result.err, result
    assert result.last == "spcomm: node 1 ended with an uncaught NodeLostError (exit code 1)"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_node_0_is_killed_from_outside(forked, number):
    process = forked.begin(4, "comm.barrier()\nprint(comm.rank)\nwhile True: pass\n")
    assert sorted(read_lines(process, 4)) == ["0", "1", "2", "3"]
    process.send_signal(number)
    result = forked.finish(process)
    assert result.code == -number, result
    assert result.last == "spcomm: node 0 died; the other nodes were stopped"


@pytest.mark.slow
def test_sigterm_of_the_supervisor_ends_the_run(forked):
    text = """
    if comm.rank == 1:
        print(os.getppid())
    time.sleep(1000)
    """
    process = forked.begin(3, text)
    os.kill(int(read_lines(process, 1)[0]), signal.SIGTERM)
    result = forked.finish(process)
    assert (result.code, result.last) == (
        143,
        "spcomm: told to end by SIGTERM (exit code 143); the nodes were stopped",
    )


@pytest.mark.parametrize("where", ["time.sleep(1000)", "comm.recv()"])
def test_ctrl_c(forked, where):
    process = forked.begin(4, f"comm.barrier()\nprint(comm.rank)\n{where}\n", start_new_session=True)
    read_lines(process, 4)
    os.killpg(process.pid, signal.SIGINT)
    result = forked.finish(process)
    assert result.code == -signal.SIGINT, result
    assert result.last == "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped"
    assert "Traceback" not in result.err and "spcomm: where the nodes were:" in result.err
    lines = result.err.splitlines()
    places = lines[lines.index("spcomm: where the nodes were:") + 1 : -1]
    assert places and all("program.py:" in line for line in places), result


def test_ctrl_c_that_the_program_handles(forked):
    text = """
    try:
        comm.barrier()
        print("ready")
        while True:
            time.sleep(0.01)  # a signal just before a sleep does not end it
    except KeyboardInterrupt:
        print("handled")
    comm.barrier()
    """
    process = forked.begin(3, text, start_new_session=True)
    assert read_lines(process, 3) == ["ready"] * 3
    os.killpg(process.pid, signal.SIGINT)
    assert well(forked.finish(process)).lines == ["handled"] * 3


# ---- where it is refused


def test_threads_are_named(forked):
    head = "import threading\nevent = threading.Event()\n" \
        "threading.Thread(target=event.wait, name='my-worker', daemon=True).start()\n" + HEAD  # fmt: skip
    refusal(
        forked.nodes(4, "", head),
        "startup(local_nodes=4)",
        "another thread is running (my-worker)",
        "spcomm run",
    )


def test_not_from_a_thread(forked):
    head = "import spcomm, threading, sys\nthreading.Thread(target=lambda: spcomm.startup(2)).start()\n"
    result = forked.nodes(2, "", head)
    assert "ConfigError" in result.err and "MainThread" in result.err, result


@pytest.mark.linux("other systems do not tell")
def test_native_threads_count(forked):
    """Threads that Python does not know: here, one of the C library's."""
    head = """
import ctypes
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
pause = ctypes.cast(libc.pause, ctypes.c_void_p)
assert libc.pthread_create(ctypes.byref(thread), None, pause, None) == 0
"""
    refusal(forked.nodes(2, "", head + HEAD), "another thread is running, ")


@pytest.mark.parametrize("kernel", [True, False])
def test_notebooks(forked, kernel):
    pretended = "import sys, types\nIPython = types.ModuleType('IPython')\n" \
        "IPython.get_ipython = lambda: object()\nsys.modules['IPython'] = IPython\n"  # fmt: skip
    pretended += "sys.modules['ipykernel'] = types.ModuleType('ipykernel')\n" if kernel else ""
    words = "a notebook's kernel" if kernel else "IPython"
    refusal(forked.nodes(4, "", pretended + HEAD), words, "begin the cell with `%%spcomm -n 4`")


def test_ipython_that_is_only_imported(forked):
    pretended = "import sys, types\nIPython = types.ModuleType('IPython')\n" \
        "IPython.get_ipython = lambda: None\nsys.modules['IPython'] = IPython\n"  # fmt: skip
    well(forked.nodes(2, "", pretended + HEAD))


def test_the_prompt(forked):
    process = forked.start("-i", "-q", stdin=subprocess.PIPE)
    result = forked.finish(process, b"import spcomm\nspcomm.startup(local_nodes=2)\n")
    assert "ConfigError: startup(local_nodes=2): at Python's prompt" in result.err, result


def test_a_process_of_multiprocessing(forked):
    head = "import multiprocessing, sys, spcomm\n"
    text = """
    def work():
        try:
            spcomm.startup(local_nodes=2)
        except spcomm.ConfigError as error:
            print(error)
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    """
    assert "a process of multiprocessing" in well(forked.nodes(2, text, head)).out


def test_contradictions(forked):
    text = """
    def refused(**numbers):
        try:
            spcomm.startup(**numbers)
        except spcomm.ConfigError as error:
            return str(error)
        raise SystemExit(f"not refused: {numbers}")
    if comm.rank == 0:
        print(refused(local_nodes=3))
        print(refused(total_nodes=4))
        print(refused(group_id=5))
        assert spcomm.startup(2, 2) is spcomm.startup() is comm
    """
    lines = well(forked.nodes(2, text)).lines
    how = "startup({}={}): this run has {}, started by startup(local_nodes=2); give {} or 0"
    assert lines[0].startswith(how.format("local_nodes", 3, "2 nodes", 2))
    assert lines[1].startswith(how.format("total_nodes", 4, "2 nodes", 2))
    assert lines[2] == how.format("group_id", 5, "group_id 0", 0)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ("local_nodes=4, total_nodes=2", "startup(total_nodes=2): that is less than local_nodes=4"),
        (
            "local_nodes=2, total_nodes=4",
            "startup(total_nodes=4): that is more than local_nodes=2; give 2 or 0, or server =",
        ),
        ("local_nodes=1025", "startup(local_nodes=1025): a run has up to 1024 nodes"),
        ("total_nodes=10**30", "startup(total_nodes=1000000000000000000000000000000): a run has up to"),
        ("local_nodes=-2", "startup(local_nodes=-2): local_nodes is 0 or more"),
    ],
)
def test_impossible_numbers(forked, numbers, words):
    refusal(forked.nodes(0, "", f"import spcomm\nspcomm.startup({numbers})\n"), words)


@pytest.mark.linux("the limit is Linux's")
def test_no_room_for_so_many_processes(forked):
    """Descriptors run out while the pipes are made; nobody is left, and the process may go on alone."""
    head = "import os, resource, spcomm, spcomm.forking\n"
    text = """
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1, 4096))
    try:
        spcomm.startup(local_nodes=4)
    except OSError as error:
        print(error)
    print(os.listdir(f"/proc/{os.getpid()}/task") == [str(os.getpid())])
    """
    result = well(forked.nodes(0, text, head))
    assert "startup(local_nodes=4): 4 nodes cannot be started (Too many open files); try fewer" in result.out


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="semaphores are files in /dev/shm on Linux only")
@pytest.mark.parametrize(
    ("end", "code"), [("raise ValueError", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 137)]
)
def test_no_semaphore_outlives_a_run(forked, end, code):
    """The supervisor gives the trackers of multiprocessing the time to remove what its nodes leave."""
    text = f"""
    import multiprocessing
    lock = multiprocessing.get_context("spawn").Lock()
    print(lock._semlock.name, flush=True)
    comm.barrier()
    if comm.rank == 1: {end}
    signal.pause()
    """
    result = forked.nodes(3, text)
    assert result.code == code and len(result.lines) == 3, result
    forked.wait_until_nothing_is_left()
    assert not [name for name in result.lines if os.path.exists(f"/dev/shm/sem.{name[1:]}")], result


@pytest.mark.slow
def test_the_root_that_gave_nothing_is_first_however_long_it_cleans_up(forked):
    """The supervisor waits for the report of an error of which others were told, as long as the error is alive."""
    text = """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        comm.scatter([1, 2], comm.size - 1)
    finally:
        if comm.rank == comm.size - 1:
            signal.sigtimedwait({signal.SIGTERM}, 2)  # with which the run is ended, if others are blamed
    """
    result = forked.nodes(3, text)
    assert result.code == 1, result
    assert result.last == (
        "spcomm: node 2 ended with an uncaught ValueError (exit code 1); "
        "nodes 0-1 raised SpcommError because of it"
    ), result


# Another launcher has started the program several times; test_launched.py has those that become one run

OTHERS = {"PMI_RANK": "0", "PMI_SIZE": "3"}


def test_processes_that_cannot_be_one_run_say_why(forked):
    path = forked.script("import spcomm\nspcomm.startup()\n", "package/__main__.py")
    result = forked("-m", "package", env=OTHERS)
    assert result.code == 1 and "joining.py" not in result.err, result
    assert result.last == (
        "spcomm.ConfigError: startup(): the 3 processes of mpiexec cannot be one run: it does not set the number of "
        "processes on this machine, as mpiexec of Open MPI and of MPICH (Hydra) do; `spcomm run -n 3 -m package` "
        "starts one, and SPCOMM_ALONE=1 makes each process a run of its own"
    )
    result = forked(path, env={**OTHERS, "SPCOMM_ALONE": "1"})
    assert (result.code, result.err) == (0, ""), result


def test_numbers_that_are_given_are_meant(forked):
    """Or the program was started by `spcomm run`, which the other launcher has started."""
    for nodes in (1, 2):
        assert forked.nodes(nodes, "comm.barrier()\n", env=OTHERS).err == ""
    path = forked.script("import spcomm\nprint(spcomm.startup().size)\n")
    result = forked("-m", "spcomm", "run", "-n", 2, path, env=OTHERS)
    assert (result.code, result.out, result.err) == (0, "2\n2\n", ""), result
