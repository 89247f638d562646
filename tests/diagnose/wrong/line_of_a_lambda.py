# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""A function without a name."""

import spcomm

comm = spcomm.startup()
fetch = lambda: comm.recv(1 - comm.rank)  # noqa: E731  # <- nodes 0-1: recv(source=rank+1, tag=ANY)
fetch()
