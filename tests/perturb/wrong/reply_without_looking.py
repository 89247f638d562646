# SPDX-License-Identifier: MIT
# run: -n 3 --perturb
"""The server answers its clients in turn instead of looking who has asked."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for turn in range(4):
        question = comm.recv()
        comm.send(("answer to", question), 1 + turn % 2)
else:
    for number in range(2):
        comm.send((comm.rank, number), 0)
        assert comm.recv(0) == ("answer to", (comm.rank, number))
