# SPDX-License-Identifier: MIT
"""`python -m spcomm`."""

import sys

from spcomm.cli import main

if __name__ == "__main__":
    sys.exit(main())
