# SPDX-License-Identifier: MIT
"""Programs of the nodes: `driver`, which imports the file of a library that lies beside it; and other scripts."""
