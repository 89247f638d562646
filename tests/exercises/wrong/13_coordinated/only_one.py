# says: which has not seen it in this cycle
# SPDX-License-Identifier: MIT
"""Receives one message, and not until there are no more."""


def solve(comm, plan):
    came = []
    for messages in plan:
        for dest, value in messages:
            comm.coordinated_send(value, dest)
        message = comm.coordinated_recv()
        came.append([[message.source, message.data]] if message else [])
    return came
