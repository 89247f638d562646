# SPDX-License-Identifier: MIT
MOVES_DATA: range
TYPES: dict[int, str]

def worded(signature: tuple[int, ...]) -> str: ...
