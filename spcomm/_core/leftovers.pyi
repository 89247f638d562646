# SPDX-License-Identifier: MIT
_Messages = list[tuple[int, int, int, int]]
_Open = list[tuple[int, bool, int, str, int, str]]

def find(
    boxes: list[tuple[int, list[int]]],
) -> tuple[_Messages, int, _Open, dict[tuple[int, int, int], tuple[str, int]]]: ...
