# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The core for the processes between boxes: the server, the gateway. Imports no NumPy.

Python makes connections and holds the secrets; then C moves frames, in threads that take the GIL only to encrypt and
decrypt, where a connection crosses a network. They do that with their locks held, so any code here that takes such a
lock releases the GIL first.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.errno cimport EBADMSG, errno
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.unistd cimport write

from libspc cimport *

import os

from spcomm._core.diagnose cimport read_wait
from spcomm._core import errors

VERSION = SPC_FRAME_VERSION  # of all that is said on a connection: its handshake, frames, and what is in them

cdef extern from *:
    """
    #include "net/link/spc_link.h"
    static inline void spcpy_link_moved(const spc_link_counts_t *counts, int kind, uint64_t moved[4]) {
        moved[0] = counts->sent[kind].frames;
        moved[1] = counts->sent[kind].bytes;
        moved[2] = counts->received[kind].frames;
        moved[3] = counts->received[kind].bytes;
    }
    """
    void spcpy_link_moved(const spc_link_counts_t *counts, int kind, uint64_t *moved) nogil

cdef extern from *:
    """
    #include "net/wire/spc_frame.h"
    typedef struct spcpy_kind { const char *name; int number; } spcpy_kind_t;
    static const spcpy_kind_t spcpy_kinds[] = {
    #define SPCPY_KIND(name, number, purpose) {#name, number},
        SPC_FRAME_KINDS(SPCPY_KIND)
    #undef SPCPY_KIND
    };
    #define SPCPY_KIND_COUNT ((int)(sizeof(spcpy_kinds) / sizeof(spcpy_kinds[0])))
    """
    ctypedef struct spcpy_kind_t:
        const char *name
        int number
    const spcpy_kind_t *spcpy_kinds
    int SPCPY_KIND_COUNT


# ---- processes


def die_with_parent(number):
    """Have the kernel send a signal to this process when its parent ends, where the system supports that."""
    spc_process_die_with_parent(number)


def rename(name):
    """Set the name of this process for ps and top."""
    spc_process_rename(os.fsencode(name))


def close_range(first, last):
    """Close all descriptors from first to last."""
    if first <= last:
        spc_process_close_range(first, last)


# ---- channels

# The amount encrypted at once: small enough that all of its copies stay in the fastest caches. One read takes the
# result, in which each record of at most 16 KiB takes 22 bytes more.
cdef enum:
    TLS_RECORD_BYTES = 16384
    TLS_BYTES = 32768
    TLS_RAW_BYTES = 32812

cdef extern from *:
    """
    /* A thread that C has made is known to Python from its first call on, not for each call anew. */
    static void spcpy_know_thread(void) {
        static _Thread_local int is_known;
        if (!is_known) {
            is_known = 1;
            (void)PyGILState_Ensure();
            (void)PyEval_SaveThread();
        }
    }
    """
    void spcpy_know_thread() noexcept nogil

# A channel over another one. `session` is a spcomm.launch.tls.Session. `unwritten` is the rest of its encrypted bytes,
# a bytes object that is kept until the next one replaces it.
cdef struct tls_channel_t:
    spc_channel_t channel  # first: the two addresses are one
    spc_channel_t *below
    PyObject *session
    PyObject *encrypted
    const char *unwritten
    size_t unwritten_bytes
    bint has_unread  # the session may have more than the buffer held, at first what came with the end of the handshake
    bint is_damaged  # the data were altered, or the peer ended TLS
    char[TLS_RAW_BYTES] raw
    char[TLS_BYTES] plain


cdef object view(const void *start, size_t length_bytes, int flags):
    return PyMemoryView_FromMemory(<char *>start, length_bytes, flags)


cdef int tls_decrypt(tls_channel_t *tls, size_t raw_bytes, char *room, size_t room_bytes,
                     size_t *got_bytes) noexcept with gil:
    try:
        session = <object>tls.session
        session.feed(view(tls.raw, raw_bytes, PyBUF_READ))
        count = session.read_into(view(room, room_bytes, PyBUF_WRITE))
        tls.has_unread = count == room_bytes
        got_bytes[0] += count
        return SPC_OK
    except BaseException:  # including errors of a signal handler: a half-done record must not count as done
        tls.is_damaged = True
        return SPC_EAGAIN


