# SPDX-License-Identifier: MIT
from typing import Any, Final, Self, SupportsFloat, SupportsIndex, SupportsInt, TypeVar, final

import numpy as np

_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])

NET_INT: Final[np.dtype[Any]]
NET_DOUBLE: Final[np.dtype[Any]]

@final
class NetInt(int, np.signedinteger[Any]):  # type: ignore[misc]
    def __new__(cls, number: SupportsInt | SupportsIndex | str = 0, /) -> Self: ...

@final
class NetDouble(float, np.inexact[Any]):  # type: ignore[misc]
    def __new__(cls, number: SupportsFloat | SupportsIndex | str = 0.0, /) -> Self: ...

def localize(a: _Array, /) -> _Array: ...
def foreign_count(a: np.ndarray[Any, Any], /) -> int: ...
