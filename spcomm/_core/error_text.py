# SPDX-License-Identifier: MIT
"""Error texts of nodes: the value given to a call, the allowed ones, and what to try; or what went wrong in it.

Wrong ranks, tags and timeouts, which the launcher needs, too, are in `errors`.
"""

import os
import sys
from operator import index

from spcomm import config
from spcomm._core.errors import (
    BufferInUseError,
    ConnectionLostError,
    CycleError,
    NodeLostError,
    RankError,
    SpcommError,
    TagError,
    VersionError,
    WaitTimeoutError,
    a_kind,
    shown,
)
from spcomm.text import counted

# ---- times, destinations, handlers, costs


def bad_time(value: object, why: str) -> ValueError:
    return ValueError(f"SimTime({shown(value)}): {why}")


def bad_time_type(value: object) -> TypeError:
    return TypeError(f"SimTime({shown(value)}): a time is a real number, not a {type(value).__name__}")


def two_priorities(value: object) -> TypeError:
    found = f"{shown(value)} has priorities of its own"
    return TypeError(f"SimTime({shown(value)}, …): {found}; for others give float(t) as the time")


def _priority(number: int, value: object, found: str) -> str:
    return f"SimTime(p{number}={shown(value)}): a priority is an int from {-(2**31)} to {2**31 - 1}{found}"


def bad_priority(number: int, value: object) -> ValueError:
    return ValueError(_priority(number, value, ""))


def bad_priority_type(number: int, value: object) -> TypeError:
    return TypeError(_priority(number, value, f", not a {type(value).__name__}"))


def no_time_record(value: object) -> TypeError:
    found = f"an array element of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"
    return TypeError(
        f"SimTime.from_record({shown(value)}): a record is one element of an array of SimTime.dtype, not {found}"
    )


def nan_result(call: str) -> ValueError:
    why = "inf and -inf are among the times, or a C program gave NaN"
    name = call.partition("(")[0]
    return ValueError(f"{name}(x): the result is NaN, which isn't a SimTime: {why}. All nodes took part.")


def bad_ranks(value: object) -> TypeError:
    found = f"ranks are an iterable of ints, not a {type(value).__name__}"
    return TypeError(f"Destination({shown(value)}): {found}; for one node, Destination([rank])")


def _member(method: str, value: object, limit: int) -> str:
    call = f"Destination().{method}({shown(value)})" if method else f"Destination([… {shown(value)} …])"
    return f"{call}: a rank is an int from 0 to {limit - 1}"


def bad_member(method: str, value: object, limit: int) -> RankError:
    return RankError(_member(method, value, limit))


def bad_member_type(method: str, value: object, limit: int) -> TypeError:
    return TypeError(f"{_member(method, value, limit)}, not a {type(value).__name__}")


def bad_handler(tag: int, value: object) -> TypeError:
    return TypeError(
        f"handler(tag={tag}): a {type(value).__name__} cannot be called; "
        f"decorate a function of one argument, the Message"
    )


def tag_has_handler(call: str, tag: int, function: object) -> TagError:
    name = getattr(function, "__qualname__", repr(function))
    return TagError(
        f"{call}(tag={tag}): messages of this tag are for their handler, {name}; receives never see them. "
        f"Try: another tag, or poll(), which calls the handler."
    )


def bad_cost(value: object) -> ValueError:
    found = "a cost is a finite number of units, 0 or more"
    return ValueError(
        f"work({shown(value)}): {found}, as in comm.work(2.5); a unit is slept as a millisecond"
    )


# ---- arrays in shared memory: empty and move


def bad_dtype(call: str, dtype: object) -> TypeError:
    reason = "it holds Python objects, which are of no use to another process"
    return TypeError(f"{call}: an array of {dtype} cannot live in shared memory: {reason}. Use send.")


def bad_shape(value: object) -> TypeError:
    return TypeError(f"empty(shape={shown(value)}): a shape is an int or a sequence of ints")


def negative_shape(value: object) -> ValueError:
    return ValueError(f"empty(shape={shown(value)}): lengths are 0 or more")


def too_large(value: object, dtype: object) -> MemoryError:
    return MemoryError(f"empty(shape={shown(value)}): an array of {dtype} of this shape exceeds all memory")


def bad_order(value: object) -> ValueError:
    return ValueError(f"empty(order={shown(value)}): order is 'C' (last index fastest) or 'F' (first)")


