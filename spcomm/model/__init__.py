# SPDX-License-Identifier: MIT
"""`spcomm model`: the time that communication takes, from equations, from a fit, and predicted.

======================  ==========================================================================================
`command`               the command line: the table of sub-commands
`sci`                   the torus equations of Gonzalez (2000): latency by topology, crossovers
`loggp`                 the parameters of LogGP that a fit has found, with confidence intervals, and their file
`simulate`              operations of many nodes, event by event; `engine` is its part in C
`settings`              ``latency=10us,compute=0.5``, of a command line
`errors`                the error that a user sees as one sentence
======================  ==========================================================================================

What needs SciPy or Matplotlib imports them late; ``pip install 'spcomm[model]'`` brings both.
"""
