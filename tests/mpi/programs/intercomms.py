# SPDX-License-Identifier: MIT
"""Communicators of two groups: made, duplicated, split, merged, freed; messages between the groups."""

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank


def halves(color_of):
    """An intercommunicator of the nodes of color 0 and those of color 1."""
    color = color_of(rank)
    other = next(node for node in range(size) if color_of(node) != color)
    local = world.Split(color, rank)
    made = local.Create_intercomm(0, world, other, tag=5)
    local.Free()
    return color, made


def members(group):
    return group.Translate_ranks(range(group.size), world.group)


def check(inter, mine, theirs):
    assert inter.is_inter and inter.size == len(mine) and inter.remote_size == len(theirs)
    assert members(inter.group) == mine and members(inter.remote_group) == theirs
    assert mine[inter.rank] == rank
    for peer in range(inter.remote_size):
        inter.send((rank, peer), dest=peer, tag=peer)
    for peer, node in enumerate(theirs):
        status = MPI.Status()
        assert inter.recv(source=peer, tag=inter.rank, status=status) == (node, inter.rank)
        assert status.source == peer


def check_all(color_of):
    color, inter = halves(color_of)
    mine = [node for node in range(size) if color_of(node) == color]
    theirs = [node for node in range(size) if color_of(node) != color]
    check(inter, mine, theirs)
    copy = inter.Dup()
    assert MPI.Comm.Compare(inter, copy) == MPI.CONGRUENT
    assert MPI.Comm.Compare(inter, world) == MPI.UNEQUAL
    inter.Free()
    check(copy, mine, theirs)
    for high in (0, 1):
        # The same everywhere: one group comes first, in its order; different: the one with high=0.
        merged = copy.Merge(high=bool(high))
        assert members(merged.group) in (mine + theirs, theirs + mine)
        merged.Free()
        merged = copy.Merge(high=(color == high))
        assert members(merged.group) == (theirs + mine if color == high else mine + theirs)
        assert merged.bcast(rank if merged.rank == 0 else None) == members(merged.group)[0]
        merged.Free()
    # Backwards, and without the last one of the larger group.
    part = copy.Split(0, key=-copy.rank)
    check(part, mine[::-1], theirs[::-1])
    part.Free()
    lonely = copy.Split(color)  # each color has members in one group alone
    assert lonely == MPI.COMM_NULL
    firsts = copy.Split(0 if copy.rank == 0 else MPI.UNDEFINED)
    assert (firsts == MPI.COMM_NULL) == (copy.rank > 0)
    if firsts != MPI.COMM_NULL:
        check(firsts, mine[:1], theirs[:1])
        firsts.Free()
    group = copy.group.Incl([0])
    created = copy.Create(group)
    assert (created == MPI.COMM_NULL) == (copy.rank > 0)
    if created != MPI.COMM_NULL:
        check(created, mine[:1], theirs[:1])
        created.Free()
    again = MPI.Intercomm.Create_from_groups(copy.group, 0, copy.remote_group, 0, "a name")
    assert MPI.Comm.Compare(copy, again) == MPI.CONGRUENT
    again.Free()
    copy.Free()


check_all(lambda node: int(node >= size // 2))
check_all(lambda node: int(node < (size + 1) // 2))
check_all(lambda node: node % 2)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    raise AssertionError("no error")


# The leader's error reaches its whole group, and groups that overlap are refused by both.
half = world.Split(int(rank >= size // 2))
assert error_of(half.Create_intercomm, half.size, world, 0) == MPI.ERR_RANK
leader_error = error_of(half.Create_intercomm, 0, world, size)
assert leader_error == (MPI.ERR_RANK if half.rank == 0 else MPI.ERR_OTHER)
assert error_of(MPI.Intercomm.Merge, world) == MPI.ERR_COMM
