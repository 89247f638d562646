# SPDX-License-Identifier: MIT
"""Keeps the nodes of a cluster from one call to the next: new ones where some have ended, one call at a time."""

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spcomm._core.errors import SpcommError, bad_timeout, bad_timeout_type
from spcomm.launch.cmdline.values import TRACE_EVENTS
from spcomm.notebook.call_errors import closed_meanwhile, new_nodes, verdict
from spcomm.notebook.calls import Call
from spcomm.notebook.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLOSE_S = 10.0  # seconds for a call of another thread to end when the cluster is closed


class NodePool:
    """The nodes of one cluster. `nodes` is None when there are none: closed, or killed in a call that broke off."""

    def __init__(self, size: "int | None", boxes: int = 1, room: "str | None" = None) -> None:
        self._room = room
        self._wanted = size
        self.boxes = boxes
        self.closed = False
        self._busy = threading.Lock()
        self._holder = 0  # the thread that has it
        self._call: Call | None = None  # the one that is under way
        self.nodes: Nodes | None = self._make()

    def _make(self) -> Nodes:
        if self._room is None:
            nodes = Nodes(self._wanted, self.boxes)  # type: ignore[arg-type]
        else:
            from spcomm.notebook.room_nodes import RoomNodes

            nodes = RoomNodes(self._wanted, self._room)
        self.size, self.boxes = nodes.size, nodes.boxes
        return nodes

    def processes(self) -> "list[int]":
        """The process ids of the nodes, by rank; empty if one of them has ended."""
        nodes = self.nodes
        if nodes is None or not nodes.mine:
            return []
        if self._busy.acquire(blocking=False):  # else a call receives the events
            try:
                nodes.catch_up()
            finally:
                self._busy.release()
        return [nodes.run_processes.started[rank] for rank in range(self.size)] if nodes.alive else []

    def restart(self, size: "int | None", boxes: int = 1) -> None:
        """End the nodes at once, and start new ones."""
        with self._alone("restart()"):
            self._wanted, self.boxes = size, boxes
            if self.nodes is None:
                self.nodes = self._make()
            else:
                self._renew()

    def hang_up(self) -> None:
        """Tell the nodes to end, without waiting for them: `close` follows."""
        nodes = self.nodes
        if nodes is not None and nodes.mine and self._busy.acquire(blocking=False):
            try:
                self.closed = True
                nodes.hang_up()
            finally:
                self._busy.release()

    def close(self) -> None:
        """Let the nodes end. A call of another thread ends with them."""
        nodes = self.nodes
        if nodes is None or not nodes.mine:  # a fork's copy of the lock may be held for ever
            self.closed, self.nodes = True, None
            return
        if self._holder == threading.get_ident():
            raise SpcommError(
                "close(): a call of this Cluster is under way in this thread; close it after the call"
            )
        self.closed = True
        call = self._call
        if call is not None:
            call.close()
        if not self._busy.acquire(timeout=_CLOSE_S):
            nodes.abandon()
            return
        try:
            self._close()
        finally:
            self._busy.release()

    def _close(self) -> None:
        nodes, self.nodes = self.nodes, None
        if nodes is not None:
            nodes.close()

    def kill(self) -> None:
        """End them at once."""
        nodes, self.nodes = self.nodes, None
        if nodes is not None:
            nodes.kill()

    @contextmanager
    def _alone(self, call: str) -> "Iterator[None]":
        if self.closed:
            raise SpcommError(f"{call}: this Cluster is closed; make another one")
        if self.nodes is not None and not self.nodes.mine:
            raise SpcommError(f"{call}: the nodes belong to the process that this one was forked from")
        if not self._busy.acquire(blocking=False):
            raise SpcommError(f"{call}: another call is under way, in another thread or in this one")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder, self._call = 0, None
            self._busy.release()

    def call(
        self,
        begin: "Callable[[Call], None]",
        words: str,
        name: str,
        timeout: "float | None" = None,
        kind: "type[Call]" = Call,
        trace: "str | None" = None,
        is_recorded: bool = False,
    ) -> Call:
        """Make one call: ensure that there are nodes, run it, and raise its error, if any."""
        __tracebackhide__ = True
        _check_timeout(words, timeout)
        with self._alone(words):
            nodes = self._living()
            call = self._call = kind(nodes, name, timeout, TRACE_EVENTS if is_recorded else 0)
            if self.closed:
                raise closed_meanwhile(words)
            try:
                begin(call)
            except BaseException:  # the state of the nodes is unknown now
                self.nodes = None
                nodes.kill()
                raise
            if trace is not None:
                _write_trace(nodes, trace, name)
            error = self._conclude(call, words)
        if error is not None:
            raise error
        return call

    def _living(self) -> Nodes:
        """The nodes, new ones if some have ended since the last call."""
        if self.nodes is None:
            self.nodes = self._make()
            self.nodes.screen.say(f"spcomm: {new_nodes({})}\n")
        nodes = self.nodes
        nodes.catch_up()
        if not nodes.alive:
            ended = {node: nodes.how(node, status) for node, status in nodes.ended.items()}
            self._renew()
            nodes.screen.say(f"spcomm: {new_nodes(ended)}\n")
        return nodes

    def _renew(self) -> None:
        nodes: Nodes = self.nodes  # type: ignore[assignment]
        try:
            nodes.restart(self._wanted, self.boxes)
        except BaseException:
            self.nodes = None
            nodes.kill()
            raise
        self.size, self.boxes = nodes.size, nodes.boxes

    def _conclude(self, call: Call, words: str) -> "BaseException | None":
        """Print the warnings, get new nodes if they are needed, and return the exception of the call."""
        nodes: Nodes = self.nodes  # type: ignore[assignment]
        well = not (call.reason or call.has_failed or call.damaged)
        nodes.screen.say(call.unmatched() if well else nodes.last_words())
        nodes.drop()
        if call.damaged and not self.closed:
            if self._room is None:
                self._renew()
            else:  # the next call waits for members, and this one reports which of them has left
                self.nodes = None
                nodes.kill()
        return None if well else verdict(call, words)


def _write_trace(nodes: Nodes, path: str, name: str) -> None:
    from spcomm.trace import writing

    why = writing.write(path, nodes.group, name, sys.modules["spcomm"].__version__)
    if why is not None:
        nodes.screen.say(f"spcomm: {why}\n")


def _check_timeout(words: str, timeout: object) -> None:
    if timeout is None:
        return
    call = words.partition("(")[0]
    if isinstance(timeout, (str, bytes, bool)) or not hasattr(type(timeout), "__float__"):
        raise bad_timeout_type(call, timeout)
    try:
        is_right = float(timeout) >= 0  # type: ignore[arg-type]
    except OverflowError:  # a whole number that no float can be
        is_right = False
    if not is_right:
        raise bad_timeout(call, timeout)
