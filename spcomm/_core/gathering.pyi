# SPDX-License-Identifier: MIT
from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeVar

from typing_extensions import disjoint_base

from spcomm._core.coordinated import Coordinated

__pyx_capi__: dict[str, Any]

_T = TypeVar("_T")

@disjoint_base
class Gathering:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Gatherings(Coordinated):
    def bcast(self, obj: _T, root: SupportsIndex = 0, copy: bool = True) -> _T: ...
    def gather(self, obj: _T, root: SupportsIndex = 0) -> list[_T] | None: ...
    def allgather(self, obj: _T, copy: bool = True) -> list[_T]: ...
    def scatter(self, objs: Iterable[Any] | None, root: SupportsIndex = 0) -> Any: ...
    def alltoall(self, objs: Iterable[Any]) -> list[Any]: ...
