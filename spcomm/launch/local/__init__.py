# SPDX-License-Identifier: MIT
"""Nodes of this machine: the process that forks them, their start and end, their input and output.

===============  =====================================================================================
`fork_client`    the launcher's end of the socket: starts the fork server, sends the nodes
`run_processes`  the fork servers of all programs as one
`fork_server`    the fork server: import, freeze, fork, reap
`child`          what a forked process does until it is a plain Python program (or executes one)
`fast_exit`      makes the normal end of a forked Python process cheap
`debugger`       pdb or debugpy in a node
`binding`        which core a node runs on
`stack_probe`    asks running nodes at which line they are
`output`         whole lines, labels, bounded memory
`display`        where each node's output goes; `files` and `windows` are two such places
`screen`         a terminal whose last lines are a table
`forward`        moves output through the event loop
`stdin`          standard input of chosen nodes, and of the others
===============  =====================================================================================
"""
