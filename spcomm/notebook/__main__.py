# SPDX-License-Identifier: MIT
"""What every node of a Cluster runs."""

from spcomm.notebook.worker import serve

serve()
