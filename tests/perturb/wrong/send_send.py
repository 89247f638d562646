# SPDX-License-Identifier: MIT
# run: -n 2 --rendezvous 0
"""Two nodes send to each other, then receive: it works only while sends do not wait."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
comm.send([comm.rank] * 1000, other)
assert comm.recv(other) == [other] * 1000
