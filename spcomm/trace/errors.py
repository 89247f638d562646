# SPDX-License-Identifier: MIT
"""What is wrong with a file, or with what was asked for, in one sentence."""


class TraceError(Exception):
    """A trace cannot be read or shown; its text is for whoever gave the file and the options."""
