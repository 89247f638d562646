# SPDX-License-Identifier: MIT
from typing import Self

from typing_extensions import disjoint_base

from spcomm._core.waits import Wait

STARTING: int
LIVE: int
FINISHED: int
DIED: int
NODES_MAX: int
LIMITS: dict[str, tuple[int, int, int]]

def find_limits() -> dict[str, tuple[int, int, int]]: ...
def disable_mask(text: str | None) -> int: ...
def features(disable: int = 0) -> dict[str, bool]: ...
def cores() -> float: ...
def check_sizes(nodes: int, sizes: dict[str, int]) -> None: ...

@disjoint_base
class Segment:
    device: int
    inode: int
    size: int
    nodes: int
    def __new__(
        cls,
        nodes: int,
        *,
        slots: int = 0,
        ring: int = 0,
        arena: int = 0,
        queue_limit: int = 0,
        fanin: int = 0,
        scratch: int = 0,
        oversubscribed: bool | None = None,
        disable: int = 0,
    ) -> Self: ...
    @property
    def fd(self) -> int: ...
    def look(self) -> list[int]: ...
    def wait(self, rank: int) -> Wait | None: ...
    def state(self, rank: int) -> int: ...
    def mark_finished(self, rank: int, exit_code: int = 0) -> None: ...
    def mark_failing(self, rank: int, reason: int) -> None: ...
    def mark_died(self, rank: int, reason: int) -> None: ...
    def close(self) -> None: ...
