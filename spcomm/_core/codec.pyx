# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Python objects as messages, in the formats of csrc/message/spc_format.h.

The exact type decides: None, bool, int (64 bits), float, SimTime, str, bytes, arrays, and small tuples, lists and dicts
of these (but not of arrays) have their own formats; everything else, including subclasses and larger ints, goes by
pickle. So every object arrives with its exact type.

Pickle 5 exports large buffers (arrays in dicts, lists, dataclasses): the core copies them from their place into the
message, once, beside the pickle. If the receiver may keep the message, its arrays lie in it, like an array that was
sent by itself.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next, PyDict_SetItem
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from spcomm._core.arrays cimport (
    DATA_ROOM,
    NOGIL_BYTES,
    Encoded,
    Memory,
    decode_array,
    encode_array,
    hidden_array,
    is_adoptable,
    is_array,
    writable_alias,
    take_over,
)
from spcomm._core.handle cimport Handle
from libspc cimport *
from spcomm._core.simtime cimport SimTime, new_simtime

from io import BytesIO
from pickle import Pickler, dumps, loads

import numpy as np

from spcomm._core import errors

cnp.import_array()

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *length) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept

cdef extern from *:
    """
    /* NULL, without an exception, for text that has no UTF-8: lone surrogates. */
    static const char *spcpy_utf8(PyObject *text, Py_ssize_t *length) {
        const char *utf8 = PyUnicode_AsUTF8AndSize(text, length);
        if (utf8 == NULL) {
            PyErr_Clear();
        }
        return utf8;
    }
    """
    const char *spcpy_utf8(object text, Py_ssize_t *length) noexcept

cdef enum:
    DEPTH_MAX = 8            # containers in containers
    CONTAINERS_MAX = 16      # lists and dicts in one message
    ITEM_HEAD = 5            # [format u8][length u32]


# ---- out


cdef object encode(object value, Encoded *encoded, object call):
    """Fill in `encoded`; return the object that must stay alive while it is used. `call` is for the error text."""
    cdef int64_t number
    cdef int overflow = 0
    cdef object kept
    encoded.payload.meta_bytes = 0
    encoded.payload.data = encoded.data
    encoded.payload.extents = NULL
    if is_array(value):
        kept = encode_array(value, encoded)
        if kept is not None:
            return kept
    elif type(value) is float:
        encoded.payload.format = SPC_FORMAT_FLOAT64
        encoded.payload.data_bytes = 8
        (<double *>encoded.data)[0] = PyFloat_AS_DOUBLE(value)
        return None
    elif type(value) is int:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            encoded.payload.format = SPC_FORMAT_INT64
            encoded.payload.data_bytes = 8
            (<int64_t *>encoded.data)[0] = number
            return None
    elif type(value) is str:
        return encode_str(value, encoded)
    elif type(value) is bytes:
        encoded.payload.format = SPC_FORMAT_BYTES
        encoded.payload.data = PyBytes_AS_STRING(value)
        encoded.payload.data_bytes = PyBytes_GET_SIZE(value)
        return None
    elif value is None:
        encoded.payload.format = SPC_FORMAT_NONE
        encoded.payload.data_bytes = 0
        return None
    elif value is True or value is False:
        encoded.payload.format = SPC_FORMAT_BOOL
        encoded.payload.data_bytes = 1
        encoded.data[0] = value is True
        return None
    elif type(value) is SimTime:
        encoded.payload.format = SPC_FORMAT_SIMTIME
        encoded.payload.data_bytes = sizeof(spcomm_simtime_t)
        memcpy(encoded.data, &(<SimTime>value).value, sizeof(spcomm_simtime_t))
        return None
    elif type(value) is dict or type(value) is tuple or type(value) is list:
        kept = encode_container(value, encoded)
        if kept is not None:
            return kept
    return encode_pickle(value, encoded, call)


cdef object encode_bytes(bytes kept, uint8_t format, Encoded *encoded):
    encoded.payload.meta_bytes = 0
    encoded.payload.format = format
    encoded.payload.data = PyBytes_AS_STRING(kept)
    encoded.payload.data_bytes = PyBytes_GET_SIZE(kept)
    return kept


cdef object encode_str(object text, Encoded *encoded):
    cdef Py_ssize_t length = 0
    if PyUnicode_IS_COMPACT_ASCII(text):
        encoded.payload.format = SPC_FORMAT_STR
        encoded.payload.data = PyUnicode_AsUTF8AndSize(text, &length)
        encoded.payload.data_bytes = length
        return None
    return encode_bytes((<str>text).encode("utf-8", "surrogatepass"), SPC_FORMAT_STR, encoded)


