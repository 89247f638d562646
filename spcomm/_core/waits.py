# SPDX-License-Identifier: MIT
"""What a node waits for, as its status board tells it (csrc/segment/spc_board.h)."""

from typing import NamedTuple

# In the order of spc_board_kind_t.
RECEIVE, SEND, PHASE, CYCLE, RECEIPT = "receive", "send", "phase", "cycle", "receipt"
GATHERING = "gathering"
KINDS = ("nothing", RECEIVE, SEND, PHASE, CYCLE, RECEIPT, GATHERING)

# Why the wait may end without anything that a node does: bits of `Wait.doubts`.
TIMED, THREADS, TIMER, HANDLER, UNKNOWN = 1, 2, 4, 8, 16
ANY = -1


class Wait(NamedTuple):
    """A wait that has lasted for some milliseconds at least. Ranks are those of the communicator, but for the keys of
    `needs` and `full`, which are ranks of the run."""

    kind: str
    doubts: int
    communicator: int
    rank: int
    size: int
    source: int  # or destination; ANY
    tag: int
    near: "tuple[int, int, int] | None"  # source, tag and number of messages that nearly match
    file: str
    line: int
    function: str
    since_ns: int
    number: int  # of the collective operation; of SEND: the limit in bytes that would be enough, or 0
    call: "tuple[int, ...]"  # its signature; the operation is 0: none
    needs: "dict[int, int]"  # whom it waits for: rank of the run -> rank
    full: "tuple[int, ...]"  # nodes that keep messages of it beyond their shares
    by_rendezvous: bool  # of RECEIPT: a send that --rendezvous makes wait
    in_c: bool  # of a program in C or C++


def packed(waits: "dict[int, Wait]") -> list:
    """Waits by rank as lists, numbers and texts, which go through a pipe."""
    return [
        [rank, *wait._replace(needs=[list(item) for item in wait.needs.items()])]  # type: ignore[arg-type]
        for rank, wait in waits.items()
    ]


def unpacked(rows: list) -> "dict[int, Wait]":
    """The waits again."""
    found = {}
    for rank, *fields in rows:
        wait = Wait(*fields)
        found[rank] = wait._replace(
            near=tuple(wait.near) if wait.near is not None else None,
            call=tuple(wait.call),
            needs=dict(wait.needs),
            full=tuple(wait.full),
        )
    return found
