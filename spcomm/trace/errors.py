# SPDX-License-Identifier: MIT
"""An error in a file, or in a request, in one sentence."""


class TraceError(Exception):
    """A trace cannot be read or shown; its text is for the user who gave the file and the options."""