cdef struct Writer:
    unsigned char *at
    unsigned char *end
    int depth
    int seen_count
    PyObject *seen[CONTAINERS_MAX]


cdef object encode_container(object value, Encoded *encoded):
    """Encode small containers of plain values in one pass. None: the object needs pickle."""
    cdef Writer writer
    writer.at = encoded.data
    writer.end = encoded.data + DATA_ROOM
    writer.depth = 0
    writer.seen_count = 0
    if not write_item(value, &writer):
        return None
    encoded.payload.format = encoded.data[0]
    encoded.payload.data = encoded.data + ITEM_HEAD
    encoded.payload.data_bytes = writer.at - encoded.data - ITEM_HEAD
    return value


cdef bint write_item(object item, Writer *writer) except -1:
    """Append an item; False if it has no format of its own, or does not fit."""
    cdef int64_t number
    cdef double real
    cdef unsigned char truth
    cdef int overflow = 0
    cdef Py_ssize_t length = 0
    cdef const char *text
    if type(item) is int:
        number = PyLong_AsLongLongAndOverflow(item, &overflow)
        return overflow == 0 and write_bytes(writer, SPC_FORMAT_INT64, &number, 8)
    if type(item) is float:
        real = PyFloat_AS_DOUBLE(item)
        return write_bytes(writer, SPC_FORMAT_FLOAT64, &real, 8)
    if type(item) is str:
        if not PyUnicode_IS_COMPACT_ASCII(item) and len(<str>item) > DATA_ROOM:
            return False
        text = spcpy_utf8(item, &length)
        return text != NULL and write_bytes(writer, SPC_FORMAT_STR, text, length)
    if type(item) is bytes:
        return write_bytes(writer, SPC_FORMAT_BYTES, PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item))
    if item is None:
        return write_bytes(writer, SPC_FORMAT_NONE, NULL, 0)
    if item is True or item is False:
        truth = item is True
        return write_bytes(writer, SPC_FORMAT_BOOL, &truth, 1)
    if type(item) is SimTime:
        return write_bytes(writer, SPC_FORMAT_SIMTIME, &(<SimTime>item).value, sizeof(spcomm_simtime_t))
    if type(item) is tuple or type(item) is list or type(item) is dict:
        return write_container(item, writer)
    return False


cdef bint write_bytes(Writer *writer, uint8_t format, const void *data, Py_ssize_t length) noexcept:
    if length > DATA_ROOM or writer.end - writer.at < length + ITEM_HEAD:
        return False
    write_head(writer.at, format, <uint32_t>length)
    if length > 0:  # None has no data: a null pointer, which C forbids in memcpy even then
        memcpy(writer.at + ITEM_HEAD, data, length)
    writer.at += ITEM_HEAD + length
    return True


cdef void write_head(unsigned char *at, uint8_t format, uint32_t length) noexcept:
    at[0] = format
    memcpy(at + 1, &length, sizeof(length))


cdef bint write_container(object container, Writer *writer) except -1:
    cdef unsigned char *start = writer.at
    cdef uint8_t format = SPC_FORMAT_TUPLE
    cdef bint good
    if writer.end - writer.at < ITEM_HEAD or writer.depth == DEPTH_MAX:
        return False
    writer.at += ITEM_HEAD
    writer.depth += 1
    if type(container) is tuple:
        good = write_tuple(<tuple>container, writer)
    elif not is_new(container, writer):
        good = False
    elif type(container) is list:
        format = SPC_FORMAT_LIST
        good = write_list(<list>container, writer)
    else:
        format = SPC_FORMAT_DICT
        good = write_dict(<dict>container, writer)
    writer.depth -= 1
    write_head(start, format, <uint32_t>(writer.at - start - ITEM_HEAD))
    return good


cdef bint is_new(object container, Writer *writer) noexcept:
    """Whether the container is new: a mutable object that occurs twice must arrive as one, by pickle."""
    cdef int i
    for i in range(writer.seen_count):
        if writer.seen[i] == <PyObject *>container:
            return False
    if writer.seen_count == CONTAINERS_MAX:
        return False
    writer.seen[writer.seen_count] = <PyObject *>container
    writer.seen_count += 1
    return True


cdef bint write_tuple(tuple container, Writer *writer) except -1:
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(container)):
        if not write_item(<object>PyTuple_GET_ITEM(container, i), writer):
            return False
    return True


cdef bint write_list(list container, Writer *writer) except -1:
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(container)):
        if not write_item(<object>PyList_GET_ITEM(container, i), writer):
            return False
    return True


