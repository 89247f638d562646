# SPDX-License-Identifier: MIT
"""`startup`: how a process joins the run it belongs to."""

import atexit
import os
import sys
from functools import partial
from operator import index

from spcomm import config
from spcomm._core import comm, errors, handle, segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm._core import forking

_NODES = ("local_nodes", "total_nodes")


def startup(
    local_nodes: int = 0,
    total_nodes: int = 0,
    group_id: int = 0,
    infile: "str | os.PathLike[str] | None" = None,
) -> comm.Comm:
    """Join the run that this process belongs to, and return this node's `Comm`.

    Parameters
    ----------
    local_nodes : int, optional
        How many nodes this machine, or box, is to have. 0 (default): as many as were started.
    total_nodes : int, optional
        How many nodes the whole run is to have. 0: as many as were started. Without a launcher all of them are on this
        machine, unless the infile names a server.
    group_id : int, optional
        Tells groups apart, 0 or more. 0: that of ``spcomm run --group``.
    infile : str or path, optional
        A file of lines such as ``local_nodes = 4`` (TOML) with the values that are 0 in the call. Its keys are
        those of the arguments and, for a run over several machines, ``server``, ``code``, ``ranks`` and ``timeout``.

    Returns
    -------
    Comm
        The same object each time.

    Raises
    ------
    ConfigError
        The numbers are impossible, contradict each other or how the run was started; the infile is wrong (file, line,
        what is allowed); or nodes are to be forked from a process that cannot be: a notebook, one with threads.
    ConnectionLostError
        The server that the infile names cannot be reached, or the connection to it ended.
    OSError
        The system has no room for so many processes, or for their memory. None of them is left.
    WaitTimeoutError
        Other boxes did not come within the infile's ``timeout``, 300 seconds by default, or the first process of
        mpiexec within 30 seconds.
    TypeError
        A number is not an int.
    VersionError
        The launcher is of another version of spcomm.

    Notes
    -----
    Under ``spcomm run -n N`` it joins the N nodes that were started. Outside, it makes a run of one node, or of as many
    as `local_nodes` says: then it *forks*, and returns in that many processes. The caller is node 0; the others are
    copies of it, with all its variables, but with random numbers of their own and an empty standard input. Generators
    of random numbers that exist already, as of ``numpy.random.default_rng()``, are copied, too, and draw the same
    numbers on all nodes, of which a warning tells. Call it early: before threads start, files are opened for writing,
    or large data are read. One more process watches over the run: as under ``spcomm run``, a node that fails ends it,
    with a report. Node 0 ends last, with the first failure's exit code.

    Under another launcher, mpiexec (on one machine) or srun, all of its processes are one run, if no numbers are given:
    each has to call it, within 30 seconds of the first one.

    With ``server = "HOST:PORT"`` in the infile, where ``spcomm serve`` runs, boxes on several machines become one run
    when all of its `total_nodes` have come. Each box calls it with its own `local_nodes`; see the guide to boxes.

    Otherwise it does not wait for the other nodes to do the same. At the normal end of the program `Comm.close`
    is called by itself.

    SpeedesComm 2.1, SpComm_StartUp.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> print(f"node {comm.rank} of {comm.size}")
    node 0 of 1
    """
    start = _Start(local_nodes, total_nodes, group_id, infile)
    if comm.current is None:
        comm.current = _join(start)
    else:
        here = [line.box for line in comm.current.layout].count(comm.current.box)
        start.agree(comm.current.size, here, comm.current.group_id, _how)
    return comm.current


_how = ""  # how this run was started, for errors about later calls that contradict it


