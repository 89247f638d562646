# SPDX-License-Identifier: MIT
"""Questions to boxes on other machines, for who looks after the nodes: what they do, and at which lines they are.

Who does not answer in time is called silent, and is not waited for again before it has answered. Where all boxes are
on this machine nothing is asked, and nothing more is imported.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.local.fork_client import Starter
    from spcomm.launch.local.run_processes import Crew
    from spcomm.launch.remote.box_proxy import FarSegment
    from spcomm.launch.remote.hosts import FarStarter

ANSWER_S = 2.0  # seconds for a box to answer
_LINES_S = 5.0  # the same, if it asks its nodes, which have less
_CLOCK_S = 1.0  # between two looks at their clocks,
_EARLY_CLOCKS, _EARLY_CLOCK_S = 8, 0.05  # the first of them,
_SLOWER = (
    1.4  # and then each pause so much longer: what lies after the last look is short, compared with the run
)


class Inquiry:
    """All boxes on other machines, as who looks after the nodes asks them."""

    def __init__(self, crew: "Crew", hear: "Callable[[Starter], None]") -> None:
        """`hear` deals with a message that has come."""
        self._starters: list[FarStarter] = [starter for starter in crew if starter.plan.host is not None]
        self._hear = hear

    def box(self, index: int) -> "FarSegment | None":
        """Where this node is; None: here."""
        return next((one.far for one in self._starters if index in one.plan.indices), None)

    def silence(self, index: int) -> str:
        """Why nobody knows what this node does; empty: it is known."""
        far = self.box(index)
        return far.silence if far is not None else ""

    def keep_clocks(self, loop: "Loop", asked: int = 0) -> None:
        """From now on, compare their clocks with ours."""
        if not self._starters:
            return
        for starter in self._able():
            starter.ask_clock()
        seconds = min(_CLOCK_S, _EARLY_CLOCK_S * _SLOWER ** max(0, min(asked, 99) - _EARLY_CLOCKS))
        loop.at("clocks", seconds, lambda: self.keep_clocks(loop, asked + bool(self._able())))

    def ask(self, told: "Callable[[], None]") -> None:
        """What do they do? `told` is called with each answer."""
        for starter in self._able():
            starter.far.told = told
            if starter.far.answered == starter.far.asked:
                starter.ask_look()

    @property
    def is_waiting(self) -> bool:
        """Are there answers to wait for?"""
        return any(one.far.answered < one.far.asked and not one.far.silence for one in self._able())

    def give_up(self) -> None:
        """Wait no longer."""
        for starter in self._able():
            if starter.far.answered < starter.far.asked:
                starter.far.give_up()

    def look(self) -> None:
        """What do they do? Waits for the answers."""
        for starter in self._able():
            starter.ask_look(now=True)
        self._wait(self._able(), ANSWER_S)
        self.give_up()

    def lines(self, indices: "list[int]", meanwhile: "Callable[[], dict[int, str]]") -> "dict[int, str]":
        """At which lines these nodes are, as far as they answer in time; and what `meanwhile` finds."""
        asked = []
        for starter in self._able():
            ranks = [index - starter.first for index in indices if index in starter.plan.indices]
            if ranks and not starter.far.silence:
                asked.append(starter)
                starter.far.lines = {}
                starter.ask_lines(ranks)
        found = dict(meanwhile())
        self._wait(asked, _LINES_S)
        for starter in asked:
            found.update({starter.first + rank: line for rank, line in starter.far.lines.items()})
        return found

    def _able(self) -> "list[FarStarter]":
        return [starter for starter in self._starters if starter.ready and not starter.gone]

    def _wait(self, starters: "list[FarStarter]", seconds: float) -> None:
        end = time.monotonic() + seconds
        for one in starters:
            while one.far.answered < one.far.asked and not one.gone and one.has_news(end - time.monotonic()):
                self._hear(one)
