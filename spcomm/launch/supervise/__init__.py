# SPDX-License-Identifier: MIT
"""The supervision of a run: its event loop, who failed first, who waits for ever, what the user sees of it.

============  =====================================================================================
`supervisor`  one run: starts, watches, ends, concludes
`failures`    who was first, and the sentence that says it
`watchdog`    which nodes wait for ever, or for long
`inquiry`     what boxes on other machines are asked of their nodes
`watch`       what each node does, in a table at the terminal; `watch_table` draws it
`stats`       what each node did, for the end
============  =====================================================================================
"""
