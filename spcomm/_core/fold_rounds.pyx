# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Algorithms of reductions that Python combines: each round's contributions, receivers and combinations.

Each is a generator, one node's part. It yields a `Round`, receives the round's results by rank, and returns the final
one. So it needs no communicator; reductions.pyx makes a gathering of each round. Every algorithm combines along
the core's tree, v[i] = v[i] op v[i + 2^k].

A node whose operator raises takes part in the next round all the same and contributes the error, since the others wait
for it. A round of "alltoall" delivers it to all nodes, and all leave there.

Compiled, because Python runs handlers of signals between the instructions of its own code: Ctrl-C would end a generator
that goes on with the results of a round, and a call that is repeated could not resume it.
"""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np


cdef class Round:
    """The steps of one node in a round."""

    cdef readonly str pattern  # "alltoall": `given` has an item for each node; "allgather", "gather", "bcast": is one
    cdef readonly object given
    cdef readonly object error  # why the node contributes nothing

    def __cinit__(self, pattern: str, given: Any, error: BaseException | None = None) -> None:
        self.pattern, self.given, self.error = pattern, given, error


def along_tree(values: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine all values; the list is used up."""
    step = 1
    while step < len(values):
        for i in range(0, len(values) - step, 2 * step):
            values[i] = combine(values[i], values[i + step])
        step *= 2
    return values[0]


def _tried(function: Callable[..., Any], *values: Any) -> tuple[Any, BaseException | None]:
    """Return the function's result for the values, or its error; also Ctrl-C, because the others wait."""
    try:
        return function(*values), None
    except BaseException as error:
        return None, error


def tree(
    rank: int, size: int, root: int | None, value: Any, combine: Callable[[Any, Any], Any]
) -> Generator[Round, list[Any], Any]:
    """In round k node i, a multiple of 2^(k+1), combines its value with that of i + 2^k. At the end node 0 has all.

    `root`: the node that needs the result; None: all do.
    """
    error = None
    step = 1
    while step < size:
        given = [None] * size
        combines = rank % (2 * step) == 0
        if rank % (2 * step) == step:
            given[rank - step], value = value, None
        elif combines and step == 1:
            given[rank] = value  # its own copy, which the operator may change
        came = yield Round("alltoall", given, error)
        if combines and step == 1:
            value = came[rank]
        if combines and rank + step < size:
            value, error = _tried(combine, value, came[rank + step])
        step *= 2
    if root is None:
        return (yield Round("bcast", value, error))[0]
    if root != 0:
        given = [None] * size
        given[root] = value
        return (yield Round("alltoall", given, error))[0]
    if error is not None:
        raise error
    return value


def slices(
    rank: int, size: int, root: int | None, array: Any, combine: Callable[[Any, Any], Any]
) -> Generator[Round, list[Any], Any]:
    """Each node combines its slice of all arrays; then the slices are joined."""
    came = yield Round("alltoall", np.array_split(array, size))
    mine, error = _tried(along_tree, came, combine) if len(came[0]) else (came[0], None)
    came = yield Round("allgather" if root is None else "gather", mine, error)
    return _joined(came) if came else None


def binary_swap(
    rank: int, size: int, root: int | None, array: Any, combine: Callable[[Any, Any], Any]
) -> Generator[Round, list[Any], Any]:
    """Two nodes that have the same part swap halves of it, and each combines one. ACLMPL's "Global Operations".

    Before round k the nodes form groups of 2^k, each of which has combined its nodes' contributions, and node j of a
    group has the part `span(…, j, k)` of that. If the last group is incomplete, the nodes of the group before it keep
    their parts whole, and get its parts; its nodes are idle from then on. So it combines along the tree, which it would
    not if the nodes beyond a power of two contributed their arrays first.
    """
    length, mine, error = len(array), array, None
    step, bits = 1, 0
    while step < size:
        given, source = None, None
        if error is None:
            given, mine, source = _swapped(rank, size, bits, length, mine)
        came = yield Round("alltoall", given, error)
        if source is not None:
            mine = came[rank] if step == 1 else mine
            both = (mine, came[source]) if rank < source else (came[source], mine)
            mine, error = _tried(combine, *both) if len(mine) else (mine, None)
        step, bits = 2 * step, bits + 1
    active = _power(size)
    came = yield Round("allgather" if root is None else "gather", mine if rank < active else None, error)
    order = sorted(range(active), key=lambda node: span(length, node, active.bit_length() - 1))
    return _joined([came[node] for node in order]) if came else None


def _swapped(rank: int, size: int, bits: int, length: int, mine: Any) -> tuple[list[Any], Any, int | None]:
    """In round `bits`: the part a node gives, the part it keeps, and whose part it combines with that, or None."""
    step = 1 << bits
    given = [None] * size
    base = rank // (2 * step) * (2 * step)
    upper = base + step  # the first node of the upper group
    count = min(step, size - upper)  # its nodes
    if count == step:
        middle = (len(mine) + 1) // 2
        kept, other = (mine[:middle], mine[middle:]) if rank < upper else (mine[middle:], mine[:middle])
        given[rank ^ step] = other
        if step == 1:
            given[rank] = kept  # its own copy, which the operator may change
        return given, kept, rank ^ step
    if count <= 0 or rank - upper >= _power(count):
        return given, mine, None
    if rank < upper:
        return given, mine, upper + (rank - base) % _power(count)
    first = span(length, rank - upper, count.bit_length() - 1)[0]
    for node in range(rank - step, upper, _power(count)):
        begin, end = span(length, node - base, bits)
        given[node] = mine[begin - first : end - first]
    return given, mine, None


def span(length: int, node: int, bits: int) -> tuple[int, int]:
    """Return the array part of a node in a group of 2^bits: each bit of its rank selects the lower or upper half."""
    first, last = 0, length
    for bit in range(bits):
        middle = (first + last + 1) // 2
        first, last = (middle, last) if node >> bit & 1 else (first, middle)
    return first, last


def _power(count: int) -> int:
    """Return the largest power of two that is not larger."""
    return 1 << count.bit_length() - 1


def _joined(parts: list[Any]) -> Any:
    """Drop empty ones, which have not been combined and might be of another type."""
    filled = [part for part in parts if len(part) != 0]
    return np.concatenate(filled or parts[:1])
