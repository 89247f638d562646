# SPDX-License-Identifier: MIT
from collections.abc import Callable
from typing import Any, SupportsIndex, TypeVar

from spcomm._core.messages import Messages
from spcomm._core.names import Message

_Function = TypeVar("_Function", bound=Callable[[Message], Any])

def call_handlers(handle: Messages) -> None: ...
def forget(handle: Messages) -> None: ...

class Handlers(Messages):
    def handler(self, tag: SupportsIndex) -> Callable[[_Function], _Function]: ...
