# SPDX-License-Identifier: MIT
from typing import Any, final

__pyx_capi__: dict[str, Any]

@final
class Buffers:
    def __call__(self, buffer: Any) -> bool: ...