def not_an_array(value: object) -> TypeError:
    kind = type(value).__name__
    advice = "move takes a numpy.ndarray, preferably from comm.empty or recv. Use send, which copies"
    return TypeError(f"move(a): a is a {kind}; {advice}.")


def is_a_view(base: object) -> BufferInUseError:
    found = f"a does not own its memory, which belongs to a {type(base).__name__}"
    return BufferInUseError(f"move(a): {found}. Move the array itself, or send this one, which copies it.")


def is_a_part(found: int, whole: int) -> BufferInUseError:
    text = f"a is a view of {found} of the {whole} bytes of an array, or not contiguous"
    return BufferInUseError(f"move(a): {text}; only whole arrays can be moved. Use send, which copies it.")


def is_seen() -> BufferInUseError:
    text = "another array still uses the memory of a, and would see what its next owner writes"
    return BufferInUseError(f"move(a): {text}. Delete that first (del), or use send, which copies.")


def is_shared() -> BufferInUseError:
    text = "other nodes see the memory of a, which was received with copy=False"
    return BufferInUseError(f"move(a): {text}. Use send, which copies it.")


# ---- collective operations that move data


def no_items(call: str, name: str, value: object) -> TypeError:
    """`name` is the parameter that must hold an item for each node."""
    found = (
        "an array without axes" if hasattr(value, "ndim") and not hasattr(value, "keys") else a_kind(value)
    )
    return TypeError(
        f"{call}({name}={shown(value)}): {name} is a sequence with one item for each node, or an array whose first "
        f"axis is divided among them, not {found}{_as_items(name, value)}"
    )


def _as_items(name: str, value: object) -> str:
    """Return the advice for values that have no items in the order of ranks, such as tables."""
    if isinstance(value, (set, frozenset)):
        return f", which has no order; give sorted({name})"
    if hasattr(value, "iloc"):
        parts = f"[{name}.iloc[rows] for rows in np.array_split(range(len({name})), comm.size)]"
        return f", which iterates over the names of its columns; divide its rows: {parts}"
    if hasattr(value, "columns"):
        return ", which iterates over its columns; give a list with some rows for each node"
    if hasattr(value, "keys"):
        return f", which iterates over its keys; give list({name}.values())"
    return ""


def wrong_number(call: str, name: str, found: int, size: int) -> ValueError:
    return ValueError(
        f"{call}({name}): {name} has {counted(found, 'item')} for {counted(size, 'node')}; give one for each, in the "
        "order of their ranks: a sequence, or an array whose first axis is divided"
    )


def gave_nothing(call: str, rank: int, reason: str) -> SpcommError:
    """Raised on the other nodes: a consequence of the error there, which the launcher reports instead."""
    error = SpcommError(f"{call}: node {rank} gave nothing, because it raised {reason or 'an error'}")
    error.is_consequence = True
    return error


def reason(error: BaseException) -> str:
    """Return the text that the other nodes get."""
    return f"{type(error).__name__}: {error}"


# ---- reductions


ALGORITHMS = ("tree", "flat", "slices", "binary-swap")
_ALLOWED = {
    "SUM": "int, float, bool, complex, SimTime, NumPy arrays of numbers or of SimTime.dtype, and tuples of these",
    "PROD": "int, float, bool, complex, NumPy arrays of numbers, and tuples of these",
    "MIN": "int, float, bool, SimTime, NumPy arrays of real numbers or of SimTime.dtype, and tuples of these",
    "LAND": "int, float, bool, NumPy arrays of real numbers, and tuples of these",
    "BAND": "int, bool, NumPy arrays of ints and bools, and tuples of these",
}
_LIKE = {"MAX": "MIN", "LOR": "LAND", "LXOR": "LAND", "BOR": "BAND", "BXOR": "BAND"}


def more_than_numbers(value: object) -> str:
    """Return the reason why a value whose class adds something to its numbers is refused."""
    name = type(value).__name__
    if name == "MaskedArray":
        return "its mask would be lost; give x.filled(…)"
    return f"what {name} adds to its numbers would be lost; give {_numbers(value)} for the numbers alone"


