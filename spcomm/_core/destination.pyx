# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""`Destination`: csrc/include/spcomm/destination.h as a Python set."""

from spcomm._core.integers cimport as_int
from spcomm._core.libspc cimport (
    SPCOMM_DESTINATION_RANKS,
    spcomm_destination_clear,
    spcomm_destination_contains,
    spcomm_destination_count,
    spcomm_destination_equal,
    spcomm_destination_first,
    spcomm_destination_from,
    spcomm_destination_next,
    spcomm_destination_reset,
    spcomm_destination_set,
)

from collections.abc import MutableSet

from spcomm._core import value_errors


cdef class RankSet:
    """The bits of a `Destination`, which adds the operators of sets."""

    def set(self, rank):
        """Put a node in.

        Parameters
        ----------
        rank : int
            0 to 1023. It may be in already.

        Raises
        ------
        RankError
            There is no such rank; nothing was changed.
        TypeError
            rank is no int.

        Notes
        -----
        SpeedesComm 2.3, Set.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination()
        >>> to.set(3)
        >>> 3 in to
        True
        """
        spcomm_destination_set(&self.bits, checked("set", rank))

    def reset(self, rank):
        """Take a node out.

        Parameters
        ----------
        rank : int
            0 to 1023. It need not be in.

        Raises
        ------
        RankError, TypeError
            As for `set`.

        Notes
        -----
        SpeedesComm 2.3, Reset.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([3, 5])
        >>> to.reset(3)
        >>> to
        Destination([5])
        """
        spcomm_destination_reset(&self.bits, checked("reset", rank))

    def add(self, rank):
        """Put a node in, as `set` does: the name that Python's sets have for it.

        Parameters
        ----------
        rank : int
            0 to 1023.

        Raises
        ------
        RankError, TypeError
            As for `set`.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination()
        >>> to.add(3)
        >>> to
        Destination([3])
        """
        spcomm_destination_set(&self.bits, checked("add", rank))

    def discard(self, rank):
        """Take a node out if it is in, as Python's sets do.

        Parameters
        ----------
        rank : object
            Whatever cannot be in, nothing happens.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([1, 2])
        >>> to.discard(1)
        >>> to.discard("not a rank")
        >>> to
        Destination([2])
        """
        spcomm_destination_reset(&self.bits, member(rank))

    def clear(self):
        """Take all nodes out.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([1, 2])
        >>> to.clear()
        >>> len(to)
        0
        """
        spcomm_destination_clear(&self.bits)

    def first(self):
        """Begin an iteration.

        Returns
        -------
        int or None
            The least rank; None: the set is empty.

        Notes
        -----
        ``for rank in destination`` does the same and keeps its place by itself. SpeedesComm 2.3, GetFirstNode, which
        in C and in ``spcomm.speedes`` gives -1 instead of None.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([3, 5])
        >>> to.first(), to.next(), to.next()
        (3, 5, None)
        """
        cdef int rank = spcomm_destination_first(&self.bits)
        return None if rank < 0 else rank

    def next(self):
        """Go on with the iteration that `first` has begun.

        Returns
        -------
        int or None
            The next rank, in ascending order; None: that was the last.

        Notes
        -----
        There is one iteration for each object. Nodes may be set and reset meanwhile; ranks below the last one given
        are not visited. SpeedesComm 2.3, GetNextNode.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([3, 5])
        >>> to.first(), to.next(), to.next()
        (3, 5, None)
        """
        cdef int rank = spcomm_destination_next(&self.bits)
        return None if rank < 0 else rank

    def copy(self):
        """Make another set of the same nodes.

        Returns
        -------
        Destination
            Of the same class; its iteration has not begun.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([1, 2])
        >>> to.copy() == to, to.copy() is to
        (True, False)
        """
        return type(self)(self)

    def __contains__(self, rank):
        return spcomm_destination_contains(&self.bits, member(rank))

    def __len__(self):
        return spcomm_destination_count(&self.bits)

    def __iter__(self):
        cdef int rank = spcomm_destination_from(&self.bits, 0)
        while rank >= 0:
            yield rank
            rank = spcomm_destination_from(&self.bits, rank + 1)

    def __reduce__(self):
        return type(self), (list(self),), getattr(self, "__dict__", None) or None

    def __repr__(self):
        return f"{type(self).__name__}({list(self)!r})"


class Destination(RankSet, MutableSet):
    """A set of nodes to send to.

    Parameters
    ----------
    ranks : iterable of ints, optional
        The nodes that are in it at first, 0 to 1023.

    Raises
    ------
    RankError
        A rank is not among 0 to 1023.
    TypeError
        A rank is no int.

    Notes
    -----
    It is a `collections.abc.MutableSet`: everything that Python says of sets works, ``in``, ``len``, ``|``, ``&``,
    ``-``, ``^``, ``<=``, also with other sets; iteration is by ascending rank. Beside that it has the paper's methods
    `set`, `reset`, `first` and `next`. It is a bit set, so giving it as ``dest`` costs less than a list.

    Whether a run has a node of that rank is seen when something is sent: then a rank beyond the run's is a `RankError`,
    and nothing was sent. An empty one sends to nobody.

    SpeedesComm 2.3, SpDestination.

    Examples
    --------
    >>> import spcomm
    >>> comm = spcomm.startup()
    >>> to = spcomm.Destination([comm.rank, 5])
    >>> to.set(3)
    >>> to.reset(5)
    >>> sorted(to) == list(to), 3 in to, 5 in to
    (True, True, False)
    >>> comm.send("to all of the set", to & set(range(comm.size)))
    >>> comm.recv()
    'to all of the set'
    """

    __slots__ = ()

    def __init__(self, ranks=()):
        self.clear()
        if isinstance(ranks, (str, bytes, bytearray, dict)) or not hasattr(ranks, "__iter__"):
            raise value_errors.bad_ranks(ranks)
        for rank in ranks:
            spcomm_destination_set(&(<RankSet>self).bits, checked("", rank))

    def __eq__(self, other):
        if isinstance(other, RankSet):
            return spcomm_destination_equal(&(<RankSet>self).bits, &(<RankSet>other).bits)
        return super().__eq__(other)

    __hash__ = None


cdef int checked(str method, object rank) except -1:
    """A rank that a set may have."""
    cdef object number = as_int(rank)
    if number is None:
        raise value_errors.bad_member_type(method, rank, SPCOMM_DESTINATION_RANKS)
    if not 0 <= number < SPCOMM_DESTINATION_RANKS:
        raise value_errors.bad_member(method, rank, SPCOMM_DESTINATION_RANKS)
    return number


cdef int member(object value) except? -1:
    """A rank that may be in a set; -1: it cannot be. As for Python's sets, what is equal is the same: 3.0 is 3."""
    cdef object number = as_int(value)
    if number is None and isinstance(value, (float, bool)) and value == value // 1:
        number = int(value)
    return number if number is not None and 0 <= number < SPCOMM_DESTINATION_RANKS else -1