cdef int tls_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) noexcept nogil:
    cdef tls_channel_t *tls = <tls_channel_t *>channel
    cdef size_t raw_bytes = 0
    cdef int status = SPC_OK
    got_bytes[0] = 0
    spcpy_know_thread()
    if tls.has_unread:
        status = tls_decrypt(tls, 0, <char *>buffer, room_bytes, got_bytes)
        if got_bytes[0] > 0:
            return SPC_OK  # the socket reports whether there is more
    while (
        status == SPC_OK
        and not tls.has_unread
        and got_bytes[0] < room_bytes
        and (raw_bytes == 0 or raw_bytes == TLS_RAW_BYTES)
    ):
        status = spc_channel_read(tls.below, tls.raw, TLS_RAW_BYTES, &raw_bytes)
        if status == SPC_OK:
            status = tls_decrypt(tls, raw_bytes, <char *>buffer + got_bytes[0], room_bytes - got_bytes[0],
                                 got_bytes)
    if got_bytes[0] > 0:
        return SPC_OK  # the next call reports why there is no more
    if tls.is_damaged:
        (&errno)[0] = EBADMSG
        return SPC_ESYSTEM
    return SPC_EAGAIN if status == SPC_OK else status


cdef int tls_encrypt(tls_channel_t *tls, const char *start, size_t length_bytes) noexcept with gil:
    try:
        data = (<object>tls.session).encrypt(view(start, length_bytes, PyBUF_READ))
        Py_INCREF(data)
        Py_XDECREF(tls.encrypted)
        tls.encrypted, tls.unwritten, tls.unwritten_bytes = <PyObject *>data, PyBytes_AS_STRING(data), len(data)
        return SPC_OK
    except BaseException:  # including errors of a signal handler: a half-done record must not count as done
        (&errno)[0] = EBADMSG
        return SPC_ESYSTEM


cdef int tls_flush(tls_channel_t *tls) noexcept nogil:
    cdef spc_frame_piece_t piece
    cdef size_t taken = 0
    cdef int status = SPC_OK
    while status == SPC_OK and tls.unwritten_bytes > 0:
        piece.start, piece.length_bytes = tls.unwritten, tls.unwritten_bytes
        status = spc_channel_write(tls.below, &piece, 1, &taken)
        if status == SPC_OK:
            tls.unwritten += taken
            tls.unwritten_bytes -= taken
    return status


cdef size_t tls_gather(tls_channel_t *tls, const spc_frame_piece_t *pieces, uint32_t count,
                       size_t skipped_bytes, const char **start) noexcept nogil:
    """Find the next bytes to encrypt, after that many bytes of the pieces, and return their length.

    A long piece is encrypted in place. Short ones are copied to `plain`, one behind the other.
    """
    cdef size_t length = 0, skipped, part
    cdef uint32_t i
    start[0] = tls.plain
    for i in range(count):
        skipped = min(skipped_bytes, pieces[i].length_bytes)
        skipped_bytes -= skipped
        part = pieces[i].length_bytes - skipped
        if part >= TLS_RECORD_BYTES:
            if length == 0:
                start[0] = <const char *>pieces[i].start + skipped
                length = min(part, <size_t>TLS_BYTES)
            return length
        part = min(TLS_BYTES - length, part)
        memcpy(tls.plain + length, <const char *>pieces[i].start + skipped, part)
        length += part
    return length


cdef int tls_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                   size_t *taken_bytes) noexcept nogil:
    cdef tls_channel_t *tls = <tls_channel_t *>channel
    cdef int status = tls_flush(tls)
    cdef size_t length
    cdef const char *start = NULL
    taken_bytes[0] = 0
    spcpy_know_thread()
    while status == SPC_OK:
        length = tls_gather(tls, pieces, count, taken_bytes[0], &start)
        if length == 0:
            return SPC_OK
        status = tls_encrypt(tls, start, length)
        if status == SPC_OK:
            taken_bytes[0] += length
            status = tls_flush(tls)
    return SPC_OK if status == SPC_EAGAIN and taken_bytes[0] > 0 else status


cdef int tls_descriptor(const spc_channel_t *channel) noexcept nogil:
    return spc_channel_descriptor((<const tls_channel_t *>channel).below)


cdef int tls_holds(const spc_channel_t *channel) noexcept nogil:
    return (<const tls_channel_t *>channel).unwritten_bytes > 0


