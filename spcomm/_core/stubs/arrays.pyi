# SPDX-License-Identifier: MIT
from typing import Any, final

from spcomm._core.handle import Handle

__pyx_capi__: dict[str, Any]

@final
class Memory: ...

class Counter:
    def references(self, a: object, dest: object, tag: object = 0, timeout: object = None) -> int: ...

def bytes_given_out(handle: Handle) -> int: ...
