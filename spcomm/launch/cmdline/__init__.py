# SPDX-License-Identifier: MIT
"""The command line of `spcomm run`: its options, and the programs, groups and boxes that they describe.

=============  =====================================================================================
`options`      reads the command line: programs, separated by `:`, and the options of each and of the run
`table`        which options there are, and the text of --help
`values`       the values of options; every sentence about a wrong one
`machines`     the options about hosts, rooms and servers
`ranks`        which nodes an option is about
`plan`         what to start: a script, a module or an executable, and how; `did_you_mean` guesses what was meant
`environment`  the variables of a program's nodes
`groups`       which nodes see each other, and what nodes are called
`boxes`        which node is in which box, if there are several
`debugging`    which nodes run in a debugger
`memory`       how much the message buffers of a run may take
=============  =====================================================================================
"""
