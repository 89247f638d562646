# SPDX-License-Identifier: MIT
# For the other compiled modules; the names are for the words of mismatches.
from typing import Any

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

OPERATIONS: dict[int, str]
ROOTED: tuple[int, ...]
MOVES_DATA: tuple[int, ...]
OPERATORS: dict[int, str]
KINDS: dict[int, str]
TYPES: dict[int, str]

@disjoint_base
class Item:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

@disjoint_base
class Reduction:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def run(self) -> Any: ...
