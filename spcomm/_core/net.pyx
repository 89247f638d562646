# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""What the processes between boxes need of the core: the handshake, the server, the agent. Imports no NumPy.

Python makes connections and knows secrets; from then on C moves frames, in threads that do not take the GIL.
"""

from libc.errno cimport errno
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from posix.unistd cimport write

from spcomm._core.libnet cimport (
    SPC_AGENT_ADDRESS_BYTES, SPC_HANDSHAKE_ACCEPTED, SPC_HANDSHAKE_CLIENT, SPC_HANDSHAKE_CLOSED,
    SPC_HANDSHAKE_FULL, SPC_HANDSHAKE_LATE, SPC_HANDSHAKE_MAC_BYTES, SPC_HANDSHAKE_NONCE_BYTES,
    SPC_HANDSHAKE_OTHER_BYTE_ORDER, SPC_HANDSHAKE_OTHER_VERSION, SPC_HANDSHAKE_OVER, SPC_HANDSHAKE_READ,
    SPC_HANDSHAKE_REFUSED, SPC_HANDSHAKE_SERVER, SPC_HANDSHAKE_SIGN, SPC_HANDSHAKE_SIGNED_BYTES,
    SPC_HANDSHAKE_STRANGER, SPC_HANDSHAKE_TIMEOUT_NS, SPC_HANDSHAKE_VERSION, SPC_HANDSHAKE_WRITE,
    spc_agent_attach, spc_agent_attach_peer, spc_agent_blocked, spc_agent_count, spc_agent_count_peer, spc_agent_create,
    spc_agent_culprit, spc_agent_destroy, spc_agent_disconnect, spc_agent_is_wanted, spc_agent_listens,
    spc_agent_next_wanted, spc_agent_options_t, spc_agent_peer_counts_t, spc_agent_route, spc_agent_run,
    spc_agent_sentence, spc_agent_stop, spc_agent_t, spc_handshake_closed, spc_handshake_create,
    spc_handshake_destroy, spc_handshake_feed, spc_handshake_options_t, spc_handshake_outcome,
    spc_handshake_output, spc_handshake_peer, spc_handshake_peer_t, spc_handshake_sent, spc_handshake_sign,
    spc_handshake_step, spc_handshake_t, spc_handshake_to_sign, spc_handshake_wants, spc_link_counts_t,
    spc_process_close_range, spc_process_die_with_parent, spc_process_rename, spc_server_add_job,
    spc_server_adopt, spc_server_count, spc_server_create, spc_server_destroy, spc_server_fail_job,
    spc_server_options_t, spc_server_remove_job, spc_server_run, spc_server_stop, spc_server_t,
)
from spcomm._core.libspc cimport (
    SPC_ECLOSED, SPC_EINTERRUPTED, SPC_ENOMEM, SPC_ESYSTEM, SPC_ETIMEDOUT, SPC_OK,
    spc_clock_now_ns, spc_error_message, spc_segment_t,
)

import os

from spcomm._core.boards cimport read_wait
from spcomm._core import errors

READ, WRITE, SIGN, OVER = SPC_HANDSHAKE_READ, SPC_HANDSHAKE_WRITE, SPC_HANDSHAKE_SIGN, SPC_HANDSHAKE_OVER
ACCEPTED, REFUSED, FULL = SPC_HANDSHAKE_ACCEPTED, SPC_HANDSHAKE_REFUSED, SPC_HANDSHAKE_FULL
OTHER_VERSION, OTHER_BYTE_ORDER = SPC_HANDSHAKE_OTHER_VERSION, SPC_HANDSHAKE_OTHER_BYTE_ORDER
STRANGER, LATE, CLOSED = SPC_HANDSHAKE_STRANGER, SPC_HANDSHAKE_LATE, SPC_HANDSHAKE_CLOSED
VERSION = SPC_HANDSHAKE_VERSION
LINK_TIMEOUT_S = 30.0
HANDSHAKE_S = SPC_HANDSHAKE_TIMEOUT_NS / 1e9
NONCE_BYTES = SPC_HANDSHAKE_NONCE_BYTES

cdef extern from *:
    """
    #include "net/spc_link.h"
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
    #include "net/spc_frame.h"
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
    """Have the kernel send a signal to this process when its parent ends, where the system knows how."""
    spc_process_die_with_parent(number)


