# SPDX-License-Identifier: MIT
"""`spcomm run`: starts the nodes of a run, forwards their output, watches over them and ends them.

The processes::

    launcher (supervisor)  ── socket, descriptors ──  fork server  ── fork ──  node 0 … node n-1
        reads every node's output pipe,                imports once, forks,
        decides when the run ends                      reaps, signals process groups

With several programs there is a fork server for each; programs of one group share its memory and its ranks.

===============  =====================================================================================
`command`        from the command line to the exit code
`tracing`        the outputs of a trace when the run is over
`rebuild_check`  finds a C source newer than the compiled core
`cmdline`        a package: options, and the programs, groups and boxes that they describe
`local`          a package: nodes of this machine, their start and end, input and output
`remote`         a package: transport between boxes, and boxes on other machines
`supervise`      a package: one run, from the first node's start to the exit code
`room`           a package: servers that outlive a run, and rooms that machines join without ssh
`base`           a package: the foundations of the others
===============  =====================================================================================

From the bottom: `base`, `cmdline`, `local`, `remote`, `supervise`, `room`. A package imports only from those below it;
`supervise` knows types of `room`. The packages' docstrings describe each module.

Nothing here imports more than it needs: the launcher's own start is part of every run.
"""
