# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""The core for a launcher: the shared segment, and the capabilities of this machine. Imports no NumPy."""

from libc.errno cimport ENOMEM, errno
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from libspc cimport *
from spcomm._core.diagnose cimport read_wait

import os
import sys

from spcomm._core import errors

if False:  # for the stub alone
    from collections.abc import Iterable, Sequence

    from spcomm._core.diagnose import Wait

cdef extern from *:
    """
    #include "segment/spc_segment.h"
    typedef struct spcpy_limit { const char *name; uint64_t minimum, maximum, standard; } spcpy_limit_t;
    static const spcpy_limit_t spcpy_limits[] = {
    #define SPCPY_LIMIT(name, minimum, maximum, standard) {#name, minimum, maximum, standard},
        SPC_CONFIG_LIMITS(SPCPY_LIMIT)
    #undef SPCPY_LIMIT
    };
    static inline uint64_t spcpy_plan_bytes(const spc_segment_plan_t *plan) {
        uint64_t bytes = 0;
        for (int i = 0; i < SPC_REGION_COUNT; i++) {
            bytes += plan->region[i].stride * plan->region[i].count;
        }
        return bytes;
    }
    #define SPCPY_LIMIT_COUNT (sizeof(spcpy_limits) / sizeof(spcpy_limits[0]))
    """
    ctypedef struct spcpy_limit_t:
        const char *name
        uint64_t minimum
        uint64_t maximum
        uint64_t standard
    spcpy_limit_t *spcpy_limits
    int SPCPY_LIMIT_COUNT
    uint64_t spcpy_plan_bytes(const spc_segment_plan_t *plan)

STARTING, LIVE, FINISHED, DIED = SPC_NODE_STARTING, SPC_NODE_LIVE, SPC_NODE_FINISHED, SPC_NODE_DIED
NODES_MAX = SPC_NODES_MAX

cdef dict FEATURES = {
    "memfd": SPC_FEATURE_memfd,
    "futex": SPC_FEATURE_futex,
    "pidfd": SPC_FEATURE_pidfd,
    "epoll": SPC_FEATURE_epoll,
    "wipe_on_fork": SPC_FEATURE_wipe_on_fork,
}


def find_limits() -> dict[str, tuple[int, int, int]]:
    """Return limits of user settings: name -> (minimum, maximum, default); bytes, slots per pair of nodes, nodes."""
    limits = {}
    for i in range(SPCPY_LIMIT_COUNT):
        name = spcpy_limits[i].name.decode().removesuffix("_bytes")
        limits[name] = (spcpy_limits[i].minimum, spcpy_limits[i].maximum, spcpy_limits[i].standard)
    return limits


LIMITS: dict[str, tuple[int, int, int]] = find_limits()


def oom_kills() -> int:
    """Return how many processes of this control group the kernel has killed because memory ran out."""
    return spc_cgroup_oom_kills(b"")


def disable_mask(text: str | None = None) -> int:
    """Return the mask of a comma-separated list of features, by default of the one in ``SPCOMM_DISABLE``.

    Parameters
    ----------
    text : str, optional
        For example ``"memfd,futex"``; empty: nothing is disabled.

    Returns
    -------
    int

    Raises
    ------
    ConfigError
        There is no such feature.
    """
    mask = 0
    if text is None:
        text = os.environ.get("SPCOMM_DISABLE", "")
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in FEATURES:
            allowed = ", ".join(FEATURES)
            raise errors.ConfigError(f"SPCOMM_DISABLE: there is no feature {name!r}; there are {allowed}")
        mask |= FEATURES[name]
    return mask


def features(disable: int = 0) -> dict[str, bool]:
    """Return the system's features that the mask leaves enabled: name -> bool."""
    cdef uint32_t found = spc_platform_features(disable)
    return {name: bool(found & bit) for name, bit in FEATURES.items()}


def cores() -> float:
    """Return the number of cores this process may use, a float: its affinity mask, limited by its cgroup's quota."""
    return spc_platform_cores()


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, where the system supports that."""
    spc_process_adopt_orphans()


def memory() -> int:
    """Return the bytes of memory this process may use: the machine's, limited by its cgroup and by `ulimit -v`."""
    return spc_platform_memory_limit()


