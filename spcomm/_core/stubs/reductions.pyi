# SPDX-License-Identifier: MIT
from typing import Any

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

TYPES: dict[int, str]

def is_more_than_numbers(value: object) -> bool:
    """Whether the class of a number or an array may add something to it: a unit, a mask."""

def is_simtimes(dtype: Any) -> bool: ...
def combined_times(op: int, left: Any, right: Any) -> Any: ...

@disjoint_base
class Item:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

@disjoint_base
class Reduction:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def run(self) -> Any: ...
