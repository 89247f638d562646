# SPDX-License-Identifier: MIT
"""SpeedesComm as its paper prints it (section 2): 14 function names with their overloads, and `SpComm_ShutDown`.

    from spcomm.speedes import *

    SpComm_StartUp(0, 0, 0, None)
    print(SpComm_GetNodeId(), SpComm_GlobalSum(1))

Each is one line on top of `spcomm.Comm`, and both may be used side by side. Where Python differs from the paper's C++:

- ``nbytes`` is neither given nor returned: data know their length. Whatever `Comm.send` takes may be sent, except None,
  which is NULL here: a receive returns it when there is no message. Nodes in C and C++ read bytes, numbers, strings,
  `SimTime` and arrays; data sent as ``void *`` arrives as `bytes`.
- A received message is the caller's own, and need not be freed.
- A wrong argument is an error (`TagError`, `RankError`, TypeError), and then nothing has happened. Errors use the
  paper's names in place of those of `Comm`.
"""

import re
from collections.abc import Callable
from functools import wraps
from operator import index
from typing import Any, TypeVar, cast

import spcomm
from spcomm._core.errors import shown

__all__ = [
    "SpComm_BarrierSync", "SpComm_CoordinatedReceive", "SpComm_CoordinatedSend", "SpComm_EnterFuzzyBarrier",
    "SpComm_ExitFuzzyBarrier", "SpComm_GetNodeId", "SpComm_GetNumNodes", "SpComm_GetPendingMessage",
    "SpComm_GlobalMax", "SpComm_GlobalMin", "SpComm_GlobalSum", "SpComm_Receive",
    "SpComm_Send", "SpComm_ShutDown", "SpComm_StartUp", "SpDestination",
    "SpSimTime",
]  # fmt: skip

TYPE_MAX = 255

_Value = TypeVar("_Value", int, float, spcomm.SimTime)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_NOT_GIVEN: Any = object()
_comm: "spcomm.Comm | None" = None  # from SpComm_StartUp on
_fuzzy: "spcomm.FuzzyBarrier | None" = None  # the one that was entered and has not been left

# Names in errors: the calls of `Comm`, and their different names here.
_NAMES = {
    "startup": "SpComm_StartUp",
    "close": "SpComm_ShutDown",
    "barrier": "SpComm_BarrierSync",
    "global_min": "SpComm_GlobalMin",
    "global_max": "SpComm_GlobalMax",
    "global_sum": "SpComm_GlobalSum",
    "fuzzy_barrier": "SpComm_EnterFuzzyBarrier",
    "send": "SpComm_Send",
    "poll": "SpComm_Receive",
    "try_recv_message": "SpComm_Receive",
    "take_message": "SpComm_GetPendingMessage",
    "coordinated_send": "SpComm_CoordinatedSend",
    "coordinated_recv": "SpComm_CoordinatedReceive",
}
_PHRASES = {
    "fuzzy_barrier().done()": "SpComm_ExitFuzzyBarrier()",
    " or the loop over coordinated_messages() ends": "",
    " (leaving the loop early leaves the cycle open)": "",
    "message(source=ANY, tag=": "message(type=",
    "send(obj)": "send(data)",
    "local_nodes": "localNodes",
    "total_nodes": "totalNodes",
    "group_id": "groupID",
}
_CALLS = re.compile(rf"(?<![\w.])({'|'.join(_NAMES)})(?=\()")


def _renamed(text: str) -> str:
    """The text of an error of `Comm`, in the paper's names; any other as it is."""
    if not _CALLS.match(text):
        return text
    for ours, papers in _PHRASES.items():
        text = text.replace(ours, papers)
    head, colon, rest = text.partition(": ")
    return _CALLS.sub(lambda found: _NAMES[found[1]], head.replace(", tag=", ", type=") + colon + rest)


