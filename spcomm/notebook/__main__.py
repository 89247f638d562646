# SPDX-License-Identifier: MIT
"""Main program of every node of a Cluster."""

from spcomm.notebook.node_main import serve

serve()
