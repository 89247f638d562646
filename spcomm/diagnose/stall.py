# SPDX-License-Identifier: MIT
"""SP102 and SP103: warnings that a run stands still, though it might go on."""

from spcomm._core import diagnose as core
from spcomm._core.diagnose import AT_END, HANDLER, THREADS, TIMED, TIMER, UNCOUNTED, Wait
from spcomm.text import aligned, ranks_text

STALL = "SP102"
SPINNING = "SP103"
COMPUTES = "computes"  # the activity of a node on a core
COPIES = ("sends ", "receives ")  # a large message
WORKS = "works, in comm.work()"

_DOUBTS = {
    TIMED: "has a time limit",
    THREADS: "has other threads, which may send or receive",
    TIMER: "has set a timer",
    HANDLER: "handles signals",
    UNCOUNTED: "runs where the number of its threads is unknown (there is no /proc)",
}


def report(
    waits: "dict[int, Wait]",
    others: "dict[int, tuple[str, str]]",
    seconds: float,
    group: str = "",
    boxes: int = 1,
) -> str:
    """Warn that some nodes wait for long.

    Parameters
    ----------
    waits : dict
        Rank -> the wait.
    others : dict
        The nodes that do not wait: rank -> activity and place.
    seconds : float
        The duration of the longest wait.
    group : str
        `" of group 2"` if there are several groups.
    boxes : int
        The number of boxes of the nodes: a box that does not answer proves nothing.
    """
    who = ranks_text(list(waits))
    verb = "has" if len(waits) == 1 else "have"
    lines = [
        f"spcomm: warning: {who}{group} {verb} been waiting for {seconds:.0f} s     (spcomm explain {STALL})\n"
    ]
    rows = _wait_rows(waits) + _rows(others)
    lines.append(aligned(rows, left=None))
    lines.append(f"  {_why(waits, others, boxes)}\n")
    return "".join(lines)


def spinning(
    waits: "dict[int, Wait]", spinners: "dict[int, tuple[str, str]]", seconds: float, group: str = ""
) -> str:
    """Warn that nodes keep polling for messages that do not come, and none is on its way."""
    who = ranks_text(list(spinners))
    verb = "keeps" if len(spinners) == 1 else "keep"
    lines = [
        f"spcomm: warning: {who}{group} {verb} polling, and nothing has been sent for {seconds:.0f} s     "
        f"(spcomm explain {SPINNING})\n"
    ]
    rows = _rows({rank: ("polls", place) for rank, (_state, place) in spinners.items()})
    lines.append(aligned(rows + _wait_rows(waits), left=None))
    lines.append("  Try: find the node that should send, and check whether it waits for these first.\n")
    return "".join(lines)


def _wait_rows(waits: "dict[int, Wait]") -> "list[tuple[str, ...]]":
    return [(ranks_text(ranks), call, place) for ranks, call, place in core.rows(waits)]


def _rows(others: "dict[int, tuple[str, str]]") -> "list[tuple[str, ...]]":
    """Return rows; nodes that do the same at the same line share one."""
    groups: dict[tuple[str, str], list[int]] = {}
    for rank, what in sorted(others.items()):
        groups.setdefault(what, []).append(rank)
    return [(ranks_text(ranks), *what) for what, ranks in groups.items()]


def _why(waits: "dict[int, Wait]", others: "dict[int, tuple[str, str]]", boxes: int) -> str:
    stopped = [rank for rank, (state, _place) in others.items() if "stopped" in state]
    if stopped:
        return f"Try: let {ranks_text(stopped)} go on (kill -CONT, or fg in its terminal)."
    unknown = {state for state, _place in others.values() if state.startswith("box ")}
    if any(state.endswith("answer") for state in unknown):
        return "Try: check that machine, and the network between it and this one."
    if unknown:
        return "Try: read the output of the run: those nodes may wait for a reader."
    if others:
        who = "that node" if len(others) == 1 else "those nodes"
        if any(state.startswith(COPIES) for state, _place in others.values()):
            return "A large message is on its way; the others wait for it."
        if any(state == COMPUTES for state, _place in others.values()):  # or for ever: that is unknown
            advice = f"check that the loop there ends; give {who} less to do at a time"
        else:
            advice = f"give {who} less to do at a time, or share the work more evenly"
        return f"Try: {advice}. To be warned later: --stall TIME."
    ended = [rank for rank, wait in waits.items() if wait.doubts & AT_END]
    if ended:
        return (
            f"The main program of {ranks_text(ended)} has ended, and threads of it still wait: the run ends when they "
            "do.\n  Try: send what they wait for, or start them with threading.Thread(…, daemon=True), so that they "
            "end with the program."
        )
    doubts = sorted({bit for wait in waits.values() for bit in _DOUBTS if wait.doubts & bit})
    if doubts:
        why = " and ".join(_DOUBTS[bit] for bit in doubts)
        return f"All nodes wait. It may be a deadlock; it is not proven, because one of them {why}."
    if boxes > 1:
        return (
            "All nodes wait. Something is still on its way between the boxes, or one of them does not answer."
        )
    return "All nodes wait, and something is still on its way."
