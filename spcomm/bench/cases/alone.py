# SPDX-License-Identifier: MIT
"""Traces, numbers of spcomm's own kinds, nodes that stay alive: no peer has them."""

from spcomm.bench.rows import MICROSECONDS, MILLISECONDS, PER_CENT, Goal, Row, each

NANOSECONDS = ("ns", 1e9)
MILLION = 10**6
GOALS = {
    ("sum_elements", "NET_INT"): 3,
    ("read_elements", "NET_INT"): 1.5,
    ("read_elements", "NET_DOUBLE"): 1.5,
}
EVENT_S = 40e-9
MOST = 2  # times as long with a trace
IMBALANCE = 0.03  # nodes with equal work compute equally long
WORKS = (
    ("array_pingpong", "8-byte array, there and back"),
    ("float_sum", "sum of one float"),
)
EVENTS = {"call": "an event: a call of spcomm begins or ends", "region": "an event: a region begins or ends"}
START_S = 0.5
OTHERS = {"pool": "multiprocessing.Pool", "ipyparallel": "ipyparallel"}


@each
def net_types(n: int) -> list[Row]:
    """One node takes part, whatever their number."""
    return [row for work in ("sum_elements", "read_elements") for row in pairs(work, n)]


def pairs(work: str, n: int) -> list[Row]:
    """Each of spcomm's types, below NumPy's own."""
    found = []
    for plain, ours in (("int32", "NET_INT"), ("float64", "NET_DOUBLE")):
        ratio = GOALS.get((work, ours))
        goal = None if ratio is None else Goal(ratio, f"{work}-{plain}-{n}")
        found += [number(work, plain, n, None), number(work, ours, n, goal)]
    return found


def number(work: str, dtype: str, n: int, goal: Goal | None) -> Row:
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


@each
def trace(n: int) -> list[Row]:
    """An event is measured on one node alone, whatever their number."""
    found = [event(f"event-{kind}-{n}", title, f"{kind}_events", n) for kind, title in EVENTS.items()]
    for work, title in WORKS:
        plain = f"trace-{work}-off-{n}"
        found.append(Row(plain, f"{title}, {n} nodes", work, n, peers=False))
        against = Goal(MOST, against=plain)
        found.append(Row(f"trace-{work}-on-{n}", "… traced", work, n, goal=against, peers=False, traced=True))
    return [*found, balance(n)]


def event(key: str, title: str, work: str, n: int) -> Row:
    goal = Goal(None, seconds=EVENT_S)
    return Row(key, title, work, n, goal=goal, peers=False, unit=NANOSECONDS, program="events", traced=True)


def balance(n: int) -> Row:
    title = f"load imbalance of equal work, {n} nodes"
    goal = Goal(None, share=IMBALANCE)
    return Row(f"trace-balance-{n}", title, "balance", n, goal=goal, peers=False, unit=PER_CENT)


@each
def notebook(n: int) -> list[Row]:
    """Nodes that answer, as under %%spcomm, beside others, whose numbers stand in spcomm's column, too."""
    return [row for what in ("start", "call") for row in whose(n, what)]


def whose(n: int, what: str) -> list[Row]:
    title = f"{n} nodes start and answer, Cluster" if what == "start" else f"a call of {n} nodes, Cluster.run"
    ours = answer(n, what, "spcomm", title, Goal(None, seconds=START_S) if what == "start" else None)
    return [ours, *(answer(n, what, name, f"… {text}", None) for name, text in OTHERS.items())]


def answer(n: int, what: str, name: str, title: str, goal: Goal | None) -> Row:
    parameters = {"whose": name, "what": what}
    key = f"notebook-{what}-{name}-{n}"
    return Row(
        key, title, "cluster", n, parameters, goal, peers=False, unit=MILLISECONDS, program=f"cluster {name}"
    )
