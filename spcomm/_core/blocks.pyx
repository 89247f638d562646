# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Arrays that live in shared memory: made there, and handed on without a copy.

An array may go without a copy if nothing else sees its memory. NumPy arrays derived from it refer to its hidden base
(memory.pyx), whose reference count so tells of them for certain. Who refers to the array itself, a memoryview or only
another name, is found out in holders.py; where that stays unknown, the array is copied, and whoever it was keeps the
old memory.
"""

cimport numpy as cnp
from cpython.ref cimport Py_REFCNT
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.string cimport memcpy
from posix.stdlib cimport posix_memalign

from spcomm._core.arguments cimport NOBODY, one_target, send_tag
from spcomm._core.arrays cimport Encoded, encode_array, is_array
from spcomm._core.handle cimport Handle, deadline_of, fail, timeout_to_ns
from spcomm._core.libblock cimport (
    spc_block_payload,
    spc_block_shared_t,
    spc_comm_await_gone,
    spc_comm_block_bytes,
    spc_comm_move_block,
    spc_comm_take_block,
)
from spcomm._core.libspc cimport (
    SPC_CONTEXT_USER,
    SPC_EAGAIN,
    SPC_NO_DEADLINE,
    SPC_OK,
    SPC_STORED_ARENA,
    SPC_STORED_HEAP,
    spc_comm_send,
    spc_comm_usable,
)
from spcomm._core.memory cimport ROOM_MAX, Memory, owned_bytes, room_for_meta

from math import prod
from operator import index

import numpy as np

from spcomm._core import block_errors, errors, holders, places

cnp.import_array()

cdef extern from *:
    """
    /* Memory that an array owns goes to another one, of bytes; the array keeps seeing it. */
    static PyObject *spcpy_take_data(PyArrayObject *array) {
        npy_intp length = PyArray_NBYTES(array);
        PyArray_Descr *descr = PyArray_DescrFromType(NPY_UINT8);
        PyObject *keeper = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &length, NULL, PyArray_DATA(array),
                                                NPY_ARRAY_CARRAY, NULL);
        if (keeper != NULL) {
            PyObject *handler = ((PyArrayObject_fields *)array)->mem_handler;
            Py_XINCREF(handler);
            ((PyArrayObject_fields *)keeper)->mem_handler = handler;
            PyArray_ENABLEFLAGS((PyArrayObject *)keeper, NPY_ARRAY_OWNDATA);
            PyArray_CLEARFLAGS(array, NPY_ARRAY_OWNDATA);
        }
        return keeper;
    }

    /* An array without bytes sees other memory instead of its own. */
    static int spcpy_look_at(PyArrayObject *array, void *data, PyObject *keeper) {
        PyObject *own = spcpy_take_data(array);
        if (own == NULL) {
            return -1;
        }
        ((PyArrayObject_fields *)array)->data = data;
        Py_DECREF(own);
        Py_INCREF(keeper);
        return PyArray_SetBaseObject(array, keeper);
    }
    """
    object spcpy_take_data(cnp.ndarray array)
    int spcpy_look_at(cnp.ndarray array, void *data, object keeper) except -1

cdef enum:
    ALIGNMENT = 64

cdef object send_call = errors.send_call


cdef class Counter:
    def references(self, a, dest, tag=0, timeout=None):
        return Py_REFCNT(a)


# What a compiled method has of an argument beside the caller's: the caller here has one.
cdef Py_ssize_t own_references = eval("count(object(), 0)", {"count": Counter().references}) - 1


cdef class Blocks(Messages):
    """Arrays in shared memory. See `Comm`."""

    def empty(self, shape, dtype=float, order="C"):
        """Make an array that lives in shared memory, so that `move` can hand it to another node without a copy.

        Parameters
        ----------
        shape : int or sequence of ints
            Its lengths.
        dtype : data-type, optional
            Anything NumPy takes but dtypes that hold Python objects.
        order : {'C', 'F'}, optional
            Whether the last index runs fastest, or the first.

        Returns
        -------
        numpy.ndarray
            Its contents are undefined, its data start at a multiple of 64 bytes. It is this node's alone, and an
            array like any other: it may be kept, changed, sliced, and sent with `send`, which copies it.

        Raises
        ------
        TypeError, ValueError
            `shape`, `dtype` or `order` is none, or the dtype holds Python objects.
        MemoryError
            There is no memory for it at all.
        SpcommError
            The communicator is closed.

        Notes
        -----
        Never waits; costs 1 to 2 µs, and the first touch of fresh pages. The memory is a block of this node's arena
        (``--arena``), which goes back when the last view of it dies, in this process or in the one it was moved to.
        Where the arena has no room the array lies in private memory; then `move` copies it.

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> grid = comm.empty((100, 100))
        >>> grid[:] = 1.5
        >>> grid.shape, grid.dtype
        ((100, 100), dtype('float64'))
        """
        cdef object kind = np.dtype(dtype)
        cdef tuple lengths = as_shape(shape)
        cdef object size
        if kind.hasobject:
            raise block_errors.bad_dtype("empty(dtype)", kind)
        if order not in ("C", "F"):
            raise block_errors.bad_order(order)
        if kind.itemsize == 0:
            kind = np.empty(0, kind).dtype  # NumPy's choice for a text of no length
        size = prod(lengths) * kind.itemsize
        if size > 1 << 62:
            raise block_errors.too_large(shape, kind)
        return np.ndarray(lengths, kind, take_bytes(self, size, len(lengths), kind), 0, None, order)

    def move(self, a, dest, tag=0, timeout=None):
        """Hand an array over to another node, without a copy.

        Parameters
        ----------
        a : numpy.ndarray
            An array from `empty`, or one that was received. It is empty afterwards: its first length is 0, of an
            array without dimensions the shape becomes ``(0,)``.
        dest : int or PROC_NULL
            The receiver's rank; this node's own, too. With `PROC_NULL` nobody gets it, and it is empty all the same.
        tag : int, optional
            A number for the receiver to choose by, 0 to 2**31 - 1.
        timeout : float, optional
            Seconds to wait where the call has to wait. None: for ever.

        Raises
        ------
        BufferInUseError
            Another view of the memory exists in this process (a slice, a reshaped array, a memoryview); or `a` is a
            view of a part, or of memory that is not its own; or other nodes see it (``copy=False``). Nothing has
            happened.
        TypeError
            `a` is no array, of a subclass, or holds Python objects; or there is more than one receiver.
        RankError, TagError
            There is no such node or tag; nothing has happened.
        WaitTimeoutError
            An array that has to be copied found no room in `timeout` seconds; nothing has happened.
        SpcommError
            The communicator is closed.

        Notes
        -----
        The receiver gets an ordinary message, in order with all others, and an array of the same shape, dtype and
        order that it may write to: the very same memory, whoever's arena it is of. Costs a few microseconds at any
        size. Does not wait for the receiver. What goes to a node that has ended is free again.

        These are copied, once, as `send` does, and emptied all the same: arrays in ordinary memory; arrays that came
        within an object (a dict, a list); and arrays of which it cannot be told whether a view exists, which happens
        where something refers to them that is no variable, and not in a container that a variable leads to. Other
        names for the array see it empty.

        ACLMPL 4 (transfer without a copy).

        Examples
        --------
        >>> import spcomm
        >>> comm = spcomm.startup()
        >>> a = comm.empty(1000)
        >>> a[:] = 7
        >>> comm.move(a, dest=comm.rank)
        >>> a.shape
        (0,)
        >>> b = comm.recv()
        >>> b.shape, b[0]
        ((1000,), np.float64(7.0))
        """
        cdef Py_ssize_t references = Py_REFCNT(a) - own_references
        cdef int32_t number = send_tag(tag, "move", "tag")
        cdef int32_t rank = one_target(self, dest, "move")
        cdef int64_t limit = -1 if timeout is None else timeout_to_ns(timeout, "move")
        cdef int status = spc_comm_usable(self.core)
        cdef object holder = None
        cdef Memory memory
        if not is_array(a):
            raise block_errors.not_an_array(a)
        if a.dtype.hasobject:
            raise block_errors.bad_dtype("move(a)", a.dtype)
        if status != SPC_OK:
            fail(self, status, (send_call, "move", dest, tag))
        memory = memory_of(a)
        if references > 1:
            holder = holders.find(a, references)
            if holder:
                raise block_errors.is_seen(holder)
        if rank == NOBODY:
            make_empty(a, holder is not None)
            return
        if self.strict:
            remember(self, rank, number)
        if memory is None or holder is not None or not move_memory(self, a, memory, rank, number, limit, dest, tag):
            copy_array(self, a, rank, number, limit, dest, tag)
            make_empty(a, holder is not None)


# ---- making


cdef tuple as_shape(object shape):
    cdef tuple lengths
    try:
        lengths = (index(shape),)
    except TypeError:
        try:
            lengths = tuple([index(length) for length in shape])
        except TypeError:
            raise block_errors.bad_shape(shape) from None
    for length in lengths:
        if length < 0:
            raise block_errors.negative_shape(shape)
    return lengths


cdef object take_bytes(Handle self, uint64_t length, Py_ssize_t dimensions, object dtype):
    """A hidden array of so many bytes, in the arena or in private memory."""
    cdef uint64_t room = room_for(dimensions, dtype)
    cdef spc_block_shared_t *block = NULL
    cdef void *private = NULL
    cdef int status = SPC_EAGAIN
    with nogil:
        status = spc_comm_take_block(self.core, room + length, &block)
    if status == SPC_OK:
        return owned_bytes(self, SPC_STORED_ARENA, block, <char *>spc_block_payload(block) + room, length)
    if status != SPC_EAGAIN:
        fail(self, status, "empty()")
    if posix_memalign(&private, ALIGNMENT, length if length > 0 else 1) != 0:
        raise block_errors.too_large(length, "bytes")
    return owned_bytes(self, SPC_STORED_HEAP, private, private, length)


cdef uint64_t room_for(Py_ssize_t dimensions, object dtype) except 0:
    """Before the data: for the meta of a message with such an array."""
    cdef Encoded encoded
    cdef uint64_t meta_bytes = 0
    cdef object kept
    if dimensions > 14 or not dtype.isbuiltin:
        kept = encode_array(np.empty(0, dtype), &encoded)
        meta_bytes = 0 if kept is None else encoded.payload.meta_bytes + 8 * dimensions
    return room_for_meta(meta_bytes)


def bytes_given_out(Handle handle):
    """How many bytes of this node's arena are in use, by whomever: for tests. Waits until dead nodes are gone."""
    cdef int status
    with nogil:
        status = spc_comm_await_gone(handle.core, SPC_NO_DEADLINE)
    if status != SPC_OK:
        fail(handle, status, "bytes_given_out()")
    return spc_comm_block_bytes(handle.core)