cdef bint write_dict(dict container, Writer *writer) except -1:
    cdef Py_ssize_t position = 0
    cdef PyObject *key
    cdef PyObject *value
    while PyDict_Next(container, &position, &key, &value):
        if not write_item(<object>key, writer) or not write_item(<object>value, writer):
            return False
    return True


# ---- in


cdef object decode(Handle handle, spc_message_t *message, bint copy):
    """Decode the object in a message, and end the message, whether or not decoding succeeds."""
    if message.format == SPC_FORMAT_ARRAY:
        return decode_array(handle, message, copy)
    try:
        if message.format == SPC_FORMAT_PICKLE:
            return decode_pickle(handle, message, copy)
        return decode_plain(
            message, message.format, spc_message_data(message), spc_message_data_bytes(message), 0)
    finally:
        if message.handle != NULL:
            spc_message_release(handle.core, message)


cdef object damaged(spc_message_t *message):
    found = f"damaged, or of the unknown format {message.format}"
    return errors.unreadable(message.source, message.tag, found)


cdef object decode_plain(spc_message_t *message, uint8_t format, const unsigned char *data, uint64_t length,
                         int depth):
    """Decode an object; `depth` is the number of containers around it."""
    cdef int64_t number
    cdef double real
    if format == SPC_FORMAT_FLOAT64 and length == 8:
        memcpy(&real, data, 8)
        return real
    if format == SPC_FORMAT_INT64 and length == 8:
        memcpy(&number, data, 8)
        return number
    if format == SPC_FORMAT_STR:
        return PyUnicode_DecodeUTF8(<const char *>data, length, b"surrogatepass")
    if format == SPC_FORMAT_BYTES or format == SPC_FORMAT_RAW:
        return decode_bytes(data, length)
    if format == SPC_FORMAT_NONE and length == 0:
        return None
    if format == SPC_FORMAT_BOOL and length == 1:
        return data[0] != 0
    if format == SPC_FORMAT_SIMTIME and length == sizeof(spcomm_simtime_t):
        return decode_simtime(message, data)
    if format == SPC_FORMAT_TUPLE or format == SPC_FORMAT_LIST or format == SPC_FORMAT_DICT:
        return decode_container(message, format, data, length, depth + 1)
    raise damaged(message)


cdef object decode_simtime(spc_message_t *message, const unsigned char *data):
    cdef spcomm_simtime_t value
    cdef object time
    memcpy(&value, data, sizeof(value))
    time = new_simtime(&value)
    if time is None:
        raise errors.unreadable(message.source, message.tag, "its SimTime is NaN, which Python refuses")
    return time


cdef object decode_bytes(const unsigned char *data, uint64_t length):
    cdef bytes result
    cdef char *target
    if length < NOGIL_BYTES:
        return PyBytes_FromStringAndSize(<const char *>data, length)
    result = PyBytes_FromStringAndSize(NULL, length)
    target = PyBytes_AS_STRING(result)
    with nogil:
        memcpy(target, data, length)
    return result


cdef int64_t count_items(const unsigned char *data, uint64_t length) noexcept:
    """Return the number of items, or -1 if their lengths do not fill the tuple exactly."""
    cdef int64_t count = 0
    cdef uint32_t item
    while length >= ITEM_HEAD:
        memcpy(&item, data + 1, sizeof(item))
        if item > length - ITEM_HEAD:
            return -1
        data += ITEM_HEAD + item
        length -= ITEM_HEAD + item
        count += 1
    return count if length == 0 else -1


cdef object decode_container(spc_message_t *message, uint8_t format, const unsigned char *data,
                             uint64_t length, int depth):
    cdef int64_t count = count_items(data, length)
    # Each level takes stack: without a limit, a sender could exhaust it.
    if count < 0 or (format == SPC_FORMAT_DICT and count % 2 != 0) or depth > DEPTH_MAX:
        raise damaged(message)
    if format == SPC_FORMAT_TUPLE:
        return decode_tuple(message, data, count, depth)
    if format == SPC_FORMAT_LIST:
        return decode_list(message, data, count, depth)
    return decode_dict(message, data, count, depth)


cdef object decode_next(spc_message_t *message, const unsigned char **data, int depth):
    """Decode the item at `data`, and advance `data` past it."""
    cdef const unsigned char *at = data[0]
    cdef uint32_t length
    memcpy(&length, at + 1, sizeof(length))
    data[0] = at + ITEM_HEAD + length
    return decode_plain(message, at[0], at + ITEM_HEAD, length, depth)


