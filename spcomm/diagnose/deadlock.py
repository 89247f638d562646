# SPDX-License-Identifier: MIT
"""SP101: the report of a proven deadlock."""

from spcomm._core.waits import ANY, CYCLE, GATHERING, PHASE, RECEIPT, RECEIVE, SEND, Wait
from spcomm.diagnose import words

CODE = "SP101"
EXIT_CODE = 99
_CIRCLE_SHOWN = 12


def report(waits: "dict[int, Wait]", size: int, group: str = "") -> str:
    """The text, with its last line break.

    Parameters
    ----------
    waits : dict
        Of the nodes that are proven to wait for ever: rank in the run -> what for.
    size : int
        Number of nodes of the run (or of its group).
    group : str
        `" of group 2"` where there are several groups.
    """
    return f"spcomm: DEADLOCK — {_headline(waits, size, group)}\n{_body(waits)}"


def in_vain(waits: "dict[int, Wait]", size: int, group: str = "") -> str:
    """A warning: none of these ever gets what it waits for, but some of the others still run, and may end.

    The parameters are those of `report`.
    """
    others = size - len(waits)
    it = "the other node" if others == 1 else "the others"
    among = {rank: wait._replace(needs=_among(wait, waits)) for rank, wait in waits.items()}
    return (
        f"spcomm: warning: DEADLOCK — {_who(waits, size, group)} wait for each other, whatever {it} still "
        f"{'does' if others == 1 else 'do'}\n{_body(among)}"
        f"  The run goes on until {it} {'waits' if others == 1 else 'wait'}, or a node ends, which makes waits fail.\n"
    )


def _among(wait: Wait, waits: "dict[int, Wait]") -> "dict[int, int]":
    return {node: rank for node, rank in wait.needs.items() if node in waits}


def _body(waits: "dict[int, Wait]") -> str:
    """What comes below the headline."""
    lines = [words.table(words.wait_rows(waits))]
    circle = find_circle(waits)
    if circle:
        lines.append(f"  circle: {' → '.join(map(str, circle))}\n")
    why, advice = _explain(waits)
    lines.append(f"  {why}\n  Try: {advice}     (spcomm explain {CODE})\n")
    return "".join(lines)


def _who(waits: "dict[int, Wait]", size: int, group: str) -> str:
    return f"{words.nodes(list(waits))} of {f'the {size} nodes{group}' if group else size}"


def _headline(waits: "dict[int, Wait]", size: int, group: str) -> str:
    if len(waits) == size:
        who = "the node" if size == 1 else "both nodes" if size == 2 else f"all {size} nodes"
        return f"{who}{group} wait{'s' if size == 1 else ''}, and no message is on its way"
    who = _who(waits, size, group)
    if len(waits) == 1:
        return f"{who} waits for what can never come"
    return f"{who} wait for each other only, and no message is on its way"


def find_circle(waits: "dict[int, Wait]") -> "list[int]":
    """Nodes each of which waits for the next one, the first again at the end; empty if there is none to show.

    Only waits that need one certain node, or all of several, count: a receive from ANY has no next one.
    """
    for start in sorted(waits):
        path: list[int] = []
        node: int | None = start
        while node is not None and node not in path:
            path.append(node)
            node = _next(waits, node)
        if node is not None:
            circle = [*path[path.index(node) :], node]
            return circle if len(circle) <= _CIRCLE_SHOWN else []
    return []


def _next(waits: "dict[int, Wait]", node: int) -> "int | None":
    wait = waits.get(node)
    if wait is None or (wait.kind == RECEIVE and wait.source == ANY):
        return None
    wanted = wait.full if wait.kind == SEND else wait.needs
    return next((other for other in sorted(wanted) if other in waits), None)


def _explain(waits: "dict[int, Wait]") -> "tuple[str, str]":
    """Why, and what to try."""
    kinds = {wait.kind for wait in waits.values()}
    for node, wait in sorted(waits.items()):
        if wait.near is not None:
            return _near(node, wait)
    for node, wait in sorted(waits.items()):
        if wait.kind in (RECEIVE, RECEIPT) and wait.source == wait.rank:
            verb = "receives from" if wait.kind == RECEIVE else "sends synchronously to"
            return f"Node {node} {verb} itself, and nobody else can.", "check how the rank is computed."
    if kinds == {RECEIVE}:
        return _nobody_sends(waits)
    if SEND in kinds:
        return _full(waits)
    if PHASE in kinds or CYCLE in kinds:
        return _missing(waits)
    if GATHERING in kinds:
        return _left(waits)
    if RECEIPT in kinds:
        return _unreceived(waits)
    return (
        "Each of these waits for another one of them.",
        "look at the lines above: one of them must do its part before it waits.",
    )


def _of_kind(waits: "dict[int, Wait]", kind: str) -> "list[int]":
    return [node for node, wait in sorted(waits.items()) if wait.kind == kind]


