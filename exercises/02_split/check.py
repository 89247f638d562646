# SPDX-License-Identifier: MIT
"""Exercise 2: the blocks are a partition of the list, in order, and as equal as can be."""

from spcomm.learn.case import Case, Wrong, counted, same, short

NODES_AND_ITEMS = [(1, 10), (2, 10), (3, 10), (4, 12), (4, 11), (7, 20), (4, 3), (7, 2), (3, 0)]


def cases(rng):
    for nodes, count in NODES_AND_ITEMS:
        items = rng.sample(range(100, 1000), count)  # no two are equal
        yield Case(nodes, {"items": items}, name=f"{count} items on {counted(nodes, 'node')}")


def judge(case, outcome):
    items = case.arguments["items"]
    for rank, block in enumerate(outcome.values):
        if not isinstance(block, list):
            raise Wrong(f"node {rank} returned {short(block)}; expected a list, the items of this node")
    where = f"({case.name})"
    exactly_once(items, outcome.values, where)
    if [item for block in outcome.values for item in block] != items:
        raise Wrong(
            f"each item is on one node, but the parts are no blocks, or not in the order of the ranks {where}: "
            f"node 0 has {outcome.values[0]}; put one after the other, the parts must be the list {items}"
        )
    sizes = [len(block) for block in outcome.values]
    if max(sizes) - min(sizes) > 1:
        raise Wrong(
            f"the blocks have {', '.join(map(str, sizes))} items {where}: node {sizes.index(max(sizes))} has "
            f"{max(sizes)} and node {sizes.index(min(sizes))} has {min(sizes)}; they may differ by one at most, "
            "so give the rest to several nodes, one item each"
        )


def exactly_once(items, blocks, where):
    for index, item in enumerate(items):
        owners = [rank for rank, block in enumerate(blocks) for other in block if same(other, item)]
        if not owners:
            raise Wrong(
                f"items[{index}] is on no node {where}: what becomes of the rest if the number of items "
                "is no multiple of the number of nodes?"
            )
        if len(owners) > 1:
            raise Wrong(
                f"items[{index}] is on nodes {' and '.join(map(str, owners))} {where}; each item must be on "
                "exactly one: where one block ends, the next begins"
            )
    extra = [item for block in blocks for item in block if not any(same(item, one) for one in items)]
    if extra:
        raise Wrong(
            f"{short(extra[0])} was returned and is not in the list {where}; return items, not their numbers"
        )