# ---- moving


cdef Memory memory_of(object a):
    """What alone holds the memory of `a`; None: it has to be copied. BufferInUseError if others see it."""
    cdef object base = a.base
    cdef Memory memory
    if base is None:
        if not a.flags.owndata:
            raise block_errors.is_a_view(base)
        return None
    if not is_array(base):
        raise block_errors.is_a_view(base)
    if Py_REFCNT(base) > 2:  # that of `a`, and of the variable
        raise block_errors.is_seen("another array")
    if base.nbytes != a.nbytes or not a.flags.forc or (
            cnp.PyArray_DATA(<cnp.ndarray>a) != cnp.PyArray_DATA(<cnp.ndarray>base)):
        raise block_errors.is_a_part(a.nbytes, base.nbytes)
    if isinstance(base.base, memoryview):  # one of the arrays of an object
        if is_hidden(base.base.obj) and not (<Memory>base.base.obj.base).is_sole:
            raise block_errors.is_shared()
        return None
    if base.base is None and base.flags.owndata:
        return None  # `a` is all that is left of it: np.zeros(6).reshape(2, 3)
    if not is_hidden(base):
        raise block_errors.is_a_view(base)
    memory = base.base
    if not memory.is_sole:
        raise block_errors.is_shared()
    return memory if memory.storage == SPC_STORED_ARENA and Py_REFCNT(memory) == 2 else None


