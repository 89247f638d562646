# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Algorithms of reductions that Python combines: each round's contributions, receivers and combinations.

Each is a generator, one node's part. It yields a `Round`, receives the round's results by rank, and returns the final
one. So it needs no communicator; reductions.pyx makes a gathering of each round. Every algorithm combines along
the core's tree, v[i] = v[i] op v[i + 2^k] (csrc/reduce/spc_tree.h).

A node whose operator raises takes part in the next round all the same and contributes the error, since the others wait
for it. A round of "alltoall" delivers it to all nodes, and all leave there.

Compiled, because Python runs handlers of signals between the instructions of its own code: Ctrl-C would end a generator
that goes on with the results of a round, and a call that is repeated could not resume it.
"""

from libspc cimport *

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
    cdef spc_tree_node_t parent
    error = None
    for number in range(spc_tree_levels(size)):
        parent = spc_tree_above(rank, number + 1, size)
        right = parent.first + (1 << number)
        given = [None] * size
        if rank == right:
            given[parent.first], value = value, None
        elif rank == parent.first and number == 0:
            given[rank] = value  # its own copy, which the operator may change
        came = yield Round("alltoall", given, error)
        if rank == parent.first and number == 0:
            value = came[rank]
        if rank == parent.first and right < size:
            value, error = _tried(combine, value, came[right])
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

    The rounds are those of csrc/reduce/spc_tree.h. Before round k a node has the part `span(…, node, k)` of its group's
    values. It would not combine along the tree if the nodes beyond a power of two contributed their arrays first.
    """
    cdef spc_tree_turn_t turn
    length, mine, error, bits = len(array), array, None, spc_tree_log2(size)
    for number in range(spc_tree_levels(size)):
        turn = spc_tree_turn(rank, number, size)
        given = [None] * size
        if error is None:
            given, mine = _divided(rank, size, number, length, mine)
        came = yield Round("alltoall", given, error)
        if turn.role != SPC_TREE_WAITS:
            mine = came[rank] if number == 0 else mine
            both = (mine, came[turn.partner]) if turn.is_left else (came[turn.partner], mine)
            mine, error = _tried(combine, *both) if len(mine) else (mine, None)
    came = yield Round("allgather" if root is None else "gather", None if rank >> bits else mine, error)
    order = sorted(range(1 << bits), key=lambda node: span(length, node, bits))
    return _joined([came[node] for node in order]) if came else None


def _divided(rank: int, size: int, number: int, length: int, mine: Any) -> tuple[list[Any], Any]:
    """In a round: the parts that a node gives to each other, and the part that it keeps."""
    cdef spc_tree_turn_t turn
    given = [None] * size
    kept = mine
    first = span(length, rank, _exchanges(rank, size, number))[0]
    for node in range(size):
        turn = spc_tree_turn(node, number, size)
        begin, end = span(length, node, number + (turn.role == SPC_TREE_EXCHANGES))
        if turn.role != SPC_TREE_WAITS and turn.partner == rank:
            given[node] = mine[begin - first : end - first]
        elif turn.role == SPC_TREE_EXCHANGES and node == rank:
            kept = mine[begin - first : end - first]
            if number == 0:
                given[rank] = kept  # its own copy, which the operator may change
    return given, kept


def _exchanges(rank: int, size: int, number: int) -> int:
    """Count the exchanges of a node before a round: each has halved its part."""
    return sum(spc_tree_turn(rank, earlier, size).role == SPC_TREE_EXCHANGES for earlier in range(number))


def span(length: int, node: int, bits: int) -> tuple[int, int]:
    """Return the array part of a node in a group of 2^bits: each bit of its rank selects the lower or upper half."""
    first, last = 0, length
    for bit in range(bits):
        middle = (first + last + 1) // 2
        first, last = (middle, last) if node >> bit & 1 else (first, middle)
    return first, last


def _joined(parts: list[Any]) -> Any:
    """Drop empty ones, which have not been combined and might be of another type."""
    filled = [part for part in parts if len(part) != 0]
    return np.concatenate(filled or parts[:1])
