# SPDX-License-Identifier: MIT
"""The end of this node: notes that it leaves for others (csrc/segment/spc_note.h)."""

import os
import sys

from spcomm._core import call_site
from spcomm._core.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm._core.handle import Handle

# The handle of the node whose program this process runs: a weak reference. Set when a node is made.
_node: "object" = None


# ---- by a node that may end


class Raised:
    """Held by an error that this node has reported to others: while it is alive, the node may yet end by it."""

    def __init__(self, node: "Handle") -> None:
        import _weakref

        from spcomm._core import handle

        self._node = _weakref.ref(node)
        self._count = handle.raised  # imports fail when the interpreter ends
        self._count(node, 1)

    def __del__(self) -> None:
        node = self._node()
        if node is not None:
            self._count(node, -1)

    def __reduce__(self) -> "tuple[type, tuple[()]]":
        """Copy as None: an error in another process does not end this one."""
        return type(None), ()


# ---- by the node that ends


def watch(node: "Handle") -> None:
    """Have `raised`, `exited` and `closed` report this node's end from now on."""
    global _node
    import _weakref

    _node = _weakref.ref(node)


def _tell(words: str, code: int, file: str, line: int, function: str) -> None:
    node = _node() if _node is not None else None  # type: ignore[operator]
    if node is not None:
        from spcomm._core import handle

        handle.end(node, words, file, line, function, code)


def add_advice(error: BaseException) -> None:
    """Add a note to an error of Python itself that has its cause in a call of spcomm."""
    text = str(error)
    if isinstance(error, AttributeError) and getattr(error.obj, "__module__", "") == "spcomm.joining":
        error.add_note(f"Try: comm = spcomm.startup(), with parentheses, then comm.{error.name}")
    elif isinstance(error, TypeError) and "unexpected keyword argument 'status'" in text:
        error.add_note(
            "Try: comm.recv_message(), which returns data, source and tag; mpi4py has a Status for them"
        )
    elif isinstance(error, TypeError) and "NoneType" in text:
        called = _calls_beside(error) & {"reduce", "gather"}
        for name in sorted(called):
            error.add_note(
                f"Try: comm.all{name}(): comm.{name}() gives its result to the root, and None to all others"
            )


def _calls_beside(error: BaseException) -> "set[str]":
    """Return the names that the function in which an error arose refers to."""
    trace, found = error.__traceback__, set()
    while trace is not None:
        if not call_site.is_ours(trace.tb_frame.f_code.co_filename):
            found = set(trace.tb_frame.f_code.co_names)
        trace = trace.tb_next
    return found


def raised(error: BaseException) -> None:
    """Note that an uncaught exception ends this node."""
    add_advice(error)
    _tell(f"an uncaught {type(error).__name__}", 1, *call_site.of_error(error))


def exited(error: SystemExit, code: int) -> None:
    """Note that this node ends by `sys.exit`, which makes that its exit code."""
    argument = "" if error.code is None else shown(error.code)
    _tell(f"sys.exit({argument})", code, *call_site.of_error(error))


def closed() -> None:
    """Note that this node leaves the run: by a call, or at the end of its program."""
    found = call_site.of_caller()
    program = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if found[1]:
        _tell("close()", 0, *found)
    elif program:
        _tell(f"the end of {program}", 0, "", 0, "")
