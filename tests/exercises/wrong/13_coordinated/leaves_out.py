# says: it has not received in this cycle
# SPDX-License-Identifier: MIT
"""A node without messages leaves the cycle out."""


def solve(comm, plan):
    came = []
    for messages in plan:
        came.append([])
        if not messages:
            continue
        for dest, value in messages:
            comm.coordinated_send(value, dest)
        came[-1] = [[message.source, message.data] for message in comm.coordinated_messages()]
    return came
