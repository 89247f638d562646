# SPDX-License-Identifier: MIT
"""References to an array: names and containers, which may see it emptied, or holders of its address.

NumPy arrays are invisible to the garbage collector, and so are containers of such arrays only, so references cannot
simply be listed. They are counted: variables, and containers reachable from them, explain harmless references. The rest
may be harmless, too, or a memoryview: then the collector is asked, which is slow. References that it cannot explain
either make the answer "unknown".
"""

import contextlib
import gc
import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

STACK_BORROWS = sys.version_info >= (3, 14)  # a local variable passed on takes no reference
LOCALS_ARE_COPIES = sys.version_info < (3, 13)  # those of functions
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
HARMLESS = (
    *CONTAINERS,
    types.ModuleType,
    types.CellType,
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.MethodType,
    types.FunctionType,
)
ATOMS = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type,
    np.ndarray,
    types.FunctionType,
    types.ModuleType,
}
LOOKED_AT_MAX = 2000  # objects
LONG = 100
OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: classes written in Python, mostly
EXPORT = type(gc.get_referents(memoryview(bytearray(1)))[0])  # the object that memoryviews share


class Search:
    """One look for the holders of `array`, of which `left` references are not explained yet."""

    __slots__ = ("array", "left", "queue", "seen", "shared")

    def __init__(self, array: Any, references: int) -> None:
        self.array = array
        self.left = references
        self.queue: deque[Any] = deque()
        self.seen: set[int] = set()
        self.shared: set[str] = set()

    def look_at(self, values: list[Any]) -> None:
        """Count `array` among them. Possible holders are kept for later, the long ones for last."""
        self.left -= [*map(id, values)].count(id(self.array))  # often many: no loop in Python
        if self.left > 0 and not ATOMS.issuperset(map(type, values)):
            for value in values:
                if id(value) not in self.seen and may_hold(value):
                    self.seen.add(id(value))
                    if type(value) in CONTAINERS and len(value) > LONG:
                        self.queue.append(value)
                    else:
                        self.queue.appendleft(value)

    def local_variables(self, frame: types.FrameType) -> None:
        """Count in the variables of a function that the others have called."""
        code = frame.f_code
        shared = {*code.co_cellvars, *code.co_freevars}
        # A variable shared by functions is one reference, however many frames show it.
        self.left -= count_locals(frame, self.array, {*code.co_varnames, *shared} - (shared & self.shared))
        self.shared |= shared

    def in_local_variables(self, frame: types.FrameType) -> None:
        """Count in the containers that they refer to."""
        if frame.f_code.co_flags & OPTIMIZED:
            values = frame.f_locals
            self.look_at([value for value in values.values() if value is not self.array])
            forget(values)
            self.containers()

    def global_variables(self, frame: types.FrameType) -> None:
        """Count in the variables of the function's module; those of a running module or a class are like them."""
        optimized = frame.f_code.co_flags & OPTIMIZED
        for scope in (frame.f_globals,) if optimized else (frame.f_globals, frame.f_locals):
            if id(scope) not in self.seen:
                self.seen.add(id(scope))
                self.look_at(list(scope.values()))

    def containers(self) -> None:
        """Count in the containers found so far, and in those inside them."""
        for _ in range(LOOKED_AT_MAX):
            if self.left <= 0 or not self.queue:
                return
            holder = self.queue.popleft()
            inside = gc.get_referents(holder)
            if type(holder) in CONTAINERS or not gives_address(holder):
                self.look_at(inside)

    def collector(self) -> str:
        """Return the name of an object that has the array's address, or ""."""
        for holder in gc.get_referrers(self.array):
            if id(holder) in self.seen or holder is self:
                continue
            if isinstance(holder, EXPORT):
                return "a memoryview (or something else that uses the buffer protocol)"
            if gives_address(holder):
                return f"a {type(holder).__name__}"
            if isinstance(holder, HARMLESS) or is_instance(holder):
                self.left -= sum(value is self.array for value in gc.get_referents(holder))
        return ""


def count_locals(frame: types.FrameType, array: Any, names: Iterable[str]) -> int:
    """Return the number of these variables of a function that are `array`."""
    if not frame.f_code.co_flags & OPTIMIZED:
        return 0
    values = frame.f_locals
    count = 0
    for name in names:
        if values.get(name) is array:
            count += 1
    forget(values)
    return count


def forget(values: Any) -> None:
    """Release local variables that Python has copied for us: the copy would keep all of them alive."""
    if LOCALS_ARE_COPIES and sys.getrefcount(values) <= 4:  # all held by the frame, the caller and this
        values.clear()


def is_instance(value: Any) -> bool:
    return bool(type(value).__flags__ & HEAP_TYPE) and not isinstance(value, type)


def may_hold(value: Any) -> bool:
    return isinstance(value, CONTAINERS) or (is_instance(value) and not isinstance(value, types.ModuleType))


def gives_address(holder: Any) -> bool:
    """Whether arrays can be made of it that see its memory."""
    with contextlib.suppress(Exception):
        memoryview(holder)
        return True
    with contextlib.suppress(Exception):
        return hasattr(holder, "__array_interface__") or hasattr(holder, "__array_struct__")
    return False


def find(array: Any, references: int) -> "str | None":
    """Find references to `array` other than names and containers.

    Parameters
    ----------
    array : numpy.ndarray
        An argument of the compiled function that calls this.
    references : int
        The number of references, without that function's own.

    Returns
    -------
    str or None
        A text for an object that has its address; "": there is an unidentified one; None: there is none.
    """
    try:
        caller = sys._getframe(1)  # compiled functions have none
    except ValueError:  # a thread that C created
        return ""
    code = caller.f_code
    names = code.co_varnames if not code.co_cellvars else {*code.co_varnames, *code.co_cellvars}
    found = count_locals(caller, array, names)
    left = references - found - (0 if STACK_BORROWS and found else 1)  # the caller may have one, too
    return None if left <= 0 else find_others(array, left, caller)


def find_others(array: Any, left: int, caller: types.FrameType) -> "str | None":
    """Search as `find` does, when the caller's own variables do not explain all."""
    code = caller.f_code
    search = Search(array, left)
    search.shared.update(code.co_cellvars)
    search.left -= count_locals(caller, array, code.co_freevars)
    search.shared.update(code.co_freevars)
    frame: types.FrameType | None = caller
    while frame is not None and search.left > 0:
        search.in_local_variables(frame)
        search.global_variables(frame)
        frame = frame.f_back
        if frame is not None:
            search.local_variables(frame)
    search.containers()
    if search.left <= 0:
        return None
    seen_by = search.collector()
    if seen_by:
        return seen_by
    return "" if search.left > 0 else None
