# SPDX-License-Identifier: MIT
"""Records take what dataclasses take."""

import dataclasses

import pytest

from spcomm.launch.base import record

VALUES = {
    "by-place": ((1, 2), {}),
    "by-name": ((1,), {"second": 2}),
    "default": ((1,), {}),
    "too-many": ((1, 2, 3), {}),
    "twice": ((1,), {"first": 2}),
    "too-many-and-twice": ((1, 2), {"second": 3}),
    "unknown": ((1,), {"third": 3}),
}


def made(library, values, named):
    @library.dataclass(frozen=True, eq=False)
    class Pair:
        first: int
        second: int = 0

    try:
        return vars(Pair(*values, **named))
    except TypeError:
        return TypeError


@pytest.mark.parametrize("case", VALUES)
def test_constructors(case):
    assert made(record, *VALUES[case]) == made(dataclasses, *VALUES[case])
