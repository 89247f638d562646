# SPDX-License-Identifier: MIT
"""What every node of a Cluster runs."""

from spcomm.notebook.node_main import serve

serve()
