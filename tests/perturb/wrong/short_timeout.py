# SPDX-License-Identifier: MIT
# run: -n 2 --perturb
"""A message that has not come within a few milliseconds is taken for one that was not sent."""

import spcomm

comm = spcomm.startup()
comm.barrier()
if comm.rank == 0:
    for number in range(10):
        comm.send(number, 1)
else:
    found = []
    try:
        while True:
            found.append(comm.recv(0, timeout=0.001))
    except (spcomm.WaitTimeoutError, spcomm.NodeLostError):
        pass
    assert found == list(range(10)), found
