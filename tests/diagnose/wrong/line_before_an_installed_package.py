# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Somebody's installed package calls spcomm: the line is that of the user's call."""

import os
import sys

import spcomm

sys.path.append(os.path.join(os.path.dirname(__file__), "helpers", "site-packages"))
import exchanger


def step(comm):
    exchanger.fetch(comm, 1 - comm.rank)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in step


step(spcomm.startup())
