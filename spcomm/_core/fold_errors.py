# SPDX-License-Identifier: MIT
"""The words for reductions that cannot be: operators, algorithms, counts, and values that an operator does not know."""

from operator import index

from spcomm._core.errors import a_kind, shown

ALGORITHMS = ("tree", "flat", "slices", "binary-swap")
_ALLOWED = {
    "SUM": "int, float, bool, complex, SimTime, NumPy arrays of numbers or of SimTime.dtype, and tuples of these",
    "PROD": "int, float, bool, complex, NumPy arrays of numbers, and tuples of these",
    "MIN": "int, float, bool, SimTime, NumPy arrays of real numbers or of SimTime.dtype, and tuples of these",
    "LAND": "int, float, bool, NumPy arrays of real numbers, and tuples of these",
    "BAND": "int, bool, NumPy arrays of ints and bools, and tuples of these",
}
_LIKE = {"MAX": "MIN", "LOR": "LAND", "LXOR": "LAND", "BOR": "BAND", "BXOR": "BAND"}


def not_reducible(call: str, value: object, why: str = "") -> TypeError:
    kind = f"an array of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"
    allowed = (
        "int, float, bool, complex, SimTime, NumPy arrays of numbers or of SimTime.dtype, and tuples of these"
    )
    if isinstance(value, list):
        why = why or "for element by element, give np.array(x); for several values, tuple(x)"
    name = call.partition("(")[0]
    return TypeError(f"{name}(x): x cannot be {kind}{': ' + why if why else ''}. Allowed are {allowed}.")


def not_callable(value: object) -> TypeError:
    found = a_kind(value)
    return TypeError(f"op({shown(value)}): an operator is made of a function of two values, not of {found}")


def bad_operator(call: str, value: object) -> TypeError:
    found = a_kind(value)
    hint = "or what @spcomm.op makes of a function"
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
    found = f"an array of {value.dtype}" if hasattr(value, "dtype") else a_kind(value)
    allowed = _ALLOWED[_LIKE.get(operator, operator)]
    if isinstance(value, list):
        why = why or "for element by element, give np.array(x); for several values, tuple(x)"
    head = f"{call}(x, op={operator})" if call else f"{operator}(left, right)"
    return TypeError(
        f"{head}: {'x' if call else 'a value'} cannot be {found}{': ' + why if why else ''}. Allowed are {allowed}; "
        "for other values make an operator with @spcomm.op."
    )


def no_pair(call: str, operator: str, value: object) -> TypeError:
    found = f"an array of {value.dtype}" if hasattr(value, "dtype") else shown(value)
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
    from spcomm.text import counted

    return ValueError(
        f"reduce_scatter(counts): counts has {counted(found, 'number')} for {counted(size, 'node')}; give one for "
        "each, in the order of their ranks"
    )


def negative_count(count: int, rank: int) -> ValueError:
    return ValueError(
        f"reduce_scatter(counts): counts[{rank}] is {count}; how many rows a node gets is 0 or more"
    )


def wrong_sum(total: int, length: int) -> ValueError:
    return ValueError(
        f"reduce_scatter(counts): the counts are {total} together, but the first axis of x has length {length}"
    )


def counts_of_objects() -> TypeError:
    return TypeError(
        "reduce_scatter(counts): counts divides the first axis of an array; of a sequence of objects each node gets one"
    )


def no_axis(value: object) -> TypeError:
    return TypeError(
        "reduce_scatter(x): x is an array without axes; its first axis is what is divided. Give an array with at least "
        "one, or a sequence with one item for each node"
    )


def not_elementwise(call: str, algorithm: str, name: str) -> ValueError:
    return ValueError(
        f'{call}(op={name}, algorithm="{algorithm}"): this combines parts of arrays, and {name} gets whole ones. If '
        'it works element by element, say so with @spcomm.op(elementwise=True); otherwise use "tree" or "flat"'
    )


def elements_it_got(name: str, axes: int, shape: tuple[int, ...]) -> str:
    """A note for what an elementwise operator has raised."""
    return (
        f"{name} is elementwise: it is given some of the elements, here two arrays of shape {shape}. "
        f"So many last axes of x stay together: element_axes={axes}"
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
    """The int, if it may be given to op()."""
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


def no_items(value: object) -> TypeError:
    return TypeError(
        f"reduce_scatter(x={shown(value)}): x is an array, or a sequence with one item for each node, not "
        f"{a_kind(value)}"
    )


def wrong_number_of_items(found: int, size: int) -> ValueError:
    from spcomm.text import counted

    return ValueError(
        f"reduce_scatter(x): x has {counted(found, 'item')} for {counted(size, 'node')}; give one for each, in the "
        "order of their ranks, or an array, whose first axis is divided"
    )