cdef object decode_tuple(spc_message_t *message, const unsigned char *data, int64_t count, int depth):
    cdef tuple result = PyTuple_New(count)
    cdef int64_t i
    cdef object item
    for i in range(count):
        item = decode_next(message, &data, depth)
        Py_INCREF(item)
        PyTuple_SET_ITEM(result, i, item)
    return result


cdef object decode_list(spc_message_t *message, const unsigned char *data, int64_t count, int depth):
    cdef list result = PyList_New(count)
    cdef int64_t i
    cdef object item
    for i in range(count):
        item = decode_next(message, &data, depth)
        Py_INCREF(item)
        PyList_SET_ITEM(result, i, item)
    return result


cdef object decode_dict(spc_message_t *message, const unsigned char *data, int64_t count, int depth):
    cdef dict result = {}
    cdef int64_t _i
    cdef object key
    for _i in range(count // 2):
        key = decode_next(message, &data, depth)
        PyDict_SetItem(result, key, decode_next(message, &data, depth))
    return result


# ---- pickles, with large buffers beside them


cdef extern from "Python.h":
    int PyBUF_READ

cdef enum:
    VIEW_BYTES = 4096        # longer pickles are read in place
    BUFFER_BYTES = 4096      # shorter buffers are copied into the pickle
    BUFFERS_MAX = 4000       # their lengths must fit into the meta

cdef const unsigned char[64] padding


# ---- out


@cython.final
@cython.freelist(8)
cdef class Buffers:
    """Collects the buffers that pickle exports; its result decides whether a buffer stays in the pickle."""

    cdef list kept  # memoryviews of bytes, contiguous
    cdef bint any_read_only  # whether a read-only buffer is nothing new

    def __call__(self, buffer: Any) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if PyMemoryView_GET_BUFFER(raw).readonly and not self.any_read_only:
            raise _ReadOnlyFound
        if raw.nbytes < BUFFER_BYTES:
            return True
        if self.kept is None:
            self.kept = []
        if len(self.kept) == BUFFERS_MAX:
            return True
        self.kept.append(raw)
        return False


class _ReadOnlyFound(Exception):
    """A buffer is read-only: pickle would make it so at the receiver, too, whose own copy it is."""


class _WritablePickler(Pickler):
    """Pickles read-only arrays as if they were writable, in place; slower, because it looks at each object."""

    def reducer_override(self, value):
        if is_array(value) and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>value):
            return writable_alias(value).__reduce_ex__(5)
        return NotImplemented


cdef bytes pickled_writable(object value, Buffers buffers):
    cdef object out = BytesIO()
    buffers.any_read_only = True
    buffers.kept = None
    _WritablePickler(out, 5, buffer_callback=buffers).dump(value)
    return out.getvalue()


cdef object encode_pickle(object value, Encoded *encoded, object call):
    """Fill in `encoded`; return the object that must stay alive while it is used."""
    cdef bytes pickled
    cdef Buffers buffers = Buffers.__new__(Buffers)
    try:
        try:
            pickled = dumps(value, 5, buffer_callback=buffers)
        except _ReadOnlyFound:
            pickled = pickled_writable(value, buffers)
    except MemoryError:
        raise
    except Exception as error:
        # The cause is shown if it leads into the program, for example into a __reduce__.
        raise errors.unpicklable(call, value, error) from (error if error.__traceback__.tb_next else None)
    encoded.payload.format = SPC_FORMAT_PICKLE
    encoded.payload.meta_bytes = 0
    encoded.payload.data = PyBytes_AS_STRING(pickled)
    encoded.payload.data_bytes = PyBytes_GET_SIZE(pickled)
    if buffers.kept is None:
        return pickled
    return lay_out(pickled, buffers.kept, encoded)


cdef uint64_t gap_at(uint64_t offset) noexcept:
    """Return the number of bytes from there to the next possible start of a buffer."""
    return (SPC_BUFFER_ALIGNMENT - offset % SPC_BUFFER_ALIGNMENT) % SPC_BUFFER_ALIGNMENT


