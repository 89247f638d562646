# SPDX-License-Identifier: MIT
"""Exercise 8: each task once, and the virtual clock says that the nodes were busy; the best of three runs counts."""

from spcomm.learn.case import Case, Wrong, same, short

ROOM = 1.4  # over what size - 1 nodes take that are all equally busy
RUNS = 3  # who pulls first is chance


def cases(rng):
    yield Case(1, {"costs": [2, 1, 3]}, name="3 tasks on 1 node")
    yield Case(2, {"costs": some(rng, 9)}, name="9 tasks on 2 nodes")
    yield Case(5, {"costs": [3, 1, 2]}, name="3 tasks on 5 nodes")
    yield Case(3, {"costs": []}, name="no tasks on 3 nodes")
    long = [cost + 50 for cost in some(rng, 12)]  # blocks of tasks: node 0 has all of them
    yield from measured(4, [*long, *some(rng, 36)], "the long ones first")
    mixed = [cost + 50 if task % 5 == 1 else cost for task, cost in enumerate(some(rng, 48))]
    yield from measured(5, mixed, "every 5th is long")  # dealt like cards: node 1 has all of them


def some(rng, count):
    return [rng.choice([8, 12, 16]) for _ in range(count)]


def measured(nodes, costs, what):
    """Up to three runs of one case, until one of them is good."""
    what = f"{len(costs)} tasks on {nodes} nodes, {what}"
    limit = ROOM * sum(costs) / (nodes - 1)
    runs = []
    for run in range(1, RUNS + 1):
        facts = {"limit": limit, "runs": runs, "last": run == RUNS, "what": what}
        name = what + f", run {run}" * (run > 1)
        yield Case(nodes, {"costs": costs}, perturb=False, name=name, facts=facts)
        if runs and min(runs)[0] <= limit:  # `quick` has noted it
            return


def judge(case, outcome):
    costs = case.arguments["costs"]
    for rank, tasks in enumerate(outcome.values):
        if not isinstance(tasks, list):
            raise Wrong(
                f"node {rank} returned {short(tasks)}; expected the list of the tasks it has done ({case.name})"
            )
    once(case, outcome, len(costs))
    for rank, tasks in enumerate(outcome.values):
        told = sum(costs[int(task.real)] for task in tasks)  # 2.0 is task 2, too
        if abs(outcome.work[rank] - told) > 1e-6 * (1 + told):
            raise Wrong(
                f"node {rank} did {outcome.work[rank]:g} units of work; the tasks {tasks} that it returned take "
                f"{told:g} ({case.name}): each task is done by do(), once, on the node that returns it"
            )
    if case.facts:
        quick(case, outcome, sum(costs))


def once(case, outcome, count):
    done = [task for tasks in outcome.values for task in tasks]
    for task in range(count):
        nodes = [
            str(rank) for rank, tasks in enumerate(outcome.values) for other in tasks if same(other, task)
        ]
        if not nodes:
            raise Wrong(f"no node did and returned task {task} of {count} ({case.name})")
        if len(nodes) > 1:
            raise Wrong(f"nodes {' and '.join(nodes)} did task {task}; expected it once ({case.name})")
    if len(done) > count:
        other = next(task for task in done if not any(same(task, one) for one in range(count)))
        raise Wrong(f"{short(other)} was returned, and is none of the tasks 0 to {count - 1} ({case.name})")


def quick(case, outcome, total):
    limit, runs = case.facts["limit"], case.facts["runs"]
    runs.append((outcome.makespan, outcome.work))
    makespan, work = min(runs)
    if makespan <= limit or not case.facts["last"]:
        return
    most = max(work)
    found = f"the makespan is {makespan:g} units; expected {limit:g} at most ({case.facts['what']}), "
    found += f"and the efficiency is {total / (case.nodes * makespan):.2f}. "
    if most > limit:
        raise Wrong(
            f"{found}Node {work.index(most)} has the most to do: {most:g} of {total:g} units. Divide by the work, "
            "not by the number of tasks, or hand out the tasks one at a time"
        )
    raise Wrong(
        f"{found}No node has more than {most:g} units of work, so they waited: does the manager wait for a result "
        "before the next node gets its task?"
    )
