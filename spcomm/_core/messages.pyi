# SPDX-License-Identifier: MIT
from collections.abc import Iterable
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from spcomm._core.collectives import Collectives
from spcomm._core.names import Message

class Messages(Collectives):
    def send(
        self,
        obj: Any,
        dest: SupportsIndex | Iterable[SupportsIndex],
        tag: SupportsIndex = 0,
        timeout: SupportsFloat | None = None,
    ) -> None: ...
    def ssend(
        self,
        obj: Any,
        dest: SupportsIndex,
        tag: SupportsIndex = 0,
        timeout: SupportsFloat | None = None,
    ) -> None: ...
    def recv(
        self,
        source: SupportsIndex = ...,
        tag: SupportsIndex = ...,
        out: np.ndarray[Any, Any] | None = None,
        timeout: SupportsFloat | None = None,
        copy: bool = True,
    ) -> Any: ...
    def recv_message(
        self,
        source: SupportsIndex = ...,
        tag: SupportsIndex = ...,
        timeout: SupportsFloat | None = None,
        copy: bool = True,
    ) -> Message: ...
    def try_recv_message(
        self, source: SupportsIndex = ..., tag: SupportsIndex = ..., copy: bool = True
    ) -> Message | None: ...
    def take_message(self, tag: SupportsIndex = ...) -> Message | None: ...
    def poll(self) -> int: ...
    def probe(
        self, source: SupportsIndex = ..., tag: SupportsIndex = ..., timeout: SupportsFloat | None = None
    ) -> Message: ...
    def sendrecv(
        self,
        obj: Any,
        dest: SupportsIndex | Iterable[SupportsIndex],
        source: SupportsIndex = ...,
        tag: SupportsIndex = 0,
        recv_tag: SupportsIndex | None = None,
        out: np.ndarray[Any, Any] | None = None,
        timeout: SupportsFloat | None = None,
    ) -> Any: ...
