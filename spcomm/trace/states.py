# SPDX-License-Identifier: MIT
"""States of a thread and their colours. page/page.css has these colours, and others for dark pages.

Blue, yellow, vermilion and dark cyan differ in lightness, too, and grey has no hue: no two of them look the same,
whichever of the three kinds of cones an eye lacks.
"""

QUEUED = "waiting for a core"
COLORS = {"computing": "#2f6db0", "transferring": "#f0c23c", "waiting": "#d55e00", QUEUED: "#003d47"}
STARTING = "#b9c0ca"
