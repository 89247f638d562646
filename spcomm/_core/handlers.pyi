# SPDX-License-Identifier: MIT
from collections.abc import Callable
from typing import Any, SupportsIndex, TypeVar

from spcomm._core.blocks import Blocks
from spcomm._core.names import Message

_Function = TypeVar("_Function", bound=Callable[[Message], Any])

def call_handlers(handle: Blocks) -> None: ...
def forget(handle: Blocks) -> None: ...

class Handlers(Blocks):
    def handler(self, tag: SupportsIndex) -> Callable[[_Function], _Function]: ...
