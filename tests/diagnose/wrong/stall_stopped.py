# SPDX-License-Identifier: MIT
# run: -n 3 --stall 0.3
# says: SP102 nodes 0, 2 have been waiting for … s
# hint: Try: let node 1 go on (kill -CONT, or fg in its terminal).
"""Node 1 was stopped, by itself here."""

import os
import signal

import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)  # <- node 1: is stopped (SIGSTOP)
comm.global_sum(1)  # <- nodes 0, 2: global_sum() of an int
