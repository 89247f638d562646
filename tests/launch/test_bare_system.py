# SPDX-License-Identifier: MIT
"""Systems that lack what others have: no /proc, as in a bare root file system, and a loopback device that is down."""

import shutil
import subprocess
import sys

import pytest

LACKS = {
    "/proc": (["unshare", "-m"], "mount -t tmpfs none /proc"),
    "loopback": (["unshare", "-n"], "true"),
}
RING = "comm.recv((comm.rank + 1) % comm.size, tag=7)\n"
JOINED = "import spcomm, sys, time\ncomm = spcomm.startup()\n"
CODE = {"SPCOMM_CODE": "fibis tilak rilas sonid livam domis"}


def begun(what):
    """The words that begin a command on such a system. Skips the test where making one is not allowed."""
    unshare, preparation = LACKS[what]
    words = [*unshare, "sh", "-c", f'{preparation} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("namespaces cannot be made here")
    return words


def on_bare(launch, what):
    """Have all commands of a test start there."""
    words, command = begun(what), launch.command
    launch.command = lambda *arguments, **more: [*words, *command(*arguments, **more)]
    return launch


@pytest.fixture(params=["run", "local_nodes"])
def without_proc(request, launch, forked):
    """Runs a program as three nodes, started in either way."""
    if request.param == "run":
        bare = on_bare(launch, "/proc")
        return lambda text: bare.program(JOINED + text, options=("-n", 3))
    bare = on_bare(forked, "/proc")
    return lambda text: bare.nodes(3, text)


def test_nodes_talk_without_proc(without_proc):
    result = without_proc("print(comm.global_sum(comm.rank))\n")
    assert (result.code, result.err, result.lines) == (0, "", ["3"] * 3), result


def test_a_failure_ends_the_run_without_proc(without_proc):
    result = without_proc("if comm.rank == 1: sys.exit(3)\nwhile True: time.sleep(1000)\n")
    assert result.code == 3 and "node 1 ended with exit code 3" in result.last, result


def test_a_deadlock_is_proven_without_proc(without_proc):
    """A process learns from unshare(2) whether it has one thread."""
    result = without_proc(RING)
    assert result.code == 99 and "DEADLOCK — all 3 nodes wait" in result.err, result


@pytest.mark.slow
def test_threads_are_noticed_without_proc(launch):
    bare = on_bare(launch, "/proc")
    text = f"import threading\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n{RING}"
    result = bare.program(JOINED + text, options=("-n", 3, "--stall", 0.3, "--timeout", 5, "--grace", 0.2))
    assert result.code == 124 and "one of them has other threads" in result.err, result


REFUSED = (
    "this machine cannot reach itself at 127.0.0.1 (Network is unreachable): its loopback device is down"
)
WORDS = {
    "boxes": (["run", "-n", "4", "--boxes", "2", "program.py"], "spcomm run"),
    "page": (["run", "-n", "2", "--watch=browser", "program.py"], "spcomm run: --watch=browser"),
    "serve": (["serve"], "spcomm serve"),
    "join": (["join", "127.0.0.1"], "spcomm join"),
}


@pytest.mark.parametrize("words, begin", WORDS.values(), ids=WORDS)
def test_a_loopback_device_that_is_down_is_named(launch, words, begin):
    launch.script(JOINED)
    launch.command = lambda *arguments, python=(): [
        *begun("loopback"),
        sys.executable,
        *python,
        "-m",
        "spcomm",
        *arguments,
    ]
    result = launch(*words, env=CODE)
    assert result.code not in (0, None), result
    assert result.err == f"{begin}: {REFUSED}; try `ip link set lo up`\n", result


def test_a_cluster_of_boxes_names_it_too(forked):
    bare = on_bare(forked, "loopback")
    text = "import spcomm\nwith spcomm.Cluster(2, boxes=2) as cluster:\n    cluster.run(lambda comm: comm.rank)\n"
    result = bare.program(text)
    assert result.code == 1, result
    assert result.last == (
        f"spcomm.SpcommError: boxes cannot be connected: {REFUSED}; try `ip link set lo up`"
    ), result
