# SPDX-License-Identifier: MIT
"""Boxes: the processes that carry messages between them, and boxes on other machines.

=====================  =====================================================================================
`transport_processes`  the server and the gateways between boxes; `transport_main` is what they do
`handshake`            who may connect to the server; `tls` encrypts what crosses a network
`peers`                connections between gateways
`hosts`                boxes on other machines, as the launcher sees them; `versions` must agree
`box_proxy`            what the launcher asks those boxes of their nodes, and what they answer
`clocks`               what the clock of another machine shows when ours shows something
`relay`                from the launcher through ssh to a box there
`box`                  the other end; `boxparts` is what it is made of
`framing`              messages between the two; `control_link` keeps them whole where connections break
=====================  =====================================================================================
"""
