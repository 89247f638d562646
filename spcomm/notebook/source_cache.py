# SPDX-License-Identifier: MIT
"""The source lines that only the caller has: of notebook cells, and of text typed at a prompt.

A node shows them in tracebacks. It can read files itself. If a cell has a file name that users do not know
(/tmp/ipykernel_123/456.py), reports get the cell's own name, In[3], when they come back.
"""

import functools
import linecache
import os
import types
from typing import TYPE_CHECKING

from spcomm import config

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 1000  # functions that are looked at


def of(function: object) -> "dict[str, list[str]]":
    """Return file name → lines, for the function and the names of its own module that it uses, if no file has them."""
    names = {code.co_filename for code in _codes(function)}
    found = {name: linecache.cache.get(name) for name in names}
    return {name: entry[2] for name, entry in found.items() if entry and len(entry) == 4 and entry[1] is None}


def _codes(function: object) -> "Iterator[types.CodeType]":
    left, seen = [function], set[int]()
    while left and len(seen) < _MOST:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, functools.partial):
            left.append(value.func)
        elif isinstance(value, types.MethodType):
            left.append(value.__func__)
        elif isinstance(value, type):
            left += vars(value).values()
        elif isinstance(value, types.FunctionType):
            yield value.__code__
            left += _used(value)


def _used(function: types.FunctionType) -> "Iterator[object]":
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if getattr(value, "__module__", None) == function.__module__:
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # not set yet


def named(text: str, files: "Iterable[str]") -> str:
    """The text of a report, with the names of cells instead of those of their files."""
    for file in files:
        cell = config.cell(file)
        if cell:
            text = text.replace(f'File "{file}"', f'File "{cell}"').replace(
                f"{os.path.basename(file)}:", f"{cell}:"
            )
    return text
