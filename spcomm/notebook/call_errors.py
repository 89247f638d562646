# SPDX-License-Identifier: MIT
"""Errors of a call that has gone wrong, and their text."""

from spcomm._core.errors import DeadlockError, NodeLostError, SpcommError, WaitTimeoutError
from spcomm.launch.supervise.supervisor import DEADLOCK, TIMEOUT
from spcomm.notebook import calls, pickling, source_cache
from spcomm.notebook.calls import Call
from spcomm.notebook.errors import ClusterError
from spcomm.text import ranks_text

_NEW = "the nodes are new, and their variables are gone"
_KEPT = "The nodes were interrupted, and keep their variables."


def new_nodes(ended: "dict[int, str]") -> str:
    """`nodes 1, 3 were killed (SIGKILL): the nodes are new, …`. `ended`: how they have, by node."""
    by_how: dict[str, list[int]] = {}
    for node, how in sorted(ended.items()):
        by_how.setdefault(how, []).append(node)
    who = [
        f"{ranks_text(ranks)} {how.replace('was ', 'were ') if len(ranks) > 1 else how}"
        for how, ranks in by_how.items()
    ]
    return f"{'; '.join(who)}: {_NEW}" if who else _NEW


def closed_meanwhile(words: str) -> SpcommError:
    """The error of a call that another thread has ended, or did not let begin."""
    return SpcommError(f"{words}: another thread has closed the Cluster meanwhile")


def verdict(call: Call, words: str) -> BaseException:
    """Return the exception for a call that has failed, or was ended early; `words` is the caller's name for it."""
    if call.reason == calls.BROKEN and call.broken is not None:
        return call.broken
    error = _verdict(call, words)
    error.args = (source_cache.named(str(error), call.lines),)
    return error


def _verdict(call: Call, words: str) -> BaseException:
    if call.reason == calls.CLOSED:
        return closed_meanwhile(words)
    if call.reason == calls.INTERRUPT:
        return _interrupted(call)
    if call.reason == TIMEOUT:
        return _timed_out(call, words)
    if call.reason == DEADLOCK and not call.has_failed:
        return DeadlockError(f"{call.deadlock()}  {_end(call)}")
    return _failed(call)


def _end(call: Call) -> str:
    return f"{new_nodes(call.killed)}." if call.damaged else _KEPT


def _interrupted(call: Call) -> KeyboardInterrupt:
    return KeyboardInterrupt(f"where the nodes were:\n{call.table()}  {_end(call)}")


def _timed_out(call: Call, words: str) -> WaitTimeoutError:
    what = f"{words}: the nodes were not done in {call.timeout:g} s; they were here:"
    return WaitTimeoutError(f"{what}\n{call.table()}  {_end(call)}")


def _failed(call: Call) -> BaseException:
    text = call.tracebacks()
    first = call.first
    if first is None or first.index in call.killed:
        lost = NodeLostError(f"{new_nodes(call.killed)}\n{text}".rstrip())
        lost.rank = first.index if first is not None else min(call.killed)
        return lost
    sentences = [call.sentence()] + ([new_nodes(call.killed)] if call.damaged else [])
    return ClusterError(f"{'; '.join(sentences)}\n{text}".rstrip(), first.index, _error(call, first.index))


def _error(call: Call, node: int) -> "BaseException | None":
    """The exception of a node, if its class is known here."""
    data = call.errors.get(node)
    try:
        return pickling.unpacked(data, call.is_plain) if data is not None else None  # type: ignore[return-value]
    except Exception:
        return None
