# SPDX-License-Identifier: MIT
"""States of a thread and their colours. page/page.css has these colours, and others for dark pages.

Blue, yellow, orange and green differ in lightness, too, and grey has no hue: no two of them look the same, whichever of
the three kinds of cones an eye lacks. Each has the same name on a light page and on a dark one.
"""

QUEUED = "waiting for a core"
COLORS = {"computing": "#2f6db0", "transferring": "#f0c23c", "waiting": "#d55e00", QUEUED: "#005029"}
# The same for a terminal, as rich knows them: legible on light and dark ones, and with 16 colours (orange is 3, then).
TERMINAL = {"computing": "bright_blue", "waiting": COLORS["waiting"], QUEUED: "green"}
STARTING = "#b9c0ca"
