# SPDX-License-Identifier: MIT
"""Signals that come when a process has only begun, or to several processes at the same time."""

import os
import signal

import pytest

import processes
from processes import read_lines

ENDLESS = "print('importing', flush=True)\nimport signal\nsignal.pause()"
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    print(os.getpid(), flush=True)
    signal.pause()
"""

# A node as the fork server forks it, with a Ctrl-C that has come just after the fork; it ends where it would become
# the executable.
EXECUTABLE = """
    import os, signal
    from spcomm import config
    from spcomm.launch.local import child
    told = dict.fromkeys(
        ("kind", "target", "arguments", "command", "path_entry", "where_signal", "descriptor_limit", "takes_interrupt")
    )
    told.update(kind="executable", target="/bin/true", arguments=["true"])
    program = child.Program(told)
    parent, report = os.getpid(), os.open(os.devnull, os.O_WRONLY)
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    if (pid := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGINT)
        node = child.Node(program, config.Membership(report, 0, 1, 0, 0, parent, 0), {"report": report})
        node.settle(parent, mask, [0, 1, 2], [])
        node.run()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

# A gateway or a server, with what a terminal sends to all processes of a group that it has not left yet.
CARRIER = """
    import os, signal
    from spcomm.launch.remote import transport_main
    launcher = os.getpid()
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    if (pid := os.fork()) == 0:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP):
            os.kill(os.getpid(), number)
        transport_main.become("test", lambda: None, None, [], launcher)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, os.WUNTRACED)[1]))
"""

# A Ctrl-C while the command is being imported, and another one while it is told.
INTERRUPTED = """
    import os, signal, sys
    from spcomm import cli
    class Stderr:
        def write(self, text):
            os.kill(os.getpid(), signal.SIGINT)
            return sys.__stderr__.write(text)
        def flush(self):
            pass
    def run(words):
        raise KeyboardInterrupt
    cli._COMMANDS["run"] = (run, "")
    sys.stderr = Stderr()
    sys.exit(cli.main(["run"]))
"""


def test_ctrl_c_before_a_node_is_the_executable(launch):
    """It ends as that would, and tells nothing of a Python that nobody has asked for."""
    result = launch.python(launch.script(EXECUTABLE))
    assert (result.out, result.err) == (f"{-signal.SIGINT}\n", ""), result


def test_ctrl_c_while_an_earlier_one_is_told(launch):
    result = launch.python(launch.script(INTERRUPTED))
    told = "spcomm: interrupted by Ctrl-C (exit code 130)\n"
    assert (result.code, result.err) == (130, told), result


def test_what_comes_before_a_carrier_has_a_group_of_its_own(launch):
    """It is the launcher's affair: a gateway that stopped would never go on, for nobody would know."""
    result = launch.python(launch.script(CARRIER))
    assert (result.out, result.err) == ("0\n", ""), result


def test_ctrl_z_while_the_fork_server_imports(launch):
    launch.script(ENDLESS, "endless.py")
    process = launch.start("-n", 2, "--preload", "endless", launch.script(WAITS))
    assert read_lines(process, 1) == ["importing"]
    server = processes.children(process.pid)[0]
    process.send_signal(signal.SIGTSTP)
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED) is not None
    processes.until(server, processes.STOPPED)
    process.send_signal(signal.SIGCONT)
    processes.until(server, processes.GOING_ON)
    process.send_signal(signal.SIGTERM)
    assert launch.finish(process).code == 143


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_for_all_processes_is_the_reason(launch, start, number):
    """As a batch system sends it: the launcher finds out about the end of the fork server first."""
    process = launch.start("-n", 2, *start, launch.script(WAITS))
    read_lines(process, 2)
    server = processes.children(process.pid)[0]
    process.send_signal(signal.SIGSTOP)
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED) is not None
    os.kill(server, signal.SIGKILL)
    processes.until(server, {"zombie"})
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    result = launch.finish(process)
    assert result.code == 128 + number, result
    how = "interrupted by Ctrl-C" if number == signal.SIGINT else "told to end by SIGTERM"
    assert result.last.startswith(f"spcomm: {how}"), result
