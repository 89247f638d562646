# says: within a cycle of coordinated messages
# SPDX-License-Identifier: MIT
"""A barrier, so that all have sent: it is neither needed nor allowed within a cycle."""


def solve(comm, plan):
    came = []
    for messages in plan:
        for dest, value in messages:
            comm.coordinated_send(value, dest)
        comm.barrier()
        came.append([[message.source, message.data] for message in comm.coordinated_messages()])
    return came