def _papers(function: _Function) -> _Function:
    """The function, whose errors have the paper's names."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (spcomm.SpcommError, TypeError, ValueError) as error:
            error.args = tuple(_renamed(part) if isinstance(part, str) else part for part in error.args)
            raise

    return cast(_Function, call)


SpSimTime = spcomm.SimTime  # from a float: SpSimTime(1.5); back to it: float(time)


class SpDestination(spcomm.Destination):
    """A set of nodes to send to, with the paper's methods; beside them it has all that `Destination` has.

    Begins with the nodes of an iterable, if one is given, else empty. SpeedesComm 2.3, SpDestination.

    Examples
    --------
    >>> from spcomm.speedes import SpDestination
    >>> dest = SpDestination()
    >>> dest.Set(7)
    >>> dest.Set(2)
    >>> dest.GetFirstNode(), dest.GetNextNode(), dest.GetNextNode()
    (2, 7, -1)
    """

    __slots__ = ()

    def Set(self, node: int) -> None:
        """Put a node in: 0 to 1023, else `RankError`. SpeedesComm 2.3."""
        self.set(node)

    def Reset(self, node: int) -> None:
        """Take a node out: 0 to 1023, else `RankError`. SpeedesComm 2.3."""
        self.reset(node)

    def GetFirstNode(self) -> int:
        """Begin an iteration: the lowest node, or -1 if there is none. SpeedesComm 2.3."""
        node = self.first()
        return -1 if node is None else node

    def GetNextNode(self) -> int:
        """Return the next higher node, or -1 after the last. SpeedesComm 2.3."""
        node = self.next()
        return -1 if node is None else node


# ---- initialization and state (2.1)


@_papers
def SpComm_StartUp(
    localNodes: int = 0, totalNodes: int = 0, groupID: int = 0, infile: "str | None" = None
) -> None:
    """Join the run that this process belongs to. Call it first.

    Parameters
    ----------
    localNodes, totalNodes, groupID, infile
        As `spcomm.startup`'s local_nodes, total_nodes, group_id and infile. Under ``spcomm run``: 0, 0, 0, None.

    Raises
    ------
    ConfigError, OSError, TypeError, VersionError
        As `spcomm.startup`.

    Notes
    -----
    Outside of ``spcomm run`` a localNodes of more than 1 forks, and the call returns in that many processes. It does
    not wait for other nodes. Again it does nothing, with the same numbers. SpeedesComm 2.1.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp(0, 0, 0, None)
    """
    global _comm
    _comm = spcomm.startup(localNodes, totalNodes, groupID, infile)


@_papers
def SpComm_ShutDown() -> None:
    """Send queued messages, and leave the run: the function that the paper counts, but does not print.

    Raises
    ------
    WaitTimeoutError
        Some messages could not be sent within ten seconds. They are lost, and the node has left.
    SpcommError
        SpComm_StartUp has not been called yet.

    Notes
    -----
    Waits only while queued messages have no room. At the normal end of a program it is done by itself. Afterwards
    every call but this one, SpComm_GetNumNodes and SpComm_GetNodeId raises `SpcommError`.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_ShutDown()
    """
    _joined("SpComm_ShutDown").close()


@_papers
def SpComm_GetNumNodes() -> int:
    """Return the number of nodes of the run. SpeedesComm 2.1."""
    return _joined("SpComm_GetNumNodes").size


@_papers
def SpComm_GetNodeId() -> int:
    """Return this node's number, 0 to the number of nodes - 1. SpeedesComm 2.1."""
    return _joined("SpComm_GetNodeId").rank


# ---- synchronization (2.2)


@_papers
def SpComm_BarrierSync() -> None:
    """Wait until all nodes have called this. Errors as `Comm.barrier`. SpeedesComm 2.2."""
    _joined("SpComm_BarrierSync").barrier()


@_papers
def SpComm_GlobalMin(value: _Value) -> _Value:
    """Return the least of all nodes' values, on every node.

    Parameters
    ----------
    value : int, float or SimTime
        Of the same type on every node; also whatever else `Comm.global_min` takes.

    Returns
    -------
    int, float or SimTime
        As value.

    Notes
    -----
    Waits until all nodes have called it. Errors as `Comm.global_min`. SpeedesComm 2.2.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_GlobalMin(SpSimTime(1.5, 3))
    SimTime(1.5, 3)
    """
    return _joined("SpComm_GlobalMin").global_min(value)


@_papers
def SpComm_GlobalMax(value: _Value) -> _Value:
    """Return the greatest of all nodes' values; value, waiting and errors as SpComm_GlobalMin. SpeedesComm 2.2."""
    return _joined("SpComm_GlobalMax").global_max(value)