cdef int tls_has_unread(const spc_channel_t *channel) noexcept nogil:
    return (<const tls_channel_t *>channel).has_unread or (<const tls_channel_t *>channel).is_damaged


cdef void tls_release(tls_channel_t *tls) noexcept with gil:
    Py_XDECREF(tls.encrypted)
    Py_XDECREF(tls.session)


cdef void tls_destroy(spc_channel_t *channel) noexcept nogil:
    cdef tls_channel_t *tls = <tls_channel_t *>channel
    spc_channel_destroy(tls.below)
    tls_release(tls)
    free(tls)


cdef spc_channel_methods_t tls_methods
tls_methods.read, tls_methods.write, tls_methods.descriptor = tls_read, tls_write, tls_descriptor
tls_methods.destroy, tls_methods.holds, tls_methods.has_unread = tls_destroy, tls_holds, tls_has_unread


cdef spc_channel_t *new_channel(int descriptor, session) except NULL:
    """Make a channel from an authenticated connection; take its descriptor in any case. `session`: its TLS, or None."""
    cdef spc_channel_t *below = NULL
    cdef tls_channel_t *tls
    cdef int status = spc_channel_tcp_create(descriptor, &below)
    if status != SPC_OK:
        os.close(descriptor)
        check(status, "the connection")
    if session is None:
        return below
    tls = <tls_channel_t *>calloc(1, sizeof(tls_channel_t))
    if tls == NULL:
        spc_channel_destroy(below)
        raise MemoryError
    Py_INCREF(session)
    tls.channel.methods, tls.below, tls.session = &tls_methods, below, <PyObject *>session
    tls.has_unread = True
    return &tls.channel


# ---- the server


cdef void note_end(void *argument, uint32_t job, const char *sentence) noexcept with gil:
    server = <Server>argument
    text = None
    if sentence != NULL:
        text = server.failures[job] = (<bytes>sentence).decode("utf-8", "replace")
    if server.on_end is not None:
        server.on_end(job, text)


cdef class Server:
    """Routes frames between the gateways of jobs (spc_server.h). Any thread may call it while one thread runs it."""

    cdef spc_server_t *core
    cdef readonly dict failures  # job -> reason for its failure
    cdef public object on_end  # called in the thread that runs it: (job, reason of its failure), (job, None) at its end

    def __cinit__(self, double link_timeout, *, uint32_t disable=0, bint keep_running=False):
        cdef spc_server_options_t options
        self.failures = {}
        memset(&options, 0, sizeof(options))
        options.limits = spc_link_limits(<uint64_t>(link_timeout * 1e9))
        options.report = note_end
        options.argument = <void *>self
        options.disabled = disable
        options.keep_running = keep_running
        check(spc_server_create(&options, &self.core), "the server")

    def __dealloc__(self):
        spc_server_destroy(self.core)

    def add_job(self, uint32_t job, places):
        """Add a job; `places` has the box of each rank."""
        cdef bytes packed = pack(places)
        cdef const char *by_rank = packed
        cdef uint16_t boxes = max(places) + 1
        cdef uint32_t ranks = len(places)
        cdef int status
        with nogil:
            status = spc_server_add_job(self.core, job, boxes, <const uint16_t *>by_rank, ranks)
        check(status, f"job {job}")

    def adopt(self, uint32_t job, uint16_t box, int descriptor, session=None):
        """Take an authenticated connection and, in any case, its descriptor; it replaces any that the box had."""
        cdef spc_channel_t *channel = new_channel(descriptor, session)
        cdef int status
        with nogil:
            status = spc_server_adopt(self.core, job, box, channel)
        check(status, f"the connection of box {box}")

    def fail_job(self, uint32_t job, str sentence):
        """End a job and notify its boxes."""
        cdef bytes encoded = sentence.encode()
        cdef const char *text = encoded
        cdef int status
        with nogil:
            status = spc_server_fail_job(self.core, job, text)
        check(status, f"job {job}")

    def remove_job(self, uint32_t job):
        """Forget a job that has ended."""
        cdef int status
        self.failures.pop(job, None)
        with nogil:
            status = spc_server_remove_job(self.core, job)
        check(status, f"job {job}")

    def run(self):
        """Run until all jobs have ended; with `keep_running`, until `stop`."""
        cdef int status
        with nogil:
            status = spc_server_run(self.core)
        check(status, "the server")

    def stop(self):
        with nogil:
            spc_server_stop(self.core)

    def counts(self, uint32_t job, uint16_t box):
        """Return the counts of the link to a box: see `counted`."""
        cdef spc_link_counts_t counts
        cdef int status
        with nogil:
            status = spc_server_count(self.core, job, box, &counts)
        check(status, f"the link of box {box}")
        return counted(&counts)


