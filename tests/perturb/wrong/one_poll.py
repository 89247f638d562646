# SPDX-License-Identifier: MIT
# run: -n 2 --perturb
"""No message at this moment is taken for no message at all."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for item in range(5):
        comm.send(item, 1)
    comm.barrier()
else:
    comm.barrier()
    found = []
    while (message := comm.try_recv_message(0)) is not None:
        found.append(message.data)
    assert found == list(range(5)), found
