# SPDX-License-Identifier: MIT
"""Errors of a Cluster beside spcomm's other errors."""

from spcomm._core.errors import SpcommError


class ClusterError(SpcommError):
    """A call of a `Cluster` has failed on a node.

    Its text says which node failed first and how, and shows the tracebacks of the nodes.

    Attributes
    ----------
    rank : int
        The node that failed first.
    error : BaseException or None
        The exception of that node; None if it was killed, or if its exception cannot be pickled.

    Notes
    -----
    The other nodes were interrupted; the cluster may be used again.

    Examples
    --------
    >>> import spcomm
    >>> with spcomm.Cluster(2) as cluster:
    ...     try:
    ...         cluster.run(lambda comm: 1 / comm.rank)
    ...     except spcomm.ClusterError as failure:
    ...         print("node", failure.rank, "raised a", type(failure.error).__name__)
    node 0 raised a ZeroDivisionError
    """

    __module__ = "spcomm"

    def __init__(self, text: str, rank: int = -1, error: "BaseException | None" = None) -> None:
        super().__init__(text)
        self.rank = rank
        self.error = error

    def __reduce__(self) -> tuple:
        return ClusterError, (self.args[0], self.rank, self.error)
