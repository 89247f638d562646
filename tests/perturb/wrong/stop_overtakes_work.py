# SPDX-License-Identifier: MIT
# run: -n 3 --perturb
"""Node 1 has finished its share and says stop; node 0 stops, though node 2 is still at work."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    results = []
    while (message := comm.recv_message()).tag != 9:
        results.append(message.data)
    assert sorted(results) == [1, 1, 1, 2, 2, 2], results
else:
    for _ in range(3):
        comm.send(comm.rank, 0)
    if comm.rank == 1:
        comm.send("stop", 0, tag=9)
