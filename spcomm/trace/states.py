# SPDX-License-Identifier: MIT
"""What a thread can do at a moment, and how that looks. page/page.css has these colours, and others for dark pages."""

# Blue, yellow, vermilion: they differ in lightness, too, so that nobody has to tell hues apart.
COLORS = {"computing": "#2f6db0", "transferring": "#f0c23c", "waiting": "#d55e00"}