def nodes_here(descriptor: int) -> int:
    """Return the number of nodes in the box that owns this segment."""
    cdef spc_segment_t segment
    check(spc_segment_attach(&segment, descriptor), 1)
    return count_here(&segment)


def plan(
    nodes: int, *, slots: int = 0, ring: int = 0, arena: int = 0, queue_limit: int = 0, fanin: int = 0,
    scratch: int = 0, disable: int = 0
) -> dict[str, int]:
    """Return the sizes of a `Segment` with these arguments, as a dict by name, and `bytes`, the most it may take."""
    cdef spc_segment_plan_t made
    cdef spc_config_t config
    complete(&config, nodes, {"slots": slots, "ring": ring, "arena": arena, "scratch": scratch,
                              "queue_limit": queue_limit, "fanin": fanin}, disable)
    check(spc_comm_plan(&config, &made), nodes)
    chosen = made.config
    return {"slots": chosen.slots, "ring": chosen.ring_bytes, "arena": chosen.arena_bytes,
            "scratch": chosen.scratch_bytes, "queue_limit": chosen.queue_limit_bytes, "fanin": chosen.fanin,
            "bytes": spcpy_plan_bytes(&made)}


cdef int complete(spc_config_t *config, nodes, sizes, disable) except -1:
    """Check the arguments; 0 stands for an omitted one."""
    check_sizes(nodes, sizes)
    memset(config, 0, sizeof(spc_config_t))
    config.nodes = nodes
    config.features = spc_platform_features(disable)
    config.slots = sizes["slots"]
    config.fanin = sizes["fanin"]
    config.ring_bytes = sizes["ring"]
    config.arena_bytes = sizes["arena"]
    config.scratch_bytes = sizes["scratch"]
    config.queue_limit_bytes = sizes["queue_limit"]
    return 0


