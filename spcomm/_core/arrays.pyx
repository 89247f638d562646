# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Arrays: their memory, their encoding as messages, and arrays in shared memory that may be handed on.

The base of an array in a block of an arena, or of the heap, is a hidden array of bytes, whose base is a `Memory`. NumPy
gives views the first base that is not an array of their own type, so slices and reshapes refer to the hidden array, not
to the user's array, and the hidden array's reference count shows `move` whether any exist.

As a message, an array that is contiguous and of a plain dtype costs no NumPy call when sent and one when received. If a
message lies in memory that this node may keep, the array *is* that memory.

An array may go without a copy (`move`) if nothing else sees its memory. The hidden array's reference count is exact for
NumPy arrays. Where references to the array itself are not explained by variables (references.py), a memoryview may see
the memory, so the array is copied, and the other holder keeps the old memory.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset
from posix.stdlib cimport posix_memalign

from spcomm._core.arguments cimport NOBODY, one_target, send_tag
from spcomm._core.handle cimport Handle, deadline_of, fail, limit_of
from libspc cimport *

import sys
from math import prod
from operator import index
from pickle import dumps, loads

import numpy as np

from spcomm._core import call_site, error_text, errors, references
from spcomm._core.diagnose import TYPES
from spcomm._core.simtime import is_simtimes
from spcomm.net_types import net_scalars

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(cnp.ndarray array, PyObject *base) except -1

cdef extern from *:
    """
    #define spcpy_new_bytes(dims, data, flags) \
        PyArray_New(&PyArray_Type, 1, dims, NPY_UINT8, NULL, data, 0, flags, NULL)
    """
    cnp.ndarray spcpy_new_bytes(const cnp.npy_intp *dims, void *data, int flags)

cdef enum:
    ALIGNMENT = 64
    ROOM_MIN = 128       # for the description of an array with 14 dimensions


@cython.final
@cython.freelist(64)
@cython.no_gc  # it refers to the handle only, and no reference leads from the handle back here
cdef class Memory:
    """Owns the memory of an array; the base of that array's base."""

    def __dealloc__(self):
        if self.stored != NULL:
            spc_comm_release_stored(self.handle.core, <spc_storage_t>self.storage, self.stored)


cdef Memory take_over(Handle handle, spc_message_t *message):
    """Take over the memory of the message, block or heap: the message loses it."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.handle = handle
    memory.storage = message.storage
    memory.is_sole = message.storage == SPC_STORED_HEAP or message.sole
    memory.stored = message.handle
    message.handle = NULL
    return memory


cdef object owned_bytes(Handle handle, int storage, void *stored, void *data, Py_ssize_t length):
    """Return a hidden array of bytes in memory that only this node uses and that is freed with it."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.handle = handle
    memory.storage = storage
    memory.is_sole = True
    memory.stored = stored
    return hidden_array(memory, data, length, True)


cdef object hidden_array(Memory memory, void *data, Py_ssize_t length, bint writable):
    """Return an array of bytes that refers to `memory`, as the base of users' arrays."""
    cdef cnp.npy_intp dims = length
    cdef int flags = cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED
    if writable:
        flags |= cnp.NPY_ARRAY_WRITEABLE
    cdef cnp.ndarray hidden = spcpy_new_bytes(&dims, data, flags)
    set_base(hidden, memory)
    return hidden


cdef int set_base(cnp.ndarray array, object base) except -1:
    Py_INCREF(base)  # for the array
    return PyArray_SetBaseObject(array, <PyObject *>base)


