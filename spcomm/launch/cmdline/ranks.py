# SPDX-License-Identifier: MIT
"""RANKS, as in `--show 0,2-5`: the nodes that an option is about.

Read in two steps: the text is checked with the command line; the existence of the nodes, when their number is known.
"""

from spcomm.launch.base.usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.cmdline.groups import Group

_SYNTAX = "ranks are numbers and ranges separated by commas, as in 0,2-5, or all, or none"


class Ranks:
    """`0,2-5`, `all` or `none`; with several groups `1:0-3,2:all`."""

    def __init__(self, option: str, text: str, items: "list[tuple[int | None, int, int | None]]") -> None:
        self.option = option
        self.text = text
        self._items = items  # group (None: the only one), first, last (None: as many as there are)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranks) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def indices(self, groups: "list[Group]") -> "frozenset[int]":
        """Return the selected nodes of this run. Raises `UsageError` for one that it does not have."""
        found: set[int] = set()
        for number, first, last in self._items:
            for group in self._groups(number, last, groups):
                if (last or 0) >= group.size or first >= group.size:
                    raise self._no_node(last or first, group, len(groups) > 1)
                end = group.size - 1 if last is None else last
                found.update(range(group.first + first, group.first + end + 1))
        return frozenset(found)

    def _groups(self, number: "int | None", last: "int | None", groups: "list[Group]") -> "list[Group]":
        if number is None and (last is None or len(groups) == 1):
            return groups
        if number is None:
            example = f"{self.option} {groups[0].number}:{self.text}"
            raise UsageError(
                f"spcomm run: {self.option} {self.text}: of which group? This run has several; write {example}"
            )
        chosen = [group for group in groups if group.number == number]
        if not chosen:
            numbers = ", ".join(str(group.number) for group in groups)
            raise UsageError(
                f"spcomm run: {self.option} {self.text}: there is no group {number}; this run has {numbers}"
            )
        return chosen

    def _no_node(self, rank: int, group: "Group", several: bool) -> UsageError:
        where = f"group {group.number}" if several else "this run"
        has = "node 0 only" if group.size == 1 else f"nodes 0 to {group.size - 1}"
        return UsageError(
            f"spcomm run: {self.option} {self.text}: there is no node {rank}; {where} has {has} (-n {group.size})"
        )


def ranks(name: str, text: str) -> Ranks:
    """Read RANKS. `1:` before a number or range names a group."""
    if text == "none":
        return Ranks(name, text, [])
    return Ranks(name, text, [_item(name, text, item.strip()) for item in text.split(",")])


def _item(name: str, text: str, item: str) -> "tuple[int | None, int, int | None]":
    before, colon, rest = item.rpartition(":")
    group = _number(name, text, before) if colon else None
    if rest == "all":
        return group, 0, None
    low, dash, high = rest.partition("-")
    first = _number(name, text, low)
    last = _number(name, text, high) if dash else first
    if last < first:
        raise UsageError(
            f"spcomm run: {name} {text}: {rest} goes from the larger to the smaller; write {last}-{first}"
        )
    return group, first, last


def _number(name: str, text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10:
        raise UsageError(f"spcomm run: {name} {text}: {digits!r} is not a rank; {_SYNTAX}")
    return int(digits)


class Debug:
    """The nodes and the tool of `--debug`."""

    def __init__(self, tool: "str | None", chosen: Ranks) -> None:
        self.tool = tool  # pdb, debugpy or gdb; None: the one for this kind of program
        self.ranks = chosen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Debug) and (self.tool, self.ranks) == (other.tool, other.ranks)

    __hash__ = None  # type: ignore[assignment]


TOOLS = ("pdb", "debugpy", "gdb")


def debug(name: str, text: str) -> Debug:
    """Read `RANKS`, `TOOL` or `TOOL:RANKS`; without RANKS node 0."""
    word, colon, rest = text.partition(":")
    if word in TOOLS:
        return Debug(word, ranks(name, rest if colon else "0"))
    if word.isalpha() and word not in ("all", "none"):
        raise UsageError(
            f"spcomm run: {name}={text}: there is no debugger {word}; it is {', '.join(TOOLS[:-1])} or {TOOLS[-1]}, "
            f"as in {name}=pdb:2"
        )
    return Debug(None, ranks(name, text))
