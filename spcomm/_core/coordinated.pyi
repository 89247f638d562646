# SPDX-License-Identifier: MIT
from collections.abc import Iterable
from typing import Any, Self, SupportsFloat, SupportsIndex

from typing_extensions import disjoint_base

from spcomm._core.handlers import Handlers
from spcomm._core.names import Message

@disjoint_base
class CoordinatedMessages:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Message: ...

class Coordinated(Handlers):
    def coordinated_send(
        self,
        obj: Any,
        dest: SupportsIndex | Iterable[SupportsIndex],
        timeout: SupportsFloat | None = None,
    ) -> None: ...
    def coordinated_recv(self, timeout: SupportsFloat | None = None, copy: bool = True) -> Message | None: ...
    def coordinated_messages(
        self, timeout: SupportsFloat | None = None, copy: bool = True
    ) -> CoordinatedMessages: ...
