# SPDX-License-Identifier: MIT
from typing import Any

from typing_extensions import disjoint_base

__pyx_capi__: dict[str, Any]

@disjoint_base
class Fold: ...

@disjoint_base
class Collect:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
