# SPDX-License-Identifier: MIT
"""Limits, descriptors, streams, signals and the umask that a run inherits from the process that starts it."""

import itertools
import os
import resource
import shlex
import shutil
import signal

import pytest

from processes import children, read_lines

pytestmark = pytest.mark.linux("limits of Linux")

OK = "print('ok', comm.global_sum(1))"


class Surface:
    """One of the ways to have nodes."""

    def __init__(self, kind, launch, forked):
        self.kind = kind
        self.boxes = ("--boxes", 2) if kind == "boxes" else ()
        self._launch, self._forked = launch, forked
        self.folder = launch.folder

    def start(self, nodes, text, options=(), **more):
        """Start a program whose nodes run these lines; `comm` is their communicator."""
        if self.kind in ("run", "boxes"):
            script = self._launch.script(f"import spcomm\ncomm = spcomm.startup()\n{text}")
            return self._launch.start("-n", nodes, *self.boxes, *options, script, **more)
        head = {
            "local_nodes": f"import spcomm\ncomm = spcomm.startup(local_nodes={nodes})\n{text}",
            "Cluster": f"import spcomm\nwith spcomm.Cluster({nodes}) as cluster:\n    cluster.execute({text!r})",
        }
        return self._forked.start(self._forked.script(head[self.kind]), **more)

    def finish(self, process):
        return self._launch.finish(process)

    def __call__(self, nodes, text, **more):
        return self.finish(self.start(nodes, text, **more))


@pytest.fixture(params=["run", "boxes", "local_nodes", "Cluster"])
def surface(request, launch, forked):
    return Surface(request.param, launch, forked)


def limiting(what, value):
    """For `preexec_fn`: a limit as `ulimit` sets it."""
    return lambda: resource.setrlimit(what, (value, value))


# ---- resource limits


@pytest.mark.spread("surface")
@pytest.mark.parametrize(
    ("what", "value", "nodes"),
    [
        (resource.RLIMIT_AS, 1_000_000 << 10, 4),
        (resource.RLIMIT_AS, 600_000 << 10, 2),
        (resource.RLIMIT_FSIZE, 1 << 20, 2),
        (resource.RLIMIT_NOFILE, 64, 4),
        (resource.RLIMIT_STACK, 256 << 10, 2),
        (resource.RLIMIT_MEMLOCK, 0, 2),
    ],
    ids=["v-1G", "v-600M", "f-1M", "n-64", "s-256K", "l-0"],
)
def test_a_run_fits_into_the_limits(surface, what, value, nodes):
    result = surface(nodes, OK, preexec_fn=limiting(what, value))
    assert (result.code, result.out.count(f"ok {nodes}")) == (0, nodes), result


def test_a_limit_of_files_that_is_too_small_is_named(surface):
    result = surface(16, OK, preexec_fn=limiting(resource.RLIMIT_FSIZE, 64 << 10))
    assert "ok" not in result.out and result.code != 0
    assert "raise the limit ulimit -f 64 (64K)" in result.err, result
    assert "Traceback" not in result.err or surface.kind in ("local_nodes", "Cluster")


def test_a_limit_of_descriptors_that_is_too_small_is_named(launch):
    script = launch.script("import spcomm\nspcomm.startup()")
    limit = limiting(resource.RLIMIT_NOFILE, 24)
    result = launch.finish(launch.start("-n", 16, script, preexec_fn=limit))
    assert result.code == 125 and result.last.endswith("raise the limit ulimit -n 24"), result


