# SPDX-License-Identifier: MIT
from math import inf as inf
from typing import SupportsFloat

from spcomm._core.handle import Handle

UNIT_S: float

def units(cost: SupportsFloat) -> float: ...
def work(handle: Handle, cost: SupportsFloat) -> None: ...