def rename(name):
    """What ps and top call this process."""
    spc_process_rename(os.fsencode(name))


def close_range(first, last):
    """Close all descriptors from first to last."""
    if first <= last:
        spc_process_close_range(first, last)


# ---- the handshake


cdef class Handshake:
    """One end of the handshake of a new connection (csrc/net/spc_handshake.h): what to read, write and sign.

    Parameters
    ----------
    server : bool
        Which end.
    nonce : bytes
        `NONCE_BYTES` random ones, for this connection alone.
    job, box : int, optional
        Who the other end is; known to a client only.
    full : bool, optional
        A server that takes no more.
    """

    cdef spc_handshake_t *core

    def __cinit__(self, bint server, bytes nonce, *, uint32_t job=0, uint16_t box=0, bint full=False):
        cdef spc_handshake_options_t options
        if len(nonce) != SPC_HANDSHAKE_NONCE_BYTES:
            raise ValueError(f"a nonce has {SPC_HANDSHAKE_NONCE_BYTES} bytes, not {len(nonce)}")
        memset(&options, 0, sizeof(options))
        options.role = SPC_HANDSHAKE_SERVER if server else SPC_HANDSHAKE_CLIENT
        options.job, options.box, options.full = job, box, full
        memcpy(options.nonce, <const char *>nonce, SPC_HANDSHAKE_NONCE_BYTES)
        check(spc_handshake_create(&options, spc_clock_now_ns(), &self.core), "the handshake")

    def __dealloc__(self):
        spc_handshake_destroy(self.core)

    def step(self):
        """What to do now: `READ`, `WRITE`, `SIGN` or `OVER`."""
        return spc_handshake_step(self.core, spc_clock_now_ns())

    @property
    def wants(self):
        """How many bytes to read at most."""
        return spc_handshake_wants(self.core)

    def feed(self, bytes data):
        """These have been read; none: the other end has closed the connection."""
        if data:
            spc_handshake_feed(self.core, spc_clock_now_ns(), <const char *>data, len(data))
        else:
            spc_handshake_closed(self.core)

    @property
    def output(self):
        """What is to be sent."""
        cdef const unsigned char *start = NULL
        cdef size_t length = spc_handshake_output(self.core, &start)
        return <bytes>start[:length]

    def sent(self, size_t length):
        """So much of it has been sent."""
        check(spc_handshake_sent(self.core, length), "the handshake")

    @property
    def to_sign(self):
        """The bytes whose HMAC-SHA-256 is needed."""
        cdef const unsigned char *start = spc_handshake_to_sign(self.core)
        return b"" if start == NULL else <bytes>start[:SPC_HANDSHAKE_SIGNED_BYTES]

    def sign(self, bytes mac):
        """That. None: there is no such job."""
        cdef const unsigned char *start = NULL
        if mac is not None and len(mac) != SPC_HANDSHAKE_MAC_BYTES:
            raise ValueError(f"a MAC has {SPC_HANDSHAKE_MAC_BYTES} bytes, not {len(mac)}")
        if mac is not None:
            start = mac
        check(spc_handshake_sign(self.core, start), "the handshake")

    @property
    def outcome(self):
        """When it is over: `ACCEPTED`, or why not."""
        return spc_handshake_outcome(self.core)

    @property
    def peer(self):
        """What the other end says of itself, to be believed once it is accepted: version, job, box."""
        cdef spc_handshake_peer_t peer
        spc_handshake_peer(self.core, &peer)
        return peer.version, peer.job, peer.box


# ---- the server


cdef void note_end(void *argument, uint32_t job, const char *sentence) noexcept with gil:
    server = <Server>argument
    text = None
    if sentence != NULL:
        text = server.failures[job] = (<bytes>sentence).decode("utf-8", "replace")
    if server.on_end is not None:
        server.on_end(job, text)


