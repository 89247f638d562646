# SPDX-License-Identifier: MIT
"""Objects on their way to nodes and back: by cloudpickle."""

import builtins
import functools
import importlib.machinery
import io
import os
import pickle
import sys
import sysconfig
from collections import ChainMap
from contextlib import contextmanager
from types import CodeType, ModuleType

import cloudpickle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST = (1 << 31) - (1 << 20)  # bytes of one object: the limit of marshal, which writes the messages


def packed(value: object, what: str, function: object = None, is_far: bool = False) -> bytes:
    """An object as bytes. `TypeError`, which begins with `what`: it cannot be pickled; `ValueError`: it is too large.

    `function` is the part of it that a node must be able to call. `is_far`: on other machines, which have the installed
    modules, and not those of this folder.
    """
    try:
        with _by_value(_own_modules() if is_far else _module_of(function)):
            data = _dumps(value)
    except RecursionError:
        raise TypeError(f"{what}: it is nested too deeply to be pickled") from None
    except MemoryError:
        raise MemoryError(f"{what}: there is no memory for a copy of it") from None
    except Exception as error:
        raise TypeError(f"{what}: it cannot be pickled ({error or type(error).__name__})") from None
    if len(data) > _MOST:
        raise ValueError(
            f"{what}: it has {len(data)} bytes, and {_MOST} can go to or from a node at once; "
            "divide it, or let the nodes make or read it themselves"
        )
    return data


def _dumps(value: object) -> bytes:
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(value)
    return out.getvalue()


def _reduced(code: CodeType) -> tuple:
    """Code keeps the name of its file, for tracebacks and reports; cloudpickle from 3.1.3 on writes another one."""
    make, arguments = cloudpickle.CloudPickler.dispatch_table[CodeType](code)
    return _named, (code.co_filename, make, arguments)


def _named(file: str, make: "Callable[..., CodeType]", arguments: tuple) -> CodeType:
    return make(*arguments).replace(co_filename=file)


_TABLE = ChainMap({CodeType: _reduced}, cloudpickle.CloudPickler.dispatch_table)
_Pickler = type("Pickler", (cloudpickle.CloudPickler,), {"dispatch_table": _TABLE})


def unpacked(data: bytes, is_plain: bool = False) -> object:
    """The object. `is_plain`: of a machine that must not run code here, so `NotPlainError` for most classes."""
    return _PlainUnpickler(io.BytesIO(data)).load() if is_plain else pickle.loads(data)


class NotPlainError(pickle.UnpicklingError):
    """The object is not a plain value."""


class _PlainUnpickler(pickle.Unpickler):
    """Loads plain values: it finds only classes and functions that do nothing but make such a value."""

    def find_class(self, module: str, name: str) -> object:
        is_error = module == "builtins" and isinstance(getattr(builtins, name, None), type)
        if is_error and issubclass(getattr(builtins, name), BaseException):
            return super().find_class(module, name)
        if module == "spcomm" and name.endswith("Error") and name.isidentifier():
            return super().find_class(module, name)
        if (module, name) == ("numpy", "ndarray"):
            return None  # called, it could make an array of any memory
        if name in _PLAIN.get(module, ()):
            found = super().find_class(module, name)
            return functools.partial(_array, found) if name == "_reconstruct" else found
        raise NotPlainError(
            f"from the members of a room come numbers, text, containers of them and NumPy arrays, not {name} "
            f"of {module}"
        )


def _array(make: "Callable", _kind: None, shape: tuple, dtype: object) -> object:
    import numpy

    return make(numpy.ndarray, shape, dtype)


_PLAIN = {
    "builtins": ("complex", "set", "frozenset", "bytearray", "range", "slice"),
    "collections": ("Counter", "OrderedDict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "numpy": ("dtype",),
    **dict.fromkeys(("numpy._core.multiarray", "numpy.core.multiarray"), ("_reconstruct", "scalar")),
    **dict.fromkeys(("numpy._core.numeric", "numpy.core.numeric"), ("_frombuffer",)),
    "spcomm.notebook.pickling": ("UnpicklableValue",),
}


@contextmanager
def _by_value(modules: "list[ModuleType]") -> "Iterator[None]":
    """Functions and classes of these modules travel with their code."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _module_of(function: object) -> "list[ModuleType]":
    """The module of a function, if a node could not import it: a test file, say."""
    module = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    if not callable(function) or module is None or _can_be_imported(module.__name__):
        return []
    return [module]


def _own_modules() -> "list[ModuleType]":
    """The imported modules that are not installed, but files of the user."""
    installed = {os.path.realpath(path) for path in sysconfig.get_paths().values()}
    installed.add(os.path.dirname(os.path.realpath(sys.modules["spcomm"].__path__[0])) + "/spcomm")

    def is_own(module: "ModuleType") -> bool:
        file = os.path.realpath(getattr(module, "__file__", None) or "")
        folders = file.split("/")
        return (
            file.endswith(".py")
            and module.__name__ != "__main__"
            and sys.modules.get(module.__name__) is module
            and not {"site-packages", "dist-packages"} & set(folders)
            and not any(file.startswith(f"{path}/") for path in installed)
        )

    return [
        module for module in list(sys.modules.values()) if isinstance(module, ModuleType) and is_own(module)
    ]


def _can_be_imported(name: str) -> bool:
    top = name.partition(".")[0]
    if top == "__main__" or top in sys.builtin_module_names:
        return True  # the first always travels by value
    try:
        return importlib.machinery.PathFinder.find_spec(top, sys.path) is not None
    except (ImportError, ValueError):
        return False


class UnpicklableValue:
    """Stands for the value of a cell's last line that cannot be pickled. It has the same display."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
