# SPDX-License-Identifier: MIT
from typing import Any, Literal, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from spcomm._core.handle import Handle
from spcomm._core.messages import Messages

class Counter:
    def references(self, a: object, dest: object, tag: object = 0, timeout: object = None) -> int: ...

class Blocks(Messages):
    def empty(
        self,
        shape: SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex],
        dtype: DTypeLike = ...,
        order: Literal["C", "F"] = "C",
    ) -> np.ndarray[Any, Any]: ...
    def move(
        self,
        a: np.ndarray[Any, Any],
        dest: SupportsIndex,
        tag: SupportsIndex = 0,
        timeout: SupportsFloat | None = None,
    ) -> None: ...

def bytes_given_out(handle: Handle) -> int: ...