cdef uint64_t room_for_meta(uint64_t meta_bytes) noexcept:
    """Return the number of bytes to leave in a block before an array's data, so that the array can be moved."""
    cdef uint64_t room = (meta_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return min(max(<uint64_t>ROOM_MIN, room), <uint64_t>ROOM_MAX)


# ---- arrays as messages


cdef extern from "numpy/arrayobject.h":
    int NPY_HALF
    void *PyArray_DescrFromType(int number)
    void *descr_of "PyArray_DESCR"(cnp.ndarray array)

cdef extern from *:
    """
    #define spcpy_new_array(descr, nd, dims, data, flags) \
        PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)(descr), nd, dims, NULL, data, flags, NULL)
    #define spcpy_is_array(value) PyArray_CheckExact(value)
    #define spcpy_new_alias(descr, nd, dims, strides, data) \
        PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)(descr), nd, dims, strides, data, \
                             NPY_ARRAY_WRITEABLE, NULL)
    """
    object spcpy_new_alias(void *descr, int nd, const cnp.npy_intp *dims, const cnp.npy_intp *strides, void *data)
    object spcpy_new_array(void *descr, int nd, const cnp.npy_intp *dims, void *data, int flags)
    bint spcpy_is_array(object value) noexcept

cdef enum:
    PLAIN_TYPES = 24         # NumPy's own types by number; for the types in `plain` the number is the full description
    DESCRIBED = 0xffffffff
    LARGE_BYTES = 4096       # from here on data are aligned, and an array may take over the memory
    KEPT_BYTES = 262144      # longer copies lie in this node's arena, where pages have been touched before
    CACHED_MAX = 256

cdef char NATIVE = c"<" if sys.byteorder == "little" else c">"
cdef void *plain[PLAIN_TYPES]    # never released: NumPy also keeps them for ever
cdef char kinds[PLAIN_TYPES]
cdef dict descriptions = {}      # id of a dtype -> (the dtype, its description)
cdef dict dtypes = {}            # description, or (kind, byte order, item size) -> the dtype


cdef int find_plain_types() except -1:
    cdef int number
    memset(plain, 0, sizeof(plain))
    for number in range(PLAIN_TYPES):
        if number <= cnp.NPY_CLONGDOUBLE or number == NPY_HALF:
            plain[number] = PyArray_DescrFromType(number)
            kinds[number] = <char>ord((<object>plain[number]).kind)
    return 0


find_plain_types()


cdef bint is_array(object value) noexcept:
    return spcpy_is_array(value)


cdef object writable_alias(cnp.ndarray array):
    """Return another array that sees the memory of a read-only one, and may be written. Only for pickle to read."""
    cdef object dtype = array.dtype
    cdef cnp.ndarray alias
    Py_INCREF(dtype)  # for the alias
    alias = <cnp.ndarray>spcpy_new_alias(<void *>dtype, cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array),
                                         cnp.PyArray_STRIDES(array), cnp.PyArray_DATA(array))
    set_base(alias, array)
    cnp.PyArray_UpdateFlags(alias, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED)
    return alias


# ---- out


cdef object encode_array(object array, Encoded *encoded):
    """Describe an exact ndarray. Return the object that must outlive `encoded`, or None if the array needs pickle."""
    cdef cnp.ndarray source = <cnp.ndarray>array
    cdef spc_array_meta_t *meta = <spc_array_meta_t *>encoded.meta
    cdef int number = cnp.PyArray_TYPE(source)
    cdef int nd = cnp.PyArray_NDIM(source)
    cdef bytes description
    if not cnp.PyArray_FLAGS(source) & (cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS):
        source = cnp.PyArray_NewCopy(source, cnp.NPY_CORDER)
    meta.dimensions = nd
    meta.fortran = not cnp.PyArray_FLAGS(source) & cnp.NPY_ARRAY_C_CONTIGUOUS
    meta.dtype_length = 0
    meta.reserved = 0
    meta.item_bytes = <uint32_t>cnp.PyArray_ITEMSIZE(source)
    if nd > 0:  # without dimensions NumPy's list may be a null pointer, which C forbids in memcpy even then
        memcpy(encoded.meta + sizeof(spc_array_meta_t), cnp.PyArray_DIMS(source), nd * sizeof(int64_t))
    encoded.payload.format = SPC_FORMAT_ARRAY
    encoded.payload.meta = encoded.meta
    encoded.payload.meta_bytes = <uint16_t>(sizeof(spc_array_meta_t) + nd * sizeof(int64_t))
    encoded.payload.data = cnp.PyArray_DATA(source)
    encoded.payload.data_bytes = cnp.PyArray_NBYTES(source)
    if 0 <= number < PLAIN_TYPES and plain[number] == descr_of(source):
        meta.type_number = number
        meta.kind = kinds[number]
        meta.byte_order = c"|" if meta.item_bytes == 1 else NATIVE
        if encoded.payload.data_bytes < LARGE_BYTES:
            return source
        return source, extend_meta(encoded, b"")
    description = describe(source, meta)
    if description is None:
        return None
    return source, extend_meta(encoded, description)