class _Start:
    """Arguments of a call of `startup`, each checked by itself."""

    def __init__(
        self,
        local_nodes: object,
        total_nodes: object,
        group_id: object,
        infile: "str | os.PathLike[str] | None",
    ) -> None:
        given = {"local_nodes": local_nodes, "total_nodes": total_nodes, "group_id": group_id}
        self.numbers = {name: _number(name, value) for name, value in given.items()}
        self.infile = infile
        self.server = ""  # where boxes on several machines meet
        self.from_file: set[str] = set()
        if infile is not None:
            self._read(infile)
        self._check()

    def _read(self, infile: "str | os.PathLike[str]") -> None:
        from spcomm._core import forking

        if not isinstance(infile, (str, bytes, os.PathLike)):
            found = f"infile is a path or None, not a {type(infile).__name__}"
            raise TypeError(f"startup(infile={errors.shown(infile)}): {found}")
        found = forking.read_infile(infile)
        self.server = found["server"]
        found["local_nodes"] = found["local_nodes"] or len(found["ranks"])
        for name, number in self.numbers.items():
            if number == 0 and found[name]:
                self.numbers[name] = found[name]
                self.from_file.add(name)

    def _check(self) -> None:
        local, total = (self.numbers[name] for name in _NODES)
        for name in _NODES:
            if self.numbers[name] > segments.NODES_MAX:
                raise self.wrong(name, f"a run has up to {segments.NODES_MAX} nodes")
        if local and 0 < total < local:
            raise self.wrong("total_nodes", f"that is less than local_nodes={local}, which are part of them")

    @property
    def meets(self) -> bool:
        """Without a launcher: whether other boxes have nodes of the run."""
        local, total = (self.numbers[name] for name in _NODES)
        return bool(self.server) and (not total or total > (local or 1))

    def check_alone(self) -> None:
        """Without a launcher there is one box, or a server where several meet."""
        local, total = (self.numbers[name] for name in _NODES)
        if self.meets and not total:
            found = (
                f"it says server = {errors.shown(self.server)}, so other machines have the rest of the nodes"
            )
            raise errors.wrong_nodes(
                "infile", self.infile, f"{found}; say how many there are in all: total_nodes"
            )
        if local and total > local and not self.meets:
            where = 'server = "HOST:PORT" in an infile says where boxes on several machines meet'
            raise self.wrong(
                "total_nodes", f"that is more than local_nodes={local}; give {local} or 0, or {where}"
            )

    @property
    def nodes(self) -> int:
        """The number of nodes asked for; 0: as many as there are."""
        return self.numbers["local_nodes"] or self.numbers["total_nodes"]

    @property
    def call(self) -> str:
        """The call, as far as it is about nodes."""
        for name in _NODES:
            if self.numbers[name]:
                return self._where(name)
        return "startup()"

    def agree(self, size: int, here: int, group: int, how: str) -> None:
        """Refuse arguments that contradict an existing run; `here` is the number of nodes in this box."""
        for name, right in zip(_NODES, (here, size), strict=True):
            if self.numbers[name] not in (0, right):
                where = "" if right == size else f" of its {size} in this box"
                from spcomm.text import counted

                found = f"this run has {counted(right, 'node')}{where}{how}"
                other = "" if where else f", or {_other_start(self.numbers[name])}"
                raise self.wrong(name, f"{found}; give {right} or 0{other}")
        if self.numbers["group_id"] not in (0, group):
            raise self.wrong("group_id", f"this run has group_id {group}{how}; give {group} or 0")

    def wrong(self, name: str, allowed: str) -> errors.ConfigError:
        return errors.ConfigError(f"{self._where(name)}: {allowed}")

    def _where(self, name: str) -> str:
        value = errors.shown(self.numbers[name])
        if name in self.from_file:
            return f"startup(infile={errors.shown(self.infile)}), which says {name} = {value}"
        return f"startup({name}={value})"


def _other_start(nodes: int) -> str:
    return f"start it with `spcomm run -n {errors.shown(nodes)}`, or by the first call of startup()"


def _number(name: str, value: object) -> int:
    if isinstance(value, bool):
        raise TypeError(f"startup({name}={value!r}): {name} is an int, not a bool")
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"startup({name}={errors.shown(value)}): {name} is an int, not a {type(value).__name__}"
        ) from None
    if number < 0:
        raise errors.wrong_nodes(name, number, f"{name} is 0 or more")
    return number


def _join(start: _Start) -> comm.Comm:
    global _how
    member = config.membership()
    place, has_launcher = None, False
    if member is None:
        start.check_alone()
        if not start.nodes and not start.meets:
            place, has_launcher = _find_launcher()
    if member is not None:
        _how = ", started by spcomm run"
        node = _join_launched(start, member)
    elif start.meets:
        from spcomm import forking

        _how = f", started by {start.call}"
        numbers = (start.numbers["local_nodes"] or 1, start.numbers["total_nodes"], start.numbers["group_id"])
        assert start.infile is not None
        node = forking.meet(numbers, start.infile, start.call)
    elif start.nodes > 1:
        from spcomm import forking

        _how = f", started by {start.call}"
        node = forking.start(start.nodes, start.numbers["group_id"], start.call)
    elif place is not None:
        from spcomm import forking

        _how = f", started by {place.launcher}"
        node = forking.join(place, start.numbers["group_id"])
    else:
        _how = ", started by startup() without nodes" if not start.nodes else f", started by {start.call}"
        segment = segments.Segment(1, disable=segments.disable_mask())
        node = comm.Comm(segment.fd, 0, start.numbers["group_id"])
        segment.close()
        handle.watch_itself(node, partial(_advice, start.call if start.nodes else ""))
        config.trim_tracebacks()
        if not start.nodes and not has_launcher and _is_script():
            atexit.register(_note_one_node, os.getpid())
    # Functions that the program registers from now on run before this one, and may still communicate.
    atexit.register(_leave, node)
    return node