@_papers
def SpComm_GlobalSum(value: _Value) -> _Value:
    """Return the sum of all nodes' values; value, waiting and errors as SpComm_GlobalMin. SpeedesComm 2.2.

    The sum of ints is exact, whatever its size. The sum of `SimTime`, which the paper has in its Net_Sum only, is that
    of the times, with priorities 0.
    """
    return _joined("SpComm_GlobalSum").global_sum(value)


@_papers
def SpComm_EnterFuzzyBarrier() -> None:
    """Say that this node has entered the fuzzy barrier, and go on.

    Raises
    ------
    SpcommError
        This node is in one already: SpComm_ExitFuzzyBarrier has not given 1 yet. (`Comm.fuzzy_barrier` has several.)

    Notes
    -----
    Never waits. SpeedesComm 2.2.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_EnterFuzzyBarrier()
    >>> while SpComm_ExitFuzzyBarrier() == 0:
    ...     pass  # work, while the others arrive
    """
    global _fuzzy
    comm = _joined("SpComm_EnterFuzzyBarrier")
    if _fuzzy is not None:
        advice = "call SpComm_ExitFuzzyBarrier until it returns 1"
        raise spcomm.SpcommError(
            f"SpComm_EnterFuzzyBarrier(): this node is in a fuzzy barrier already; {advice}"
        )
    _fuzzy = comm.fuzzy_barrier()


@_papers
def SpComm_ExitFuzzyBarrier() -> int:
    """Return 1 if all nodes have entered the fuzzy barrier, and leave it; return 0 if not yet.

    Raises
    ------
    SpcommError
        This node is in none.
    MismatchError
        Another node called something else. The barrier is over.
    NodeLostError
        A node has ended without entering it.

    Notes
    -----
    Never waits. Also sends queued messages and receives those that have arrived. SpeedesComm 2.2.
    """
    global _fuzzy
    _joined("SpComm_ExitFuzzyBarrier")
    if _fuzzy is None:
        advice = "call SpComm_EnterFuzzyBarrier first; after a 1 it is over"
        raise spcomm.SpcommError(f"SpComm_ExitFuzzyBarrier(): this node is in no fuzzy barrier; {advice}")
    try:
        over = _fuzzy.done()
    except spcomm.MismatchError:
        _fuzzy = None
        raise
    _fuzzy = None if over else _fuzzy
    return int(over)


# ---- messages (2.3)


@_papers
def SpComm_Send(*arguments: Any) -> None:
    """Send data: ``(dest, type, data)`` to one node or several, ``(type, data)`` to all, the sender too.

    Parameters
    ----------
    *arguments
        dest : int or Destination
            A node, or a set of nodes. Without it: all.
        type : int
            0 to 255.
        data : object
            Whatever `Comm.send` takes, but None. It is copied.

    Raises
    ------
    TagError, RankError
        There is no such type or node; nothing was sent.
    TypeError
        data is None or cannot be pickled, or there are too many arguments or too few; nothing was sent.

    Notes
    -----
    Does not wait for the receiver; waits only while this node's messages that no node has received are at the
    limit (``--queue-limit``). SpeedesComm 2.3.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_Send(SpComm_GetNodeId(), 7, b"to one")
    >>> SpComm_Send(SpDestination([0]), 7, b"to a set")
    >>> SpComm_Send(7, b"to all")
    >>> SpComm_Receive(7), SpComm_Receive(7), SpComm_Receive(7), SpComm_Receive(7)
    (b'to one', b'to a set', b'to all', None)
    """
    *dest, number, data = _counted("SpComm_Send", arguments, "dest, type, data", "type, data")
    to = dest[0] if dest else spcomm.ALL
    _joined("SpComm_Send").send(data, to, _checked("SpComm_Send", number))


@_papers
def SpComm_Receive(type: int = _NOT_GIVEN) -> Any:
    """Without a type: move arrivals into the queues. With one: return the first message of that type, or None.

    Parameters
    ----------
    type : int, optional
        0 to 255.

    Returns
    -------
    object or None
        The data of the first message of this type, of the queues, then of what has arrived. None: there is none; and
        always None without a type.

    Notes
    -----
    Never waits. Also sends queued messages. Another type is a `TagError`. SpeedesComm 2.3.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_Receive(255) is None
    True
    """
    comm = _joined("SpComm_Receive")
    if type is _NOT_GIVEN:
        comm.poll()
        return None
    return _data_of(comm.try_recv_message(tag=_checked("SpComm_Receive", type)))


