# SPDX-License-Identifier: MIT
"""Arrays of NET_INT and NET_DOUBLE on one node, beside int32 and float64: their sum, and reading one element."""

from spcomm.bench.rows import MICROSECONDS, Goal, Row

ORDER = 9
NODES = (1,)
MILLION = 10**6
NANOSECONDS = ("ns", 1e9)
GOALS = {
    ("sum_elements", "NET_INT"): 3,
    ("read_elements", "NET_INT"): 1.5,
    ("read_elements", "NET_DOUBLE"): 1.5,
}


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """One node takes part, whatever their number."""
    return [row for n in nodes for work in ("sum_elements", "read_elements") for row in pairs(work, n)]


def pairs(work: str, n: int) -> list[Row]:
    """Each of spcomm's types, below NumPy's own."""
    found = []
    for plain, ours in (("int32", "NET_INT"), ("float64", "NET_DOUBLE")):
        ratio = GOALS.get((work, ours))
        goal = None if ratio is None else Goal(ratio, f"{work}-{plain}-{n}")
        found += [row(work, plain, n, None), row(work, ours, n, goal)]
    return found


def row(work: str, dtype: str, n: int, goal: Goal | None) -> Row:
    is_sum = work == "sum_elements"
    return Row(
        f"{work}-{dtype}-{n}",
        f"{'sum of a million' if is_sum else 'read one of'} {dtype}",
        work,
        n,
        {"dtype": dtype, "length": MILLION},
        goal,
        peers=False,
        unit=MICROSECONDS if is_sum else NANOSECONDS,
        program="numbers",
    )