def _advice(call: str) -> str:
    """Return the end of a deadlock's report in a run of one node: why there is one only, and how to get more."""
    if call:
        return f"This program runs as one node because of {call}; more nodes may be meant."
    if config.in_ipython():
        return f"This process is a run of one node.\n  Try: {config.CELL}"
    return (
        "This program runs as one node because it was started without spcomm run.\n"
        f"  Try: spcomm run -n 4 {config.program()}"
    )


def _is_script() -> bool:
    """Whether this process runs a file, and neither a module such as pytest nor what somebody types."""
    main = sys.modules.get("__main__")
    is_file = getattr(main, "__spec__", None) is None and hasattr(main, "__file__")
    return is_file and not sys.flags.interactive and not config.in_ipython()


def _note_one_node(process: int) -> None:
    """Print at the end of a script that asked how many nodes there are how to have more than this one."""
    failed = getattr(sys, "last_exc", getattr(sys, "last_value", None)) is not None
    if comm.size_asked and not failed and os.getpid() == process and sys.stderr is not None:
        print(f"spcomm: this was a run of one node: {config.how_to_have_more()}", file=sys.stderr)


def _find_launcher() -> "tuple[forking.Place | None, bool]":
    """Return this process's place among those that mpiexec or srun has started, if it has one; is there a launcher?"""
    from spcomm._core import forking

    try:
        place, note, is_there = forking.find_launcher(config.program())
    except errors.ConfigError:
        config.trim_tracebacks()
        raise
    if note:
        print(f"spcomm: {note}", file=sys.stderr)
    return place, is_there


def _join_launched(start: _Start, member: config.Membership) -> comm.Comm:
    group = member.group or start.numbers["group_id"]
    if not config.is_segment(member):
        raise errors.closed_segment(member.fd, member.rank)
    here = segments.nodes_here(member.fd) if start.numbers["local_nodes"] else member.size
    start.agree(member.size, here, group, _how)
    return _made(member, group, config.traced())


def _made(member: config.Membership, group: int, traced: bool) -> comm.Comm:
    if traced:
        from spcomm._core import regions
        from spcomm._core.traced import TracedComm

        regions.forget()
        return TracedComm(member.fd, member.rank, group)
    return comm.Comm(member.fd, member.rank, group)


def rejoin(member: config.Membership, traced: bool) -> comm.Comm:
    """Take part in another run, as a node of a `Cluster` does for each call. `startup` returns its `Comm` then."""
    global _how
    stand_alone()
    config.join(member)
    _how = ", started by a Cluster"
    comm.current = _made(member, member.group, traced)
    _tell_mpi(comm.current)
    return comm.current


def stand_alone() -> None:
    """Take part in no run, until `startup` makes one of this node alone."""
    atexit.unregister(_leave)
    config.join(None)
    comm.current = None
    _tell_mpi(None)


def _tell_mpi(node: "comm.Comm | None") -> None:
    """Let the library of MPI, if the program has loaded it, follow into another run."""
    if "spcomm._core.mpi" in sys.modules:
        sys.modules["spcomm._core.mpi"].change_run(node)


def report_requests() -> None:
    """Report what the calls of MPI in this run have left open."""
    if "spcomm._core.mpi" in sys.modules:
        sys.modules["spcomm._core.mpi"].report()


def release(node: comm.Comm, seconds: "float | None") -> None:
    """Close it, as at the end of a program; stderr reports messages that cannot be sent in that time."""
    try:
        node.close(seconds)
    except errors.WaitTimeoutError as error:
        print(f"spcomm: {error}", file=sys.stderr)


def _leave(node: comm.Comm) -> None:
    """Leave at exit. Code that waits for the other nodes runs after this one has left."""
    _close(node)
    if "spcomm.forking" in sys.modules:
        sys.modules["spcomm.forking"].end()


def _close(node: comm.Comm) -> None:
    """A program that failed does not finish in order: the launcher tells the others how it ended."""
    if getattr(sys, "last_exc", getattr(sys, "last_value", None)) is not None and node.size > 1:
        comm.abandon(node)
        return
    try:
        release(node, config.close_timeout())
    except KeyboardInterrupt:  # Python would print it as an ignored exception, with spcomm's frames
        comm.abandon(node)
