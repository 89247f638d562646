# SPDX-License-Identifier: MIT
# run: -n 2 --perturb
"""Both nodes receive first. No luck helps: this one never works."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
theirs = comm.recv(other)
comm.send(comm.rank, other)
assert theirs == other
