# SPDX-License-Identifier: MIT
"""SP106 and SP107: unmatched messages, barriers and requests of a run that went well."""

import os
from typing import TYPE_CHECKING

from spcomm import config
from spcomm._core import diagnose
from spcomm.text import aligned, counted, ranks_text

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGES = "SP106"
OPEN = "SP107"
_ROWS = 16

# Source, destination, tag, whether the destination has a handler for them, number; a row joins several of these.
_Left = tuple[int, int, int, bool, int]
_Row = tuple[tuple[int, ...], tuple[int, ...], int, bool, str, int]  # the place comes before the number


def report(
    boxes: "list[tuple[int, list[int]]]",
    group: str = "",
    strict: bool = False,
    far: "Sequence[list]" = (),
    option: str = "--strict",
) -> "tuple[str, dict[str, list[int]]]":
    """Return the warnings of a run (or of a group), with their last line breaks, and by code the nodes they are about.

    Parameters
    ----------
    boxes : list
        For each box, the descriptor of its segment and the ranks of its nodes; all have ended.
    group : str
        `" of group 2"` if there are several groups.
    strict : bool
        Nodes have recorded lines, or cannot record them, so the warning need not explain how to get lines.
    far : sequence of list
        For each box on another machine, the list that it has `packed`.
    option : str
        What makes nodes record lines, and the warnings errors.
    """
    advice = "" if strict else f" With {option} the lines are shown."
    messages, more, still_open, sent = diagnose.unmatched(boxes)
    for found_there in far:
        messages += map(tuple, found_there[0])
        more += found_there[1]
        still_open += map(tuple, found_there[2])
        sent.update({tuple(row[:3]): tuple(row[3:]) for row in found_there[3]})
    messages.sort()
    still_open.sort()
    text, found = "", {}
    if messages:
        text += _messages(messages, more, sent, group, advice)
        found[MESSAGES] = sorted({row[1] for row in messages})
    if still_open:
        text += _open([row for row in still_open if row[1] != "request"], group, advice)
        found[OPEN] = sorted({row[0] for row in still_open})
    return text, found


def of_box(descriptor: int, ranks: "list[int]") -> "tuple[str, bool]":
    """Return the warnings about these nodes of a run without a launcher, and whether they are errors."""
    option = f"{config.STRICT_VARIABLE}=1"
    text, found = report([(descriptor, ranks)], strict=config.strict(), option=option)
    if not (found and config.strict()):
        return text, False
    nodes = {code: ranks_text(ranks) for code, ranks in found.items()}
    return f"{text}spcomm: {refusal(nodes, option)}\n", True


def refusal(found: "dict[str, str]", option: str = "--strict") -> str:
    """Return the sentence of warnings that are errors, given the nodes of each code."""
    nodes = ", ".join(f"{code} of {found[code]}" for code in sorted(found))
    return f"warnings are errors ({option}): {nodes} (exit code 1)"


def packed(boxes: "list[tuple[int, list[int]]]") -> list:
    """Pack what the nodes of these boxes have left, as lists, numbers and texts: for a `report` on another machine."""
    messages, more, still_open, sent = diagnose.unmatched(boxes)
    return [messages, more, still_open, [[*key, *place] for key, place in sent.items()]]


def _messages(
    messages: "list[_Left]",
    more: int,
    sent: "dict[tuple[int, int, int], tuple[str, int]]",
    group: str,
    lines_advice: str,
) -> str:
    total = sum(row[-1] for row in messages) + more
    what = "1 message was" if total == 1 else f"{total} messages were"
    lines = [f"spcomm: warning: {what} never received{group}\n"]
    together = _together(messages, sent)
    rows = [_worded(row) for row in together]
    if not more and all(row[4] for row in together):
        lines_advice = ""
    lines.append(aligned(rows[:_ROWS], left=None))
    if len(rows) > _ROWS or more:
        lines.append("  …\n")
    advice = []
    if more or not all(row[3] for row in messages):
        advice.append("receive them, or do not send them.")
    if any(row[3] for row in messages):
        advice.append("let the handler run: in comm.poll(), in a receive, or in any call that waits.")
    lines.append(f"  Try: {' '.join(advice)}{lines_advice}     (spcomm explain {MESSAGES})\n")
    return "".join(lines)


def _place(place: "tuple[str, int] | None") -> str:
    return f"{os.path.basename(place[0])}:{place[1]}" if place is not None and place[1] else ""


def _together(messages: "list[_Left]", sent: "dict[tuple[int, int, int], tuple[str, int]]") -> "list[_Row]":
    """Join messages in rows: first the messages from one node to several, then those from several to one."""
    by_source: dict[tuple[int, int, bool, str, int], list[int]] = {}
    for source, destination, tag, is_handled, count in messages:
        place = _place(sent.get((source, destination, tag)))
        by_source.setdefault((source, tag, is_handled, place, count), []).append(destination)
    by_target: dict[tuple[tuple[int, ...], int, bool, str, int], list[int]] = {}
    for (source, tag, is_handled, place, count), destinations in by_source.items():
        by_target.setdefault((tuple(destinations), tag, is_handled, place, count), []).append(source)
    return [
        (tuple(sources), destinations, tag, is_handled, place, count * len(sources) * len(destinations))
        for (destinations, tag, is_handled, place, count), sources in by_target.items()
    ]


def _worded(row: _Row) -> "tuple[str, ...]":
    sources, destinations, tag, is_handled, place, count = row
    cells: tuple[str, ...] = (
        counted(count, "message"),
        f"from {ranks_text(list(sources))}",
        f"to {ranks_text(list(destinations))}",
        f"tag {tag}",
    )
    if place:
        cells += (f"sent at {place}",)
    return (*cells, "for a handler that did not run") if is_handled else cells


def _open(still_open: "list[tuple[int, str, int, str, int, str]]", group: str, lines_advice: str) -> str:
    """Return the table of barriers and cycles. The MPI library has named its requests itself, at the node's end."""
    if not still_open:
        return ""
    groups: dict[tuple[str, int, str], list[int]] = {}
    for rank, kind, count, file, line, function in still_open:
        place = _place((file, line))
        place += f" in {function}" if place and function[:1] not in ("", "<") else ""
        groups.setdefault((kind, count, place), []).append(rank)
    rows = []
    for (kind, count, place), ranks in groups.items():
        barriers = "a fuzzy barrier" if count == 1 else f"{count} fuzzy barriers"
        what = "a cycle of coordinated messages" if kind == "cycle" else barriers
        verb = "begun" if kind == "cycle" else "entered"
        rows.append((ranks_text(ranks), what, f"{verb} at {place}" if place else ""))
    unknown = any(not row[2] for row in rows)
    return "".join(
        (
            f"spcomm: warning: the program has ended, and something is still open{group}\n",
            aligned(rows[:_ROWS], left=None),
            "  …\n" if len(rows) > _ROWS else "",
            f"  Try: {_advice({row[1] for row in rows})}" + (lines_advice if unknown else ""),
            f"     (spcomm explain {OPEN})\n",
        )
    )


def _advice(found: "set[str]") -> str:
    texts = []
    if any("barrier" in what for what in found):
        texts.append("wait for the fuzzy barrier, by wait() or done().")
    if any("cycle" in what for what in found):
        texts.append(f"{'Receive' if texts else 'receive'} until coordinated_recv() returns None.")
    return " ".join(texts)
