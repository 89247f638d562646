# SPDX-License-Identifier: MIT
"""Interruptions of a call whose loop waits: a Ctrl-C, and a `close` from another thread."""

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from spcomm.launch.base.loop import Loop


class Wakeup:
    """Within it a Ctrl-C of the main thread, and `ring` from any thread, call back from the loop.

    A Ctrl-C would otherwise raise at any place. The handler writes into a pipe of the loop's: a wait goes on after a
    handler that does not raise.
    """

    def __init__(self, loop: "Loop", on_ctrl_c: "Callable[[], None]", on_ring: "Callable[[], None]") -> None:
        self._loop = loop
        self._on_ctrl_c = on_ctrl_c
        self._on_ring = on_ring
        self._lock = threading.Lock()  # of `ring` and of the end; the handler of a signal needs none
        self._rung = False
        self._ends: tuple[int, ...] = ()
        self._catches = False

    def __enter__(self) -> None:
        ends = read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._loop.add(read, self.listen)
        with self._lock:
            self._ends = ends
        if self._rung:  # before there was a pipe
            self._write(b"r")
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before not in (signal.SIG_IGN, None):
                self._catches = True
                signal.signal(signal.SIGINT, self._noted)

    def __exit__(self, kind: "type[BaseException] | None", *_error: object) -> None:
        if self._catches:
            signal.signal(signal.SIGINT, self._before)
        if kind is None:
            self.listen()  # it may have come when the wait was over; later ones raise again
        with self._lock:
            ends, self._ends = self._ends, ()
        self._loop.remove(ends[0])
        for fd in ends:
            os.close(fd)

    def ring(self) -> None:
        """From any thread, at any time; once the call is over it does nothing."""
        with self._lock:
            self._rung = True
            if self._ends:
                self._write(b"r")

    def _noted(self, _number: int, _frame: "FrameType | None") -> None:
        self._write(b"c")

    def _write(self, word: bytes) -> None:
        try:
            os.write(self._ends[1], word)
        except BlockingIOError:
            pass

    def listen(self) -> None:
        """Call back now, if there is reason to."""
        try:
            words = os.read(self._ends[0], 64)
        except BlockingIOError:
            return
        if b"r" in words:
            self._on_ring()
        else:
            self._on_ctrl_c()
