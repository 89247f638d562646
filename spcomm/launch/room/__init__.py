# SPDX-License-Identifier: MIT
"""Rooms: machines that run programs together without ssh, and servers that outlive a run.

One machine serves (`spcomm serve`, `spcomm serve --room`); all others connect outwards, to it alone. A machine that
connects proves by the handshake that it knows the code, and then sends its purpose: to join, to run a program, to be
one end of the way between a run and a box of it, or to look.

==============  =====================================================================================
`join_code`     six words, and the key that comes of them
`prompt`        where the code comes from, and how an address is written
`room_link`     messages over connections that break: both ends of them
`room_framing`  frames, through TLS where they cross a network
`connect`       the way in, for every machine that connects; all its error sentences
`server`        `spcomm serve`: the command line, the listener, the end
`broker`        the connected members and runs, and the ways between them
`meeting`       boxes without a launcher that come together, as the server sees them
`meet`          `spcomm meet`: the box process of one of these boxes
`member`        `spcomm join`
`remote_box`    one box of a run, on a member
`folder`        a program's folder as one stream of bytes
`fetch`         files that nodes wrote, on their way back
`client`        `spcomm run --room` and `--server`: the launcher's end
`room_relay`    the way from the launcher to one box
`doctor`        `spcomm doctor`
==============  =====================================================================================
"""