@_papers
def SpComm_GetPendingMessage(type: int) -> Any:
    """Return the first message of this type in the queues, or None; leave new arrivals where they are.

    Parameters
    ----------
    type : int
        0 to 255, else `TagError`.

    Returns
    -------
    object or None
        The data. None: there is none in the queues, into which SpComm_Receive and every call that waits move
        arrivals.

    Notes
    -----
    Never waits. SpeedesComm 2.3.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_Send(7, b"hello")
    >>> SpComm_Receive()
    >>> SpComm_GetPendingMessage(7)
    b'hello'
    """
    comm = _joined("SpComm_GetPendingMessage")
    return _data_of(comm.take_message(_checked("SpComm_GetPendingMessage", type)))


@_papers
def SpComm_CoordinatedSend(*arguments: Any) -> None:
    """Send data within a cycle: ``(dest, data)`` to one node or several, ``(data)`` to all, the sender too.

    Parameters
    ----------
    *arguments
        dest and data as for SpComm_Send.

    Raises
    ------
    CycleError
        This node has received in this cycle already; nothing was sent.
    RankError, TypeError, SpcommError
        As SpComm_Send and `Comm.coordinated_send`.

    Notes
    -----
    Waits as SpComm_Send. Until SpComm_CoordinatedReceive gives None, calls that synchronise raise `CycleError`.
    SpeedesComm 2.3.

    Examples
    --------
    >>> from spcomm.speedes import *
    >>> SpComm_StartUp()
    >>> SpComm_CoordinatedSend(SpComm_GetNodeId(), b"to one")
    >>> SpComm_CoordinatedReceive(), SpComm_CoordinatedReceive()
    (b'to one', None)
    """
    *dest, data = _counted("SpComm_CoordinatedSend", arguments, "dest, data", "data")
    _joined("SpComm_CoordinatedSend").coordinated_send(data, dest[0] if dest else spcomm.ALL)


@_papers
def SpComm_CoordinatedReceive() -> Any:
    """Return a message of this cycle, or None when this node has been given all of them: then the next may begin.

    Waits while a message for this node is on its way, or another node may still send. Of one sender they come in the
    order sent. Errors as `Comm.coordinated_recv`. SpeedesComm 2.3.
    """
    return _data_of(_joined("SpComm_CoordinatedReceive").coordinated_recv())


# ---- shared by the functions


def _joined(call: str) -> spcomm.Comm:
    if _comm is None:
        raise spcomm.SpcommError(f"{call}: SpComm_StartUp has not been called yet; it must be the first call")
    return _comm


def _checked(call: str, number: Any) -> int:
    """A type of the paper, as a tag."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        found = f"a type is an int from 0 to {TYPE_MAX}, not a {type(number).__name__}"
        raise TypeError(f"{call}(type={shown(number)}): {found}")
    if not 0 <= index(number) <= TYPE_MAX:
        found = f"there is no type {shown(number)}; types are 0 to {TYPE_MAX}"
        raise spcomm.TagError(f"{call}(type={shown(number)}): {found}")
    return index(number)


def _counted(call: str, arguments: "tuple[Any, ...]", whole: str, broadcast: str) -> "tuple[Any, ...]":
    """The arguments, if there are as many as one of both forms has, and data at their end."""
    if len(arguments) not in (whole.count(",") + 1, broadcast.count(",") + 1):
        forms = f"{call}({whole}), or {call}({broadcast}) to all nodes"
        count = len(arguments)
        given = f"{count} argument{' was' if count == 1 else 's were'} given"
        found = f"{given}; nbytes is none of them, data know their length"
        raise TypeError(f"{forms}: {found}")
    if arguments[-1] is None:
        raise TypeError(f"{call}: data cannot be None, which means no message; b'' is an empty one")
    return arguments


def _data_of(message: Any) -> Any:
    return None if message is None else message.data