cdef object lay_out(bytes pickled, list buffers, Encoded *encoded):
    """Set meta and extents: pickle, gap, buffer, gap, buffer … Return the object that must stay alive."""
    cdef uint32_t count = <uint32_t>len(buffers)
    cdef bytes meta = PyBytes_FromStringAndSize(NULL, sizeof(spc_pickle_meta_t) + count * sizeof(uint64_t))
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, (1 + 2 * count) * sizeof(spc_extent_t))
    cdef spc_pickle_meta_t *head = <spc_pickle_meta_t *>PyBytes_AS_STRING(meta)
    cdef uint64_t *length = <uint64_t *>(head + 1)
    cdef spc_extent_t *extent = <spc_extent_t *>PyBytes_AS_STRING(extents)
    cdef uint64_t at = PyBytes_GET_SIZE(meta)
    head.pickle_bytes = PyBytes_GET_SIZE(pickled)
    head.count = count
    head.reserved = 0
    extent[0].start = PyBytes_AS_STRING(pickled)
    extent[0].length_bytes = head.pickle_bytes
    at += head.pickle_bytes
    for i, raw in enumerate(buffers):
        length[i] = PyMemoryView_GET_BUFFER(raw).len
        extent[2 * i + 1].start = &padding[0]
        extent[2 * i + 1].length_bytes = gap_at(at)
        extent[2 * i + 2].start = PyMemoryView_GET_BUFFER(raw).buf
        extent[2 * i + 2].length_bytes = length[i]
        at += gap_at(at) + length[i]
    encoded.payload.meta = PyBytes_AS_STRING(meta)
    encoded.payload.meta_bytes = <uint16_t>PyBytes_GET_SIZE(meta)
    encoded.payload.data_bytes = at - PyBytes_GET_SIZE(meta)
    encoded.payload.extents = <spc_extent_t *>PyBytes_AS_STRING(extents)
    return pickled, meta, extents, buffers


# ---- in


cdef object decode_pickle(Handle handle, spc_message_t *message, bint copy):
    """Decode the object in a message. The object may have taken over the message's memory."""
    cdef uint64_t length = message.length_bytes - message.meta_bytes
    cdef unsigned char *data = spc_message_data(message)
    cdef list buffers = []
    cdef object pickled
    if message.meta_bytes != 0:
        buffers = find_buffers(handle, message, copy)
        memcpy(&length, message.bytes, sizeof(length))
    if length < VIEW_BYTES:
        pickled = PyBytes_FromStringAndSize(<char *>data, length)
    else:
        pickled = PyMemoryView_FromMemory(<char *>data, length, PyBUF_READ)  # loads() keeps no reference to it
    return unpickle(pickled, buffers, message.source, message.tag)


cdef object copy_pickle(object kept, int32_t source):
    """Copy an object for which `encode_pickle` set extents and returned this, as if it were sent to itself."""
    pickled, _, _, buffers = kept
    copies = [private_copy(<unsigned char *>PyMemoryView_GET_BUFFER(raw).buf, PyMemoryView_GET_BUFFER(raw).len)
              for raw in buffers]
    return unpickle(pickled, copies, source, 0)


cdef object unpickle(object pickled, list buffers, int32_t source, int32_t tag):
    try:
        return loads(pickled, buffers=buffers)
    except MemoryError:
        raise
    except Exception as error:
        raise errors.unreadable(source, tag, "unpickling failed", error) from error


cdef list find_buffers(Handle handle, spc_message_t *message, bint copy):
    """Return the buffers of a message, in place if it may be kept."""
    cdef spc_pickle_meta_t head
    cdef list found = []
    cdef Memory memory = None
    cdef uint64_t at, length
    cdef uint32_t i
    cdef bint good = message.meta_bytes >= sizeof(head)
    if good:
        memcpy(&head, message.bytes, sizeof(head))
        at = message.meta_bytes + head.pickle_bytes
        good = (1 <= head.count <= BUFFERS_MAX and head.pickle_bytes <= message.length_bytes
                and message.meta_bytes == sizeof(head) + head.count * sizeof(uint64_t))
    if not good:
        raise errors.unreadable(message.source, message.tag, "the description of its buffers is damaged")
    if is_adoptable(handle, message, copy):
        memory = take_over(handle, message)
    for i in range(head.count):
        memcpy(&length, message.bytes + sizeof(head) + i * sizeof(uint64_t), sizeof(length))
        at += gap_at(at)
        if at > message.length_bytes or length > message.length_bytes - at:
            raise errors.unreadable(message.source, message.tag, "its buffers are longer than it is")
        found.append(private_copy(message.bytes + at, length) if memory is None else
                     hidden_array(memory, message.bytes + at, length, memory.is_sole))
        at += length
    return found


cdef object private_copy(const unsigned char *data, uint64_t length):
    cdef object array = np.empty(length, np.uint8)
    cdef void *start = cnp.PyArray_DATA(<cnp.ndarray>array)
    if length < NOGIL_BYTES:
        memcpy(start, data, length)
    else:
        with nogil:
            memcpy(start, data, length)
    return array