# The interpreter itself starts with five descriptors.
SWEPT = {
    "-n": (resource.RLIMIT_NOFILE, [*range(5, 34), 40, 50]),
    "-v": (resource.RLIMIT_AS, [megabytes << 20 for megabytes in range(40, 320, 20)]),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("option", SWEPT)
def test_whatever_the_limit_a_run_ends_well_or_with_a_sentence(surface, option):
    """Some limit of each list is too small, and some is not; in between anything may be what fails."""
    what, values = SWEPT[option]
    codes = set()
    for value in values:
        result = surface(4, OK, preexec_fn=limiting(what, value))
        codes.add(result.code)
        if result.code == 0:
            assert (result.out.count("ok 4"), result.err) == (4, ""), (value, result)
            continue
        lines = result.err.splitlines()
        if option == "-n":
            assert f"raise the limit ulimit -n {value}" in lines[-1], (value, result)
            assert len(lines) == 1 or surface.kind in ("local_nodes", "Cluster"), (value, result)
        elif surface.kind in ("run", "boxes"):  # else NumPy's libraries may have the last word
            assert lines[-1].startswith("spcomm"), (value, result)
            assert "report it" not in result.err, (value, result)
    assert 0 in codes and len(codes) > 1, codes


def test_a_size_beyond_the_limit_is_refused_by_its_name(launch):
    limit = limiting(resource.RLIMIT_AS, 1_000_000 << 10)
    script = launch.script("import spcomm\nspcomm.startup()")
    result = launch.finish(launch.start("-n", 4, "--arena", "300M", script, preexec_fn=limit))
    assert result.code == 125
    assert "a quarter of the memory that ulimit -v allows (976.6M); try --arena " in result.err, result


# ---- signals

# Groups that end a run, that a terminal sends, and others; SIGCHLD tells the launcher who has ended.
NAMES = ("CHLD", "INT TERM HUP QUIT", "CONT TSTP TTOU WINCH", "PIPE USR1 ALRM RTMIN")

STATES = {
    "ignored": lambda numbers: [signal.signal(number, signal.SIG_IGN) for number in numbers],
    "blocked": lambda numbers: signal.pthread_sigmask(signal.SIG_BLOCK, numbers),
}

# Programs, each with its exit code and its output; under a Cluster a failure raises an exception in the caller.
FATES = {
    "well": (OK, 0, "ok 2"),
    "children": ("import subprocess\nprint('code', subprocess.run(['false']).returncode)", 0, "code 1"),
    "failure": ("import sys, time\nif comm.rank: sys.exit(3)\nwhile True: time.sleep(1000)", 3, ""),
    "deadlock": ("comm.recv(1 - comm.rank)", 99, ""),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("names", NAMES)
def test_signals_that_the_parent_kept_from_its_children(surface, fate, state, names):
    text, code, out = FATES[fate]
    if surface.kind == "Cluster" and code:
        pytest.skip("a call raises its exception, and the cluster lives on")
    if surface.kind == "local_nodes" and fate == "children" and names == "CHLD":
        pytest.skip("node 0 is the program itself: as without spcomm")
    numbers = [getattr(signal, f"SIG{name}") for name in names.split()]
    result = surface(2, text, preexec_fn=lambda: STATES[state](numbers))
    assert result.code == code, result
    lines = [line.partition("] ")[2] or line for line in result.lines]  # a Cluster labels them
    assert lines == [line for line in [out] * 2 if line], result
    assert not result.err or code, result


# Names of signals, as a node finds them; those that Python itself ignores are left out.
FOUND = """
import signal
numbers = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
print(sorted(map(int, ignored)), sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))
"""


def test_nodes_start_with_what_a_shell_hands_on(launch):
    """Everything is blocked, and ignored, but for what cannot be; nohup, and a shell in its background, mean it."""

    def everything():
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    kept = sorted(map(int, (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)))
    for options in ((), ("--boxes", 2)):
        result = launch.finish(launch.start("-n", 2, *options, launch.script(FOUND), preexec_fn=everything))
        assert (result.code, result.lines) == (0, [f"{kept} []"] * 2), result


# ---- signals of a batch system

WARNED = """
import os, signal, subprocess, sys, time
heard = []
signal.signal(signal.{name}, lambda number, _frame: heard.append(number))
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
os.write(1, b"ready\\n")
while not heard:
    time.sleep(0.01)
comm.barrier()
child.stdin.close()
print(heard == [signal.{name}], child.wait())
"""


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
@pytest.mark.parametrize("whom", ["launcher", "all but the nodes"])
def test_a_warning_reaches_the_nodes(surface, name, whom):
    """Not what they have started. The processes between launcher and nodes do not die of it."""
    if surface.kind not in ("run", "boxes"):
        pytest.skip("there is no launcher that hands it on")
    process = surface.start(2, WARNED.format(name=name))
    assert read_lines(process, 2) == ["ready"] * 2
    if whom != "launcher":
        for pid in children(process.pid):
            os.kill(pid, getattr(signal, name))
    process.send_signal(getattr(signal, name))
    result = surface.finish(process)
    assert (result.code, result.err, result.lines) == (0, "", ["True 0"] * 2), result


def test_a_warning_without_a_handler_ends_the_run(surface):
    if surface.kind not in ("run", "boxes"):
        pytest.skip("there is no launcher that hands it on")
    process = surface.start(2, "import os, time\nos.write(1, b'ready\\n')\nwhile True: time.sleep(1000)")
    assert read_lines(process, 2) == ["ready"] * 2
    process.send_signal(signal.SIGUSR1)
    result = surface.finish(process)
    assert result.code == 128 + signal.SIGUSR1, result
    assert "was killed by SIGUSR1 (exit code 138)" in result.last, result


# ---- descriptors


def test_descriptors_of_the_parent_do_not_reach_nodes(surface):
    """A reader of a pipe of the parent sees its end, since no node keeps it open."""
    if surface.kind == "local_nodes":
        pytest.skip("its nodes are forks of the program, with all that the program has opened")
    read, write = os.pipe()
    text = f"import os; print('same' if os.path.exists('/proc/self/fd/{write}') and os.path.samestat(" \
        f"os.fstat({write}), os.stat('/proc/{os.getpid()}/fd/{write}')) else 'not there')"  # fmt: skip
    try:
        result = surface(2, text, pass_fds=(write,))
    finally:
        os.close(read)
        os.close(write)
    assert (result.code, result.out.count("not there")) == (0, 2), result


@pytest.mark.parametrize("options", [(), ("--start", "exec")], ids=["fork", "exec"])
def test_a_descriptor_that_an_argument_names_reaches_them(launch, options, monkeypatch):
    """`spcomm run program.py <(command)`."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    script = launch.script("import sys, spcomm\nspcomm.startup().rank or print(open(sys.argv[1]).read())")
    words = shlex.join(map(str, launch.command("-n", 2, *options, script)))
    monkeypatch.setattr(launch, "command", lambda **_more: [bash, "-c", f"{words} <(echo from a command)"])
    result = launch()
    assert (result.code, result.out.strip()) == (0, "from a command"), result


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(some, marks=pytest.mark.slow if len(some) == 2 else ())
        for count in (1, 2, 3)
        for some in itertools.combinations((0, 1, 2), count)
    ],
    ids=str,
)
def test_closed_standard_streams_hurt_nobody(surface, closed):
    """`<&-`, `>&-`, `2>&-`: no descriptor of the run takes their place, and files of the program are whole."""
    text = """
import sys
with open(f"file-{comm.rank}", "w") as file:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.write("words\\n")
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    print(comm.global_sum(1), file=file)
"""
    result = surface(2, text, preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert result.code == 0, result
    for rank in (0, 1):
        assert (surface.folder / f"file-{rank}").read_text() == "2\n"


# ---- the umask


@pytest.mark.spread("surface")
@pytest.mark.parametrize("mask", [0o777, 0o077], ids=oct)
def test_nodes_have_the_umask(surface, mask):
    result = surface(2, "import os; print(oct(os.umask(0)))", umask=mask)
    assert (result.code, result.out.count(oct(mask))) == (0, 2), result


@pytest.mark.parametrize("mask", [0o777, 0o077], ids=oct)
def test_the_umask_does_not_lock_the_launcher_out(launch, mask):
    script = launch.script("import spcomm\nspcomm.startup()\nprint('x')")
    options = ("--output", "a/b", "--trace", "t.json")
    result = launch.finish(launch.start("-n", 2, *options, script, umask=mask))
    assert result.code == 0, result
    assert all((launch.folder / path).stat().st_mode & 0o700 == 0o700 for path in ("a", "a/b"))
