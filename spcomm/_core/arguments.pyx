# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Ranks, tags and destinations from user arguments, checked before anything happens; and `Destination`, the Python set
over csrc/include/spcomm/destination.h.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongAndOverflow
from libc.stdint cimport int32_t

from spcomm._core.handle cimport Handle
from spcomm._core.integers cimport as_int
from libspc cimport *

from collections.abc import MutableSet

from spcomm._core import error_text, errors, names

if False:  # for the stub alone
    from collections.abc import Iterable, Iterator
    from typing import ClassVar, SupportsIndex

cdef object ANY = names.ANY
cdef object ALL = names.ALL
cdef object OTHERS = names.OTHERS
cdef object PROC_NULL = names.PROC_NULL
cdef object Constant = names.Constant


cdef object constant_from(object number):
    """Return the constant that has this value, if any, so that constants survive being stored in an array."""
    for constant in (ANY, ALL, OTHERS, PROC_NULL):
        if number == constant:
            return constant
    return None


# ---- destinations


cdef object find_targets(Handle handle, object dest, Targets *targets, str call):
    """Fill in `targets`; return the object that must stay alive while they are used."""
    cdef object number
    if type(dest) is int:
        targets.one = rank_or_constant(handle, dest, call, "dest")
        targets.ranks = &targets.one
        targets.count = targets.one != NOBODY
        return None
    if dest is ALL:
        targets.ranks = handle.everyone
        targets.count = handle.node_count
        return None
    if dest is OTHERS:
        targets.ranks = handle.the_others
        targets.count = handle.node_count - 1
        return None
    if dest is PROC_NULL:
        targets.count = 0
        return None
    if isinstance(dest, RankSet):
        return find_set(handle, <RankSet>dest, targets, call)
    if dest is ANY:
        raise errors.bad_constant(call, "dest", dest)
    number = as_int(dest)
    if number is not None:
        return find_targets(handle, number, targets, call)
    return find_many(handle, dest, targets, call)


cdef int32_t one_target(Handle handle, object dest, str call) except? -2147483647:
    """Return a rank, or NOBODY, for a call with exactly one destination."""
    cdef object number = as_int(dest)
    if number is None:
        raise errors.not_one_target(call, dest)
    if number in (ALL, OTHERS):
        raise errors.not_one_target(call, constant_from(number))
    return rank_or_constant(handle, number, call, "dest")


cdef int32_t root_from(Handle handle, object root, str call) except -1:
    """Return the rank of the one node that all nodes name alike."""
    cdef object number = root if type(root) is int else as_int(root)
    cdef int32_t rank
    if number is None:
        raise errors.bad_rank_type(call, "root", root)
    rank = rank_or_constant(handle, number, call, "root")
    if rank == NOBODY:
        raise errors.bad_constant(call, "root", PROC_NULL)
    return rank


cdef object bad_rank(Handle handle, str call, str argument, object number):
    members = () if handle.parent is None else (<object>handle).members
    return errors.bad_rank(call, argument, number, handle.node_count, members)


cdef int32_t rank_or_constant(Handle handle, object number, str call, str argument) except -1:
    """Return a rank, or NOBODY for a PROC_NULL that has become a plain number."""
    cdef int overflow = 0
    cdef long rank = PyLong_AsLongAndOverflow(number, &overflow)
    cdef object constant
    if overflow == 0 and 0 <= rank < handle.node_count:
        return <int32_t>rank
    constant = constant_from(number)
    if constant is PROC_NULL:
        return NOBODY
    if constant is not None:
        raise errors.bad_constant(call, argument, constant)
    raise bad_rank(handle, call, argument, number)


cdef object find_set(Handle handle, RankSet dest, Targets *targets, str call):
    """Targets from a Destination: its bits are the ranks, in order, each once."""
    cdef int beyond = spcomm_destination_from(&dest.bits, handle.node_count)
    cdef bytes kept
    if beyond >= 0:
        raise bad_rank(handle, call, "dest", beyond)
    targets.count = <uint32_t>spcomm_destination_count(&dest.bits)
    kept = PyBytes_FromStringAndSize(NULL, targets.count * sizeof(int32_t))
    targets.ranks = <int32_t *>PyBytes_AS_STRING(kept)
    spcomm_destination_to_ranks(&dest.bits, <int32_t *>PyBytes_AS_STRING(kept), <int>targets.count)
    return kept


