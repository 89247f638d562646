# SPDX-License-Identifier: MIT
"""Whether variables explain all references to an array that is to be moved.

A variable that still names the array afterwards sees it empty, which is harmless. A memoryview or an iterator would see
memory that belongs to another node by then, and NumPy arrays cannot be asked for their holders: so variables are
counted, and an array with any other reference is copied.
"""

import sys
from collections.abc import Mapping
from typing import Any

STACK_BORROWS = sys.version_info >= (3, 14)  # a local variable passed on takes no reference
LOCALS_ARE_COPIES = sys.version_info < (3, 13)  # those of functions
OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function


def are_variables(array: Any, references: int) -> bool:
    """Compare references with the variables of the calling function and of its module.

    Parameters
    ----------
    array : numpy.ndarray
        An argument of the compiled function that calls this.
    references : int
        The number of references, without that function's own.
    """
    try:
        caller = sys._getframe(1)  # compiled functions have none
    except ValueError:  # a thread that C created
        return False
    found = 0
    if caller.f_code.co_flags & OPTIMIZED:
        values = caller.f_locals
        found = count(array, values)
        if LOCALS_ARE_COPIES and sys.getrefcount(values) <= 3:  # of the frame, of this variable, of the call
            values.clear()  # or the copy would keep all of them alive
    on_stack = 0 if STACK_BORROWS and found else 1
    left = references - found - on_stack
    return left <= 0 or left <= count(array, caller.f_globals)


def count(array: Any, variables: "Mapping[str, Any]") -> int:
    return sum(value is array for value in variables.values())
