# SPDX-License-Identifier: MIT
"""Questions of the supervisor to boxes on other machines: the activity of their nodes, and the nodes' lines.

A box that does not answer in time counts as silent, and nothing waits for it again until it answers. If all boxes
are on this machine, no question is asked, and no further module is imported.
"""

import time

from spcomm.launch.remote import CLOCK, LINES, LOOK, NOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.local.node_contract import RemoteStarter
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.remote.box_proxy import RemoteBox

ANSWER_S = 2.0  # seconds for a box to answer
_LINES_S = 5.0  # the same, if it asks its nodes, which have less
_CLOCK_S = 1.0  # between two looks at their clocks,
_EARLY_CLOCKS, _EARLY_CLOCK_S = 8, 0.05  # the first of them,
# Each pause is longer by this factor: the time after the last look is short compared with the run.
_SLOWER = 1.4


class Inquiry:
    """All boxes on other machines, for the supervisor's questions."""

    def __init__(self, run_processes: "RunProcesses") -> None:
        self._fork_clients: list[RemoteStarter] = [
            fork_client  # type: ignore[misc]
            for fork_client in run_processes
            if fork_client.host is not None
        ]
        self._hear = run_processes.hear

    def box(self, index: int) -> "RemoteBox | None":
        """Return the box of this node; None: this machine."""
        return next((one.far for one in self._fork_clients if index in one.indices), None)

    def silence(self, index: int) -> str:
        """Return why the activity of this node is unknown; empty: it is known."""
        far = self.box(index)
        return far.silence if far is not None else ""

    def keep_clocks(self, loop: "Loop", asked: int = 0) -> None:
        """Start comparing their clocks with ours."""
        if not self._fork_clients:
            return
        for fork_client in self._able():
            fork_client.ask(CLOCK)
        seconds = min(_CLOCK_S, _EARLY_CLOCK_S * _SLOWER ** max(0, min(asked, 99) - _EARLY_CLOCKS))
        loop.at("clocks", seconds, lambda: self.keep_clocks(loop, asked + bool(self._able())))

    def ask(self, told: "Callable[[], None]") -> None:
        """Ask for the activity of the nodes. `told` is called with each answer."""
        for fork_client in self._able():
            fork_client.far.told = told
            if fork_client.far.answered == fork_client.far.asked:
                fork_client.ask(LOOK)

    @property
    def is_waiting(self) -> bool:
        """Whether answers are outstanding."""
        return any(one.far.answered < one.far.asked and not one.far.silence for one in self._able())

    def give_up(self) -> None:
        """Stop waiting."""
        for fork_client in self._able():
            if fork_client.far.answered < fork_client.far.asked:
                fork_client.far.give_up()

    def look(self) -> None:
        """Ask for the activity of the nodes, and wait for the answers."""
        for fork_client in self._able():
            fork_client.ask(NOW)
        self._wait(self._able(), ANSWER_S)
        self.give_up()

    def lines(self, indices: "list[int]", meanwhile: "Callable[[], dict[int, str]]") -> "dict[int, str]":
        """Return the lines of these nodes, as far as they answer in time; and the result of `meanwhile`."""
        asked = []
        for fork_client in self._able():
            there = [index for index in indices if index in fork_client.indices]
            if there and not fork_client.far.silence:
                asked.append(fork_client)
                fork_client.far.lines = {}
                fork_client.ask(LINES, there)
        found = dict(meanwhile())
        self._wait(asked, _LINES_S)
        for fork_client in asked:
            found.update(fork_client.far.lines)
        return found

    def _able(self) -> "list[RemoteStarter]":
        return [
            fork_client for fork_client in self._fork_clients if fork_client.ready and not fork_client.gone
        ]

    def _wait(self, fork_clients: "list[RemoteStarter]", seconds: float) -> None:
        end = time.monotonic() + seconds
        for one in fork_clients:
            while one.far.answered < one.far.asked and not one.gone and one.has_news(end - time.monotonic()):
                self._hear(one)