def _numbers(value: object) -> str:
    """Return the expression for the plain numbers of an argument x."""
    import numpy as np  # late: the launcher does without

    from spcomm._core.simtime import SimTime

    if isinstance(value, SimTime):
        return "SimTime(x)"
    if isinstance(value, np.ndarray):
        return "np.asarray(x)"
    for method in ("to_numpy", "numpy"):
        if callable(getattr(value, method, None)):
            return f"x.{method}()"
    if hasattr(value, "__cuda_array_interface__"):
        return "x.get()"
    kinds = [kind.__name__ for kind in (float, complex, int) if isinstance(value, kind)]
    if kinds:
        return f"{kinds[0]}(x)"
    return "np.asarray(x)" if hasattr(value, "dtype") else "its numbers"


def _found(value: object) -> str:
    """Return the kind of a value that cannot be combined: `an array of <U3`, `a pandas Series of float64`."""
    import numpy as np

    from spcomm._core.simtime import SimTime

    if not hasattr(value, "dtype") or isinstance(value, SimTime):
        return a_kind(value)
    kind = type(value)
    if kind in (np.ndarray, np.memmap, getattr(value.dtype, "type", None)):
        return f"an array of {value.dtype}"
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package in ("__main__", "builtins") else f"{package} {kind.__name__}"
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name} of {value.dtype}"


def _why(value: object) -> str:
    """Return the advice for a value that is no number and no array."""
    import numpy as np

    if isinstance(value, list):
        return "for element by element, give np.array(x); for several values, tuple(x)"
    if hasattr(value, "to_numpy") or (
        hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))
    ):
        return f"give {_numbers(value)}"
    return ""


def not_callable(value: object) -> TypeError:
    found = a_kind(value)
    return TypeError(
        f"op({shown(value)}): an operator is made from a function of two values, not from {found}"
    )


def bad_operator(call: str, value: object) -> TypeError:
    found = a_kind(value)
    hint = "or the result of @spcomm.op"
    if callable(value):
        hint = "decorate the function with @spcomm.op, or give op=spcomm.op(function)"
    return TypeError(f"{call}(op={shown(value)}): op is spcomm.SUM or its like, not {found}; {hint}")


def bad_algorithm(call: str, value: object) -> ValueError:
    names = ", ".join(f'"{name}"' for name in ALGORITHMS)
    return ValueError(f"{call}(algorithm={shown(value)}): algorithm is None or one of {names}")


def why_not(operator: str, kind: str) -> str:
    if kind == "c" and operator in ("MIN", "MAX"):
        return "complex numbers have no order"
    if kind == "M" and operator == "SUM":
        return "points in time cannot be added"
    if kind == "f" and operator[0] == "B":
        return "it is for ints and bools"
    return "it is not made of numbers" if kind in "OSUV" else ""


def not_foldable(call: str, operator: str, value: object, why: str = "") -> TypeError:
    why = why or _why(value)
    is_global = call.startswith("global_")
    head = f"{call}(x, op={operator})" if call else f"{operator}(left, right)"
    allowed = _ALLOWED["SUM" if is_global else _LIKE.get(operator, operator)]
    hint = "" if is_global else "; for other values make an operator with @spcomm.op"
    return TypeError(
        f"{f'{call}(x)' if is_global else head}: {'x' if call else 'a value'} cannot be "
        f"{_found(value)}{': ' + why if why else ''}. Allowed are {allowed}{hint}."
    )


def no_pair(call: str, operator: str, value: object) -> TypeError:
    found = _found(value) if hasattr(value, "dtype") else shown(value)
    head = f"{call}(x, op={operator})" if call else f"{operator}(left, right)"
    return TypeError(
        f"{head}: x is a tuple (value, index) of a real number and an int, or an array of such pairs, of dtype "
        f"[('value', T), ('index', 'i8')] with T an integer or floating-point type of at most 64 bits, not {found}"
    )


def bad_counts_type(value: object) -> TypeError:
    return TypeError(
        f"reduce_scatter(counts={shown(value)}): counts is a sequence of ints, one for each node, or None"
    )


def wrong_number_of_counts(found: int, size: int) -> ValueError:
    return ValueError(
        f"reduce_scatter(counts): counts has {counted(found, 'number')} for {counted(size, 'node')}; give one for "
        "each, in the order of their ranks"
    )


def negative_count(count: int, rank: int) -> ValueError:
    return ValueError(f"reduce_scatter(counts): counts[{rank}] is {count}; a number of rows is 0 or more")


def wrong_sum(total: int, length: int) -> ValueError:
    return ValueError(
        f"reduce_scatter(counts): the counts add up to {total}, but the first axis of x has length {length}"
    )


