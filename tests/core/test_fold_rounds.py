# SPDX-License-Identifier: MIT
"""The rounds of reductions in Python, of all nodes at once and without any: who combines what, and who is left out."""

from itertools import pairwise

import numpy as np
import pytest

import spcomm
from spcomm._core.fold_rounds import along_tree, binary_swap, slices, span, tree
from spcomm._core.operators import combined_elements

ALGORITHMS = [tree, slices, binary_swap]


def joined(left, right):
    """The combination of arrays of texts: it shows who was combined with whom, in which order."""
    return np.array([f"({one}{other})" for one, other in zip(left, right, strict=True)], object)


def play(algorithm, size, root, values, combine):
    """All nodes go through their rounds together. Returns their results, and how many elements each has combined."""
    counts = [0] * size

    def counting(rank):
        def combined(left, right):
            counts[rank] += len(left)
            return combine(left, right)

        return combined

    nodes = [algorithm(rank, size, root, values[rank], counting(rank)) for rank in range(size)]
    rounds, results = [next(node) for node in nodes], {}
    while not results:
        assert len({each.pattern for each in rounds}) == 1, f"the nodes are in different rounds: {rounds}"
        arrived = [came(rounds, rank, root) for rank in range(size)]
        for rank, node in enumerate(nodes):
            try:
                rounds[rank] = node.send(arrived[rank])
            except StopIteration as end:
                results[rank] = end.value
    assert len(results) == size, "some nodes end a round earlier"
    return results, counts


def came(rounds, rank, root):
    """The values that a node gets in the round."""
    pattern = rounds[rank].pattern
    if pattern == "alltoall":
        return [each.given[rank] for each in rounds]
    if pattern == "bcast":
        return [rounds[0].given]
    return [each.given for each in rounds] if pattern == "allgather" or rank == root else None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size", [*range(2, 14), 16, 17, 33])
def test_all_combine_along_the_tree(algorithm, size):
    """Also where there are fewer elements than nodes."""
    for length in (1, 3, 7, 40):
        values = [np.full(length, f"{rank},", object) for rank in range(size)]
        whole = along_tree(list(values), joined)
        for root in (None, 0, size // 2, size - 1):
            results, _ = play(algorithm, size, root, values, joined)
            for rank, result in results.items():
                assert (result == whole).all() if root in (None, rank) else result is None


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_what_each_node_has_to_do(size):
    """Elements that it combines: binary swap and slices give all nodes as much, the tree most to node 0."""
    length = 16 * size
    values = [np.full(length, rank) for rank in range(size)]
    share = length - length // size
    assert play(binary_swap, size, None, values, np.add)[1] == [share] * size
    assert play(slices, size, 0, values, np.add)[1] == [share] * size
    assert play(tree, size, None, values, np.add)[1] == [
        length * sum(rank % (2 << bit) == 0 for bit in range(size.bit_length() - 1)) for rank in range(size)
    ]


@pytest.mark.parametrize("size", [3, 5, 6, 7, 12])
def test_binary_swap_of_other_sizes(size):
    """In all so much as there is to do, and nobody more than in the next smaller power of two and one array more."""
    values = [np.full(960, rank) for rank in range(size)]
    _, counts = play(binary_swap, size, None, values, np.add)
    assert sum(counts) == 960 * (size - 1)
    assert max(counts) < 960 + 960 // 2


@pytest.mark.parametrize("bits", range(5))
def test_spans_cover_an_array(bits):
    for length in (0, 1, 5, 16, 1000):
        parts = sorted(span(length, node, bits) for node in range(1 << bits))
        assert parts[0][0] == 0 and parts[-1][1] == length
        assert all(one[1] == other[0] for one, other in pairwise(parts))


def test_nobody_sees_the_memory_of_another():
    """An operator may change what it is given: so a node gives itself, as a round makes that a copy."""
    for algorithm in ALGORITHMS:
        node = algorithm(0, 2, None, np.arange(8.0), np.add)
        own = next(node).given[0]
        assert own is not None and np.array_equal(own, np.arange(8.0)[: len(own)])


def test_an_error_is_given_in_the_next_round():
    def failing(left, right):
        raise KeyboardInterrupt

    for algorithm in ALGORITHMS:
        node = algorithm(0, 4, None, np.arange(8.0), failing)
        first = next(node)
        assert first.error is None
        second = node.send([np.arange(2.0 if algorithm is slices else 4.0)] * 4)
        assert type(second.error) is KeyboardInterrupt
    node = tree(0, 2, 0, 1, failing)  # no round follows
    next(node)
    with pytest.raises(KeyboardInterrupt):
        node.send([1, 2])


def test_an_operator_that_raises_is_told_what_it_was_given():
    over = spcomm.op(lambda front, back: front + back[:, 3:], elementwise=True)
    with pytest.raises(IndexError, match="too many indices") as caught:
        combined_elements(over, np.ones(80), np.ones(80))
    (note,) = caught.value.__notes__
    assert "two arrays of shape (80,)" in note and "element_axes=0" in note
