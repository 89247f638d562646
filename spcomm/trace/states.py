# SPDX-License-Identifier: MIT
"""States of a thread and their colours. page/page.css has these colours, and others for dark pages."""

STARTING = "#9aa1ab"
# Blue, yellow, vermilion: they differ in lightness, too, so that hues need not be distinguished.
COLORS = {"computing": "#2f6db0", "transferring": "#f0c23c", "waiting": "#d55e00"}
