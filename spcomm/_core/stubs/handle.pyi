# SPDX-License-Identifier: MIT
from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

@disjoint_base
class Part: ...

@disjoint_base
class Handle:
    def __new__(
        cls, descriptor: int | Part = ..., rank: int | None = ..., *more: Any, **named: Any
    ) -> Self: ...

_Place = tuple[str, int, str]

def watch_itself(handle: Handle, advice: Callable[[], str]) -> None: ...
def end(handle: Handle, words: str, file: str, line: int, function: str, code: int) -> None: ...
def raised(handle: Handle, change: int) -> None: ...
def leave_open(handle: Handle, fuzzy: _Place | None, cycle: _Place | None) -> None: ...
def tell_sent(handle: Handle) -> None: ...