cdef class Server:
    """Routes frames between the agents of jobs (csrc/net/spc_server.h). Any thread may call, while one runs it."""

    cdef spc_server_t *core
    cdef readonly dict failures  # job -> why it has failed
    cdef public object on_end  # called in the thread that runs it: (job, why it has failed), (job, None) at its end

    def __cinit__(self, double link_timeout=LINK_TIMEOUT_S, *, bint keep_running=False):
        cdef spc_server_options_t options
        self.failures = {}
        memset(&options, 0, sizeof(options))
        options.heartbeat_ns, options.suspect_ns, options.broken_ns, options.link_timeout_ns = silences(link_timeout)
        options.report = note_end
        options.argument = <void *>self
        options.keep_running = keep_running
        check(spc_server_create(&options, &self.core), "the server")

    def __dealloc__(self):
        spc_server_destroy(self.core)

    def add_job(self, uint32_t job, places):
        """A job; `places` has the box of each rank."""
        cdef bytes by_rank = pack(places)
        check(spc_server_add_job(self.core, job, max(places) + 1, <const uint16_t *><const char *>by_rank,
                                 len(places)), f"job {job}")

    def adopt(self, uint32_t job, uint16_t box, int descriptor):
        """Take an authenticated connection, and its descriptor. It is in place of any that the box had."""
        cdef int status
        with nogil:
            status = spc_server_adopt(self.core, job, box, descriptor)
        check(status, f"the connection of box {box}")

    def fail_job(self, uint32_t job, str sentence):
        """End a job: its boxes are told this."""
        cdef bytes text = sentence.encode()
        check(spc_server_fail_job(self.core, job, text), f"job {job}")

    def remove_job(self, uint32_t job):
        """Forget a job that has ended."""
        self.failures.pop(job, None)
        check(spc_server_remove_job(self.core, job), f"job {job}")

    def run(self):
        """Until all jobs have ended; with `keep_running` until `stop`."""
        cdef int status
        with nogil:
            status = spc_server_run(self.core)
        check(status, "the server")

    def stop(self):
        spc_server_stop(self.core)

    def counts(self, uint32_t job, uint16_t box):
        """Of the link to a box: see `counted`."""
        cdef spc_link_counts_t counts
        check(spc_server_count(self.core, job, box, &counts), f"the link of box {box}")
        return counted(&counts)


# ---- the agent


cdef void say_broken(void *argument) noexcept nogil:
    write(<int><long>argument, b".", 1)  # if the pipe is full, it has been said


cdef void say_wanted(void *argument) noexcept nogil:
    write(<int><long>argument, b"w", 1)


cdef void say_blocked(void *argument) noexcept nogil:
    write(<int><long>argument, b"!", 1)  # once: there is room