cdef object find_many(Handle handle, object dest, Targets *targets, str call):
    """Targets from an iterable of ranks. Each node gets the message once; PROC_NULL among them is skipped."""
    cdef bytes kept
    cdef int32_t *ranks
    cdef set seen = set()
    cdef uint32_t count = 0
    if isinstance(dest, (str, bytes, bytearray, dict)) or not hasattr(dest, "__iter__") or (
            getattr(dest, "ndim", 1) == 0):  # a NumPy array without dimensions has __iter__
        raise errors.bad_rank_type(call, "dest", dest)
    for item in dest:
        number = as_int(item)
        if number is None:
            raise errors.bad_rank_type(call, "dest", item)
        try:
            rank = rank_or_constant(handle, number, call, "dest")
        except errors.RankError as error:
            raise errors.perhaps_swapped(error, call) from None
        if rank != NOBODY:
            seen.add(rank)
    kept = PyBytes_FromStringAndSize(NULL, len(seen) * sizeof(int32_t))
    ranks = <int32_t *>PyBytes_AS_STRING(kept)
    for rank in sorted(seen):
        ranks[count] = rank
        count += 1
    targets.ranks = ranks
    targets.count = count
    return kept


# ---- sources and tags


cdef int32_t source_from(Handle handle, object source, str call) except? -2147483647:
    """Return a rank, SPC_ANY_SOURCE, or NOBODY."""
    cdef object number
    if source is ANY:
        return SPC_ANY_SOURCE
    if type(source) is int:
        number = source
    else:
        number = as_int(source)
        if number is None:
            raise errors.bad_rank_type(call, "source", source)
    if number == ANY:
        return SPC_ANY_SOURCE
    return rank_or_constant(handle, number, call, "source")


cdef int32_t send_tag(object tag, str call, str argument) except -1:
    cdef int overflow = 0
    cdef long number
    if type(tag) is not int or isinstance(tag, Constant):
        return slow_tag(tag, call, argument)
    number = PyLong_AsLongAndOverflow(tag, &overflow)
    if overflow != 0 or number < 0 or number > SPC_TAG_MAX:
        raise errors.bad_tag(call, argument, tag)
    return <int32_t>number


cdef int32_t slow_tag(object tag, str call, str argument) except -1:
    cdef object number = as_int(tag)
    if isinstance(tag, Constant):
        raise errors.bad_tag(call, argument, tag)
    if number is None:
        raise errors.bad_tag_type(call, argument, tag)
    return send_tag(number, call, argument)


cdef int32_t tag_or_any(object tag, str call, str argument) except? -2147483647:
    """Return a tag or SPC_ANY_TAG."""
    return SPC_ANY_TAG if tag is ANY else send_tag(tag, call, argument)


# ---- a set of ranks


