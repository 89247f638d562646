# SPDX-License-Identifier: MIT
"""`Cluster`: nodes for scripts, tests and notebooks."""

import ast
import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import index

from spcomm._core import segments
from spcomm._core.errors import ConfigError, SpcommError, shown
from spcomm.launch.cmdline.values import MOST_BOXES
from spcomm.notebook import pickling, source_cache
from spcomm.notebook.calls import Call
from spcomm.notebook.errors import ClusterError
from spcomm.notebook.mapping import MapCall
from spcomm.notebook.node_pool import NodePool
from spcomm.text import counted

_ANSWER_S = 2.0  # for a question of the completer
_open: "weakref.WeakSet[Cluster]" = weakref.WeakSet()


class Cluster:
    """Nodes that stay alive: they run one call after the other, as ``spcomm run`` runs a program.

    Parameters
    ----------
    nodes : int, optional
        How many, 1 to 1024. None: as many as there are cores that this process may use.
    boxes : int, optional
        Among how many boxes they are divided, 1 (default) to 64, and no more than nodes. Nodes of different boxes share
        no memory, as if each box were a machine of its own: see ``spcomm run --boxes``.
    room : str, optional
        ``"HOST"`` or ``"HOST:PORT"`` of a room (``spcomm serve --room``): the nodes are on its members, as with
        ``spcomm run --room``, and each member is a box. Without `nodes` each member has as many as it offers. The code
        is that of ``SPCOMM_CODE``, or is asked for. Results are plain values and NumPy arrays.

    Attributes
    ----------
    size : int
        How many nodes there are.
    boxes : int
        In how many boxes.
    room : str or None
        The room, if they are on its members.

    Raises
    ------
    ConfigError, TypeError
        `nodes` or `boxes` is no such number, or `room` no such place.
    ConnectionLostError
        The server of the room cannot be reached, or refuses the cluster.
    SpcommError
        The system has no room for so many processes. None of them is left.

    Notes
    -----
    Nodes are forked from a process that has imported NumPy and spcomm, and nothing else: unlike those of a fork of the
    caller they have none of its variables. They end with `close`, at the end of a ``with`` block, when the caller ends,
    however that happens. Between calls they sleep.

    Each call is a run of its own: messages that one has left never reach the next, and a `Comm` of an earlier call is
    closed. The processes, with their variables and imported modules, stay. So they do after an exception, a deadlock, a
    timeout or a Ctrl-C: the nodes are interrupted by a KeyboardInterrupt, and may be used again. Only when a node was
    killed, or did not end its work within three seconds after that, there are new nodes.

    The output of nodes appears on `sys.stdout` and `sys.stderr`, in whole lines with their ranks.

    One call at a time: another one, of any thread, raises `SpcommError` until it is over.

    Examples
    --------
    >>> import spcomm
    >>> with spcomm.Cluster(2) as cluster:
    ...     cluster.run(lambda comm, base: base + comm.global_sum(comm.rank), 10)
    [11, 11]
    """

    def __init__(self, nodes: "int | None" = None, *, boxes: int = 1, room: "str | None" = None) -> None:
        self._room = room
        if room is None:
            size = _number(nodes)
            self._pool = NodePool(size, _boxes(boxes, size))
        else:
            _check_room(room, boxes)
            self._pool = NodePool(None if nodes is None else _number(nodes), room=room)
        _open.add(self)

    def __repr__(self) -> str:
        if self._room is not None:
            closed = ", closed" if self._pool.closed else ""
            return f"<Cluster: {counted(self.size, 'node')} in the room at {self._room}{closed}>"
        boxes = f" in {self.boxes} boxes" if self.boxes > 1 else ""
        return f"<Cluster: {counted(self.size, 'node')}{boxes}{', closed' if self._pool.closed else ''}>"

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self._pool.kill()

    def __reduce__(self) -> tuple:
        raise TypeError("a Cluster cannot be pickled or sent: it belongs to the process that has made it")

    @property
    def size(self) -> int:
        """The number of nodes."""
        return self._pool.size

    @property
    def boxes(self) -> int:
        """The number of boxes."""
        return self._pool.boxes

    @property
    def room(self) -> "str | None":
        """The room whose members have the nodes; None: they are on this machine."""
        return self._room

    @property
    def since(self) -> float:
        """The start of the nodes, in seconds since the epoch; 0.0: there are none."""
        return self._pool.nodes.since if self._pool.nodes is not None else 0.0

    @property
    def processes(self) -> "list[int]":
        """The process ids of the nodes on their machines, by rank; empty if one of them has ended."""
        return self._pool.processes()

    def run(self, function: "Callable", *arguments: object, timeout: "float | None" = None) -> list:
        """Call a function on all nodes, and return the list of its results, by rank.

        Parameters
        ----------
        function : callable
            It is called as ``function(comm, *arguments)``, `comm` being the node's `Comm`; `startup` returns the same.
        *arguments : object
            The same for all nodes; each has its own copy.
        timeout : float, optional
            Seconds until the nodes are interrupted. None: never.

        Raises
        ------
        ClusterError
            The function has raised an exception on a node. The text shows its traceback; nodes that wait for that node
            get `NodeLostError`, and nodes that compute are interrupted.
        DeadlockError
            The nodes wait for each other. The text shows where.
        WaitTimeoutError
            The timeout has passed. The text shows where the nodes were.
        NodeLostError
            A node was killed, or a member has left the room; there are new nodes.
        ConnectionLostError
            The transport between the boxes has ended. The nodes stay.
        TypeError
            The function or an argument cannot be pickled.

        Notes
        -----
        Functions and arguments are pickled, by cloudpickle: lambdas, closures and functions of a notebook will do.
        Collective calls are the nodes' own affair, as in any program.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(3) as cluster:
        ...     cluster.run(lambda comm: comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size))
        [2, 0, 1]
        """
        if not callable(function):
            raise TypeError(f"run({shown(function)}): it takes a function and its arguments")
        work = self._packed((function, arguments), f"run({_name(function)})", function)
        __tracebackhide__ = True  # IPython and pytest leave these frames out

        def begin(call: Call) -> None:
            call.lines = source_cache.of(function)
            call.run("run", work, call.lines)

        return _values(self._pool.call(begin, f"run({_name(function)})", f"{_name(function)}()", timeout))

    def _packed(self, value: object, what: str, function: object = None) -> bytes:
        return pickling.packed(value, what, function, self._room is not None)

    def map(self, function: "Callable", items: Iterable, timeout: "float | None" = None) -> list:
        """Call a function once for each item, on any free node, and return the list of its results.

        Parameters
        ----------
        function : callable
            It is called as ``function(item)``. It is alone: `startup` gives it a run of one node.
        items : iterable
            All of them are pickled before the first one is handed out.
        timeout : float, optional
            Seconds until the nodes are interrupted. None: never.

        Returns
        -------
        list
            In the order of the items, regardless of which node was done first.

        Raises
        ------
        ClusterError
            The function has raised an exception. No more items are handed out then.
        WaitTimeoutError, NodeLostError, TypeError
            As for `run`.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(2) as cluster:
        ...     cluster.map(lambda x: x * x, range(5))
        [0, 1, 4, 9, 16]
        """
        if not callable(function):
            raise TypeError(f"map({shown(function)}): it takes a function, and an iterable of items")
        name = _name(function)
        work = self._packed(function, f"map({name})", function)
        parts = [self._packed(item, f"map({name}): item {at}") for at, item in enumerate(items)]
        __tracebackhide__ = True

        def begin(call: MapCall) -> None:
            call.lines = source_cache.of(function)
            call.run_items(parts, work, call.lines)

        call = self._pool.call(begin, f"map({name})", f"{name}()", timeout, MapCall)
        return [_read(call, data, f"item {at}") for at, data in sorted(call.items.items())]

    def execute(
        self,
        code: str,
        timeout: "float | None" = None,
        *,
        name: str = "",
        shown_as: str = "",
        grouped: bool = False,
        figure: "Callable[[int, bytes], None] | None" = None,
        trace: "str | None" = None,
        watch: "Callable[[str], None] | None" = None,
        arguments: "Sequence[str] | None" = None,
    ) -> list:
        """Run code on all nodes, as a notebook runs a cell, and return the values of its last line, by rank.

        Parameters
        ----------
        code : str
            Statements. Their variables stay with the node, and `comm` is there.
        timeout : float, optional
            Seconds until the nodes are interrupted. None: never.
        name : str, optional
            Its name in tracebacks and reports, instead of a file.
        shown_as : str, optional
            The lines that tracebacks show, if they are not those of `code`.
        grouped : bool, optional
            Show the output at the end, node by node, instead of as it comes.
        figure : callable, optional
            Called as ``figure(rank, png)`` with each figure that matplotlib has open at the end of the code, in
            the order of the nodes.
        trace : str, optional
            A file to write a trace to, as ``spcomm run --trace`` does.
        watch : callable, optional
            Called as ``watch(html)`` up to four times a second, with what each node does and its timeline so far. Needs
            pillow.
        arguments : sequence of str, optional
            The code is that of the program `name`, and these are its arguments: `sys.argv` and ``__file__`` are set.

        Returns
        -------
        list
            None if the last line is no expression. For a value that cannot be pickled, an object that shows the same.

        Raises
        ------
        SyntaxError
            It is no Python. No node has seen it.
        ClusterError, DeadlockError, WaitTimeoutError, NodeLostError
            As for `run`.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(2) as cluster:
        ...     _ = cluster.execute("x = comm.rank + 1")
        ...     cluster.execute("comm.global_sum(x)")
        [3, 3]
        """
        if not isinstance(code, str):
            raise TypeError(f"execute({shown(code)}): code is a str; for a function there is run()")
        _check_words(name=name, shown_as=shown_as)
        if figure is not None and not callable(figure):
            raise TypeError(f"execute(figure={shown(figure)}): it is a function, as of a rank and a PNG")
        if watch is not None and not callable(watch):
            raise TypeError(f"execute(watch={shown(watch)}): it is a function of a str")
        if watch is not None:
            import spcomm.notebook.live_view  # noqa: F401 - what it needs may be missing
        if trace is not None and not isinstance(trace, (str, os.PathLike)):  # a number would be a descriptor
            raise TypeError(f"execute(trace={shown(trace)}): it is the path of a file")
        name = name or "code"
        compile(ast.parse(code, name), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        __tracebackhide__ = True

        def begin(call: Call) -> None:
            call.grouped = grouped
            call.figure = figure
            call.watch = watch
            call.run("cell", code, name, shown_as or code, None if arguments is None else list(arguments))

        is_recorded = trace is not None or watch is not None
        return _values(self._pool.call(begin, name, name, timeout, trace=trace, is_recorded=is_recorded))

    def push(self, **variables: object) -> None:
        """Give all nodes variables, which `execute` finds there.

        Parameters
        ----------
        **variables : object
            Each node has its own copy.

        Raises
        ------
        TypeError
            One of them cannot be pickled.
        NodeLostError
            A node was killed; there are new nodes.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(2) as cluster:
        ...     cluster.push(base=10)
        ...     cluster.execute("base + comm.rank")
        [10, 11]
        """
        for name, value in variables.items():
            self._packed(value, f"push({name}=…)")  # so that the right one is named
        work = self._packed(variables, f"push({', '.join(variables)})")
        __tracebackhide__ = True
        self._pool.call(lambda call: call.run("push", work), "push()", "push()")

    def pull(self, name: str) -> list:
        """Return the values that a variable of `execute` has on the nodes, by rank.

        Parameters
        ----------
        name : str
            The variable's.

        Raises
        ------
        ClusterError
            There is no such variable on some node, or it cannot be pickled.
        TypeError, ValueError
            `name` is no name.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(2) as cluster:
        ...     _ = cluster.execute("x = comm.rank + 1")
        ...     cluster.pull("x")
        [1, 2]
        """
        if not isinstance(name, str):
            raise TypeError(f"pull({shown(name)}): it takes the name of a variable, a str")
        if not name.isidentifier():
            raise ValueError(f"pull({name!r}): that is not the name of a variable")
        __tracebackhide__ = True
        return _values(self._pool.call(lambda call: call.run("pull", name), "pull()", "pull()"))

    def _ask(self, verb: str, name: str) -> object:
        """Return what node 0 answers, for completion; None: there are no nodes now, or they don't answer."""
        if not self.processes:
            return None
        try:
            call = self._pool.call(lambda call: call.run(verb, name, alone=True), verb, verb, _ANSWER_S)
        except (SpcommError, OSError):
            return None
        return _values(call)[0]

    def restart(self, nodes: "int | None" = None, *, boxes: "int | None" = None) -> None:
        """End all nodes at once, and start new ones.

        Parameters
        ----------
        nodes : int, optional
            How many; None: as many as before.
        boxes : int, optional
            In how many boxes; None: in as many as before.

        Raises
        ------
        ConfigError, TypeError, SpcommError
            As for the class.

        Examples
        --------
        >>> import spcomm
        >>> with spcomm.Cluster(2) as cluster:
        ...     cluster.restart(3)
        ...     cluster.size
        3
        """
        if self._room is not None:
            _check_room(self._room, boxes)
            self._pool.restart(self.size if nodes is None else _number(nodes))
            return
        size = self.size if nodes is None else _number(nodes)
        self._pool.restart(size, _boxes(self.boxes if boxes is None else boxes, size))

    def close(self) -> None:
        """End the nodes. Closing again does nothing.

        They end as programs do: files are flushed, functions of `atexit` run. After three seconds they are killed. A
        call that is under way in another thread ends at once, with a `SpcommError` there. A cluster that is not closed
        is when the caller ends, before functions that were given to `atexit` earlier than spcomm was imported.

        Raises
        ------
        SpcommError
            It was called from within a call: by a `figure` function of `execute`, say.

        Examples
        --------
        >>> import spcomm
        >>> cluster = spcomm.Cluster(2)
        >>> cluster.close()
        """
        self._pool.close()


def _values(call: Call) -> list:
    return [
        None if data is None else _read(call, data, f"the result of node {rank}")
        for rank, data in sorted(call.results.items())
    ]


def _number(nodes: object) -> int:
    """The number of nodes that an argument means."""
    if nodes is None:
        return max(1, int(segments.cores()))
    if isinstance(nodes, bool):
        raise TypeError(f"Cluster({nodes!r}): the number of nodes is an int, not a bool")
    try:
        number = index(nodes)  # type: ignore[arg-type]
    except TypeError:
        kind = type(nodes).__name__
        raise TypeError(f"Cluster({shown(nodes)}): the number of nodes is an int, not a {kind}") from None
    if not 1 <= number <= segments.NODES_MAX:
        raise ConfigError(f"Cluster({shown(number)}): there may be 1 to {segments.NODES_MAX} nodes")
    return number


def _boxes(boxes: object, size: int) -> int:
    """The number of boxes that an argument means."""
    if isinstance(boxes, bool):
        raise TypeError(f"Cluster(boxes={boxes!r}): the number of boxes is an int, not a bool")
    try:
        number = index(boxes)  # type: ignore[arg-type]
    except TypeError:
        kind = type(boxes).__name__
        raise TypeError(
            f"Cluster(boxes={shown(boxes)}): the number of boxes is an int, not a {kind}"
        ) from None
    most = min(MOST_BOXES, size)
    if not 1 <= number <= most:
        raise ConfigError(
            f"Cluster(boxes={shown(number)}): {counted(size, 'node')} may be in 1 to {most} boxes, each with a node at "
            "least"
        )
    return number


def _check_room(room: object, boxes: object) -> None:
    if not isinstance(room, str):
        raise TypeError(f"Cluster(room={shown(room)}): a room is a str, HOST or HOST:PORT")
    if boxes not in (None, 1):
        raise ConfigError(f"Cluster(boxes={shown(boxes)}): in a room each member is a box; leave boxes out")


def _check_words(**words: object) -> None:
    for name, value in words.items():
        if not isinstance(value, str):
            raise TypeError(f"execute({name}={shown(value)}): it is a str")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"execute({name}={shown(value)}): it has characters that are not valid text"
                ) from None


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _read(call: Call, data: bytes, what: str) -> object:
    try:
        return pickling.unpacked(data, call.is_plain)
    except Exception as error:
        raise ClusterError(
            f"{what} cannot be read here: {type(error).__name__}: {error}", error=error
        ) from None


@atexit.register
def _close_all() -> None:
    """All of them at the same time: nodes that do not end keep the caller for three seconds, however many they are."""
    pools = [cluster._pool for cluster in list(_open)]
    for pool in pools:
        pool.hang_up()
    for pool in pools:
        pool.close()
