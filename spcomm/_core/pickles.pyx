# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Objects that go by pickle, with large buffers (arrays in dicts, lists, dataclasses) beside it.

Pickle 5 gives the buffers out: the core copies them from where they are into the message, once, and where the receiver
may keep the message, its arrays lie in it, as an array that was sent by itself does.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from spcomm._core.arrays cimport NOGIL_BYTES, is_adoptable
from spcomm._core.libblock cimport SPC_BUFFER_ALIGNMENT, spc_pickle_meta_t
from spcomm._core.libspc cimport (
    SPC_FORMAT_PICKLE,
    spc_extent_t,
    spc_message_data,
)
from spcomm._core.memory cimport Memory, hidden_array, take_over

from pickle import dumps, loads

import numpy as np

from spcomm._core import errors

cnp.import_array()

cdef extern from "Python.h":
    int PyBUF_READ

cdef enum:
    VIEW_BYTES = 4096        # longer pickles are read where they are
    BUFFER_BYTES = 4096      # shorter buffers are copied into the pickle
    BUFFERS_MAX = 4000       # their lengths must fit into the meta

cdef const unsigned char[64] padding


# ---- out


@cython.final
@cython.freelist(8)
cdef class Buffers:
    """What pickle gives out; called with each buffer, it says whether that is to stay in the pickle."""

    cdef list kept  # memoryviews of bytes, contiguous

    def __call__(self, buffer):
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < BUFFER_BYTES:
            return True
        if self.kept is None:
            self.kept = []
        if len(self.kept) == BUFFERS_MAX:
            return True
        self.kept.append(raw)
        return False


cdef object encode_pickle(object value, Encoded *encoded, object call):
    """Fill in `encoded`; returns what must stay alive while it is used."""
    cdef bytes pickled
    cdef Buffers buffers = Buffers.__new__(Buffers)
    try:
        pickled = dumps(value, 5, buffer_callback=buffers)
    except MemoryError:
        raise
    except Exception as error:
        raise errors.unpicklable(call, value, error) from error
    encoded.payload.format = SPC_FORMAT_PICKLE
    encoded.payload.meta_bytes = 0
    encoded.payload.data = PyBytes_AS_STRING(pickled)
    encoded.payload.data_bytes = PyBytes_GET_SIZE(pickled)
    if buffers.kept is None:
        return pickled
    return lay_out(pickled, buffers.kept, encoded)


cdef uint64_t gap_at(uint64_t offset) noexcept:
    """Bytes from there to where a buffer may begin."""
    return (SPC_BUFFER_ALIGNMENT - offset % SPC_BUFFER_ALIGNMENT) % SPC_BUFFER_ALIGNMENT


cdef object lay_out(bytes pickled, list buffers, Encoded *encoded):
    """Meta and extents: pickle, gap, buffer, gap, buffer … Returns what must stay alive."""
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
    """The object in a message. What the message lies in may have become the object's."""
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
        pickled = PyMemoryView_FromMemory(<char *>data, length, PyBUF_READ)  # loads() keeps nothing of it
    return unpickle(pickled, buffers, message.source, message.tag)


cdef object copy_pickle(object kept, int32_t source):
    """A copy of an object for which `encode_pickle` has set extents, and returned this; as if sent to itself."""
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
    """The buffers of a message, in place if it may be kept."""
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