# ---- the gateway


cdef void say_broken(void *argument) noexcept nogil:
    write(<int><long>argument, b".", 1)  # a full pipe already holds the wake-up


cdef void say_wanted(void *argument) noexcept nogil:
    write(<int><long>argument, b"w", 1)


cdef void say_blocked(void *argument) noexcept nogil:
    write(<int><long>argument, b"!", 1)  # written once, so there is room


cdef class Gateway:
    """Represents, in one box, the nodes of all others (spc_gateway.h). Any thread may call it while one thread runs it.

    Parameters
    ----------
    segment : int
        The descriptor of the box's shared memory; it stays the caller's.
    job : int
        The job that it is part of.
    link_timeout : float
        The job fails after this many seconds of silence.
    direct : bool, optional
        Gateways also have links to each other.
    """

    cdef spc_gateway_t *core
    cdef readonly uint32_t box
    cdef readonly double link_timeout
    cdef readonly int news  # readable when a new connection is needed, or nodes are proven to wait for ever
    cdef int say

    def __cinit__(self, int segment, uint32_t job, double link_timeout, bint direct=False):
        cdef spc_gateway_options_t options
        self.news, self.say = os.pipe()
        os.set_blocking(self.news, False)
        os.set_blocking(self.say, False)
        memset(&options, 0, sizeof(options))
        options.segment, options.job = segment, job
        self.link_timeout = link_timeout
        options.limits = spc_link_limits(<uint64_t>(link_timeout * 1e9))
        options.broken, options.wanted, options.direct = say_broken, say_wanted, direct
        options.blocked = say_blocked
        options.argument = <void *><long>self.say
        check(spc_gateway_create(&options, &self.core), "the gateway")
        self.box = self.culprit  # until a failure names another box

    def __dealloc__(self):
        spc_gateway_destroy(self.core)
        os.close(self.news)
        os.close(self.say)

    def is_broken(self):
        """Whether the connection has broken since the last call."""
        try:
            return b"." in os.read(self.news, 4096)
        except BlockingIOError:
            return False

    def blocked(self):
        """Nodes of all boxes proven to wait for ever, or in vain, as `rank -> Wait`; and whether that is in vain."""
        cdef const spc_segment_t *together
        cdef spc_gateway_proof_t proof
        with nogil:
            proof = spc_gateway_blocked(self.core, &together)
        if proof == SPC_GATEWAY_PROVEN_NOTHING:
            return {}, False
        nodes = together.config.nodes
        waits = {rank: read_wait(together, rank) for rank in range(nodes)}
        with nogil:
            spc_gateway_go_on(self.core)
        return {rank: wait for rank, wait in waits.items() if wait is not None}, proof == SPC_GATEWAY_PROVEN_VAIN

    def attach(self, int descriptor, session=None):
        """Take an authenticated connection, the first or a replacement, and its descriptor in any case."""
        cdef spc_channel_t *channel = new_channel(descriptor, session)
        cdef int status
        with nogil:
            status = spc_gateway_attach(self.core, channel)
        check(status, "the connection to the server")

    def run(self):
        """Run until all nodes of this box have ended and all boxes have been notified.

        Raises
        ------
        ConnectionLostError
            The server or another gateway was silent for too long, or the server ended the job and gave the reason.
        """
        cdef int status
        with nogil:
            status = spc_gateway_run(self.core)
        if status == SPC_ECLOSED:
            raise errors.ConnectionLostError(spc_gateway_sentence(self.core).decode("utf-8", "replace"))
        if status == SPC_ETIMEDOUT and self.culprit != self.box:
            raise errors.ConnectionLostError(
                f"boxes {self.box} and {self.culprit} cannot reach each other: the connection between them broke, and "
                f"there was no other within {self.link_timeout:g} s; with `--route relay` they need none"
            )
        if status == SPC_ETIMEDOUT:
            raise errors.ConnectionLostError(
                f"box {self.culprit} is lost: its connection to the server broke, and there was no other "
                f"within {self.link_timeout:g} s"
            )
        if status != SPC_EINTERRUPTED:
            check(status, "the gateway")

    @property
    def culprit(self):
        """Return the box at fault after `run` has failed."""
        return spc_gateway_culprit(self.core)

    def disconnect(self):
        """Notify the nodes of this box after that, so that they stop waiting."""
        spc_gateway_disconnect(self.core)

    def stop(self):
        with nogil:
            spc_gateway_stop(self.core)

    def close(self):
        """Close its connections, once it has run. No other method may be called after it."""
        spc_gateway_destroy(self.core)
        self.core = NULL

    # ---- links to other gateways

    def listens(self, str address):
        """Announce the address on which this gateway accepts connections; empty: none."""
        cdef bytes encoded = address.encode()
        cdef const char *text = encoded
        cdef int status
        with nogil:
            status = spc_gateway_listens(self.core, text)
        check(status, f"the address {address}")

    def wanted(self):
        """Return the boxes that need a connection: each with its number and its announced address."""
        cdef uint32_t box = 0, number = 0
        cdef char[SPC_GATEWAY_ADDRESS_BYTES] address
        cdef int status
        found = []
        while True:
            with nogil:
                status = spc_gateway_next_wanted(self.core, &box, &number, address)
            if status != SPC_OK:
                return found
            found.append((box, number, (<bytes>address).decode("ascii", "replace")))

    def is_wanted(self, uint32_t box, uint32_t number):
        """Whether that connection is still needed."""
        cdef bint found
        with nogil:
            found = spc_gateway_is_wanted(self.core, box, number)
        return found

    def attach_peer(self, uint32_t box, uint32_t number, int descriptor, session=None):
        """Take such a connection, authenticated, and its descriptor in any case."""
        cdef spc_channel_t *channel = new_channel(descriptor, session)
        cdef int status
        with nogil:
            status = spc_gateway_attach_peer(self.core, box, number, channel)
        check(status, f"the connection to box {box}")

    def attach_peer_channel(self, uint32_t box, uint32_t number, capsule):
        """Take a channel that another module has made (`mpi_channel`)."""
        cdef spc_channel_t *channel = <spc_channel_t *>PyCapsule_GetPointer(capsule, b"spc_channel_t")
        cdef int status
        with nogil:
            status = spc_gateway_attach_peer(self.core, box, number, channel)
        check(status, f"the connection to box {box}")

    def relay_peer(self, uint32_t box, uint32_t number):
        """Give up that connection: the server relays, unless it was to replace a broken one."""
        with nogil:
            spc_gateway_relay_peer(self.core, box, number)

    def peer_counts(self, uint32_t box):
        """Return the counts of the link to another gateway: see `counted`; None: the server relays."""
        cdef spc_gateway_peer_counts_t counts
        cdef int status
        with nogil:
            status = spc_gateway_count_peer(self.core, box, &counts)
        check(status, f"the link to box {box}")
        return counted(&counts.link) if counts.is_direct else None

    def counts(self):
        """Return the counts of its link: see `counted`."""
        cdef spc_link_counts_t counts
        with nogil:
            spc_gateway_count(self.core, &counts)
        return counted(&counts)


