# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The part of `Comm` that combines values by any operator: reduce, allreduce, scan, exscan, reduce_scatter."""

cimport numpy as cnp
from libc.stdint cimport int32_t

from spcomm._core.arguments cimport root_from
from spcomm._core.collect cimport collect_array, collect_at_once, is_known
from spcomm._core.fold cimport Fold, new_fold
from spcomm._core.handle cimport Handle
from spcomm._core.libcollect cimport (
    SPC_OPERATION_ARRAY_ALLREDUCE,
    SPC_OPERATION_ARRAY_EXSCAN,
    SPC_OPERATION_ARRAY_REDUCE,
    SPC_OPERATION_ARRAY_REDUCE_SCATTER,
    SPC_OPERATION_ARRAY_SCAN,
)
from spcomm._core.libspc cimport SPC_SUM
from spcomm._core.reductions cimport reduce_value

from operator import index

import numpy as np

from spcomm._core import fold_errors, operators

cnp.import_array()

cdef object SUM = operators.SUM
cdef object MIN = operators.MIN
cdef object MAX = operators.MAX
cdef int OWN = operators.OWN


cdef class Folds(Gatherings):
    """Reductions by any operator. See `Comm`."""

    def reduce(self, x, op=SUM, root=0, algorithm=None):
        """Combine the values of all nodes, for one of them.

        Parameters
        ----------
        x, op, algorithm
            As for `allreduce`.
        root : int, optional
            The rank of the node that gets the result; the same on all nodes.

        Returns
        -------
        object or None
            On the root what `allreduce` would give, elsewhere None.

        Raises
        ------
        RankError
            There is no such node; nothing was done.
        MismatchError, NodeLostError, TypeError, ValueError, SpcommError
            As for `allreduce`. What an operator of the program raises comes out on the root, which applies it.

        Notes
        -----
        Waits, goes on after Ctrl-C and costs as `allreduce`, without the result where it is not wanted.

        ACLMPL 4.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> highest = comm.reduce(comm.rank, op=spcomm.MAX)
        >>> highest == (comm.size - 1 if comm.rank == 0 else None)
        True
        """
        cdef int32_t rank = root_from(self, root, "reduce")
        cdef object result
        cdef Fold fold
        if algorithm is None and isinstance(x, np.ndarray):
            result = collect_at_once(self, SPC_OPERATION_ARRAY_REDUCE, "reduce", op, rank, x)
            if result is not None:
                return result if rank == self.rank_number else None
        fold = new_fold(self, SPC_OPERATION_ARRAY_REDUCE, "reduce", op, rank, algorithm)
        if is_direct(fold, x, algorithm):
            x = reduce_directly(fold, x)
            return x if rank == self.rank_number else None
        return combine_all(fold, x)

    def allreduce(self, x, op=SUM, algorithm=None):
        """Combine the values of all nodes, for every node.

        Parameters
        ----------
        x : object
            For the operators of spcomm: int, float, complex, bool, SimTime, numpy.ndarray of numbers, bools or times,
            or a tuple of these; of the same type on every node, and of arrays the same shape and dtype. For `MINLOC`
            and `MAXLOC`: a tuple (value, index), or an array of dtype ``[('value', T), ('index', 'i8')]``. For an
            operator of the program: anything that can be sent.
        op : Op, optional
            `SUM`, `PROD`, `MIN`, `MAX`, `MINLOC`, `MAXLOC`; `LAND`, `LOR`, `LXOR`, also for floats, `BAND`, `BOR`,
            `BXOR` for ints and bools; or one made by `op`. The same on all nodes.
        algorithm : {None, 'tree', 'binary-swap', 'slices', 'flat'}, optional
            How values are combined. 'tree': the core's in steps, by the last node to come; those of an operator of the
            program by pairs of nodes, then by pairs of these. 'flat': by each node that wants the result. 'slices':
            each node combines its slice of all arrays. 'binary-swap': two nodes exchange halves of what they have,
            then halves of these with others. None: by what was measured to be fastest. The same on all nodes.
            'slices' and 'binary-swap' are for arrays, and for operators that are elementwise; other values go 'flat'.

        Returns
        -------
        object
            Of the type of `x`, private to the node. Bools are counted by `SUM` and `PROD`, as ints, those in arrays as
            int64; otherwise an array's dtype stays, in the machine's byte order, and its ints wrap, as NumPy's do. The
            logical ones give 0 or 1 of the type of `x`. Of a tuple the results of its items.

        Raises
        ------
        MismatchError
            Another node called something else, or gave another operator, algorithm, type, shape or dtype. Raised on all
            nodes.
        NodeLostError
            A node has ended without calling this.
        TypeError
            `op` is no operator, or not one for such values; nothing was done. Or `x` cannot be pickled; then the
            others raise `SpcommError`, which says so.
        ValueError
            There is no such algorithm, or not for such an operator, or `x` has no axes for elements that have some;
            nothing was done.
        Exception
            What an operator of the program raises comes out on all nodes that have applied it to those values: with
            'flat' all of them. With the others some, and then the rest raise `SpcommError`, which says so; in `reduce`
            only those that need the result are sure to.
        SpcommError
            The communicator is closed, or another thread of this node is inside a collective call.

        Notes
        -----
        Waits until all nodes have called it, while other threads of this node run. Values are combined along one fixed
        tree over the ranks, ``v[i] = v[i] op v[i + 2**k]``, whatever the algorithm: floating-point results are bitwise
        the same on all nodes, in all runs of that many nodes. Interrupted by Ctrl-C it stays entered: the same call
        goes on with the value given before, which must not be changed meanwhile if it is an array.

        Cost: numbers by `SUM`, `MIN` and `MAX` as a `barrier`. Arrays of ints, float32, float64, complex64, complex128,
        bool, times and pairs are combined in shared memory; a large array is copied once, and the result not at all.
        Other arrays go by 'slices' from 64 KiB on, if `op` is elementwise: an `alltoall` and an `allgather`. All else
        costs an `allgather`, and one application of `op` less than there are nodes, on each node; if it takes long,
        'tree' applies it as often in all.

        ACLMPL 4; SpeedesComm 2.2.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> bool((comm.allreduce(np.ones(3)) == comm.size).all())
        True
        >>> comm.allreduce((comm.rank * 2.5, comm.rank), op=spcomm.MINLOC)
        (0.0, 0)
        """
        cdef object result
        cdef Fold fold
        if algorithm is None and op is SUM and (type(x) is float or type(x) is int):
            return reduce_value(self, SPC_SUM, x, "allreduce(op=SUM)", SPC_OPERATION_ARRAY_ALLREDUCE, 0)
        if algorithm is None and isinstance(x, np.ndarray):
            result = collect_at_once(self, SPC_OPERATION_ARRAY_ALLREDUCE, "allreduce", op, 0, x)
            if result is not None:
                return result
        fold = new_fold(self, SPC_OPERATION_ARRAY_ALLREDUCE, "allreduce", op, 0, algorithm)
        if is_direct(fold, x, algorithm):
            return reduce_directly(fold, x)
        return combine_all(fold, x)

    def scan(self, x, op=SUM):
        """Combine the values of this node and of all of lower ranks.

        Parameters
        ----------
        x, op
            As for `allreduce`.

        Returns
        -------
        object
            What `allreduce` would give if there were no nodes of higher ranks; bitwise, too.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `allreduce`. What an operator of the program raises comes out on the nodes that have applied it to
            those values.

        Notes
        -----
        Waits until all nodes have called it, and goes on after Ctrl-C, as `allreduce`. Cost: of arrays as `allreduce`,
        of all else an `allgather`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> comm.scan(1) == comm.rank + 1
        True
        """
        return combine_all(new_fold(self, SPC_OPERATION_ARRAY_SCAN, "scan", op, 0, None), x)

    def exscan(self, x, op=SUM):
        """Combine the values of all nodes of lower ranks.

        Parameters
        ----------
        x, op
            As for `allreduce`.

        Returns
        -------
        object or None
            What `scan` gives on the node before; None on node 0.

        Raises
        ------
        MismatchError, NodeLostError, TypeError, SpcommError
            As for `scan`.

        Notes
        -----
        Waits, and costs, as `scan`.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> mine = 100  # elements of a file, say: where do they begin?
        >>> (comm.exscan(mine) or 0) == 100 * comm.rank
        True
        """
        return combine_all(new_fold(self, SPC_OPERATION_ARRAY_EXSCAN, "exscan", op, 0, None), x)

    def reduce_scatter(self, x, op=SUM, counts=None):
        """Combine what all nodes give, and divide the result among them.

        Parameters
        ----------
        x : numpy.ndarray, sequence or iterable
            An array, whose first axis is divided; the same shape and dtype on every node. Or one item for each node, in
            the order of their ranks, each of which may be of another type.
        op : Op, optional
            As for `allreduce`. One of the program is given a node's rows of an array, or two items.
        counts : sequence of ints, optional
            How many rows of an array each node gets, by rank; the same on all nodes. None: equally many, and one more
            on the first nodes if there is a rest.

        Returns
        -------
        object
            This node's rows of the combined array, or its combined item.

        Raises
        ------
        MismatchError, NodeLostError, SpcommError
            As for `allreduce`, and for other counts.
        TypeError, ValueError
            As for `allreduce`; or the counts are negative, not one for each node, or not as many together as there are
            rows; an array has no axes; there is not one item for each node. Nothing was done.
        Exception
            What an operator of the program raises comes out on the node whose part it was applied to.

        Notes
        -----
        Waits until all nodes have called it, and goes on after Ctrl-C, as `allreduce`. Cost: of arrays that the core
        combines, each is copied once, and each node combines its own rows; of all else an `alltoall`.

        Examples
        --------
        >>> import numpy as np, spcomm
        >>> comm = spcomm.startup()
        >>> rows = comm.reduce_scatter(np.ones((2 * comm.size, 3)))
        >>> rows.shape, float(rows[0, 0]) == comm.size
        ((2, 3), True)
        """
        cdef Fold fold = new_fold(self, SPC_OPERATION_ARRAY_REDUCE_SCATTER, "reduce_scatter", op, 0, None)
        if not isinstance(x, np.ndarray):
            return fold.fold_items(as_items(self, x, counts))
        if x.ndim == 0:
            raise fold_errors.no_axis(x)
        counts = as_counts(self, counts, len(x))
        if fold.number != OWN:
            x = operators.plain_array(op, "reduce_scatter", x)
            if is_known(fold, x):
                return collect_array(fold, x, counts)
        return fold.fold_items(np.split(x, np.cumsum(counts)[:-1]))


