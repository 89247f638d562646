# SPDX-License-Identifier: MIT
"""Signals to a program that has forked its nodes: those that tell it to end, and those of a batch system."""

import os
import signal

import pytest

from pairwise import each
from processes import read_lines

# One node ends at once; the others have heard of its end and of nothing else when they have saved.
SAVES = """
class Told(Exception):
    pass
def tell(*_):
    raise Told
signal.signal(signal.{name}, tell)
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.01)  # a signal just before a sleep does not end it
except Told:
    if comm.rank != {first}:
        try:
            comm.recv({first})
        except spcomm.SpcommError:
            time.sleep(0.5)  # for what is not to come
    print("saved", flush=True)
    {end}
"""

ENDINGS = {
    "code": "sys.exit(128 + signal.{name})",
    "other code": "sys.exit(1)",
    "raise": "raise",
    "_exit": "os._exit(7)",
    "killed": "signal.signal(signal.{name}, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})",
}


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.spread("name")
def test_every_node_saves(forked, name, ending, first):
    """However a node ends after a signal to the whole group, it has answered, and the others have their time."""
    text = SAVES.format(name=name, first=first, end=ENDINGS[ending].format(name=name))
    process = forked.begin(3, text, start_new_session=True)
    assert read_lines(process, 3) == ["ready"] * 3
    number = getattr(signal, name)
    os.killpg(process.pid, number)
    result = forked.finish(process)
    assert result.lines == ["saved"] * 3, result
    how = "interrupted by Ctrl-C" if number == signal.SIGINT else f"told to end by {name}"
    assert result.last == f"spcomm: {how} (exit code {128 + number}); the nodes were stopped", result
    by_itself = {"_exit": 7, "killed": -number}  # of node 0 the shell learns that, and nothing of the run
    assert result.code == by_itself.get(ending, 128 + number), result


@pytest.mark.parametrize("ending", each(2, ("code", "other code", "raise")))
def test_every_node_saves_if_node_0_alone_is_told(forked, ending):
    """As `kill` does it: the others are told by the supervisor, once."""
    text = SAVES.format(name="SIGTERM", first=0, end=ENDINGS[ending].format(name="SIGTERM"))
    process = forked.begin(3, text)
    assert read_lines(process, 3) == ["ready"] * 3
    process.send_signal(signal.SIGTERM)
    result = forked.finish(process)
    assert result.lines == ["saved"] * 3, result
    assert result.code == (143 if ending == "code" else 1), result


INTERRUPTED = """
try:
    print("ready", flush=True)
    comm.recv(0) if comm.rank and {waits} else time.sleep(1000)
except KeyboardInterrupt:
    print("saved", flush=True)
    {end}
"""


@pytest.mark.parametrize(
    "code, end, waits",
    [(-signal.SIGINT, "raise", True), (-signal.SIGINT, "raise", False), (130, "sys.exit(130)", False)],
)
def test_ctrl_c_of_node_0_alone_interrupts_all(forked, code, end, waits):
    """As `kill -INT` and a debugger send it: one process gets it. Nodes that wait for node 0 are interrupted, too."""
    process = forked.begin(3, INTERRUPTED.format(end=end, waits=waits))
    assert read_lines(process, 3) == ["ready"] * 3
    process.send_signal(signal.SIGINT)
    result = forked.finish(process)
    assert (result.code, result.lines) == (code, ["saved"] * 3), result
    assert result.last == "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped", result
    assert "Traceback" not in result.err, result


def test_an_interrupted_node_interrupts_all(forked):
    text = """
    try:
        comm.barrier()
        if comm.rank == 1:
            raise KeyboardInterrupt
        time.sleep(1000)
    except KeyboardInterrupt:
        if comm.rank == 1:
            raise
        print("saved", flush=True)
    """
    result = forked.nodes(3, text)
    assert (result.code, result.lines) == (130, ["saved"] * 2), result
    how = "ended with an uncaught KeyboardInterrupt (exit code 130)"
    assert result.last == f"spcomm: node 1 {how}; the other nodes were interrupted, too", result