cdef class Segment:
    """The shared memory of one box, made by the process that starts its nodes.

    Parameters
    ----------
    nodes : int
        The number of nodes that will attach to it, 1 to `NODES_MAX`.
    slots, ring, arena, queue_limit, fanin, scratch : int, optional
        As in `LIMITS`; 0: the default.
    oversubscribed : bool, optional
        Whether more processes than cores will compute. None: decided from the nodes and the cores.
    disable : int, optional
        Features to disable: see `disable_mask`.
    perturb : int, optional
        The seed of a schedule to perturb, 64 bits; None: the schedule is not perturbed.
    rendezvous : int, optional
        Sends of at least this many bytes wait until they are received; None: no send does.
    prefault : bool, optional
        Whether each node touches all of its ring and its arena before it begins.
    boxes, box : int, optional
        The number of boxes, and the number of this one. Each has a segment with a place for all nodes of the run.
    places : sequence of int, optional
        The box of each node; needed if there are several.
    trace_events : int, optional
        The number of trace events that each node keeps; 0: the run is not traced.
    counts_times : bool, optional
        Whether each node counts its times: see `times`.
    begun_ns : int, optional
        The start of the run's time, by this machine's monotonic clock; 0: now.

    Raises
    ------
    ConfigError
        A number is outside its limits.
    OSError
        The system refuses that much memory.

    Notes
    -----
    ``SPCOMM_WAIT=sleep`` in the environment makes all waiting nodes sleep at once. The memory is freed with the last
    process that holds it.
    """

    cdef spc_segment_t segment
    cdef spc_deadlock_t *deadlock  # made by the first look
    cdef spc_deadlock_t *vain_deadlock  # the same
    cdef int descriptor
    cdef readonly uint64_t device, inode, size
    cdef readonly int nodes

    def __cinit__(
        self, nodes: int, *, slots: int = 0, ring: int = 0, arena: int = 0, queue_limit: int = 0,
        fanin: int = 0, scratch: int = 0, oversubscribed: bool | None = None, disable: int = 0,
        perturb: int | None = None, rendezvous: int | None = None, prefault: bool = False, boxes: int = 1,
        box: int = 0, places: Sequence[int] = (), begun_ns: int = 0, trace_events: int = 0,
        counts_times: bool = False
    ):
        cdef spc_segment_plan_t plan
        cdef spc_config_t config
        cdef uint64_t size = 0
        self.descriptor = -1
        sizes = {"slots": slots, "ring": ring, "arena": arena, "scratch": scratch, "queue_limit": queue_limit,
                 "fanin": fanin}
        complete(&config, nodes, sizes, disable)
        config.shared_cores = nodes > spc_platform_cores() if oversubscribed is None else bool(oversubscribed)
        if perturb is not None:
            config.perturb |= SPC_PERTURB_SCHEDULE
            config.perturb_seed = perturb
        if rendezvous is not None:
            config.perturb |= SPC_PERTURB_RENDEZVOUS
            config.rendezvous_bytes = rendezvous
        config.prefault = bool(prefault)
        config.sleep_at_once = os.environ.get("SPCOMM_WAIT") == "sleep"
        check_places(nodes, boxes, box, places)
        config.boxes, config.box = boxes, box
        config.made_ns = begun_ns
        config.trace_events = trace_events
        config.counts_times = bool(counts_times)
        check(spc_comm_plan(&config, &plan), nodes)
        check(spc_segment_create(&plan, &self.descriptor, &size), nodes)
        check(spc_segment_attach(&self.segment, self.descriptor), nodes)
        if boxes > 1:
            divide(&self.segment, box, places)
        found = os.fstat(self.descriptor)
        self.device, self.inode, self.size, self.nodes = found.st_dev, found.st_ino, size, nodes

    def __dealloc__(self):
        spc_deadlock_destroy(self.deadlock)
        spc_deadlock_destroy(self.vain_deadlock)
        if self.segment.base != NULL:
            spc_segment_detach(&self.segment)

    @property
    def fd(self) -> int:
        """The descriptor of the memory, close-on-exec; -1 once closed."""
        return self.descriptor

    def state(self, rank: int) -> int:
        """Return the state of a node so far: `STARTING`, `LIVE`, `FINISHED` or `DIED`."""
        check_rank(self, rank)
        status = <spc_status_shared_t *>spc_segment_part(&self.segment, SPC_REGION_STATUS, 0)
        return <int>spc_status_state(status, rank)

    def has_raised(self, rank: int) -> bool:
        """Whether a node has reported an error of its own that may still end it."""
        check_rank(self, rank)
        status = <spc_status_shared_t *>spc_segment_part(&self.segment, SPC_REGION_STATUS, 0)
        return spc_status_has_raised(status, rank)

    def moving(self, rank: int) -> tuple[bool, int, int] | None:
        """Return the large message that a node copies: `(is_sent, bytes, bytes so far)`; None: none."""
        cdef uint64_t moved_bytes
        check_rank(self, rank)
        status = <spc_status_shared_t *>spc_segment_part(&self.segment, SPC_REGION_STATUS, 0)
        cdef uint64_t moving = spc_status_moving(status, rank, &moved_bytes)
        return (bool(moving & 1), moving // 2, moved_bytes) if moving != 0 else None

    def look(self, in_vain: bool = False) -> list[int]:
        """Prove that nodes wait for ever: a list of their ranks, once this and the last call have found the same ones.

        In vain: until one of their waits fails because a node ends. Cheap as long as nodes do not wait for long.
        """
        cdef spc_deadlock_t **deadlock = &self.vain_deadlock if in_vain else &self.deadlock
        check_rank(self, 0)
        if deadlock[0] == NULL:
            check(spc_deadlock_create(&self.segment, deadlock), self.nodes)
            if in_vain:
                spc_deadlock_find_vain(deadlock[0])
        return [rank for rank in range(self.nodes if spc_deadlock_look(deadlock[0]) != 0 else 0)
                if spc_deadlock_has(deadlock[0], rank)]

    def wait(self, rank: int) -> Wait | None:
        """Return the wait of a node that has lasted at least some milliseconds as a `Wait`, or None."""
        check_rank(self, rank)
        return read_wait(&self.segment, rank)

    def sleeps(self, rank: int) -> bool:
        """Whether a node sleeps in a call that waits, however short the wait has been so far."""
        check_rank(self, rank)
        events = <spc_event_shared_t *>spc_segment_part(&self.segment, SPC_REGION_EVENT, 0)
        return spc_event_sleeps(&events[rank])

    def process(self, rank: int) -> int:
        """Return the process id of a node; 0: it has not joined the run."""
        check_rank(self, rank)
        status = <spc_status_shared_t *>spc_segment_part(&self.segment, SPC_REGION_STATUS, 0)
        return spc_status_process(status, rank)

    def vain(self, rank: int) -> int:
        """Return a node's number of unsuccessful polls so far, modulo 2**32."""
        check_rank(self, rank)
        return spc_board_vain(<spc_board_shared_t *>spc_segment_part(&self.segment, SPC_REGION_BOARD, rank))

    def traffic(self) -> int:
        """Return a number that changes when a message is announced or a collective operation completes."""
        check_rank(self, 0)
        return spc_traffic_seen(&self.segment)

    def has_left(self) -> bool:
        """Whether nodes may have left anything, after the end of all nodes. See diagnose.pyx."""
        return self.segment.base != NULL and spc_unmatched_any(&self.segment)

    def mark_finished(self, rank: int, exit_code: int = 0) -> None:
        """Notify all nodes that the process of `rank` has ended well."""
        check_rank(self, rank)
        spc_comm_mark_ended(&self.segment, rank, SPC_NODE_FINISHED, exit_code)

    def mark_failing(self, rank: int, reason: int) -> None:
        """Mark this node as failed with an exit code; its process still runs, and may read messages it has received."""
        check_rank(self, rank)
        spc_comm_mark_ending(&self.segment, rank, SPC_NODE_DIED, reason)

    def mark_died(self, rank: int, reason: int) -> None:
        """Notify all nodes that the process of `rank` has failed: its exit code, or minus the signal."""
        check_rank(self, rank)
        spc_comm_mark_ended(&self.segment, rank, SPC_NODE_DIED, reason)

    def mark_disconnected(self, culprit: int) -> None:
        """Notify the nodes that other boxes send nothing more, because of that box; -1: the server."""
        check_rank(self, 0)
        spc_comm_mark_disconnected(&self.segment, culprit)

    def counts(self, ranks: Iterable[int] | None = None) -> list[dict[str, int]]:
        """Return the counts of each node, also of a killed one, as a list of dicts by rank.

        Parameters
        ----------
        ranks : iterable of int, optional
            The nodes of this box, if there are several: the counts of all boxes add up to those of the run.

        Returns
        -------
        list of dict
            ``sent``, ``received``: messages announced by this node, and to it. ``sent_bytes``, ``received_bytes``: of
            messages longer than 40 bytes, received by nodes that have closed. ``collectives``: of the whole run's
            communicator.
        """
        cdef uint64_t *collectives
        check_rank(self, 0)
        names = ("sent", "received", "sent_bytes", "received_bytes", "collectives")
        found = [dict.fromkeys(names, 0) for _ in range(self.nodes)]
        room = bytearray(8 * self.nodes)
        collectives = <uint64_t *><void *><char *>room
        check(spc_comm_count_collectives(&self.segment, collectives), self.nodes)
        here = frozenset(range(self.nodes) if ranks is None else ranks)
        for rank in range(self.nodes):
            if rank in here:
                found[rank]["collectives"] = collectives[rank]
            self.count_mailbox(rank, here, found)
        return found

    def times(self, ranks: Iterable[int] | None = None) -> list[dict[str, int] | None]:
        """Return the times of each node, if it counts them, as a list of dicts by rank; None: it is in another box.

        Parameters
        ----------
        ranks : iterable of int, optional
            The nodes of this box, if there are several.

        Returns
        -------
        list of dict
            By the monotonic clock, in nanoseconds: ``started_ns``, ``closed_ns``, ``waiting_since_ns`` (0: not),
            and ``made_ns``, the origin of the run's time. ``waited_ns``: the waits of its first thread. The kernel's
            count of that thread's time without a core: ``core_started_ns``, ``core_closed_ns``.
        """
        check_rank(self, 0)
        here = frozenset(range(self.nodes) if ranks is None else ranks)
        found = []
        for rank in range(self.nodes):
            board = <const spc_board_shared_t *>spc_segment_part(&self.segment, SPC_REGION_BOARD, rank)
            times = {**spc_board_read_times(board), "made_ns": self.segment.config.made_ns}
            found.append(times if rank in here else None)
        return found

    cdef int count_mailbox(self, uint32_t receiver, here, list found) except -1:
        """Read the pages instead of mapping them, so that untouched pages stay untouched."""
        cdef void *part = spc_segment_part(&self.segment, SPC_REGION_MAILBOX, receiver)
        try:
            copy = os.pread(self.descriptor, spc_segment_stride(&self.segment, SPC_REGION_MAILBOX),
                            spc_segment_offset(&self.segment, part))
            part = <void *><const char *>copy
        except OSError:
            pass
        for sender in range(self.nodes):
            count = spc_mailbox_count(<spc_mailbox_shared_t *>part, sender, self.segment.config.slots)
            if sender in here:
                found[sender]["sent"] += count.messages
            if receiver in here:
                found[sender]["sent_bytes"] += count.long_bytes
                found[receiver]["received"] += count.messages
                found[receiver]["received_bytes"] += count.long_bytes
        return 0

    def close(self) -> None:
        """Release the descriptor and the mapping. The nodes keep theirs."""
        spc_deadlock_destroy(self.deadlock)
        spc_deadlock_destroy(self.vain_deadlock)
        self.deadlock = self.vain_deadlock = NULL
        if self.segment.base != NULL:
            spc_segment_detach(&self.segment)
            self.segment.base = NULL
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def check_sizes(nodes: int, sizes: dict[str, int]) -> None:
    """Check that all numbers are ints within their limits, or 0 for the default."""
    for name, value, (low, high, _) in [("nodes", nodes, (1, NODES_MAX, 0)),
                                        *((name, value, LIMITS[name]) for name, value in sizes.items())]:
        if not isinstance(value, int) or not (low <= value <= high or (value == 0 and name != "nodes")):
            raise errors.ConfigError(f"{name}={value}: allowed are {low} to {high}")


cdef int check_rank(Segment self, rank) except -1:
    if self.segment.base == NULL:
        raise errors.SpcommError("Segment: it is closed")
    if not 0 <= rank < self.nodes:
        raise errors.bad_rank("Segment", "rank", rank, self.nodes)
    return 0


cdef int check(int status, nodes) except -1:
    cdef int number = errno
    if status == SPC_OK:
        return 0
    if status == SPC_ENOMEM:
        raise errors.no_shared_memory(nodes, ENOMEM)
    if status == SPC_ESYSTEM:
        raise errors.no_shared_memory(nodes, number)
    raise errors.ConfigError(f"the shared memory for {nodes} nodes: {spc_error_message(status).decode()}")


# ---- which node is in which box


cdef int check_places(nodes, boxes, box, places) except -1:
    """Check that the box of each node, and this one, exist."""
    most = min(nodes, SPC_BOXES_MAX)
    if not 1 <= boxes <= most or not 0 <= box < boxes:
        raise errors.ConfigError(f"boxes={boxes}, box={box}: allowed are 1 to {most}, and one of them")
    if boxes > 1 and (len(places) != nodes or set(places) != set(range(boxes))):
        raise errors.ConfigError(f"places={places!r}: needed is the box of each of {nodes} nodes, 0 to {boxes - 1}")
    return 0


cdef int divide(const spc_segment_t *segment, uint32_t box, places) except -1:
    """Record the box of each node. This box's gateway represents the nodes in other boxes."""
    cdef spc_event_shared_t *events = <spc_event_shared_t *>spc_segment_part(segment, SPC_REGION_EVENT, 0)
    cdef bytes by_rank = b"".join([int(place).to_bytes(2, sys.byteorder) for place in places])
    cdef uint32_t rank
    spc_segment_set_boxes(segment, <const uint16_t *><const char *>by_rank)
    for rank in range(segment.config.nodes):
        if places[rank] != box:
            spc_event_stand_in(&events[rank], &events[segment.config.nodes])
    return 0


cdef int count_here(spc_segment_t *segment) except -1:
    """Return the number of nodes in this box. Releases the mapping."""
    cdef uint32_t rank
    cdef int found = 0
    for rank in range(segment.config.nodes):
        found += spc_segment_is_here(segment, rank)
    spc_segment_detach(segment)
    return found