def counts_of_objects() -> TypeError:
    return TypeError(
        "reduce_scatter(counts): counts divides the first axis of an array; a sequence of objects has one for each node"
    )


def no_axis(value: object) -> TypeError:
    return TypeError(
        "reduce_scatter(x): x is an array without axes; its first axis is divided. Give an array with at least "
        "one, or a sequence with one item for each node"
    )


def not_elementwise(call: str, algorithm: str, name: str) -> ValueError:
    return ValueError(
        f'{call}(op={name}, algorithm="{algorithm}"): this combines parts of arrays, and {name} gets whole ones. If '
        'it works element by element, declare that with @spcomm.op(elementwise=True); otherwise use "tree" or "flat"'
    )


def elements_it_got(name: str, axes: int, shape: tuple[int, ...]) -> str:
    """Return a note for an exception that an elementwise operator has raised."""
    return (
        f"{name} is elementwise: it is called with some of the elements, here two arrays of shape {shape}. "
        f"The last axes of x that stay together: element_axes={axes}"
    )


def wrong_shape(name: str, found: object, shape: tuple[int, ...]) -> ValueError:
    kind = f"an array of shape {found.shape}" if hasattr(found, "shape") else f"a {type(found).__name__}"
    return ValueError(
        f"{name} gave {kind} for two of shape {shape}: an elementwise operator is given parts of the arrays and "
        "makes an array of the same shape; leave elementwise=True out for one that needs them whole"
    )


def no_element(call: str, name: str, axes: int, shape: tuple[int, ...]) -> ValueError:
    last = "last axis" if axes == 1 else f"last {axes} axes"
    return ValueError(
        f"{call}: the elements of {name} are the {last} of an array (element_axes={axes}), and x has shape {shape}"
    )


def checked_axes(value: object, elementwise: bool) -> int:
    """Return the int, if it may be given to op()."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"op(element_axes={shown(value)}): a number of axes is an int")
    axes = index(value)
    if axes < 0 or (axes != 0 and not elementwise):
        why = (
            "only elementwise operators have elements; add elementwise=True"
            if axes > 0
            else "it is 0 or more"
        )
        raise ValueError(f"op(element_axes={axes}): {why}")
    return axes


# ---- calls that fail: the core has the sentences, csrc/diagnose/spc_failure_text.h

# The call that began an operation, and its place: call text, file, line; file and line may be unknown.
Place = tuple[str, str, int]

_KINDS = {
    "SPC_ELOST": NodeLostError,
    "SPC_EFINISHED": NodeLostError,
    "SPC_ETIMEDOUT": WaitTimeoutError,
    "SPC_EDISCONNECTED": ConnectionLostError,
    "SPC_ECYCLE": CycleError,
    "SPC_EVERSION": VersionError,
}


def failure(name: str, call: str, reason: str) -> SpcommError:
    """Return the exception for a status of the core, by its name. Some have their exceptions made elsewhere."""
    if name == "SPC_ECLOSED" and "spcomm.notebook.node_main" in sys.modules:
        reason += config.NEW_COMM
    return _KINDS.get(name, SpcommError)(f"{call}: {reason}")


def since(call: str, begun: Place | None, receiving: Place | None) -> str:
    """Return where the cycle in which this call is not allowed began, or began to be received."""
    place = receiving if call.startswith("coordinated_send(") else begun or receiving
    if place is None:
        return ""
    return f", since {place[0]}" + (f" at {os.path.basename(place[1])}:{place[2]}" if place[1] else "")


# ---- collective operations that do not match: spc_mismatch.h has the text


def described(name: str, value: object) -> str:
    """Return the text for a reduction of this value, with its shape, which signatures do not hold."""
    return f"{name if name.endswith(')') else name + '()'} of {_value(value)}"


def _value(value: object) -> str:
    if type(value) is tuple:
        return f"a tuple of ({', '.join(_value(item) for item in value)})"
    shape = getattr(value, "shape", None)
    if shape is None or shape == ():
        name = type(value).__name__
        return f"{'an' if name.startswith('int') else 'a'} {name}"
    from spcomm._core.simtime import is_simtimes  # late: it needs this module

    dtype = value.dtype  # type: ignore[attr-defined]
    return f"an array of {'SimTime' if is_simtimes(dtype) else dtype}, shape {shape}"