@pytest.mark.parametrize("number", [signal.SIGHUP, pytest.param(signal.SIGQUIT, marks=pytest.mark.slow)])
def test_other_signals_of_node_0_alone_reach_all(forked, number):
    text = f"""
    def save(*_):
        os.write(1, b"saved\\n")
        sys.exit({128 + number})
    signal.signal({int(number)}, save)
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
    """
    process = forked.begin(3, text)
    assert read_lines(process, 3) == ["ready"] * 3
    process.send_signal(number)
    result = forked.finish(process)
    assert (result.code, result.lines) == (128 + number, ["saved"] * 3), result


def test_sigterm_of_the_group_is_not_repeated(forked):
    """All nodes save for longer than it takes to see that none has ended."""
    text = """
    def save(*_):
        os.write(1, b"asked\\n")  # print may be what was interrupted
        time.sleep(1)  # for what is not to come
        os._exit(143)
    signal.signal(signal.SIGTERM, save)
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
    """
    process = forked.begin(2, text, start_new_session=True)
    assert read_lines(process, 2) == ["ready"] * 2
    os.killpg(process.pid, signal.SIGTERM)
    result = forked.finish(process)
    assert (result.code, result.lines) == (143, ["asked"] * 2), result


STATES = {
    "ignored": lambda number: signal.signal(number, signal.SIG_IGN),
    "blocked": lambda number: signal.pthread_sigmask(signal.SIG_BLOCK, {number}),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGCHLD])
@pytest.mark.slow
def test_signals_that_the_parent_kept_from_the_program(forked, state, number):
    """Node 0 computes, and ends with the code of the failure: it obeys the supervisor's SIGTERM in any case."""
    result = forked.nodes(
        3,
        "if comm.rank == 1: sys.exit(3)\nwhile True: time.sleep(1000)\n",
        preexec_fn=lambda: STATES[state](number),
    )
    assert result.code == 3, result
    assert result.last == "spcomm: node 1 ended with exit code 3; the other nodes were stopped"


def test_a_program_whose_parent_ignores_sigterm_goes_on(forked):
    """As under plain Python: only the supervisor's SIGTERM ends it."""
    text = """
    os.kill(os.getpid(), signal.SIGTERM)
    comm.barrier()
    print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)
    """
    result = forked.nodes(2, text, preexec_fn=lambda: STATES["ignored"](signal.SIGTERM))
    assert (result.code, result.err, result.lines) == (0, "", ["True"] * 2), result


USER_SIGNALS = ("SIGUSR1", "SIGUSR2")


@pytest.mark.parametrize("name", USER_SIGNALS)
def test_a_warning_for_all_processes_reaches_each_node_once(forked, name):
    """The supervisor does not die of it, and hands nothing on: all nodes have it."""
    text = f"""
    heard = []
    signal.signal(signal.{name}, lambda number, _frame: heard.append(number))
    print("ready", flush=True)
    while not heard:
        time.sleep(0.01)
    comm.barrier()
    print(len(heard))
    """
    process = forked.begin(3, text, start_new_session=True)
    assert read_lines(process, 3) == ["ready"] * 3
    os.killpg(process.pid, getattr(signal, name))
    result = forked.finish(process)
    assert (result.code, result.err, result.lines) == (0, "", ["1"] * 3), result


def test_a_warning_without_a_handler_ends_the_run(forked):
    process = forked.begin(
        3, 'print("ready", flush=True)\nwhile True: time.sleep(1000)', start_new_session=True
    )
    assert read_lines(process, 3) == ["ready"] * 3
    os.killpg(process.pid, signal.SIGUSR1)
    result = forked.finish(process)
    assert result.code == -signal.SIGUSR1, result
    assert "was killed by SIGUSR1 (exit code 138)" in result.last or "node 0 died" in result.last, result
