# SPDX-License-Identifier: MIT
from typing import Any, Self

from typing_extensions import disjoint_base

from spcomm._core.handle import Handle
from spcomm._core.names import Message

__pyx_capi__: dict[str, Any]

@disjoint_base
class CoordinatedMessages:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Message: ...

def call_handlers(handle: Handle) -> None: ...
