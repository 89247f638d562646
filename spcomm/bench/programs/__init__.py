# SPDX-License-Identifier: MIT
"""Programs for the nodes. Each file is started as a script; `driver` lies beside them and is imported by them."""