def _in_c(waits: "dict[int, Wait]") -> bool:
    """Whether what is to be tried is said with the functions of C: all are programs in C or C++."""
    return all(wait.in_c for wait in waits.values())


def _or_sendrecv(waits: "dict[int, Wait]") -> str:
    return "." if _in_c(waits) else ", or use sendrecv()."  # there is none in C


def _nobody_sends(waits: "dict[int, Wait]") -> "tuple[str, str]":
    if len({words.place(wait) for wait in waits.values()}) == 1:
        return (
            "Nobody has sent: every node receives first.",
            f"let one node send before it receives{_or_sendrecv(waits)}",
        )
    return (
        "All of these receive, and nobody is left who could send to them.",
        "let one node send before it receives here; is an answer missing, or a last message that ends a loop?",
    )


def _full(waits: "dict[int, Wait]") -> "tuple[str, str]":
    senders = _of_kind(waits, SEND)
    enough = -(-max(waits[node].number for node in senders) // 1024)
    higher = f"--queue-limit {enough}K lets these sends go on, and" if enough else "--queue-limit"
    moves = f"{higher} only moves the point where it stops."
    if len(senders) == len(waits):
        return (
            "The queues are full: every node sends more than anybody receives.",
            f"receive between the sends; {moves}",
        )
    full = sorted({other for node in senders for other in waits[node].full})
    verb = "sends" if len(senders) == 1 else "send"
    return (
        f"{words.nodes(senders).capitalize()} {verb} more to {words.nodes(full)} than the queues hold, and nobody "
        "receives it.",
        f"receive before waiting for anything else; {moves}",
    )


def _unreceived(waits: "dict[int, Wait]") -> "tuple[str, str]":
    """Some wait until what they sent is received."""
    senders = _of_kind(waits, RECEIPT)
    told = any(waits[node].by_rendezvous for node in senders)
    send = words.function("send", _in_c(waits))
    ssend = f"With --rendezvous, {send}" if told else words.function("ssend", _in_c(waits))
    returns = f"{ssend} returns when its message has been received"
    if len(senders) == len(waits):
        return (
            f"{returns}: every node sends first.",
            f"let one node receive before it sends{_or_sendrecv(waits)}",
        )
    others = sorted({other for node in senders for other in waits[node].needs})
    return (
        f"{returns}, and {words.nodes(others)} {'waits' if len(others) == 1 else 'wait'} for something else.",
        f"let {words.nodes(others)} receive first, or use {send}, which does not wait."
        if not told
        else f"let {words.nodes(others)} receive first.",
    )


def _near(node: int, wait: Wait) -> "tuple[str, str]":
    source, tag, count = wait.near or (0, 0, 0)
    those = "a message" if count == 1 else f"{count} messages, the first"
    differs = f"tag {tag}" if source == wait.source or wait.source == ANY else f"node {source}"
    wanted = (
        f"tag {words.number(wait.tag)}" if differs.startswith("tag") else f"node {words.number(wait.source)}"
    )
    return (
        f"Node {node} has {those} from node {source} with tag {tag}, and waits for one of {wanted}.",
        f"receive with {'tag=' + str(tag) if differs.startswith('tag') else 'source=' + str(source)}, or send what is "
        "waited for.",
    )


def _missing(waits: "dict[int, Wait]") -> "tuple[str, str]":
    """Some are in a collective operation that others never reach."""
    operations: dict[tuple[str, int], list[int]] = {}
    for node, wait in sorted(waits.items()):
        if wait.kind in (PHASE, CYCLE):
            operations.setdefault((words.call(wait), wait.communicator), []).append(node)
    texts = [
        _who_is_missing(waits, inside, f"{name}{' of a part' if part else ''}")
        for (name, part), inside in operations.items()
    ]
    if len(texts) > 1:
        return (
            _sentence(f"{'; '.join(texts)}."),
            "have all nodes call the same operations in the same order, those of parts among those of the run.",
        )
    name = words.function(next(iter(operations))[0], _in_c(waits))
    return (
        f"{_sentence(texts[0])}, which must call it, too.",
        f"have every node call {name}, also those that take another branch, before it waits for them.",
    )


def _left(waits: "dict[int, Wait]") -> "tuple[str, str]":
    """Some wait for what one gives in a collective operation that all have entered: it must have left it."""
    node = _of_kind(waits, GATHERING)[0]
    return (
        f"Node {node} waits in {words.call(waits[node])}, which has left that call before its end.",
        "after an interruption, end it by the same call again.",
    )


def _who_is_missing(waits: "dict[int, Wait]", inside: "list[int]", name: str) -> str:
    missing = sorted({other for node in inside for other in waits[node].needs})
    return f"{words.nodes(inside)} {'waits' if len(inside) == 1 else 'wait'} in {name} for {words.nodes(missing)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
