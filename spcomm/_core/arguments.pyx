# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Ranks, tags and destinations as users give them, checked before anything happens."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongAndOverflow
from libc.stdint cimport int32_t

from spcomm._core.destination cimport RankSet
from spcomm._core.handle cimport Handle
from spcomm._core.integers cimport as_int
from spcomm._core.libspc cimport (
    SPC_ANY_SOURCE,
    SPC_ANY_TAG,
    SPC_TAG_MAX,
    spcomm_destination_count,
    spcomm_destination_from,
    spcomm_destination_to_ranks,
)

from spcomm._core import errors, names

cdef object ANY = names.ANY
cdef object ALL = names.ALL
cdef object OTHERS = names.OTHERS
cdef object PROC_NULL = names.PROC_NULL
cdef object Constant = names.Constant


cdef object constant_from(object number):
    """The constant of this value, if it is one: constants survive being kept in an array."""
    for constant in (ANY, ALL, OTHERS, PROC_NULL):
        if number == constant:
            return constant
    return None


# ---- destinations


cdef object find_targets(Handle handle, object dest, Targets *targets, str call):
    """Fill in `targets`; returns what must stay alive while they are used."""
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
    """A rank, or NOBODY, where there can be one destination only."""
    cdef object number = as_int(dest)
    if number is None:
        raise errors.not_one_target(call, dest)
    if number in (ALL, OTHERS):
        raise errors.not_one_target(call, constant_from(number))
    return rank_or_constant(handle, number, call, "dest")


cdef int32_t root_from(Handle handle, object root, str call) except -1:
    """The rank of one node that all name alike."""
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
    """A rank, or NOBODY for what was PROC_NULL before it became a plain number."""
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
    """A Destination: its bits are the ranks, in order, each once."""
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
    """An iterable of ranks. Each node gets the message once; PROC_NULL among them is nobody."""
    cdef bytes kept
    cdef int32_t *ranks
    cdef set seen = set()
    cdef uint32_t count = 0
    if isinstance(dest, (str, bytes, bytearray, dict)) or not hasattr(dest, "__iter__") or (
            getattr(dest, "ndim", 1) == 0):  # an array of NumPy's without dimensions has __iter__
        raise errors.bad_rank_type(call, "dest", dest)
    for item in dest:
        number = as_int(item)
        if number is None:
            raise errors.bad_rank_type(call, "dest", item)
        rank = rank_or_constant(handle, number, call, "dest")
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
    """A rank, SPC_ANY_SOURCE, or NOBODY."""
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
    """A tag or SPC_ANY_TAG."""
    return SPC_ANY_TAG if tag is ANY else send_tag(tag, call, argument)
