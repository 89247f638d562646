# SPDX-License-Identifier: MIT
# wrong: raised ModuleNotFoundError: No module named 'nowhere_to_be_found' at import_error.py:4:
# also: import nowhere_to_be_found
import nowhere_to_be_found


def solve(comm, items):
    return nowhere_to_be_found.total(items)
