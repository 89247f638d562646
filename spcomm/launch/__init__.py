# SPDX-License-Identifier: MIT
"""`spcomm run`: starts the nodes of a run, forwards their output, watches over them and ends them.

Who does what::

    launcher (supervisor)  ── socket, descriptors ──  warm process  ── fork ──  node 0 … node n-1
        reads every node's output pipe,                imports once, forks,
        decides when the run ends                      reaps, signals process groups

================  =================================================================================
`options`         reads the command line; every sentence about a wrong one
`plan`            what to start: a script, a module or an executable, and how
`starter`         the launcher's end of the socket: starts the warm process, sends the nodes
`wire`            messages and descriptors over that socket
`warm`            the warm process: import, freeze, fork, reap
`child`           what a forked process does until it is a plain Python program (or executes one)
`ending`          makes the normal end of a forked Python process cheap
`report`          how a node says, before it is gone, that an exception ended it
`output`          whole lines, labels, slow readers
`failures`        who was first, and the sentence that says it
`where`           asks running nodes at which line they are
`supervisor`      the event loop and the exit code
================  =================================================================================

Nothing here imports more than it needs: the launcher's own start is part of every run.
"""
