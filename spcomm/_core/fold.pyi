# SPDX-License-Identifier: MIT
# For the other compiled modules: nothing here is called from Python.
from typing import Any

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

@disjoint_base
class Fold: ...
