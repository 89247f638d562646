# SPDX-License-Identifier: MIT
"""The words for collective operations that do not match: who called what."""

from spcomm._core.endings import Note, at
from spcomm._core.errors import ranks_text
from spcomm._core.signatures import (
    ARRAY_TYPES,
    KINDS,
    MOVES_DATA,
    OPERATIONS,
    OPERATORS,
    REDUCTIONS,
    ROOTED,
    TYPES,
    WITH_ROOT,
)
from spcomm._core.stepwise import is_simtimes

# (operation, operator, type, fields, length, layout, root) of what a node called: spc_signature_t. Reductions have no
# root, but the letter of NumPy's dtype there, where the core does not know the type.
Signature = tuple[int, ...]

WORDS = {
    "INT": "an int",
    "FLOAT": "a float",
    "BOOL": "a bool",
    "ARRAY": "an array",
    "TUPLE": "a tuple",
    "COMPLEX": "a complex",
    "SCALAR": "a NumPy scalar",
    "SIMTIME": "a SimTime",
}
_OF_A_TYPE = ("ARRAY", "SCALAR")  # the type of their elements is told
_OPERATOR_NAMES = "SUM MIN MAX PROD LAND LOR LXOR BAND BOR BXOR MINLOC MAXLOC".split()  # by spc_operator_t
_WITH_LENGTH = ("ARRAY", "TUPLE")
_ADVICE = "All nodes must call the same operations in the same order, with values of the same type and shape."
_ADVICE_FOR_DATA = "All nodes must call the same operations in the same order, with the same root."


def _type_name(number: int, char: int) -> str:
    if char:
        import numpy as np

        return np.dtype(chr(char)).name
    return TYPES.get(number, "numbers")


def worded(signature: Signature) -> str:
    operation, operator, number, _fields, length, layout, root = signature
    if operation in OPERATIONS:
        return f"{OPERATIONS[operation]}({f'root={root}' if operation in ROOTED else ''})"
    if operation in REDUCTIONS:
        return _worded_reduction(signature)
    name = OPERATORS.get(operator, "a collective operation")
    kind = KINDS.get(layout >> 56, "")
    text = f"{name}() of {WORDS.get(kind, 'a value')}"
    if kind in _OF_A_TYPE:
        text += f" of {_type_name(number, root)}"
    return text + (f", {length} bytes" if kind in _WITH_LENGTH else "")


def _worded_reduction(signature: Signature) -> str:
    operation, operator, number, _fields, length, layout, root = signature
    name = _OPERATOR_NAMES[operator] if operator < len(_OPERATOR_NAMES) else "a function"
    text = f"{REDUCTIONS[operation]}(op={name}{f', root={root}' if operation == WITH_ROOT else ''})"
    kind = KINDS.get(layout >> 56, "")
    if not kind:
        return text
    text += f" of {WORDS[kind]}"
    if kind in _OF_A_TYPE:
        text += f" of {ARRAY_TYPES.get(number, 'numbers')}"
    return text + (f", {length} bytes" if kind in _WITH_LENGTH else "")


def described(name: str, value: object) -> str:
    """The words for a reduction of this value, with its shape, which signatures do not hold."""
    return f"{name if name.endswith(')') else name + '()'} of {_value(value)}"


def _value(value: object) -> str:
    if type(value) is tuple:
        return f"a tuple of ({', '.join(_value(item) for item in value)})"
    shape = getattr(value, "shape", None)
    if shape is None or shape == ():
        name = type(value).__name__
        return f"{'an' if name.startswith('int') else 'a'} {name}"
    dtype = value.dtype  # type: ignore[attr-defined]
    return f"an array of {'SimTime' if is_simtimes(dtype) else dtype}, shape {shape}"


def text(call: str, rank: int, number: int, called: dict[int, Signature], notes: "dict[int, Note]") -> str:
    """The text of the error that node `rank` raises; `called`: what each node called, `notes`: at which line."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for node, signature in called.items():
        note = notes.get(node)
        groups.setdefault((signature, note.words if note else "", at(note)), []).append(node)
    signatures = list(dict.fromkeys(called.values()))
    if len(signatures) < 2:
        other = worded(*signatures) if signatures else "another operation"
        return (
            f"{call}: node {rank} has left {other} before its end. Finish that first, by the same call again."
        )
    texts = {signature: worded(signature) for signature in signatures}
    lines = []
    for (signature, words, place), nodes in groups.items():
        plain = texts[signature]
        alike = not words and list(texts.values()).count(plain) > 1
        again = " (of another shape, or made of other types)" if alike else ""
        lines.append(f"  {ranks_text(nodes)}: {words or plain}{again}{place}")
    head = f"{call}: the nodes called different operations (number {number} of each):"
    moves_data = all(signature[0] in MOVES_DATA for signature in signatures)
    advice = _ADVICE_FOR_DATA if moves_data else _ADVICE
    return "\n".join([head, *lines, f"{advice} (spcomm explain SP105)"])
