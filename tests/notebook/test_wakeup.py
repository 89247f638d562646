# SPDX-License-Identifier: MIT
"""A Ctrl-C is heard until the moment from which on it raises again."""

import signal
import threading

import pytest

from spcomm.launch.base.loop import Loop
from spcomm.notebook.wakeup import Wakeup


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.close()


def test_what_comes_when_nobody_waits_any_more_is_heard(loop):
    heard = []
    before = signal.getsignal(signal.SIGINT)
    with Wakeup(loop, lambda: heard.append("Ctrl-C"), lambda: heard.append("ring")):
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == ["Ctrl-C"] and signal.getsignal(signal.SIGINT) == before


def test_a_ring_counts_whenever_it_comes(loop):
    heard = []
    wakeup = Wakeup(loop, lambda: heard.append("Ctrl-C"), lambda: heard.append("ring"))
    wakeup.ring()
    with wakeup:
        loop.turn()
        thread = threading.Thread(target=wakeup.ring)
        thread.start()
        thread.join()
    wakeup.ring()
    assert heard == ["ring", "ring"]


def test_after_an_error_nothing_calls_back(loop):
    heard = []
    with (
        pytest.raises(ValueError),
        Wakeup(loop, lambda: heard.append("Ctrl-C"), lambda: heard.append("ring")),
    ):
        signal.raise_signal(signal.SIGINT)
        raise ValueError
    assert heard == []
