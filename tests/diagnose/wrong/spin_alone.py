# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP103 nodes 0-1 keep polling, and nothing has been sent for … s
# hint: and check whether it waits for these first
"""Both poll, nobody sends."""

import spcomm

comm = spcomm.startup()
while comm.try_recv_message() is None:  # <- nodes 0-1: polls
    pass
