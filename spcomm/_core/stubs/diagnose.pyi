# SPDX-License-Identifier: MIT
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

TIMED: int
THREADS: int
TIMER: int
HANDLER: int
UNKNOWN: int
UNCOUNTED: int
AT_END: int

TYPES: dict[int, str]
_Messages = list[tuple[int, int, int, int]]
_Open = list[tuple[int, bool, int, str, int, str]]

class Wait(NamedTuple):
    entry: bytes
    needs: tuple[int, ...]
    since_ns: int
    doubts: int

def packed(waits: Mapping[int, Wait]) -> list[Any]: ...
def unpacked(rows: Iterable[Any]) -> dict[int, Wait]: ...
def report(waits: Mapping[int, Wait], size: int, group: str = "", in_vain: bool = False) -> str: ...
def rows(waits: Mapping[int, Wait]) -> list[tuple[list[int], str, str]]: ...
def worded(signature: tuple[int, ...]) -> str: ...
def unmatched(
    boxes: list[tuple[int, list[int]]],
) -> tuple[_Messages, int, _Open, dict[tuple[int, int, int], tuple[str, int]]]: ...

__pyx_capi__: dict[str, Any]
