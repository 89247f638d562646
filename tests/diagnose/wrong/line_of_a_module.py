# SPDX-License-Identifier: MIT
# with: helpers/neighbours.py
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""The line that waits is in a module that the program imports."""

from helpers.neighbours import swap

import spcomm

print(swap(spcomm.startup(), "mine"))
