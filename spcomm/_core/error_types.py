# SPDX-License-Identifier: MIT
"""The exceptions that spcomm raises. Their texts are in errors.py."""


class SpcommError(Exception):
    """The base of all errors of spcomm; by itself: a call that cannot be made now, such as one after `Comm.close`.

    Notes
    -----
    An uncaught one ends the run: its traceback is printed last, and the exit code is 1.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> comm.close()
    >>> comm.barrier()
    Traceback (most recent call last):
    spcomm.SpcommError: barrier(): node 0 has closed this communicator, after which nothing can be sent or received ...
    """

    is_consequence = False  # follows from another node's error, which is to blame


class ConfigError(SpcommError, ValueError):
    """Numbers given to `startup` or to the command are wrong or contradict each other.

    Notes
    -----
    Nothing has been started or joined. ``spcomm run`` itself reports this with exit code 125.

    Examples
    --------
    >>> import spcomm
    >>> spcomm.startup(local_nodes=-1)
    Traceback (most recent call last):
    spcomm.ConfigError: startup(local_nodes=-1): ...
    """


class RankError(SpcommError, ValueError):
    """There is no such node.

    Notes
    -----
    Raised before anything is sent or waited for. In a run of one node, it explains how to start several nodes.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> comm.send("hello", dest=-1)
    Traceback (most recent call last):
    spcomm.RankError: send(dest=-1): there is no node -1 (ranks are not negative; there are spcomm.ALL, ...
    """


class TagError(SpcommError, ValueError):
    """There is no such tag: they are 0 to 2**31 - 1. Or a receive asks for one that has a `Comm.handler`.

    Notes
    -----
    Raised before anything is sent or waited for. In SpeedesComm 2.3 types are 0 to 255.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> comm.send("hello", dest=comm.rank, tag=-1)
    Traceback (most recent call last):
    spcomm.TagError: send(tag=-1): there is no tag -1; tags are 0 to 2147483647
    """


class TruncationError(SpcommError):
    """A message does not fit into the array given as `out`.

    Notes
    -----
    The message stays queued, in its place: receive it without `out`, or into a larger array.

    Examples
    --------
    >>> import numpy as np, spcomm
    >>> comm = spcomm.startup()
    >>> comm.send(np.arange(5.0), dest=comm.rank)
    >>> try:
    ...     comm.recv(out=np.empty(3))
    ... except spcomm.TruncationError:
    ...     print(comm.recv())
    [0. 1. 2. 3. 4.]
    """


class MismatchError(SpcommError):
    """The nodes called different collective operations, or the same one with different types or shapes.

    Notes
    -----
    Raised on all nodes, with each node's call and line; the operation has not happened, and the next ones work.
    ``spcomm explain SP105`` has a program that does it.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> try:
    ...     total = comm.global_sum(comm.rank)
    ... except spcomm.MismatchError as error:  # a single node has no other to differ from
    ...     print(error)
    """


class CycleError(SpcommError):
    """A call that is not allowed within a cycle of coordinated messages.

    Notes
    -----
    Nothing has happened, and the cycle goes on. SpeedesComm 2.3: all send, then all receive.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> comm.coordinated_send("hello", dest=spcomm.ALL)
    >>> comm.barrier()
    Traceback (most recent call last):
    spcomm.CycleError: barrier(): ...
    """


class NodeLostError(SpcommError):
    """A node that this call needs has died or finished.

    Attributes
    ----------
    rank : int
        The node, or -1 if there are several.

    Notes
    -----
    It names how that node ended, and where. Messages received before are not lost. If several nodes fail,
    ``spcomm run`` reports the first one, never those that only missed it. ``spcomm explain SP104`` has a program that
    does it. ScaMPI.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> try:
    ...     comm.barrier()
    ... except spcomm.NodeLostError as error:
    ...     print("going on without node", error.rank)
    """

    rank = -1
    is_consequence = True


class DeadlockError(SpcommError):
    """All nodes wait for each other.

    Notes
    -----
    A call raises it only in a run of one node that no launcher watches, as ``python program.py`` starts it: nobody can
    end its wait. While other threads, a timer or a signal handler could, a warning on stderr says so once. Elsewhere a
    proven deadlock ends the run, with exit code 99 and a report (``spcomm explain SP101``).

    Examples
    --------
    >>> import spcomm
    >>> issubclass(spcomm.DeadlockError, spcomm.SpcommError)
    True
    """


class WaitTimeoutError(SpcommError, TimeoutError):
    """The timeout of a call passed.

    Notes
    -----
    Each call documents its state afterwards: a receive has taken nothing, a barrier stays entered. The text also names
    a message that is there and nearly matches (``spcomm explain SP108``).

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> try:
    ...     comm.recv(tag=3, timeout=0)
    ... except TimeoutError:
    ...     print("nothing yet")
    nothing yet
    """


class BufferInUseError(SpcommError):
    """The memory for `Comm.move` is still visible to another array.

    Notes
    -----
    Nothing has happened. Drop the other view (``del part``), or send a copy.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> a = comm.empty(10)
    >>> part = a[:5]
    >>> comm.move(a, dest=comm.rank)
    Traceback (most recent call last):
    spcomm.BufferInUseError: ...
    """


class ConnectionLostError(SpcommError):
    """The connection between boxes broke and did not come back.

    Notes
    -----
    Raised, after ``--link-timeout`` seconds, by every call that waits for others, or polls for messages and finds none.
    It names the box. Shorter breaks are repaired, and no message is lost or doubled. ScaMPI ("cables being unplugged").

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> try:
    ...     comm.barrier()
    ... except spcomm.ConnectionLostError as error:
    ...     print("save what there is:", error)
    """


class AuthenticationError(SpcommError):
    """The other side does not know the secret of this job, or the code of this room.

    Notes
    -----
    Raised when boxes connect to a server, before any code of the program has run; ``spcomm run`` then ends with exit
    code 125.

    Examples
    --------
    >>> import spcomm
    >>> issubclass(spcomm.AuthenticationError, spcomm.SpcommError)
    True
    """


class VersionError(SpcommError):
    """Two parts of a run are of different versions of spcomm.

    Notes
    -----
    Raised by `startup`, or when boxes connect; it names both. Install the same one everywhere.

    Examples
    --------
    >>> import spcomm
    >>> isinstance(spcomm.__version__, str)
    True
    """


for _error in (SpcommError, *SpcommError.__subclasses__()):
    _error.__module__ = "spcomm"  # a traceback shows the name with which a program catches it
