# SPDX-License-Identifier: MIT
"""Boxes: the processes that carry messages between them, and boxes on other machines.

=====================  =====================================================================================
`transport_processes`  the server and the gateways between boxes; `transport_main` has their main loops
`transport_contract`   what the supervisor of a run expects of these, and of a server that runs already
`handshake`            admission to the server; `tls` encrypts traffic that crosses a network
`peers`                connections between gateways
`hosts`                the launcher's view of boxes on other machines; `versions` must agree
`box_proxy`            the launcher's questions to those boxes about their nodes, and the answers
`clocks`               offset between the clock of another machine and ours
`relay`                the way from the launcher through ssh to a box there
`box`                  the other end; `boxparts` has its parts
`framing`              messages between the two; `control_link` keeps them whole where connections break
=====================  =====================================================================================
"""

LOOK, NOW, LINES, CLOCK = "look", "now", "lines", "clock"  # questions to a box, see `box_proxy`
