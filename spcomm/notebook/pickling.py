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
from typing import TYPE_CHECKING

import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy

_PLAIN_KINDS = "biufcmMSUV"  # of dtypes whose items are nothing but their bytes
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
    _pickler("numpy" in sys.modules)(out, protocol=5).dump(value)
    return out.getvalue()


def _reduced(code: CodeType) -> tuple:
    """Code keeps the name of its file, for tracebacks and reports; cloudpickle from 3.1.3 on writes another one."""
    make, arguments = cloudpickle.CloudPickler.dispatch_table[CodeType](code)
    return _named, (code.co_filename, make, arguments)


def _named(file: str, make: "Callable[..., CodeType]", arguments: tuple) -> CodeType:
    return make(*arguments).replace(co_filename=file)


@functools.cache
def _pickler(with_numpy: bool) -> type:
    table: dict = {CodeType: _reduced}
    if with_numpy:
        import numpy

        table[numpy.ndarray] = _reduced_array
        table.update(dict.fromkeys(set(numpy.sctypeDict.values()), _reduced_scalar))
    table = ChainMap(table, cloudpickle.CloudPickler.dispatch_table)  # type: ignore[assignment]
    return type("Pickler", (cloudpickle.CloudPickler,), {"dispatch_table": table})


def _reduced_array(array: "numpy.ndarray") -> tuple:
    """Arrays go as a description of their items and bytes: NumPy's own form has no check against hostile ones."""
    from numpy.lib.format import dtype_to_descr

    if array.dtype == object:
        return array_of_objects, (array.shape, list(array.flat))
    if array.dtype.kind not in _PLAIN_KINDS or array.dtype.hasobject or not array.dtype.itemsize:
        return array.__reduce_ex__(5)
    order = "F" if array.flags.fnc else "C"
    if not array.flags.forc:
        array = array.copy()
    data = array.ravel(order).view("u1") if array.nbytes else bytearray()
    return array_of_bytes, (dtype_to_descr(array.dtype), array.shape, order, pickle.PickleBuffer(data))


def _reduced_scalar(scalar: "numpy.generic") -> tuple:
    import numpy

    make, arguments = _reduced_array(numpy.asarray(scalar))[:2]
    return (scalar_of_bytes, arguments) if make is array_of_bytes else scalar.__reduce_ex__(5)


def array_of_objects(shape: tuple, items: list) -> "numpy.ndarray":
    """Make an array of Python objects again."""
    import numpy

    array = numpy.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def array_of_bytes(
    description: object, shape: tuple, order: str, data: "bytes | bytearray"
) -> "numpy.ndarray":
    """Make an array again. `ValueError` or `TypeError`: the description is wrong, or asks for more than the data."""
    import numpy
    from numpy.lib.format import descr_to_dtype

    dtype = descr_to_dtype(description)
    if dtype.hasobject or not dtype.itemsize or not isinstance(data, (bytes, bytearray)):
        raise ValueError(f"an array of {dtype} cannot be made of bytes")
    if isinstance(data, bytes):  # of a read-only array; this one is the receiver's own
        data = bytearray(data)
    return numpy.ndarray(shape, dtype, data, order=order)  # type: ignore[call-overload]


def scalar_of_bytes(*arguments: object) -> "numpy.generic":
    """Make a number, date or text of NumPy again."""
    return array_of_bytes(*arguments)[()]  # type: ignore[arg-type]


def unpacked(data: bytes, is_plain: bool = False) -> object:
    """The object. `is_plain`: of a machine that must not run code here, so `NotPlainError` for most classes."""
    return _PlainUnpickler(io.BytesIO(data)).load() if is_plain else pickle.loads(data)


class NotPlainError(pickle.UnpicklingError):
    """The object is not a plain value."""


class _PlainUnpickler(pickle.Unpickler):
    """Loads plain values: it finds only classes and functions that do nothing but make such a value.

    A dtype is none: its state can place fields outside of the items, or make Python objects of bytes.
    """

    def find_class(self, module: str, name: str) -> object:
        is_error = module == "builtins" and isinstance(getattr(builtins, name, None), type)
        if is_error and issubclass(getattr(builtins, name), BaseException):
            return super().find_class(module, name)
        if module == "spcomm" and name.endswith("Error") and name.isidentifier():
            return super().find_class(module, name)
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        raise NotPlainError(
            f"from the members of a room come numbers, text, containers of them and NumPy arrays, not {name} "
            f"of {module}"
        )


_PLAIN = {
    "builtins": ("complex", "set", "frozenset", "range", "slice"),
    "collections": ("Counter", "OrderedDict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "spcomm.notebook.pickling": ("UnpicklableValue", "array_of_bytes", "array_of_objects", "scalar_of_bytes"),
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
