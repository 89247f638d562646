# SPDX-License-Identifier: MIT
"""Small public objects in plain Python: constants, and the tuples that calls return."""

from typing import Any, NamedTuple


class Constant(int):
    """A number with a name: `ANY`, `ALL`, `OTHERS` or `PROC_NULL`.

    They are ints, so that they can be kept in lists and arrays beside ranks. Their values are far away from -1 on
    purpose: a rank that is wrong by one must not mean "any node".
    """

    _name: str

    def __new__(cls, value: int, name: str, meaning: str) -> "Constant":
        self = super().__new__(cls, value)
        self._name, self.__doc__ = name, meaning
        return self

    def __repr__(self) -> str:
        return self._name

    __str__ = __repr__

    def __reduce__(self) -> str:
        return self._name


ANY = Constant(-101, "ANY", "As ``source`` or ``tag`` of a receive: any sender, any tag.")
ALL = Constant(
    -102, "ALL", "As ``dest``: every node, this one too. SpeedesComm 2.3, a send without a destination."
)
OTHERS = Constant(-103, "OTHERS", "As ``dest``: every node but this one.")
PROC_NULL = Constant(
    -104,
    "PROC_NULL",
    "As ``dest`` or ``source``: no node. A send to it is dropped, a receive from it returns None, at once.",
)


# Methods of mpi4py that have another name here, or another form.
_MPI = {
    "Get_rank": "comm.rank",
    "Get_size": "comm.size",
    "isend": "comm.send(), which copies and never waits for the receiver",
    "issend": "comm.ssend()",
    "irecv": "comm.recv() at a later time: until then messages wait, sorted by source and tag",
    "iprobe": "comm.try_recv_message()",
    "improbe": "comm.try_recv_message()",
    "mprobe": "comm.recv_message()",
    "ibarrier": "comm.fuzzy_barrier()",
    "gatherv": "comm.gather()",
    "scatterv": "comm.scatter()",
    "allgatherv": "comm.allgather()",
    "alltoallv": "comm.alltoall()",
    "Abort": "sys.exit(3), or any uncaught exception",
    "Dup": "comm.split(0)",
    "Free": "comm.close()",
}


def missing(name: str, kind: type) -> AttributeError:
    """Return the error of a communicator without such an attribute, perhaps with what mpi4py's name is here."""
    here = _MPI.get(name) or _MPI.get(name.lower())
    if here is None and name[:1].isupper() and hasattr(kind, name.lower()):
        here = f"comm.{name.lower()}(), also for arrays"
    text = f"'Comm' object has no attribute {name!r}"
    if here is None:
        return AttributeError(text)  # Python adds the name, and with it a suggestion
    return AttributeError(f"{text}; in spcomm mpi4py's {name}() is {here}", name=name)


class Message(NamedTuple):
    """A received message: its data, its sender and its tag.

    Attributes
    ----------
    data : object
        The object that was sent. None in the result of `Comm.probe`.
    source : int
        The rank of the sender, or `PROC_NULL`.
    tag : int
        The tag of the send.

    Notes
    -----
    The data are this node's own. SpeedesComm 2.3 returns bytes, whose type the caller knows.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> comm.send("hello", dest=comm.rank, tag=7)
    >>> data, source, tag = comm.recv_message()
    >>> data, source == comm.rank, tag
    ('hello', True, 7)
    """

    data: Any
    source: int
    tag: int


class NodeLayout(NamedTuple):
    """Place of one node: a line of Table 1 of the SpeedesComm paper.

    Attributes
    ----------
    rank : int
        Its number in the run, from 0 (the paper: node id).
    box : int
        The number of its machine, from 0.
    local_rank : int
        Its number within its box, from 0 (the paper: local node id).
    local_zero : int
        The rank of the node whose local rank in that box is 0.

    Notes
    -----
    `Comm.layout` has one for each node. SpeedesComm 3.3, Table 1.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> neighbours = [node.rank for node in comm.layout if node.box == comm.box]
    >>> comm.rank in neighbours
    True
    """

    rank: int
    box: int
    local_rank: int
    local_zero: int
