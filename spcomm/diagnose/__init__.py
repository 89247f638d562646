# SPDX-License-Identifier: MIT
"""Reports on failed and stalled runs, in words for the author of the program.

The facts come from the status boards in shared memory (csrc/segment/spc_board.h) and are judged there (csrc/diagnose),
which also writes the deadlock report; this package covers stalls and unmatched operations. It is imported only for a
report: a run that goes well needs none of it.
"""
