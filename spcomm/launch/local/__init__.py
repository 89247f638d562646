# SPDX-License-Identifier: MIT
"""Nodes of this machine: the process that forks them, their start and end, their input and output.

===============  =====================================================================================
`fork_client`    the launcher's end of the socket: starts the fork server, sends the nodes
`node_contract`  the contracts of what starts nodes, here or in a box elsewhere, and of what takes its messages
`run_processes`  the fork servers of all programs as one
`fork_server`    the fork server: import, freeze, fork, reap
`child`          turns a forked process into a plain Python program (or executes one)
`fast_exit`      makes the normal end of a forked Python process cheap
`debugger`       pdb or debugpy in a node
`binding`        the core that a node runs on
`stack_probe`    asks running nodes for their current lines
`reports`        the ends of nodes: their reports, and how other nodes learn of them
`output`         whole lines, labels, bounded memory
`display`        the destinations of each node's output; `files` and `windows` are two of them
`screen`         a terminal whose last lines are a table
`forward`        moves output through the event loop
`stdin`          standard input of chosen nodes, and of the others
===============  =====================================================================================
"""
