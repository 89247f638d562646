# SPDX-License-Identifier: MIT
"""The words for what goes wrong in cycles of coordinated messages."""

import os

from spcomm._core.errors import CycleError, NodeLostError, SpcommError, WaitTimeoutError, how_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm._core.endings import Note

# The call that began something, and where it is: words, file, line; file and line may be unknown.
Place = tuple[str, str, int]

_UNTIL = "until coordinated_recv() returns None or the loop over coordinated_messages() comes to its end"


def _since(place: Place | None) -> str:
    if place is None or not place[1]:
        return "" if place is None else f", since {place[0]}"
    return f", since {place[0]} at {os.path.basename(place[1])}:{place[2]}"


def not_allowed(call: str, rank: int, begun: Place | None, receiving: Place | None) -> CycleError:
    """`begun`: the first send of the cycle; `receiving`: its first receive."""
    if call.startswith("coordinated_send("):
        return CycleError(
            f"{call}: node {rank} receives the coordinated messages of this cycle{_since(receiving)}; after its first "
            f"coordinated_recv() nothing can be sent in it. Nothing was sent, and the cycle goes on: receive "
            f"{_UNTIL}, then send in the next one."
        )
    return CycleError(
        f"{call}: node {rank} is within a cycle of coordinated messages{_since(begun or receiving)}; until its end no "
        f"call may synchronise the nodes. Nothing was done or lost, and the cycle goes on: receive {_UNTIL} "
        f"(leaving the loop early leaves the cycle open), then call this."
    )


def lost(call: str, culprit: int, state: int, reason: int, note: "Note | None" = None) -> NodeLostError:
    how = how_ended(state, reason, note)
    error = NodeLostError(
        f"{call}: node {culprit} {how}; it has not received in this cycle, or has announced messages that cannot "
        "come any more. This cycle cannot end (spcomm explain SP104)."
    )
    error.rank = culprit
    return error


def timed_out(call: str, rank: int) -> WaitTimeoutError:
    if call.startswith("coordinated_send("):
        advice = "its receivers take too little; nothing was sent"
        return WaitTimeoutError(
            f"{call}: the queue of node {rank} was at its limit all the time, because {advice}"
        )
    return WaitTimeoutError(
        f"{call}: in that time no message came to node {rank}, and not all nodes called coordinated_recv() or one of "
        "their messages is still on its way; the cycle stays open, call it again"
    )


def busy(call: str, rank: int) -> SpcommError:
    return SpcommError(
        f"{call}: another thread of node {rank} is inside coordinated_recv() or a collective operation; receives and "
        "collective calls of one node must come one after another (other threads may send)"
    )
