# SPDX-License-Identifier: MIT
"""Exit codes, who is to blame, and the order of what is said."""

import os
import signal
import sys

import pytest


def test_success_says_nothing(launch, start):
    result = launch.program("pass", options=("-n", 3, *start))
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("raise KeyboardInterrupt", "ended with an uncaught KeyboardInterrupt (exit code 130)"),
        ("sys.exit(130)", "ended with exit code 130"),
    ],
)
def test_an_interrupted_node_ends_the_run(launch, start, ending, text):
    """Other failures: test_ends.py."""
    lines = f"import signal, sys, spcomm\nif spcomm.startup().rank == 1: {ending}\nsignal.pause()"
    result = launch("-n", 3, *start, launch.script(lines))
    assert result.code == 130, result
    assert result.last == f"spcomm: node 1 {text}; the other nodes were interrupted, too"


@pytest.mark.parametrize(("crash", "ending"), [
    ("ctypes.string_at(0)", "SIGSEGV (exit code 139)"),
    ("os.abort()", "SIGABRT (exit code 134)"),
])  # fmt: skip
def test_a_crash_names_its_last_line(launch, start, crash, ending):
    text = f"""
        import ctypes, os, signal, spcomm
        comm = spcomm.startup()

        def step():
            {crash}

        if comm.rank == 1:
            step()
        signal.pause()
        """
    result = launch.program(text, options=("-n", 3, *start))
    # A Python that was not forked has no handler.
    where = "" if "exec" in start else ", last at program.py:6 in step"
    assert result.last == f"spcomm: node 1 was killed by {ending}{where}; the other nodes were stopped"
    assert result.code == int(ending[-4:-1])


def test_the_traceback_comes_last_and_shows_only_the_program(launch, start):
    script = launch.script(
        """
        import sys, signal, spcomm
        comm = spcomm.startup()

        def inner():
            raise LookupError("not here")

        print("before", file=sys.stderr)
        if comm.rank == 2:
            inner()
        signal.pause()
        """
    )
    result = launch("-n", 4, *start, script)
    lines = result.err.splitlines()
    at = lines.index("Traceback (most recent call last):")
    assert lines[:at] == ["before"] * at and at >= 1
    assert lines[at + 1].split(",")[0] == f'  File "{script}"'
    assert lines[-2] == "LookupError: not here"
    assert "raise LookupError" in result.err and "spcomm/launch" not in result.err.replace(os.sep, "/")
    assert result.last.startswith("spcomm: node 2 ended with an uncaught LookupError")


def test_labels_are_put_before_tracebacks_too(launch):
    result = launch.program("raise ValueError('x')", options=("-n", 1, "-l"))
    assert result.err.splitlines()[0] == "[0] Traceback (most recent call last):"
    assert result.err.splitlines()[-2] == "[0] ValueError: x"


