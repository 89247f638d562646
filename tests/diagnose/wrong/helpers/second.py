# SPDX-License-Identifier: MIT
"""The second program of two_programs.py."""

import spcomm

comm = spcomm.startup()
comm.recv(0)  # <- nodes 1-2: recv(source=0, tag=ANY)
