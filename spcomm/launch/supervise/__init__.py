# SPDX-License-Identifier: MIT
"""Supervision of a run: its event loop, the first failure, endless waits, and their display.

============  =====================================================================================
`supervisor`  one run: takes over its placed nodes, starts, watches and ends them, concludes
`failures`    the first failure, and the sentence about it
`conclude`    the last report of a run without a launcher, which C supervises
`watchdog`    nodes that wait for ever, or for long
`inquiry`     questions to boxes on other machines about their nodes
`watch`       the activity of each node, in a table at the terminal; `watch_table` draws it
`stats`       the totals of each node, at the end
============  =====================================================================================
"""
