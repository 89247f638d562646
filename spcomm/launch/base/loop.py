# SPDX-License-Identifier: MIT
"""A small event loop: descriptors with callbacks, and named deadlines.

With epoll, descriptors are served in the order in which they became ready, which is as near to the order of the nodes'
output as several pipes allow.
"""

import select
import time
from collections.abc import Callable

from spcomm.launch.base.wire import FORBIDDEN


def _epoll() -> "select.epoll | None":
    """Return None if the system has no epoll or a sandbox refuses it; poll is used instead."""
    try:
        return select.epoll() if hasattr(select, "epoll") else None
    except OSError as error:
        if error.errno not in FORBIDDEN:
            raise
        return None


class Loop:
    """Calls back when descriptors are ready and when deadlines pass; one thread."""

    def __init__(self) -> None:
        self._epoll = _epoll()
        self._poll = self._epoll or select.poll()
        self._in = select.EPOLLIN if self._epoll else select.POLLIN
        self._out = select.EPOLLOUT if self._epoll else select.POLLOUT
        self._calls: dict[int, Callable[[], None]] = {}
        self._files: set[int] = set()  # those that are always ready
        self._deadlines: dict[str, tuple[float, Callable[[], None]]] = {}

    def add(self, fd: int, call: "Callable[[], None]", write: bool = False) -> None:
        """Call back when `fd` can be read, or written, without blocking."""
        if fd not in self._calls:
            try:
                self._poll.register(fd, self._out if write else self._in)
            except PermissionError:  # epoll rejects regular files, which never block
                self._files.add(fd)
        self._calls[fd] = call

    def remove(self, fd: int) -> None:
        """Forget a descriptor; call it before the descriptor is closed."""
        if self._calls.pop(fd, None) is None:
            return
        if fd in self._files:
            self._files.remove(fd)
        else:
            self._poll.unregister(fd)

    def at(self, name: str, seconds: float, call: "Callable[[], None]") -> None:
        """Call back once after that many seconds, unless this name is set again or forgotten before."""
        self._deadlines[name] = time.monotonic() + seconds, call

    def waits(self, name: str) -> bool:
        return name in self._deadlines

    def forget(self, name: str) -> None:
        self._deadlines.pop(name, None)

    def close(self) -> None:
        """Close the descriptor of the loop itself."""
        if self._epoll is not None:
            self._epoll.close()

    def turn(self) -> None:
        """Wait for an event, and call back."""
        timeout = -1.0
        if self._deadlines:
            timeout = max(0.0, min(end for end, _call in self._deadlines.values()) - time.monotonic())
        if self._files:
            timeout = 0.0
        if self._epoll is None and timeout >= 0:
            timeout *= 1000
        for fd in [*(fd for fd, _events in self._poll.poll(timeout)), *self._files]:
            call = self._calls.get(fd)
            if call is not None:
                call()
        now = time.monotonic()
        for name, (end, call) in list(self._deadlines.items()):
            if end <= now and name in self._deadlines:
                del self._deadlines[name]
                call()
