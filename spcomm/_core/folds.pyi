# SPDX-License-Identifier: MIT
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeVar

from spcomm._core.gatherings import Gatherings
from spcomm._core.operators import Op

_T = TypeVar("_T")

class Folds(Gatherings):
    def reduce(
        self, x: _T, op: Op = ..., root: SupportsIndex = 0, algorithm: str | None = None
    ) -> _T | None: ...
    def allreduce(self, x: _T, op: Op = ..., algorithm: str | None = None) -> _T: ...
    def scan(self, x: _T, op: Op = ...) -> _T: ...
    def exscan(self, x: _T, op: Op = ...) -> _T | None: ...
    def reduce_scatter(
        self, x: Iterable[Any], op: Op = ..., counts: Sequence[SupportsIndex] | None = None
    ) -> Any: ...
