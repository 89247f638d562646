# SPDX-License-Identifier: MIT
# For the other compiled modules: nothing here is called from Python.
from typing import Any, final

__pyx_capi__: dict[str, Any]

@final
class Memory: ...