def test_nodes_that_fail_alike_are_said_once(launch):
    result = launch.program(
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        import missing_module_of_this_name
        """,
        options=("-n", 4),
    )
    assert result.code == 1
    assert result.err.count("Traceback") == 1, result
    assert "ModuleNotFoundError" in result.last


def test_a_syntax_error_looks_as_under_plain_python(launch, start):
    result = launch.program("x = (\n", options=("-n", 1, *start))
    assert result.code == 1
    assert "SyntaxError" in result.err and "program.py" in result.err and "launch" not in result.err, result


def test_a_failing_thread_is_no_failing_node(launch, start):
    result = launch.program(
        "import threading; threading.Thread(target=lambda: 1/0).start()", options=("-n", 1, *start)
    )
    assert result.code == 0 and "ZeroDivisionError" in result.err, result


def test_an_exception_hook_of_the_program_is_used(launch, start):
    result = launch.program(
        """
        import sys, spcomm
        spcomm.startup()
        def hook(kind, error, trace): print("hooked", kind.__name__, file=sys.stderr)
        sys.excepthook = hook
        1/0
        """,
        options=("-n", 1, *start),
    )
    assert result.code == 1
    assert result.err.splitlines()[0] == "hooked ZeroDivisionError", result


def test_nothing_of_the_output_is_lost_when_a_node_fails(launch, start):
    count = 3000
    result = launch.program(
        f"""
        import sys, signal, spcomm
        comm = spcomm.startup()
        for i in range({count}):
            print("out", comm.rank, i)
            print("err", comm.rank, i, file=sys.stderr)
        if comm.rank == 0:
            raise SystemExit(4)
        signal.pause()
        """,
        options=("-n", 2, *start),
    )
    assert result.code == 4
    assert [line for line in result.lines if line.startswith("out 0")] == [f"out 0 {i}" for i in range(count)]
    errors = result.err.splitlines()
    assert [line for line in errors if line.startswith("err 0")] == [f"err 0 {i}" for i in range(count)]


def test_the_exit_status_is_that_of_the_end_not_of_the_exception(launch):
    result = launch.program(
        "import atexit, os; atexit.register(os._exit, 9); raise ValueError('x')", options=("-n", 1)
    )
    assert result.code == 9, result


def test_a_node_that_ignores_the_request_to_end_is_killed(launch, start):
    result = launch.program(
        """
        import os, signal, sys, spcomm
        comm = spcomm.startup()
        if comm.rank:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(f"ready-{comm.rank}", "w").close()
            while True: signal.pause()
        while not all(os.path.exists(f"ready-{r}") for r in range(1, comm.size)): os.sched_yield()
        sys.exit(5)
        """,
        options=("-n", 3, "--grace", "0.2", *start),
    )
    assert result.code == 5, result
    assert result.last == "spcomm: node 0 ended with exit code 5; the other nodes were stopped"


def test_a_node_may_clean_up_when_it_is_told_to_end(launch, start):
    result = launch.program(
        """
        import os, signal, sys, spcomm
        comm = spcomm.startup()
        if comm.rank:
            def leave(*_):
                print("cleaned up", comm.rank)
                sys.exit(77)
            signal.signal(signal.SIGTERM, leave)
            open(f"ready-{comm.rank}", "w").close()
            while True: signal.pause()
        while not os.path.exists("ready-1"): os.sched_yield()
        sys.exit(5)
        """,
        options=("-n", 2, *start),
    )
    assert result.code == 5, result
    assert result.lines == ["cleaned up 1"]


def test_timeout(launch, start):
    script = launch.script(
        """
        import signal, spcomm
        comm = spcomm.startup()
        def wait_here():
            signal.pause()
        if comm.rank:
            wait_here()
        """
    )
    states = "node 0     finished", "nodes 1-2  " + ("program.py:5 in" if start[1] == "fork" else "running")
    for limit in ("1.5", "10", "40"):  # a busy machine may need longer to come to these lines
        result = launch("-n", 3, "--timeout", limit, *start, script)
        assert result.code == 124, result
        how = f"the run took longer than --timeout {limit} s; the nodes were stopped (exit code 124)"
        assert result.last == f"spcomm: {how}"
        if all(state in result.err for state in states):
            return
    pytest.fail(repr(result))


@pytest.mark.machine  # the node has to stop before the time limit
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs job control")
def test_a_stopped_node_is_killed_too(launch):
    result = launch.program(
        """
        import os, signal, spcomm
        comm = spcomm.startup()
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        options=("-n", 2, "--timeout", "1", "--grace", "0.2"),
    )
    assert result.code == 124 and "no answer" in result.err, result


def test_what_a_node_leaves_running_is_ended(launch, start):
    result = launch.program(
        """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
        print("left")
        """,
        options=("-n", 2, *start),
    )
    assert (result.code, result.lines) == (0, ["left"] * 2), result
    assert not launch.alive()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.getuid() != 0, reason="needs a limit that binds"
)
def test_more_nodes_than_descriptors_is_one_sentence(launch):
    import resource

    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
    result = launch("-n", 64, launch.script("import signal; signal.pause()"), preexec_fn=limit)
    assert result.code == 125, result
    assert result.last.startswith("spcomm: only ") and "of 64 nodes could be started" in result.last
    assert len(result.err.splitlines()) == 1


@pytest.mark.slow
def test_nodes_have_the_descriptor_limit_of_the_launcher(launch):
    import resource

    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 2000))  # noqa: E731
    script = launch.script("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))")
    result = launch("-n", 120, script, preexec_fn=limit)
    assert result.code == 0 and set(result.lines) == {"(200, 2000)"}, result