cdef bint is_hidden(object base):
    return is_array(base) and isinstance(base.base, Memory)


cdef bint move_memory(Handle self, object a, Memory memory, int32_t rank, int32_t number, int64_t limit,
                      object dest, object tag) except -1:
    """Without a copy. False if the description of the array has no room before its data."""
    cdef Encoded encoded
    cdef spc_block_shared_t *block = <spc_block_shared_t *>memory.stored
    cdef char *payload = <char *>spc_block_payload(block)
    cdef uint64_t room = <char *>cnp.PyArray_DATA(<cnp.ndarray>a) - payload
    cdef object kept
    cdef int status
    encoded.payload.extents = NULL
    kept = encode_array(a, &encoded)
    if kept is None or encoded.payload.meta_bytes > room or room > ROOM_MAX:
        return False
    memcpy(payload, encoded.payload.meta, encoded.payload.meta_bytes)
    encoded.payload.meta_bytes = <uint16_t>room
    with nogil:
        status = spc_comm_move_block(self.core, rank, SPC_CONTEXT_USER, number, &encoded.payload,
                                     deadline_of(limit), &block)
    if block == NULL:
        memory.stored = NULL
        make_empty(a, False)
    if status != SPC_OK:
        fail(self, status, (send_call, "move", dest, tag))
    return True


cdef int copy_array(Handle self, object a, int32_t rank, int32_t number, int64_t limit, object dest,
                    object tag) except -1:
    cdef Encoded encoded
    cdef object kept
    cdef int status
    encoded.payload.extents = NULL
    kept = encode_array(a, &encoded)
    if kept is None:
        raise block_errors.bad_dtype("move(a)", a.dtype)
    with nogil:
        status = spc_comm_send(self.core, &rank, 1, SPC_CONTEXT_USER, number, &encoded.payload,
                               deadline_of(limit))
    if status != SPC_OK:
        fail(self, status, (send_call, "move", dest, tag))
    return 0


cdef int make_empty(object a, bint may_be_seen) except -1:
    """As unpickling an empty array into it. Who might still see its memory keeps it alive by keeping `a`, and finds it
    where it was: a `flat` takes the address from `a` each time, and the length never again."""
    cdef object keeper = None
    cdef void *data = cnp.PyArray_DATA(<cnp.ndarray>a)
    if may_be_seen:
        keeper = a.base if a.base is not None else spcpy_take_data(a)
    a.__setstate__((1, (0, *a.shape[1:]), a.dtype, a.flags.fnc, b""))
    if keeper is not None:
        spcpy_look_at(a, data, keeper)
    return 0


cdef int remember(Handle self, int32_t rank, int32_t tag) except -1:
    """As exchange.pyx does of what is sent."""
    if self.sent is None:
        self.sent = {}
    self.sent.pop((rank, tag), None)
    self.sent[(rank, tag)] = places.of_caller()
    return 0
