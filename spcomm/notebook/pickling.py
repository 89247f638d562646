# SPDX-License-Identifier: MIT
"""Objects on their way to nodes and back: by cloudpickle."""

import importlib.machinery
import io
import pickle
import sys
from collections import ChainMap
from contextlib import contextmanager
from types import CodeType

import cloudpickle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST = (1 << 31) - (1 << 20)  # bytes of one object: the limit of marshal, which writes the messages


def packed(value: object, what: str, function: object = None) -> bytes:
    """An object as bytes. `TypeError`, which begins with `what`: it cannot be pickled; `ValueError`: it is too large.

    `function` is the part of it that a node must be able to call.
    """
    try:
        with _by_value(function):
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


def unpacked(data: bytes) -> object:
    return pickle.loads(data)


@contextmanager
def _by_value(function: object) -> "Iterator[None]":
    """Functions of a module that a node could not import, such as a test file, travel with their code."""
    module = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    if not callable(function) or module is None or _can_be_imported(module.__name__):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


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
