# SPDX-License-Identifier: MIT
from types import TracebackType
from typing import Any, SupportsFloat

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

@disjoint_base
class FuzzyBarrier:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def done(self) -> bool: ...
    def wait(self, timeout: SupportsFloat | None = None) -> None: ...
    def __enter__(self) -> FuzzyBarrier: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool: ...

@disjoint_base
class Gathering:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
