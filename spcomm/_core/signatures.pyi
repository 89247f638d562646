# SPDX-License-Identifier: MIT
OPERATIONS: dict[int, str]
ROOTED: tuple[int, ...]
MOVES_DATA: tuple[int, ...]
REDUCTIONS: dict[int, str]
WITH_ROOT: int
OPERATORS: dict[int, str]
KINDS: dict[int, str]
TYPES: dict[int, str]
ARRAY_TYPES: dict[int, str]