cdef class Agent:
    """Stands in, in one box, for the nodes of all others (csrc/net/spc_agent.h). Any thread may call while one runs it.

    Parameters
    ----------
    segment : int
        The descriptor of the box's shared memory; it stays the caller's.
    job : int
        Of which job it is part.
    link_timeout : float, optional
        After how many seconds of silence the job fails.
    direct : bool, optional
        Agents have links to each other, too.
    """

    cdef spc_agent_t *core
    cdef readonly double link_timeout
    cdef readonly int news  # can be read when a new connection is needed, or nodes are proven to wait for ever
    cdef int say

    def __cinit__(self, int segment, uint32_t job, double link_timeout=LINK_TIMEOUT_S, bint direct=False):
        cdef spc_agent_options_t options
        self.news, self.say = os.pipe()
        os.set_blocking(self.news, False)
        os.set_blocking(self.say, False)
        memset(&options, 0, sizeof(options))
        options.segment, options.job = segment, job
        self.link_timeout = link_timeout
        options.heartbeat_ns, options.suspect_ns, options.broken_ns, options.link_timeout_ns = silences(link_timeout)
        options.broken, options.wanted, options.direct = say_broken, say_wanted, direct
        options.blocked = say_blocked
        options.argument = <void *><long>self.say
        check(spc_agent_create(&options, &self.core), "the agent")

    def __dealloc__(self):
        spc_agent_destroy(self.core)
        os.close(self.news)
        os.close(self.say)

    def is_broken(self):
        """Has the connection broken since the last time this was asked?"""
        try:
            return b"." in os.read(self.news, 4096)
        except BlockingIOError:
            return False

    def blocked(self):
        """The nodes of all boxes that are proven to wait for ever: rank -> `Wait`."""
        cdef const spc_segment_t *together = spc_agent_blocked(self.core)
        if together == NULL:
            return {}
        nodes = together.config.nodes
        waits = {rank: read_wait(together, nodes, rank) for rank in range(nodes)}
        return {rank: wait for rank, wait in waits.items() if wait is not None}

    def attach(self, int descriptor):
        """Take an authenticated connection, and its descriptor: the first one, or one in place of the last."""
        cdef int status
        with nogil:
            status = spc_agent_attach(self.core, descriptor)
        check(status, "the connection to the server")

    def run(self):
        """Until all nodes of this box have ended and everybody has been told.

        Raises
        ------
        ConnectionLostError
            The server has been silent for too long, or has ended the job and said why.
        """
        cdef int status
        with nogil:
            status = spc_agent_run(self.core)
        if status == SPC_ECLOSED:
            raise errors.ConnectionLostError(spc_agent_sentence(self.core).decode("utf-8", "replace"))
        if status == SPC_ETIMEDOUT:
            raise errors.ConnectionLostError(
                f"box {self.culprit} is lost: its connection to the server broke, and there was no other "
                f"within {self.link_timeout:g} s"
            )
        if status != SPC_EINTERRUPTED:
            check(status, "the agent")

    @property
    def culprit(self):
        """After `run` has failed: the box whose fault it is."""
        return spc_agent_culprit(self.core)

    def disconnect(self):
        """After that: tell the nodes of this box, which wait for nothing more."""
        spc_agent_disconnect(self.core)

    def stop(self):
        spc_agent_stop(self.core)

    # ---- links to other agents

    def listens(self, str address):
        """Tell the others where they may connect."""
        check(spc_agent_listens(self.core, address.encode()), f"the address {address}")

    def wanted(self):
        """To which boxes a connection is to be made: each with its number, and the address that was told."""
        cdef uint32_t box = 0, number = 0
        cdef char[SPC_AGENT_ADDRESS_BYTES] address
        found = []
        while spc_agent_next_wanted(self.core, &box, &number, address) == SPC_OK:
            found.append((box, number, (<bytes>address).decode("ascii", "replace")))
        return found

    def is_wanted(self, uint32_t box, uint32_t number):
        """Is that one still to be made?"""
        return spc_agent_is_wanted(self.core, box, number)

    def attach_peer(self, uint32_t box, uint32_t number, int descriptor):
        """Take such a connection, authenticated, and its descriptor."""
        check(spc_agent_attach_peer(self.core, box, number, descriptor), f"the connection to box {box}")

    def route(self, uint32_t box, bint direct):
        """Whether what goes to and from a box may go over a connection between the agents, or through the server."""
        check(spc_agent_route(self.core, box, direct), f"the route to box {box}")

    def peer_counts(self, uint32_t box):
        """Of the link to another agent: see `counted`; `direct` and `changes` of the route."""
        cdef spc_agent_peer_counts_t counts
        check(spc_agent_count_peer(self.core, box, &counts), f"the link to box {box}")
        return {**counted(&counts.link), "direct": bool(counts.is_direct), "changes": counts.changes}

    def counts(self):
        """Of its link: see `counted`."""
        cdef spc_link_counts_t counts
        spc_agent_count(self.core, &counts)
        return counted(&counts)


# ----


cdef dict counted(const spc_link_counts_t *counts):
    """Kind of frame -> (frames sent, bytes sent, frames received, bytes received), and what concerns all."""
    cdef uint64_t[4] moved
    cdef int i
    found = {"resent": counts.resent, "duplicates": counts.duplicates, "attached": counts.attached,
             "broken": counts.broken, "reads": counts.reads, "writes": counts.writes,
             "retained": counts.retained_bytes, "retained_worst": counts.retained_bytes_worst}
    for i in range(SPCPY_KIND_COUNT):
        spcpy_link_moved(counts, spcpy_kinds[i].number, moved)
        found[spcpy_kinds[i].name.decode()] = moved[0], moved[1], moved[2], moved[3]
    return found


cdef object silences(double seconds):
    """A link that is lost after so many seconds, in ns: when to say something, to suspect, to connect again, that."""
    cdef double most = seconds * 1e9
    return [<uint64_t>min(most / 30, 1e9), <uint64_t>min(most / 6, 5e9), <uint64_t>min(most / 3, 10e9), <uint64_t>most]


cdef bytes pack(places):
    """As uint16_t of this machine."""
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
