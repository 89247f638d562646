# SPDX-License-Identifier: MIT
"""The command line of `spcomm run`: its options, and the programs, groups and boxes that they describe.

=============  =====================================================================================
`options`      reads the command line: programs, separated by `:`, and the options of each and of the run
`table`        the options, and the text of --help
`values`       the values of options; all errors about wrong ones
`machines`     the options about hosts, rooms and servers
`ranks`        the nodes that an option is about
`plan`         the program to start: a script, a module or an executable; `did_you_mean` suggests near names
`environment`  the variables of a program's nodes
`groups`       the place of each node, the nodes that see each other, and the names of nodes
`boxes`        the box of each node, if there are several
`debugging`    the nodes that run in a debugger
`memory`       the limit for the message buffers of a run
=============  =====================================================================================
"""
