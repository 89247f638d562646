# SPDX-License-Identifier: MIT
from typing import Self

from typing_extensions import disjoint_base

from spcomm._core.handle import Handle

@disjoint_base
class Region:
    def __new__(cls, handle: Handle | None = None, name: str | None = None) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

def forget() -> None: ...