cdef bytes describe(cnp.ndarray array, spc_array_meta_t *meta):
    """Fill in any dtype. Return its description, b"" if kind, order and size suffice, or None if it needs pickle."""
    cdef object dtype = array.dtype
    cdef object found
    cdef int number = dtype.num
    if dtype.hasobject:
        return None
    meta.kind = <char>ord(dtype.kind)
    meta.byte_order = NATIVE if dtype.byteorder == "=" else <char>ord(dtype.byteorder)
    if dtype.metadata is None:
        if 0 <= number < PLAIN_TYPES and plain[number] != NULL and dtype.type is (<object>plain[number]).type:
            meta.type_number = number
            return b""
        if number == cnp.NPY_STRING or number == cnp.NPY_UNICODE or (
                number == cnp.NPY_VOID and dtype.names is None and dtype.subdtype is None):
            meta.type_number = number
            return b""
    meta.type_number = DESCRIBED
    found = descriptions.get(id(dtype))
    if found is None:
        if len(descriptions) >= CACHED_MAX:
            descriptions.clear()
        found = descriptions[id(dtype)] = (dtype, dumps(dtype, 5))
    if len(<bytes>found[1]) > SPC_META_MAX - META_ROOM - ALIGNMENT:
        return None
    return <bytes>found[1]


