# SPDX-License-Identifier: MIT
"""Names of cases."""

import re


def name_of(value):
    """Its `repr` without addresses, so that a case has one name in every run: `ids=name_of`."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
