# SPDX-License-Identifier: MIT
"""Exercise 12: a dispatcher for letters of several kinds. README.md has the task."""

import numpy as np

import spcomm

TEXT, ARRAY, RECORD, PART, DONE = range(1, 6)
TAGS = {"text": TEXT, "array": ARRAY, "record": RECORD, "part": PART}


def solve(comm, letters):
    """Send this node's letters, pairs (kind, data), to node 0; on node 0 return the answers to all of them."""
    if comm.rank > 0:
        for kind, data in letters:
            comm.send(data, 0, tag=TAGS[kind])
        comm.send(None, 0, tag=DONE)
        return None

    answers = [[] for _ in range(comm.size)]
    for _ in range(comm.size - 1):  # TODO: how long, if no message says how many letters will come?
        message = comm.recv_message()
        # TODO: the other tags
        if message.tag == TEXT:
            answers[message.source].append(message.data.upper())
    return answers


if __name__ == "__main__":
    comm = spcomm.startup()
    parts = [("part", np.ones(2)), ("part", np.ones(3))]
    print(
        solve(
            comm,
            [("text", "hello"), ("record", {"name": "x", "parts": 2}), *parts, ("array", np.arange(4.0))],
        )
    )