cdef bint is_direct(Fold fold, object x, object algorithm) noexcept:
    """Is it to be combined as for global_sum: by the core, in one step if it is not long?"""
    cdef object op = fold.op
    return algorithm is None and (op is SUM or op is MIN or op is MAX) and not isinstance(x, np.ndarray)


cdef object reduce_directly(Fold fold, object x):
    if type(x) is not float and type(x) is not int:
        x = operators.plain(fold.op, fold.function, x)
    return reduce_value(fold.handle, fold.number, x, fold.name, fold.operation, fold.root)


cdef object combine_all(Fold fold, object x):
    if not isinstance(x, np.ndarray):
        return fold.fold_values(x)
    if fold.number != OWN:
        x = operators.plain_array(fold.op, fold.function, x)
        return collect_array(fold, x, None) if is_known(fold, x) else fold.fold_array(x)
    # Other kinds of arrays may have more than elements: a mask, or a meaning of their own of "*".
    return fold.fold_array(x) if fold.op.elementwise and type(x) in (np.ndarray, np.memmap) else fold.fold_values(x)


cdef list as_items(Handle self, object x, object counts):
    if counts is not None:
        raise fold_errors.counts_of_objects()
    if isinstance(x, (str, bytes, bytearray, dict, set, frozenset)) or not hasattr(x, "__iter__"):
        raise fold_errors.no_items(x)
    items = list(x)
    if len(items) != self.node_count:
        raise fold_errors.wrong_number_of_items(len(items), self.node_count)
    return items


cdef list as_counts(Handle self, object counts, Py_ssize_t length):
    cdef Py_ssize_t size = self.node_count
    cdef list numbers
    if counts is None:
        return [length // size + (rank < length % size) for rank in range(size)]
    try:
        numbers = [index(count) for count in counts]
    except TypeError:
        raise fold_errors.bad_counts_type(counts) from None
    if len(numbers) != size:
        raise fold_errors.wrong_number_of_counts(len(numbers), size)
    for rank, count in enumerate(numbers):
        if count < 0:
            raise fold_errors.negative_count(count, rank)
    if sum(numbers) != length:
        raise fold_errors.wrong_sum(sum(numbers), length)
    return numbers