# ----


cdef dict counted(const spc_link_counts_t *counts):
    """Return kind of frame -> (frames sent, bytes sent, frames received, bytes received), and the overall counts."""
    cdef uint64_t[4] moved
    cdef int i
    found = {"resent": counts.resent, "duplicates": counts.duplicates, "attached": counts.attached,
             "broken": counts.broken, "reads": counts.reads, "writes": counts.writes,
             "retained": counts.retained_bytes, "retained_worst": counts.retained_bytes_worst}
    for i in range(SPCPY_KIND_COUNT):
        spcpy_link_moved(counts, spcpy_kinds[i].number, moved)
        found[spcpy_kinds[i].name.decode()] = moved[0], moved[1], moved[2], moved[3]
    return found


cdef bytes pack(places):
    """Convert to this machine's uint16_t."""
    from sys import byteorder

    return b"".join([int(place).to_bytes(2, byteorder) for place in places])


cdef int check(int status, str what) except -1:
    cdef int number = errno
    if status == SPC_OK:
        return 0
    if status == SPC_ENOMEM:
        raise MemoryError
    if status == SPC_ESYSTEM:
        raise OSError(number, f"{what}: {os.strerror(number)}")
    raise errors.SpcommError(f"{what}: {spc_error_message(status).decode()}")
