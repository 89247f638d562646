# SPDX-License-Identifier: MIT
"""The keyboard of `spcomm learn`: signals at the moments at which the terminal changes hands."""

import os
import signal
import termios

import pytest

from spcomm.learn import keys
from spcomm.learn.keys import Keys


@pytest.fixture
def terminal_and_keyboard():
    """Both ends of a pseudo terminal: that of a program, and that of whoever types."""
    ours, theirs = os.openpty()
    yield theirs, ours
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def terminal(terminal_and_keyboard):
    """The end of a pseudo terminal that a program has."""
    return terminal_and_keyboard[0]


@pytest.fixture
def handlers():
    """After the test they are what they were before."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def is_echoing(terminal):
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def signalled_at(monkeypatch, call, number, before):
    """A signal comes just before or just after the terminal is changed for the so-manieth time."""
    calls, change = [], termios.tcsetattr

    def changed(*arguments):
        calls.append(arguments)
        comes = len(calls) == call
        if comes and before:
            signal.raise_signal(number)
        change(*arguments)
        if comes and not before:
            signal.raise_signal(number)

    monkeypatch.setattr(keys.termios, "tcsetattr", changed)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("call", [1, 2], ids=["begin", "end"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda one: one.name)
def test_a_signal_while_the_terminal_changes_hands(monkeypatch, terminal, handlers, number, call, before):
    signalled_at(monkeypatch, call, number, before)
    with pytest.raises((SystemExit, KeyboardInterrupt)) as error, Keys(terminal):
        assert call == 2 and not is_echoing(terminal)
    assert is_echoing(terminal)
    assert number == signal.SIGINT or error.value.code == 128 + number
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_ctrl_z_while_the_terminal_is_given_back(monkeypatch, terminal, handlers):
    """It goes on where it was: at the end."""
    signalled_at(monkeypatch, 2, signal.SIGTSTP, False)
    stops = []
    monkeypatch.setattr(keys.os, "kill", lambda _process, number: stops.append(number))
    with Keys(terminal):
        assert not is_echoing(terminal)
    assert is_echoing(terminal) and stops == [signal.SIGSTOP]


def test_keys_of_several_bytes(terminal_and_keyboard, handlers):
    terminal, keyboard = terminal_and_keyboard
    with Keys(terminal) as found:
        for data, key in (
            (b"\x1b[A", "up"),
            (b"\x1bOB", "down"),
            (b"\x1b[5~", "page up"),
            (b"\x1b[6~", "page down"),
            (b"\x1b[1;5C", "\x1b"),  # Ctrl and an arrow
            (b"\x1bx", "\x1b"),
            (b"h", "h"),
        ):
            os.write(keyboard, data + b"q")
            assert (found.wait(-1, 10), found.wait(-1, 10)) == (key, "q"), data


def test_ctrl_c_is_a_key_until_nobody_answers(terminal, handlers):
    with Keys(terminal) as found:
        for _time in range(5):
            signal.raise_signal(signal.SIGINT)
            assert found.wait(-1, 10) == keys.INTERRUPT
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
