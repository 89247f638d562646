# SPDX-License-Identifier: MIT
"""Says what went wrong in a run, in words for the person whose program it is.

What is the case comes from the status boards in shared memory (csrc/segment/spc_board.h) and is judged there
(csrc/diagnose), which also words a deadlock; here are stalls and what is left. Imported when there is something to say:
a run that goes well needs none of it.
"""
