# SPDX-License-Identifier: MIT
"""`spcomm run`: starts the nodes of a run, forwards their output, watches over them and ends them.

Who does what::

    launcher (supervisor)  ── socket, descriptors ──  warm process  ── fork ──  node 0 … node n-1
        reads every node's output pipe,                imports once, forks,
        decides when the run ends                      reaps, signals process groups

With several programs there is a warm process for each; programs of one group share its memory and its ranks.

============  =====================================================================================
`command`     from the command line to the exit code
`options`     reads the command line: programs, separated by `:`, and the options of each and of the run
`table`       which options there are; `help` is their text
`values`      the values of options; every sentence about a wrong one
`ranks`       which nodes an option is about
`plan`        what to start: a script, a module or an executable, and how
`environment` the variables of a program's nodes
`groups`      which nodes see each other, and what nodes are called
`boxes`       which node is in which box, if there are several
`carriers`    the server and the agents between boxes, as the launcher sees them; `carrying` is what they do
`hosts`       boxes on other machines, as the launcher sees them; `versions` must agree
`far`         what the launcher asks those boxes of their nodes, and what they answer
`relay`       from the launcher through ssh to a box there; `box` is the other end, and `frames` what they say
`handshake`   who may connect to the server
`room`        a package: servers that outlive a run, and rooms that machines join without ssh
`starter`     the launcher's end of the socket: starts the warm process, sends the nodes
`crew`        the warm processes of all programs as one
`wire`        messages and descriptors over that socket
`warm`        the warm process: import, freeze, fork, reap
`child`       what a forked process does until it is a plain Python program (or executes one)
`ending`      makes the normal end of a forked Python process cheap
`report`      how a node says, before it is gone, that an exception ended it
`supervisor`  one run: starts, watches, ends, concludes
`failures`    who was first, and the sentence that says it
`where`       asks running nodes at which line they are
`output`      whole lines, labels, bounded memory
`display`     where each node's output goes; `files` and `windows` are two such places
`watch`       what each node does, in a table at the terminal; `watch_table` draws it, `screen` has the terminal
`forward`     moves output through the event loop
`stdin`       standard input of chosen nodes, and of the others
`binding`     which core a node runs on
`debugging`   which nodes run in a debugger; `debugger` is pdb in a node
`stats`       what each node did, for the end
`memory`      how much the message buffers of a run may take
`loop`        descriptors with callbacks, and deadlines
`process`     what Python does not offer: death signals, orphans, interpreter options
`stale`       is a C source newer than what was compiled from it?
============  =====================================================================================

Nothing here imports more than it needs: the launcher's own start is part of every run.
"""