cdef class RankSet:
    """The bits of a `Destination`, which adds the set operators."""

    def set(self, rank: SupportsIndex) -> None:
        """Add a node to the set.

        Parameters
        ----------
        rank : int
            0 to 1023. It may already be in the set.

        Raises
        ------
        RankError
            There is no such rank; the set is unchanged.
        TypeError
            rank is not an int.

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

    def reset(self, rank: SupportsIndex) -> None:
        """Remove a node from the set.

        Parameters
        ----------
        rank : int
            0 to 1023. It need not be in the set.

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

    def add(self, rank: SupportsIndex) -> None:
        """Add a node, as `set` does, under the name that Python sets use.

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

    def discard(self, rank: object) -> None:
        """Remove a node if it is in the set, as Python sets do.

        Parameters
        ----------
        rank : object
            Any value; one that cannot be in the set is ignored.

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

    def clear(self) -> None:
        """Remove all nodes.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([1, 2])
        >>> to.clear()
        >>> len(to)
        0
        """
        spcomm_destination_clear(&self.bits)

    def first(self) -> int | None:
        """Begin an iteration.

        Returns
        -------
        int or None
            The lowest rank, or None if the set is empty.

        Notes
        -----
        ``for rank in destination`` does the same and tracks its position itself. SpeedesComm 2.3, GetFirstNode, which
        in C and in ``spcomm.speedes`` returns -1 instead of None.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([3, 5])
        >>> to.first(), to.next(), to.next()
        (3, 5, None)
        """
        cdef int rank = spcomm_destination_first(&self.bits)
        return None if rank < 0 else rank

    def next(self) -> int | None:
        """Continue the iteration that `first` began.

        Returns
        -------
        int or None
            The next rank, in ascending order, or None after the last.

        Notes
        -----
        Each object has one iteration. Nodes may be set and reset meanwhile; it skips ranks below the last one that it
        returned. SpeedesComm 2.3, GetNextNode.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([3, 5])
        >>> to.first(), to.next(), to.next()
        (3, 5, None)
        """
        cdef int rank = spcomm_destination_next(&self.bits)
        return None if rank < 0 else rank

    def copy(self) -> Self:
        """Return another set of the same nodes.

        Returns
        -------
        Destination
            An object of the same class; its iteration has not begun.

        Examples
        --------
        >>> import spcomm
        >>> to = spcomm.Destination([1, 2])
        >>> to.copy() == to, to.copy() is to
        (True, False)
        """
        return type(self)(self)

    def __contains__(self, rank: object, /) -> bool:
        return spcomm_destination_contains(&self.bits, member(rank))

    def __len__(self) -> int:
        return spcomm_destination_count(&self.bits)

    def __iter__(self) -> Iterator[int]:
        cdef int rank = spcomm_destination_from(&self.bits, 0)
        while rank >= 0:
            yield rank
            rank = spcomm_destination_from(&self.bits, rank + 1)

    def __reduce__(self):
        return type(self), (list(self),), getattr(self, "__dict__", None) or None

    def __repr__(self):
        return f"{type(self).__name__}({list(self)!r})"


class Destination(RankSet, MutableSet[int]):
    """A set of nodes that a message goes to.

    Parameters
    ----------
    ranks : iterable of ints, optional
        The initial nodes, 0 to 1023.

    Raises
    ------
    RankError
        A rank is outside 0 to 1023.
    TypeError
        A rank is not an int.

    Notes
    -----
    The class is a `collections.abc.MutableSet`: all operations of Python sets work, ``in``, ``len``, ``|``, ``&``,
    ``-``, ``^``, ``<=``, also with other sets; iteration is by ascending rank. It also has the paper's methods `set`,
    `reset`, `first` and `next`. It is a bit set, so giving it as ``dest`` costs less than a list.

    The send checks whether the run has a node of each rank: a rank beyond the run's raises `RankError`, and nothing is
    sent. A send to an empty set sends nothing.

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

    def __init__(self, ranks: Iterable[SupportsIndex] = ()) -> None:
        self.clear()
        if isinstance(ranks, (str, bytes, bytearray, dict)) or not hasattr(ranks, "__iter__"):
            raise error_text.bad_ranks(ranks)
        for rank in ranks:
            spcomm_destination_set(&(<RankSet>self).bits, checked("", rank))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RankSet):
            return spcomm_destination_equal(&(<RankSet>self).bits, &(<RankSet>other).bits)
        return super().__eq__(other)

    __hash__: ClassVar[None] = None


cdef int checked(str method, object rank) except -1:
    """Return a rank that a set can hold."""
    cdef object number = as_int(rank)
    if number is None:
        raise error_text.bad_member_type(method, rank, SPCOMM_DESTINATION_RANKS)
    if not 0 <= number < SPCOMM_DESTINATION_RANKS:
        raise error_text.bad_member(method, rank, SPCOMM_DESTINATION_RANKS)
    return number


cdef int member(object value) except? -1:
    """Return a rank that can be in a set, or -1. As in Python sets, equal values are the same member: 3.0 is 3."""
    cdef object number = as_int(value)
    if number is None and isinstance(value, (float, bool)) and value == value // 1:
        number = int(value)
    return number if number is not None and 0 <= number < SPCOMM_DESTINATION_RANKS else -1
