# SPDX-License-Identifier: MIT
"""Nodes of this machine: the process that forks them, their start and end, their input and output.

============  =====================================================================================
`starter`     the launcher's end of the socket: starts the warm process, sends the nodes
`crew`        the warm processes of all programs as one
`warm`        the warm process: import, freeze, fork, reap
`child`       what a forked process does until it is a plain Python program (or executes one)
`ending`      makes the normal end of a forked Python process cheap
`debugger`    pdb or debugpy in a node
`binding`     which core a node runs on
`where`       asks running nodes at which line they are
`output`      whole lines, labels, bounded memory
`display`     where each node's output goes; `files` and `windows` are two such places
`screen`      a terminal whose last lines are a table
`forward`     moves output through the event loop
`stdin`       standard input of chosen nodes, and of the others
============  =====================================================================================
"""
