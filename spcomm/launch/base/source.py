# SPDX-License-Identifier: MIT
"""Sources of Python, read as `python program.py` reads them: Python refuses more in a file than `compile` in its bytes.

`compile` takes Latin-1 in a comment for UTF-8, and does not name the file in which it finds a zero byte. No function of
Python compiles a file as a program, so such a source is run from the file, by the interpreter's own C function.
"""

import io
import os
from importlib._bootstrap_external import MAGIC_NUMBER  # importlib.util has it, too, and costs more

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types

_HEAD_BYTES = 16  # of a .pyc
_FILE_INPUT = 257  # Py_file_input of Python.h


def is_compiled(path: str) -> bool:
    """Whether a file has compiled code in place of a source: its name says so, or its beginning."""
    if path.endswith(".pyc"):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(2) == MAGIC_NUMBER[:2]
    except OSError:
        return False


def code_of(path: str) -> "types.CodeType":
    """Return the code in a file of `is_compiled`."""
    import marshal

    with io.open_code(path) as file:
        data = file.read()
    if not data.startswith(MAGIC_NUMBER):
        raise RuntimeError("Bad magic number in .pyc file")
    return marshal.loads(memoryview(data)[_HEAD_BYTES:])


def is_archive(path: str) -> bool:
    """Whether it is a ZIP file, perhaps with a first line before it: Python looks for its `__main__.py`."""
    import zipimport  # the interpreter has loaded it

    with open(path, "rb") as file:
        if file.read(2) not in (b"PK", b"#!"):
            return False
    try:
        zipimport.zipimporter(path)
    except ImportError:
        return False
    return True


def compiled(path: str) -> "types.CodeType | None":
    """Return the code of a source; None: it has errors, or an encoding that `compile` reads otherwise than Python."""
    try:
        with io.open_code(path) as file:
            data = file.read()
        data.decode("utf-8")
        return compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return None


def run(path: str, names: dict, descriptor: int = -1) -> None:
    """Run a source as a program, with these globals; errors in it are raised in Python's words.

    `descriptor`: where it is read from, which this closes; else from its path.
    """
    import ctypes

    if descriptor < 0:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    opened = ctypes.CDLL(None, use_errno=True).fdopen
    opened.restype, opened.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_char_p)
    file = opened(descriptor, b"rb")
    if file is None:
        os.close(descriptor)
        raise OSError(ctypes.get_errno(), "cannot be read", path)
    call = ctypes.pythonapi.PyRun_FileExFlags
    call.restype = ctypes.py_object
    pointer, number, anything = ctypes.c_void_p, ctypes.c_int, ctypes.py_object
    call.argtypes = (pointer, ctypes.c_char_p, number, anything, anything, number, pointer)
    call(file, os.fsencode(path), _FILE_INPUT, names, names, 1, None)
