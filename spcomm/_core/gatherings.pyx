# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The part of `Comm` that moves data between all nodes: bcast, gather, allgather, scatter, alltoall."""

from libc.stdint cimport int32_t

from spcomm._core.arguments cimport root_from
from spcomm._core.gathering cimport Gathering, begin, is_new
from spcomm._core.libspc cimport (
    SPC_OPERATION_DATA_ALLGATHER,
    SPC_OPERATION_DATA_ALLTOALL,
    SPC_OPERATION_DATA_BCAST,
    SPC_OPERATION_DATA_GATHER,
    SPC_OPERATION_DATA_SCATTER,
)


cdef class Gatherings(Coordinated):
    """Collectives that move data. See `Comm`."""

    def bcast(self, obj, root=0, copy=True):
        """Give an object of one node to all.

        Parameters
        ----------
        obj : object
            On the root, what all are to get: anything that can be sent. On the others it is not looked at; None, say.
        root : int, optional
            The rank of the node whose object it is; the same on all nodes.
        copy : bool, optional
            False: where several nodes get the same large array, this one gets a read-only view of it in shared
            memory instead of a copy of its own, for as long as it likes. Each node decides for itself.

        Returns
        -------
        object
            On the root `obj` itself, elsewhere what it sent: of the same type, and private to the node.

        Raises
        ------
        RankError
            There is no such node; nothing was done.
        MismatchError
            Another node called something else, or gave another root. Raised on all nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError
            On the root: `obj` cannot be pickled. The others raise `SpcommError`, which says so; all have taken part.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits until all nodes have called it, while other threads of this node run. Interrupted by Ctrl-C it stays
        entered: the same call goes on, with the object given before.

        Cost: that of a `barrier`, and up to 4 KiB no more. Longer ones the root copies once, before it enters, and each
        of the others once (not at all with ``copy=False``, or where there is only one).

        ACLMPL 4 (broadcast).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> settings = {"steps": 10} if comm.rank == 0 else None
        >>> comm.bcast(settings)
        {'steps': 10}
        """
        cdef int32_t rank = root_from(self, root, "bcast")
        cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_BCAST, rank, "bcast")
        if rank == self.rank_number:
            if is_new(gathering):
                gathering.give(obj)
            gathering.run()
            return gathering.own_value
        gathering.run()
        return gathering.part_of(rank, copy)

    def gather(self, obj, root=0):
        """Collect an object of each node on one node.

        Parameters
        ----------
        obj : object
            Anything that can be sent. The nodes may give objects of different types and sizes.
        root : int, optional
            The rank of the node that gets them; the same on all nodes.

        Returns
        -------
        list or None
            On the root the objects of all nodes, by rank; its own is a copy, as the others are. Elsewhere None.

        Raises
        ------
        RankError, MismatchError, NodeLostError
            As for `bcast`.
        TypeError
            `obj` cannot be pickled. Then the root raises `SpcommError`, which says so; all have taken part.
        SpcommError
            As for `bcast`; or on the root, what a node sent cannot be unpickled.

        Notes
        -----
        Waits until all nodes have called it, and on the root until all objects are there. Interrupted, it goes on as
        `bcast` does. Cost: that of a `barrier`, and up to 4 KiB no more. A longer object is copied once, by who gives
        it; a large array on the root is that memory.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> ranks = comm.gather(comm.rank)
        >>> ranks == (list(range(comm.size)) if comm.rank == 0 else None)
        True
        """
        cdef int32_t rank = root_from(self, root, "gather")
        cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_GATHER, rank, "gather")
        if is_new(gathering):
            gathering.give(obj)
        gathering.run()
        return gathering.parts(True) if rank == self.rank_number else None

    def allgather(self, obj, copy=True):
        """Collect an object of each node on all nodes.

        Parameters
        ----------
        obj : object
            As for `gather`.
        copy : bool, optional
            As for `bcast`.

        Returns
        -------
        list
            The objects of all nodes, by rank. This node's own is a copy, as the others are.

        Raises
        ------
        MismatchError, NodeLostError
            As for `bcast`.
        TypeError
            `obj` cannot be pickled. The others raise `SpcommError`, which says so; all have taken part.
        SpcommError
            As for `gather`.

        Notes
        -----
        Waits until all nodes have called it and all objects are here. Interrupted, it goes on as `bcast` does. Cost:
        that of a `barrier`, and up to 4 KiB no more; longer ones are copied as in `bcast`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.allgather(comm.rank * 10) == [rank * 10 for rank in range(comm.size)]
        True
        """
        cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_ALLGATHER, 0, "allgather")
        if is_new(gathering):
            gathering.give(obj)
        gathering.run()
        return gathering.parts(copy)

    def scatter(self, objs, root=0):
        """Divide a sequence of one node among all nodes.

        Parameters
        ----------
        objs : sequence, iterable or numpy.ndarray
            On the root, one item for each node, in the order of their ranks; of an array, the first axis has that
            length. The items may be of different types and sizes: ``numpy.array_split(a, comm.size)`` divides any
            array. On the others it is not looked at; None, say.
        root : int, optional
            The rank of the node whose sequence it is; the same on all nodes.

        Returns
        -------
        object
            The item for this node. The root gets a copy of its own, as the others do.

        Raises
        ------
        RankError, MismatchError, NodeLostError
            As for `bcast`.
        ValueError
            On the root: there are not as many items as nodes.
        TypeError
            On the root: `objs` is no sequence, or an item cannot be pickled. Of both errors the others are told by
            `SpcommError`; all have taken part.
        SpcommError
            As for `bcast`; or the item cannot be unpickled.

        Notes
        -----
        Waits until all nodes have called it and the item is here. Interrupted, it goes on as `bcast` does. Cost: that
        of a `barrier`, and up to 4 KiB an item and 16 KiB in all no more. Longer items are copied once, by the root.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> whole = np.arange(10) if comm.rank == 0 else None
        >>> mine = comm.scatter(None if whole is None else np.array_split(whole, comm.size))
        >>> comm.global_sum(int(mine.sum()))
        45
        """
        cdef int32_t rank = root_from(self, root, "scatter")
        cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_SCATTER, rank, "scatter")
        if rank == self.rank_number:
            if is_new(gathering):
                gathering.give_each(objs)
            gathering.run()
            return gathering.own_copy()
        gathering.run()
        return gathering.part_of(rank, True)

    def alltoall(self, objs):
        """Give each node an object of its own, and get one of each.

        Parameters
        ----------
        objs : sequence, iterable or numpy.ndarray
            One item for each node, as for `scatter`.

        Returns
        -------
        list
            What the nodes gave to this one, by rank. This node's own item is a copy, as the others are.

        Raises
        ------
        MismatchError, NodeLostError
            As for `bcast`.
        ValueError, TypeError
            As for `scatter`. The others raise `SpcommError`, which says so; all have taken part.
        SpcommError
            As for `gather`.

        Notes
        -----
        Waits until all nodes have called it and all items are here. Interrupted, it goes on as `bcast` does. Costs as
        `scatter`, of every node.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> got = comm.alltoall([f"from {comm.rank} to {rank}" for rank in range(comm.size)])
        >>> got == [f"from {rank} to {comm.rank}" for rank in range(comm.size)]
        True
        """
        cdef Gathering gathering = begin(self, SPC_OPERATION_DATA_ALLTOALL, 0, "alltoall")
        if is_new(gathering):
            gathering.give_each(objs)
        gathering.run()
        return gathering.parts(True)