cdef bytes extend_meta(Encoded *encoded, bytes description):
    """Return the meta followed by a description, padded so that large data start at a multiple of 64 bytes."""
    cdef Py_ssize_t length = encoded.payload.meta_bytes + PyBytes_GET_SIZE(description)
    cdef bytes extended
    (<spc_array_meta_t *>encoded.meta).dtype_length = <uint16_t>PyBytes_GET_SIZE(description)
    if encoded.payload.data_bytes >= LARGE_BYTES:
        length = (length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    extended = encoded.meta[:encoded.payload.meta_bytes] + description
    extended += bytes(length - len(extended))
    encoded.payload.meta = PyBytes_AS_STRING(extended)
    encoded.payload.meta_bytes = <uint16_t>length
    return extended


# ---- in


cdef struct Header:
    spc_array_meta_t meta
    cnp.npy_intp shape[64]


cdef int read_header(spc_message_t *message, Header *header) except -1:
    """Copy the meta out of the message, where it may be unaligned."""
    cdef uint64_t needed = sizeof(spc_array_meta_t)
    cdef bint good = message.meta_bytes >= needed
    if good:
        memcpy(&header.meta, message.bytes, sizeof(spc_array_meta_t))
        needed += header.meta.dimensions * sizeof(int64_t)
        good = header.meta.dimensions <= 64 and message.meta_bytes >= needed + header.meta.dtype_length
    if not good:
        raise errors.unreadable(message.source, message.tag, "the description of its array is damaged")
    memcpy(header.shape, message.bytes + sizeof(spc_array_meta_t), header.meta.dimensions * sizeof(int64_t))
    return 0


cdef object dtype_from(spc_message_t *message, Header *header):
    """Return the dtype of the sender's array if it is not a plain one."""
    cdef spc_array_meta_t *meta = &header.meta
    cdef unsigned char *start = message.bytes + sizeof(spc_array_meta_t) + meta.dimensions * sizeof(int64_t)
    cdef object key
    if meta.dtype_length != 0:
        key = start[:meta.dtype_length]
    else:
        key = (meta.kind, meta.byte_order, meta.item_bytes, meta.type_number)
    found = dtypes.get(key)
    if found is None:
        if len(dtypes) >= CACHED_MAX:
            dtypes.clear()
        try:
            found = loads(key) if meta.dtype_length != 0 else dtype_of_numbers(meta)
        except Exception as error:
            raise errors.unreadable(message.source, message.tag, "its dtype", error) from error
        # Message bytes are never treated as object references, whatever type the sender claims.
        if not isinstance(found, np.dtype) or found.hasobject:
            raise errors.unreadable(message.source, message.tag, "the description of its array is damaged")
        dtypes[key] = found
    return found


cdef object dtype_of_numbers(spc_array_meta_t *meta):
    cdef object dtype
    cdef str order = chr(meta.byte_order)
    if meta.type_number < PLAIN_TYPES and plain[meta.type_number] != NULL:
        dtype = <object>plain[meta.type_number]
        if dtype.itemsize == meta.item_bytes and ord(dtype.kind) == meta.kind:
            return dtype.newbyteorder(order)
    size = meta.item_bytes // 4 if meta.kind == c"U" else meta.item_bytes
    return np.dtype(f"{order}{chr(meta.kind)}{size}")


cdef void *own_descr(spc_message_t *message, Header *header) except NULL:
    """Return a new reference to the dtype."""
    cdef uint32_t number = header.meta.type_number
    cdef object dtype
    if number < PLAIN_TYPES and plain[number] != NULL and kinds[number] == header.meta.kind and (
            header.meta.byte_order == NATIVE or header.meta.byte_order == c"|"):
        Py_INCREF(<object>plain[number])
        return plain[number]
    dtype = dtype_from(message, header)
    Py_INCREF(dtype)
    return <void *>dtype


cdef object decode_array(Handle handle, spc_message_t *message, bint copy):
    """Decode the array in a message and end the message. Read-only if shared and `copy` is false."""
    cdef Header header
    try:
        read_header(message, &header)
        if is_adoptable(handle, message, copy):
            return adopt(handle, message, &header)
        return copied(handle, message, &header)
    finally:
        if message.handle != NULL:
            spc_message_release(handle.core, message)


cdef bint is_adoptable(Handle handle, spc_message_t *message, bint copy) noexcept:
    """Whether arrays may stay in the message's memory. Data in a block are large, or were moved there.

    The last of several receivers may find itself alone with the block: it needs no copy.
    """
    if message.storage == SPC_STORED_ARENA:
        return not copy or spc_message_claim(handle.core, message)
    return message.storage == SPC_STORED_HEAP and message.length_bytes >= LARGE_BYTES


cdef object copied(Handle handle, spc_message_t *message, Header *header):
    cdef object hidden = None
    cdef cnp.ndarray array
    if message.length_bytes >= KEPT_BYTES:
        hidden = kept_bytes(handle, message)
    array = new_array(message, header, NULL if hidden is None else cnp.PyArray_DATA(<cnp.ndarray>hidden), True)
    check_length(message, array)
    if hidden is not None:
        set_base(array, hidden)
    copy_data(cnp.PyArray_DATA(array), message)
    return array


cdef object kept_bytes(Handle handle, const spc_message_t *message):
    """Return a hidden array for a copy of the message's data in this node's arena, or None if the arena is full."""
    cdef spc_block_shared_t *block = NULL
    cdef uint64_t room = room_for_meta(message.meta_bytes)
    if spc_comm_take_kept(handle.core, room + spc_message_data_bytes(message), &block) != SPC_OK:
        return None
    return owned_bytes(handle, SPC_STORED_ARENA, block, <char *>spc_block_payload(block) + room,
                       spc_message_data_bytes(message))


cdef cnp.ndarray new_array(spc_message_t *message, Header *header, void *data, bint writable):
    """Make an array as described, in the given memory, or in its own if that is NULL."""
    cdef int flags = cnp.NPY_ARRAY_F_CONTIGUOUS if header.meta.fortran else 0
    cdef cnp.ndarray array
    if data != NULL:
        flags = cnp.NPY_ARRAY_F_CONTIGUOUS if header.meta.fortran else cnp.NPY_ARRAY_C_CONTIGUOUS
        flags |= cnp.NPY_ARRAY_WRITEABLE if writable else 0
    array = <cnp.ndarray>spcpy_new_array(
        own_descr(message, header), header.meta.dimensions, header.shape, data, flags)
    if data != NULL:
        cnp.PyArray_UpdateFlags(
            array, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED)
    return array


cdef int copy_data(void *target, const spc_message_t *message) noexcept:
    cdef uint64_t length = spc_message_data_bytes(message)
    cdef const void *source = spc_message_data(message)
    if length < NOGIL_BYTES:
        memcpy(target, source, length)
    else:
        with nogil:
            spc_copy_past(target, source, length)
    return 0


cdef int check_length(spc_message_t *message, cnp.ndarray array) except -1:
    if <uint64_t>cnp.PyArray_NBYTES(array) != spc_message_data_bytes(message):
        raise errors.unreadable(message.source, message.tag, "it is not as long as its shape says")
    return 0


cdef object adopt(Handle handle, spc_message_t *message, Header *header):
    """Make an array in the message's own memory, which the message loses. A copy if that is unaligned."""
    cdef void *data = spc_message_data(message)
    cdef bint writable = message.storage == SPC_STORED_HEAP or message.sole
    cdef cnp.ndarray array
    if <uintptr_t>data % 16 != 0:
        return copied(handle, message, header)
    array = new_array(message, header, data, writable)
    check_length(message, array)
    set_base(array, hidden_array(take_over(handle, message), data, cnp.PyArray_NBYTES(array), writable))
    return array


# ---- into an array of the receiver


cdef int check_out(object out) except -1:
    """Check `out` before anything is received."""
    if not isinstance(out, np.ndarray):
        raise errors.bad_out(f"out is a {type(out).__name__}")
    if out.dtype.hasobject:
        raise errors.bad_out(f"out is an array of {out.dtype}, which holds Python objects")
    if not out.flags.writeable:
        raise errors.bad_out("out is read-only")
    return 0


cdef object receive_into(Handle handle, spc_message_t *message, object out):
    """Copy the message's array into `out`, and end the message. If it does not fit, the message goes back."""
    cdef object result
    cdef bint kept = False
    try:
        result = fill(message, out)
        kept = True
        return result
    finally:
        if not kept and spc_comm_put_back(handle.core, message) == SPC_OK:
            message.handle = NULL
        elif message.handle != NULL:
            spc_message_release(handle.core, message)


cdef object fill(spc_message_t *message, object out):
    cdef Header header
    cdef cnp.ndarray target = <cnp.ndarray>out
    cdef int same_flags = cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED
    if message.format != SPC_FORMAT_ARRAY:
        raise errors.not_for_out(message.source, message.tag, "not an array", out.dtype)
    read_header(message, &header)
    if (header.meta.type_number < PLAIN_TYPES and plain[header.meta.type_number] == descr_of(target)
            and header.meta.byte_order != (c">" if NATIVE == c"<" else c"<") and not header.meta.fortran
            and cnp.PyArray_FLAGS(target) & same_flags == same_flags
            and <uint64_t>cnp.PyArray_NBYTES(target) == spc_message_data_bytes(message)):
        copy_data(cnp.PyArray_DATA(target), message)
        return out
    return fill_any(message, &header, out)


cdef object seen_in_place(spc_message_t *message, Header *header):
    """Return an array in the message's memory, valid as long as the message."""
    cdef cnp.ndarray array = new_array(message, header, spc_message_data(message), False)
    check_length(message, array)
    return array


cdef object fill_any(spc_message_t *message, Header *header, object out):
    """Have NumPy copy other byte orders, other memory orders, and fewer elements."""
    cdef object dtype = <object>own_descr(message, header)
    cdef object found
    cdef tuple shape
    Py_DECREF(dtype)  # the variable has a reference of its own
    if not net_scalars.is_alike(dtype, out.dtype):
        raise errors.not_for_out(message.source, message.tag, f"an array of {dtype}", out.dtype)
    found = seen_in_place(message, header)
    shape = found.shape
    if shape == out.shape:
        np.copyto(out, found)
        return out
    if found.size > out.size:
        raise errors.too_long(message.source, message.tag, shape, found.size, out.size)
    if not out.flags.c_contiguous:
        raise errors.wrong_shape(message.source, message.tag, shape, out.shape)
    flat = out.reshape(-1)[:found.size]
    np.copyto(flat, found.reshape(-1))
    return out if found.size == out.size else flat


# ---- arrays in shared memory


cdef extern from *:
    """
    /* Memory that an array owns goes to another one, of bytes; the array keeps seeing it. */
    static PyObject *spcpy_take_data(PyArrayObject *array) {
        npy_intp length = PyArray_NBYTES(array);
        PyArray_Descr *descr = PyArray_DescrFromType(NPY_UINT8);
        PyObject *base = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &length, NULL, PyArray_DATA(array),
                                                NPY_ARRAY_CARRAY, NULL);
        if (base != NULL) {
            PyObject *handler = ((PyArrayObject_fields *)array)->mem_handler;
            Py_XINCREF(handler);
            ((PyArrayObject_fields *)base)->mem_handler = handler;
            PyArray_ENABLEFLAGS((PyArrayObject *)base, NPY_ARRAY_OWNDATA);
            PyArray_CLEARFLAGS(array, NPY_ARRAY_OWNDATA);
        }
        return base;
    }

    /* An array without bytes sees other memory instead of its own. */
    static int spcpy_look_at(PyArrayObject *array, void *data, PyObject *base) {
        PyObject *own = spcpy_take_data(array);
        if (own == NULL) {
            return -1;
        }
        ((PyArrayObject_fields *)array)->data = data;
        Py_DECREF(own);
        Py_INCREF(base);
        return PyArray_SetBaseObject(array, base);
    }
    """
    object spcpy_take_data(cnp.ndarray array)
    int spcpy_look_at(cnp.ndarray array, void *data, object base) except -1

cdef object send_call = errors.send_call


@cython.final
cdef class Counter:
    def references(self, a: object, dest: object, tag: object = 0, timeout: object = None) -> int:
        return Py_REFCNT(a)


# References that a compiled method holds to an argument beside the caller's: the caller here has one.
cdef Py_ssize_t own_references = eval("count(object(), 0)", {"count": Counter().references}) - 1


# ---- making


cdef object make_array(Handle self, object shape, object dtype, object order):
    """Make an array in shared memory."""
    cdef object kind = np.dtype(dtype)
    cdef tuple lengths = as_shape(shape)
    cdef object size
    if kind.hasobject:
        raise error_text.bad_dtype("empty(dtype)", kind)
    if order not in ("C", "F"):
        raise error_text.bad_order(order)
    if kind.itemsize == 0:
        kind = np.empty(0, kind).dtype  # NumPy's choice for a text without a length
    size = prod(lengths) * kind.itemsize
    if size > 1 << 62:
        raise error_text.too_large(shape, kind)
    return np.ndarray(lengths, kind, take_bytes(self, size, len(lengths), kind), 0, None, order)


cdef tuple as_shape(object shape):
    cdef tuple lengths
    try:
        lengths = (index(shape),)
    except TypeError:
        try:
            lengths = tuple([index(length) for length in shape])
        except TypeError:
            raise error_text.bad_shape(shape) from None
    for length in lengths:
        if length < 0:
            raise error_text.negative_shape(shape)
    return lengths


cdef object take_bytes(Handle self, uint64_t length, Py_ssize_t dimensions, object dtype):
    """Return a hidden array of that many bytes, in the arena or in private memory."""
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
        raise error_text.too_large(length, "bytes")
    return owned_bytes(self, SPC_STORED_HEAP, private, private, length)


cdef uint64_t room_for(Py_ssize_t dimensions, object dtype) except 0:
    """Return the bytes before the data: for the meta of a message with such an array."""
    cdef Encoded encoded
    cdef uint64_t meta_bytes = 0
    cdef object kept
    if dimensions > 14 or not dtype.isbuiltin:
        kept = encode_array(np.empty(0, dtype), &encoded)
        meta_bytes = 0 if kept is None else encoded.payload.meta_bytes + 8 * dimensions
    return room_for_meta(meta_bytes)


def bytes_given_out(Handle handle) -> int:
    """Return the bytes of this node's arena in use by any node, for tests. Waits until dead nodes are gone."""
    cdef int status
    with nogil:
        status = spc_comm_await_gone(handle.core, SPC_NO_DEADLINE)
    if status != SPC_OK:
        fail(handle, status, "bytes_given_out()")
    return spc_comm_block_bytes(handle.core)


# ---- moving


cdef int move_array(Handle self, object a, Py_ssize_t found, object dest, object tag, object timeout) except -1:
    """Hand over `a`; `found` is the number of references to it that the method has seen."""
    cdef int32_t number = send_tag(tag, "move", "tag")
    cdef int32_t rank = one_target(self, dest, "move")
    cdef int64_t limit = limit_of(timeout, "move")
    cdef int status = spc_comm_usable(self.core)
    cdef bint may_be_seen
    cdef Memory memory
    if not is_array(a):
        raise error_text.not_an_array(a)
    if a.dtype.hasobject:
        raise error_text.bad_dtype("move(a)", a.dtype)
    if status != SPC_OK:
        fail(self, status, (send_call, "move", dest, tag))
    memory = memory_of(a)
    found -= own_references
    may_be_seen = found > 1 and not references.are_variables(a, found)
    if rank == NOBODY:
        make_empty(a, may_be_seen)
        return 0
    if self.strict:
        remember(self, rank, number)
    if memory is None or may_be_seen or not move_memory(self, a, memory, rank, number, limit, dest, tag):
        copy_array(self, a, rank, number, limit, dest, tag)
        make_empty(a, may_be_seen)
    return 0


cdef Memory memory_of(object a):
    """Return the sole holder of the memory of `a`, or None if it must be copied. BufferInUseError if others see it."""
    cdef object base = a.base
    cdef Memory memory
    if a.size == 0 and not a.flags.writeable:  # it was moved before
        return None
    if base is None:
        if not a.flags.owndata:
            raise error_text.is_a_view(base)
        return None
    if not is_array(base):
        raise error_text.is_a_view(base)
    if Py_REFCNT(base) > 2:  # the references of `a` and of the variable
        raise error_text.is_seen()
    if base.nbytes != a.nbytes or not a.flags.forc or (
            cnp.PyArray_DATA(<cnp.ndarray>a) != cnp.PyArray_DATA(<cnp.ndarray>base)):
        raise error_text.is_a_part(a.nbytes, base.nbytes)
    if isinstance(base.base, memoryview):  # one of an object's arrays
        if is_hidden(base.base.obj) and not (<Memory>base.base.obj.base).is_sole:
            raise error_text.is_shared()
        return None
    if base.base is None and base.flags.owndata:
        return None  # only `a` is left of the original: np.zeros(6).reshape(2, 3)
    if not is_hidden(base):
        raise error_text.is_a_view(base)
    memory = base.base
    if not memory.is_sole:
        raise error_text.is_shared()
    return memory if memory.storage == SPC_STORED_ARENA and Py_REFCNT(memory) == 2 else None


cdef bint is_hidden(object base):
    return is_array(base) and isinstance(base.base, Memory)


cdef bint move_memory(Handle self, object a, Memory memory, int32_t rank, int32_t number, int64_t limit,
                      object dest, object tag) except -1:
    """Move without a copy. False if the array's description does not fit before its data."""
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
        raise error_text.bad_dtype("move(a)", a.dtype)
    with nogil:
        status = spc_comm_send(self.core, &rank, 1, SPC_CONTEXT_USER, number, &encoded.payload,
                               deadline_of(limit))
    if status != SPC_OK:
        fail(self, status, (send_call, "move", dest, tag))
    return 0


cdef int make_empty(object a, bint may_be_seen) except -1:
    """Act like unpickling an empty array into `a`, which refuses to be written from then on.

    A holder that still sees the memory keeps it alive by keeping `a`, and finds it in its place: a `flat` reads the
    address from `a` each time, and the length only once.
    """
    cdef object base = None
    cdef void *data = cnp.PyArray_DATA(<cnp.ndarray>a)
    if may_be_seen:
        base = a.base if a.base is not None else spcpy_take_data(a)
    a.__setstate__((1, (0, *a.shape[1:]), a.dtype, a.flags.fnc, b""))
    if base is not None:
        spcpy_look_at(a, data, base)
    cnp.PyArray_CLEARFLAGS(<cnp.ndarray>a, cnp.NPY_ARRAY_WRITEABLE)
    return 0


cdef int remember(Handle self, int32_t rank, int32_t tag) except -1:
    """Record the call site, as p2p.pyx does for messages sent."""
    if self.sent is None:
        self.sent = {}
    self.sent.pop((rank, tag), None)
    self.sent[(rank, tag)] = call_site.of_caller()
    return 0


# ---- what the core combines (csrc/reduce/spc_ops.h)


cdef enum:
    CORE_TYPES = 24  # NumPy type numbers that the core may support

cdef uint32_t core_types[CORE_TYPES]


cdef void fill_table() except *:
    memset(core_types, 0, sizeof(core_types))  # SPC_TYPE_NONE
    for core, name in TYPES.items():
        if core != SPC_TYPE_SIMTIME:  # to NumPy it is an ordinary structure
            core_types[<int>np.dtype(name).num] = core
    same = (cnp.NPY_LONGLONG, cnp.NPY_ULONGLONG) if sizeof(long) == 8 else (cnp.NPY_INT, cnp.NPY_UINT)
    for one, other in ((<int>cnp.NPY_LONG, <int>same[0]), (<int>cnp.NPY_ULONG, <int>same[1])):
        core_types[one] = core_types[other] = core_types[one] or core_types[other]  # one of them is NumPy's int64


fill_table()


cdef uint32_t core_type(int number) noexcept:
    """Return the core's type for this NumPy type, or SPC_TYPE_NONE."""
    return core_types[number] if 0 <= number < CORE_TYPES else SPC_TYPE_NONE


cdef dict PAIRS = {"i1": SPC_TYPE_PAIR_INT8, "i2": SPC_TYPE_PAIR_INT16, "i4": SPC_TYPE_PAIR_INT32,
                   "i8": SPC_TYPE_PAIR_INT64, "u1": SPC_TYPE_PAIR_UINT8, "u2": SPC_TYPE_PAIR_UINT16,
                   "u4": SPC_TYPE_PAIR_UINT32, "u8": SPC_TYPE_PAIR_UINT64, "f4": SPC_TYPE_PAIR_FLOAT32,
                   "f8": SPC_TYPE_PAIR_FLOAT64}


cdef uint32_t type_of(cnp.ndarray array) except? 0xffffffff:
    """Return the core's type of the elements, or SPC_TYPE_NONE. The array is from operators.plain_array."""
    cdef int number = cnp.PyArray_TYPE(array)
    if number == cnp.NPY_BOOL:
        return SPC_TYPE_BOOL
    if number == cnp.NPY_COMPLEX64:
        return SPC_TYPE_COMPLEX64
    if number == cnp.NPY_COMPLEX128:
        return SPC_TYPE_COMPLEX128
    if number != cnp.NPY_VOID:
        return core_type(number)
    if is_simtimes(array.dtype):
        return SPC_TYPE_SIMTIME
    return PAIRS[array.dtype["value"].str[1:]]


cdef cnp.ndarray empty_like(cnp.ndarray array):
    """Return a new array in C order."""
    Py_INCREF(array.dtype)
    return <cnp.ndarray>spcpy_new_array(descr_of(array), cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array), NULL, 0)


cpdef object combined_arrays(int op, object left, object right):
    """Combine two arrays, or numbers of NumPy, as the core does. None: it does not support these."""
    cdef cnp.ndarray one = np.asarray(left)
    cdef cnp.ndarray other = np.asarray(right)
    cdef cnp.ndarray result
    cdef spc_field_t field
    field.type, field.count = type_of(one), <uint32_t>cnp.PyArray_SIZE(one)
    if field.type == SPC_TYPE_NONE or not spc_ops_has(<spc_operator_t>op, field.type) or (
            one.dtype != other.dtype or (<object>one).shape != (<object>other).shape):
        return None
    if not cnp.PyArray_ISCARRAY_RO(one):
        one = np.array(one, order="C", copy=True)
    if not cnp.PyArray_ISCARRAY_RO(other):
        other = np.array(other, order="C", copy=True)
    result = empty_like(one)
    spc_ops_combine_to(<spc_operator_t>op, &field, 1, cnp.PyArray_DATA(result), cnp.PyArray_DATA(one),
                       cnp.PyArray_DATA(other))
    return result if isinstance(left, np.ndarray) else result[()]