CLOSES_ALL = """
    import os
    os.closerange(3, 100)
    files = [open(f"file{number}", "w") for number in range(20)]
"""


def test_a_traceback_never_goes_into_a_file_of_the_program(launch):
    """One that took the number of a descriptor which the program had closed though it was not its own."""
    result = launch.program(CLOSES_ALL + "    raise ValueError('words')", options=("-n", 1))
    assert result.code == 1 and "ValueError: words" in result.err, result
    assert not any((launch.folder / f"file{number}").read_bytes() for number in range(20))


@pytest.mark.parametrize("text", [CLOSES_ALL, "    import os\n    os.closerange(3, 100)\n"])
def test_a_closed_descriptor_of_the_run_is_said(launch, text):
    result = launch.program(
        text + "    import spcomm\n    spcomm.startup()", options=("-n", 2, "--start", "fork")
    )
    assert result.code == 1 and "Call startup() before" in result.err, result


def test_without_any_standard_stream(launch):
    """Nor may the fork server take one of the run's descriptors for a standard stream."""
    script = launch.script(
        "import spcomm\ncomm = spcomm.startup()\ncomm.barrier()\nopen(f'{comm.rank}', 'w')"
    )
    result = launch.call("/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *launch.command("-n", 2, script))
    assert result.code == 0 and (launch.folder / "0").exists() and (launch.folder / "1").exists()


def test_a_launcher_without_descriptors_says_so(launch):
    command = launch.command("-n", 2, launch.script("pass"))
    result = launch.call("/bin/sh", "-c", 'ulimit -n 10; exec "$@"', "sh", *command)
    assert result.code == 125
    assert "ulimit -n" in result.err and "Traceback" not in result.err


def test_ctrl_c_does_not_disturb_a_report(launch, start):
    """It comes while the node shows its exception, which is all that is shown."""
    result = launch.program(
        """
        import os, signal, sys, spcomm
        def show(*error):
            os.kill(os.getpid(), signal.SIGINT)
            sys.__excepthook__(*error)
        sys.excepthook = show
        spcomm.startup()
        raise ValueError("mine")
        """,
        options=("-n", 1, *start),
    )
    assert result.code == 1, result
    assert result.last == "spcomm: node 0 ended with an uncaught ValueError (exit code 1)", result
    assert "ValueError: mine" in result.err and result.err.count("Traceback") == 1, result
    assert "KeyboardInterrupt" not in result.err and "launch" not in result.err, result


# As in a container whose seccomp profile refuses a system call. A socket that is there needs none.
REFUSING = """
import {module} as module, os
def {name}(*arguments, before=module.{name}, **options):
    if "fileno" in options:
        return before(*arguments, **options)
    raise PermissionError(1, os.strerror(1))
module.{name} = {name}
"""


@pytest.mark.parametrize(
    ("module", "name", "options"),
    [("_socket", "socketpair", ()), ("socket", "socket", ("--boxes", 2)), ("select", "epoll", ())],
)
def test_a_system_call_that_a_sandbox_refuses(launch, module, name, options):
    launch.script(REFUSING.format(module=module, name=name), "sandbox/sitecustomize.py")
    paths = os.pathsep.join([str(launch.folder / "sandbox"), launch.environment()["PYTHONPATH"]])
    script = launch.script("import spcomm; print(spcomm.startup().size)")
    result = launch("-n", 2, "--no-label", *options, script, env={"PYTHONPATH": paths})
    if name == "epoll":
        assert (result.code, result.out, result.err) == (0, "2\n2\n", ""), result
        return
    assert result.code == 125, result
    assert result.err == (
        f"spcomm run: this system refuses {name}() (Operation not permitted), which the processes of a run "
        "need to reach each other; in a container, allow it in the seccomp profile\n"
    ), result


def test_a_startup_without_parentheses(launch):
    result = launch("-n", 1, launch.script("import spcomm\ncomm = spcomm.startup\ncomm.rank"))
    assert "Try: comm = spcomm.startup(), with parentheses, then comm.rank\n" in result.err
    result = launch("-n", 1, launch.script("import spcomm\nspcomm.startup().sise"))
    assert "'Comm' object has no attribute 'sise'. Did you mean: 'size'?\n" in result.err
