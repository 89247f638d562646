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


# Names of mpi4py that are others here, or need another form; those of its module and those of a communicator.
_NOT_BLOCKING = (
    "without the i: the others may arrive later; only comm.fuzzy_barrier() lets a node work meanwhile"
)
_GRID = "arithmetic with comm.rank, as in row, column = divmod(comm.rank, columns)"
_STARTED = "spcomm run -n N: the number of nodes is fixed when the run starts"
_JOINED = "comm = spcomm.startup(), which joins the run; it is left at the end of the program"
_RECEIVED = "comm.recv_message(), which returns data, source and tag"
_MPI = {
    "Get_rank": "comm.rank",
    "Get_size": "comm.size",
    "isend": "comm.send(), which copies and never waits for the receiver",
    "bsend": "comm.send(), which copies and never waits for the receiver",
    "rsend": "comm.send()",
    "issend": "comm.ssend()",
    "irecv": "comm.recv() at a later time: until then messages wait, sorted by source and tag",
    "sendrecv_replace": "comm.sendrecv()",
    "iprobe": "comm.try_recv_message()",
    "improbe": "comm.try_recv_message()",
    "mprobe": "comm.recv_message()",
    "ibarrier": "comm.fuzzy_barrier()",
    "gatherv": "comm.gather()",
    "scatterv": "comm.scatter()",
    "allgatherv": "comm.allgather()",
    "alltoallv": "comm.alltoall()",
    "alltoallw": "comm.alltoall()",
    "reduce_scatter_block": "comm.reduce_scatter()",
    "Abort": "sys.exit(3), or any uncaught exception",
    "Dup": "comm.split(0)",
    "Clone": "comm.split(0)",
    "Create": "comm.split(), with a color for each group",
    "Create_group": "comm.split(), with a color for each group",
    "Split_type": "comm.split(comm.box)",
    "Free": "comm.close()",
    "Disconnect": "comm.close()",
    "Create_cart": _GRID,
    "Create_graph": _GRID,
    "Create_dist_graph": _GRID,
    "Get_coords": _GRID,
    "Get_cart_rank": _GRID,
    "Shift": _GRID,
    "Spawn": _STARTED,
    "Spawn_multiple": _STARTED,
    "Get_parent": _STARTED,
    "Get_processor_name": "platform.node(); comm.box is the number of the machine",
    "Get_name": "repr(comm)",
    "MPI": _JOINED,
    "COMM_WORLD": _JOINED,
    "COMM_SELF": "comm.split(comm.rank)",
    "COMM_NULL": "None",
    "Init": _JOINED,
    "Init_thread": _JOINED,
    "Is_initialized": _JOINED,
    "Finalize": "comm.close(), which the end of the program calls",
    "ANY_SOURCE": "spcomm.ANY",
    "ANY_TAG": "spcomm.ANY",
    "ROOT": "root=0, or any other rank",
    "IN_PLACE": "not needed: results are new objects",
    "BOTTOM": "not needed: results are new objects",
    "REPLACE": "an operator of your own: @spcomm.op",
    "UNDEFINED": "None, as in comm.split(None)",
    "Status": _RECEIVED,
    "Get_source": _RECEIVED,
    "Get_tag": _RECEIVED,
    "Get_count": "len() of what comm.recv() returns",
    "Request": "not needed: comm.send() returns at once",
    "Wtime": "time.perf_counter()",
    "Wtick": "time.get_clock_info('perf_counter').resolution",
    "Intracomm": "spcomm.Comm",
    "Op": "spcomm.op",
    "Win": "comm.empty() and comm.move(); no node writes into another one's memory",
    "File": "a file for each node, or comm.gather() and one that writes",
}
for _name in ("bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "scan", "exscan"):
    _MPI[f"i{_name}"] = _MPI[f"i{_name}v"] = f"comm.{_name}(), {_NOT_BLOCKING}"
for _name in ("send", "ssend", "bsend", "rsend", "recv"):
    _MPI[f"{_name}_init"] = f"comm.{'recv' if _name == 'recv' else 'send'}() in a loop"
_MPI |= dict.fromkeys(("ineighbor_allgather", "neighbor_allgather", "neighbor_alltoall"), _GRID)


def of_mpi(name: str, kind: "type | None" = None) -> str:
    """Return what a name of mpi4py is here, as the end of a message; empty: it is none. `kind`: the class `Comm`."""
    here = _MPI.get(name) or (_MPI.get(name.lower()) if name[:1].isupper() else None)
    if here is None and kind is not None and name[:1].isupper() and hasattr(kind, name.lower()):
        here = f"comm.{name.lower()}(), also for arrays"
    call = "" if name.isupper() or name in ("Status", "Request", "Intracomm", "Op", "Win", "File") else "()"
    return f"; in spcomm mpi4py's {name}{call} is {here}" if here is not None else ""


def missing(name: str, kind: type) -> AttributeError:
    """Return the error of a communicator without such an attribute, perhaps with what mpi4py's name is here."""
    text, hint = f"'Comm' object has no attribute {name!r}", of_mpi(name, kind)
    if not hint:
        return AttributeError(text)  # Python adds the name, and with it a suggestion
    return AttributeError(text + hint, name=name)


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
