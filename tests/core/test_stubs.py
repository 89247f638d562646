# SPDX-License-Identifier: MIT
"""Stubs that scripts/stubs.py makes of .pyx files."""

import inspect
import sys
from pathlib import Path

import pytest

import spcomm
from spcomm._core.comm import Comm

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
pytest.importorskip("Cython")
from stubs import stub

SOURCE = r'''
from libc.stdint cimport uint32_t
from spcomm._core.handle cimport Handle, fail

import os, sys

if False:  # for the stub alone
    from collections.abc import Iterable, Sequence

    _Row = list[int]

READ, WRITE = SPC_READ, SPC_WRITE
SPEED: float = SPC_SPEED
cdef int HIDDEN = 3
lower = 4

cdef class Open(Handle):
    """A \\ backslash."""
    cdef readonly uint32_t size
    cdef object hidden

    def __cinit__(self, str name, Handle other=None, *, strict: bool = False, **more: Any):
        pass

    def __init__(self):
        pass

    def __repr__(self):
        return ""

    def __richcmp__(self, other: Open, int op) -> bool:
        return False

    @property
    def row(self) -> _Row:
        """It spans
        two lines."""

    @classmethod
    def make(cls, first: int, /, second=len, double third=-0.5, *rest: object) -> Sequence[os.PathLike[str]]:
        pass

@cython.final
cdef class Empty:
    pass

class _Private:
    pass

class Plain(Empty):
    __hash__: ClassVar[None] = None

cpdef bint is_good(object value) except -1:
    return True

cdef int hidden(int number):
    return 0
'''
STUB = r'''# SPDX-License-Identifier: MIT
# Generated from module.pyx by scripts/stubs.py.
from typing import Any, Self, final
from typing_extensions import disjoint_base
from spcomm._core.handle import Handle
import os
from collections.abc import Sequence

_Row = list[int]
READ: int
WRITE: int
SPEED: float
@disjoint_base
class Open(Handle):
    """A \\ backslash."""
    size: int
    def __new__(cls, name: str, other: Handle | None = None, *, strict: bool = False, **more: Any) -> Self:
        ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Open, /) -> bool: ...
    def __le__(self, other: Open, /) -> bool: ...
    def __gt__(self, other: Open, /) -> bool: ...
    def __ge__(self, other: Open, /) -> bool: ...
    @property
    def row(self) -> _Row:
        """It spans
        two lines."""
    @classmethod
    def make(cls, first: int, /, second = ..., third: float = -0.5, *rest: object) -> Sequence[os.PathLike[str]]:
        ...
@final
class Empty:
    ...
class Plain(Empty):
    __hash__: ClassVar[None]  # type: ignore[assignment]
def is_good(value: object) -> bool:
    ...
'''


def test_a_stub_has_the_signatures_of_its_module():
    assert stub("module", SOURCE) == STUB


@pytest.mark.parametrize("owner", [Comm, spcomm.Destination, spcomm.FuzzyBarrier, spcomm.SimTime])
def test_help_shows_names_and_defaults_alone(owner):
    """Annotations would stand in quotes there."""
    methods = [found for name, found in inspect.getmembers(owner, callable) if not name.startswith("_")]
    assert methods and not [method for method in methods if getattr(method, "__annotations__", {})]
