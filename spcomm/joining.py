# SPDX-License-Identifier: MIT
"""`startup`: how a process joins the run it belongs to."""

import atexit
import os
import sys
from operator import index

from spcomm import config
from spcomm._core import agent, comm, errors


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
        How many nodes this machine is to have. 0 (default): as many as were started.
    total_nodes : int, optional
        How many nodes the whole run is to have. 0: as many as were started.
    group_id : int, optional
        Tells jobs apart that share a server; 0 or more.
    infile : str or path, optional
        Not supported yet: give None.

    Returns
    -------
    Comm
        The same object each time.

    Raises
    ------
    ConfigError
        The numbers contradict how the run was started.
    TypeError
        A number is not an int.
    VersionError
        The launcher is of another version of spcomm.

    Notes
    -----
    Under ``spcomm run -n N`` it joins the N nodes that were started; without, it makes a run of one node. It does not
    wait for the other nodes. At the normal end of the program `Comm.close` is called by itself.

    SpeedesComm 2.1, SpComm_StartUp.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> print(f"node {comm.rank} of {comm.size}")
    node 0 of 1
    """
    numbers = {"local_nodes": local_nodes, "total_nodes": total_nodes, "group_id": group_id}
    numbers = {name: _number(name, value) for name, value in numbers.items()}
    if infile is not None:
        raise errors.wrong_nodes(
            "infile", infile, "files are not read yet; give the nodes to the command: spcomm run -n 4 …"
        )
    if comm.current is None:
        comm.current = _join(numbers)
    else:
        _check(numbers, comm.current.size)
    return comm.current


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


def _check(numbers: "dict[str, int]", size: int) -> None:
    for name in ("local_nodes", "total_nodes"):
        if numbers[name] in (0, size):
            continue
        if size == 1:
            raise errors.needs_launcher(name, numbers[name])
        raise errors.wrong_nodes(
            name, numbers[name], f"this run was started with {size} nodes; give {size} or 0"
        )


def _join(numbers: "dict[str, int]") -> comm.Comm:
    member = config.membership()
    if member is None:
        _check(numbers, 1)
        segment = agent.Segment(1, disable=agent.disable_mask(os.environ.get("SPCOMM_DISABLE", "")))
        node = comm.Comm(segment.fd, 0, numbers["group_id"])
        segment.close()
    else:
        _check(numbers, member.size)
        if not config.is_segment(member):
            raise errors.closed_segment(member.fd, member.rank)
        node = comm.Comm(member.fd, member.rank, numbers["group_id"])
    # Functions that the program registers from now on run before this one, and may still communicate.
    atexit.register(_close, node)
    return node


def _close(node: comm.Comm) -> None:
    """At exit. A program that failed does not finish in order: the launcher tells the others how it ended."""
    if getattr(sys, "last_exc", getattr(sys, "last_value", None)) is not None and node.size > 1:
        comm.abandon(node)
        return
    try:
        node.close()
    except errors.WaitTimeoutError as error:
        print(f"spcomm: {error}", file=sys.stderr)
