# SPDX-License-Identifier: MIT
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
