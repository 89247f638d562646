# says: receive until there are no more
# SPDX-License-Identifier: MIT
"""Sends everything in one cycle."""


def solve(comm, plan):
    for messages in plan:
        for dest, value in messages:
            comm.coordinated_send(value, dest)
    came = [[message.source, message.data] for message in comm.coordinated_messages()]
    return [[] for _ in plan[1:]] + [came]
