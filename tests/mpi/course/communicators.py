# SPDX-License-Identifier: MIT
"""Communicators, groups, topologies, attributes and errors."""

import numpy as np
from mpi4py import MPI

from course import program, say, say_all


@program()
def rows_and_columns(comm):
    """Two splits of a grid."""
    width = MPI.Compute_dims(comm.size, 2)[1]
    row = comm.Split(comm.rank // width, comm.rank)
    column = comm.Split(comm.rank % width, -comm.rank)
    say_all(comm, (row.rank, row.allreduce(comm.rank), column.rank, column.allgather(comm.rank)))
    row.Free()
    column.Free()


@program()
def split_with_undefined(comm):
    """A node that gives UNDEFINED is in no communicator."""
    part = comm.Split(0 if comm.rank % 2 == 0 else MPI.UNDEFINED, key=-comm.rank)
    if part == MPI.COMM_NULL:
        answer = "in none"
    else:
        answer = f"{part.rank} of {part.size}"
        part.Free()
    say_all(comm, answer)


@program()
def duplicates_do_not_mix(comm):
    """Equal tags of two communicators are two messages."""
    copy = comm.Dup()
    opposite = comm.size - 1 - comm.rank
    requests = [comm.isend("of the world", opposite, 1), copy.isend("of the copy", opposite, 1)]
    first = copy.recv(source=opposite, tag=1)
    second = comm.recv(source=opposite, tag=1)
    MPI.Request.waitall(requests)
    say_all(comm, (first, second, MPI.Comm.Compare(comm, copy) == MPI.CONGRUENT))
    copy.Free()


@program()
def groups(comm):
    """Set operations of groups, and their ranks."""
    world = comm.Get_group()
    even = world.Range_incl([(0, comm.size - 1, 2)])
    low = world.Incl(range((comm.size + 1) // 2))
    both, either, only = (
        operation(even, low) for operation in (MPI.Group.Intersection, MPI.Group.Union, MPI.Group.Difference)
    )
    for group in (even, low, both, either, only):
        say(comm, group.Translate_ranks(None, world))
    say(comm, world.Excl([0]).size, MPI.Group.Compare(even, even.Incl(range(even.size))) == MPI.IDENT)
    say_all(comm, even.rank if even.rank != MPI.UNDEFINED else "outside")


@program()
def communicator_of_a_group(comm):
    """Create, by all; Create_group, by members."""
    group = comm.Get_group().Excl([0]) if comm.size > 1 else comm.Get_group()
    made = comm.Create(group)
    total = None
    if made != MPI.COMM_NULL:
        again = comm.Create_group(group, tag=4)
        total = again.allreduce(made.rank)
        again.Free()
        made.Free()
    say_all(comm, total)


@program()
def grid(comm):
    """Coordinates, neighbours and lines of a Cartesian grid."""
    dims = MPI.Compute_dims(comm.size, [0, 0])
    cart = comm.Create_cart(dims, periods=[True, False])
    line = cart.Sub([False, True])
    around = [rank if rank != MPI.PROC_NULL else "none" for axis in (0, 1) for rank in cart.Shift(axis, 1)]
    say(comm, cart.Get_topo()[:2], cart.Get_cart_rank([0, dims[1] - 1]))
    say_all(cart, (cart.coords, around, line.allgather(comm.rank)))
    line.Free()
    cart.Free()


@program()
def cube(comm):
    """Three dimensions; sums along an axis by shifts."""
    cart = comm.Create_cart(MPI.Compute_dims(comm.size, 3), periods=[True] * 3, reorder=True)
    totals = []
    for axis in range(3):
        source, dest = cart.Shift(axis, -1)
        value = total = cart.rank
        for _ in range(cart.dims[axis] - 1):
            value = cart.sendrecv(value, dest=dest, source=source)
            total += value
        totals.append(total)
    say_all(cart, totals)
    cart.Free()


@program()
def star(comm):
    """A graph: node 0 in the middle."""
    if comm.size == 1:
        return
    edges = [*range(1, comm.size), *[0] * (comm.size - 1)]
    graph = comm.Create_graph(list(range(comm.size - 1, 2 * comm.size - 1)), edges)
    say_all(graph, (graph.neighbors, sorted(graph.neighbor_allgather(graph.rank * 2))))
    graph.Free()


@program()
def neighbors_of_a_grid(comm):
    """Halos by Neighbor_alltoall on a periodic grid."""
    cart = comm.Create_cart(MPI.Compute_dims(comm.size, 2), periods=[True, False])
    out = np.arange(4, dtype="i") + 10 * cart.rank
    into = np.full(4, -1, "i")
    cart.Neighbor_alltoall(out, into)
    request = cart.Ineighbor_allgather(np.array([cart.rank], "i"), gathered := np.full(4, -1, "i"))
    request.Wait()
    say_all(cart, (into.tolist(), gathered.tolist()))
    cart.Free()


@program()
def directed_graph(comm):
    """A distributed graph with weights: each sends to the next two."""
    sources = [(comm.rank - 1) % comm.size, (comm.rank - 2) % comm.size]
    targets = [(comm.rank + 1) % comm.size, (comm.rank + 2) % comm.size]
    graph = comm.Create_dist_graph_adjacent(sources, targets, [1, 2], [1, 2])
    counts, into = [1, 2], np.zeros(3, "i")
    out = np.array([comm.rank, comm.rank * 10, comm.rank * 10 + 1], "i")
    graph.Neighbor_alltoallv([out, counts], [into, counts])
    say_all(graph, (graph.Get_dist_neighbors_count(), into.tolist()))
    graph.Free()


@program()
def edges_told_by_one(comm):
    """Node 0 knows all edges of a distributed graph."""
    edges = [(rank + 1) % comm.size for rank in range(comm.size)] if comm.rank == 0 else []
    graph = comm.Create_dist_graph(list(range(len(edges))), [1] * len(edges), edges)
    sources, targets, _ = graph.Get_dist_neighbors()
    say_all(graph, (sources, targets, graph.neighbor_alltoall([comm.rank])))
    graph.Free()


@program()
def two_groups(comm):
    """An intercommunicator between the even and the odd nodes."""
    if comm.size == 1:
        return
    side = comm.rank % 2
    local = comm.Split(side)
    inter = local.Create_intercomm(0, comm, 1 - side, tag=11)
    sums = inter.allreduce(comm.rank)
    root = (MPI.ROOT if local.rank == 0 else MPI.PROC_NULL) if side == 0 else 0
    news = inter.bcast("news" if root == MPI.ROOT else None, root=root)
    merged = inter.Merge(high=side == 0)
    say_all(comm, (inter.remote_size, sums, news, merged.rank))
    for made in (merged, inter, local):
        made.Free()


@program()
def attributes(comm):
    """A key, copied by Dup and deleted by Free."""
    log = []
    key = MPI.Comm.Create_keyval(
        lambda c, k, value: [*value, "copied"], lambda c, k, value: log.append(len(value))
    )
    made = comm.Dup()
    made.Set_attr(key, ["set"])
    copy = made.Dup()
    found = copy.Get_attr(key)
    copy.Free()
    made.Free()
    MPI.Comm.Free_keyval(key)
    say_all(comm, (found, log, comm.Get_attr(MPI.TAG_UB) >= 32767))


@program()
def info(comm):
    """Pairs of keys and values."""
    pairs = MPI.Info.Create()
    pairs["color"], pairs["shape"] = "blue", "round"
    copy = pairs.Dup()
    del pairs["color"]
    say(comm, sorted(copy.items()), "color" in pairs, pairs.get("color", "none"), len(pairs))
    copy.Free()
    pairs.Free()


@program()
def names(comm):
    """Communicators and types have names."""
    made = comm.Dup()
    made.Set_name("a copy")
    say(comm, MPI.COMM_WORLD.Get_name(), made.Get_name(), MPI.INT.Get_name())
    made.Free()


@program()
def errors(comm):
    """Errors come back as exceptions, with their classes."""
    made = comm.Dup()
    made.Set_errhandler(MPI.ERRORS_RETURN)
    calls = {
        "rank": lambda: made.Send(np.zeros(1), dest=comm.size),
        "tag": lambda: made.Send(np.zeros(1), dest=0, tag=-7),
        "root": lambda: made.Bcast(np.zeros(1), root=comm.size + 3),
        "type": lambda: MPI.INT.Create_vector(-1, 1, 1),
        "dims": lambda: MPI.Compute_dims(6, [4, 0]),
    }
    for name, call in calls.items():
        try:
            call()
            found = "none"
        except MPI.Exception as error:
            code = error.Get_error_class()
            found = [
                known
                for known in ("RANK", "TAG", "ROOT", "ARG", "DIMS", "COUNT")
                if getattr(MPI, f"ERR_{known}") == code
            ]
        if name != "type":  # MPIs disagree between ERR_ARG and ERR_COUNT
            say(comm, name, found)
    made.Free()


@program()
def own_errors(comm):
    """Classes, codes and texts of a program's own."""
    error_class = MPI.Add_error_class()
    code = MPI.Add_error_code(error_class)
    MPI.Add_error_string(code, "the soup is cold")
    say(comm, MPI.Get_error_string(code), MPI.Get_error_class(code) == error_class)


@program()
def who_shares_memory(comm):
    """Split_type makes a communicator of those."""
    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    say_all(comm, (1 <= near.size <= comm.size, near.allreduce(1) == near.size))
    near.Free()


@program()
def many_communicators(comm):
    """Dup and Free in a loop."""
    total = 0
    for _ in range(50):
        made = comm.Dup()
        total += made.allreduce(1)
        made.Free()
    say_all(comm, total)


@program()
def versions(comm):
    """MPI is initialized, of version 3 or later, and knows threads."""
    say(comm, MPI.Is_initialized(), MPI.Is_finalized(), MPI.Get_version() >= (3, 1))
    say(comm, MPI.Query_thread() >= MPI.THREAD_SINGLE, MPI.Is_thread_main())
