# SPDX-License-Identifier: MIT
"""The words for collective operations that do not match: who called what."""

from spcomm._core.errors import ranks_text
from spcomm._core.stepwise import KINDS, OPERATIONS, OPERATORS, TYPES

# (operation, operator, type, fields, length, layout, char) of what a node called: spc_signature_t, and the letter of
# NumPy's dtype where the core does not know the type.
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
_WITH_LENGTH = ("ARRAY", "TUPLE")
_ADVICE = "All nodes must call the same operations in the same order, with values of the same type and shape."


def _type_name(number: int, char: int) -> str:
    if char:
        import numpy as np

        return np.dtype(chr(char)).name
    return TYPES.get(number, "numbers")


def worded(signature: Signature) -> str:
    operation, operator, number, _fields, length, layout, char = signature
    if operation in OPERATIONS:
        return f"{OPERATIONS[operation]}()"
    name = OPERATORS.get(operator, "a collective operation")
    kind = KINDS.get(layout >> 56, "")
    text = f"{name}() of {WORDS.get(kind, 'a value')}"
    if kind in _OF_A_TYPE:
        text += f" of {_type_name(number, char)}"
    return text + (f", {length} bytes" if kind in _WITH_LENGTH else "")


def text(call: str, rank: int, called: dict[int, Signature]) -> str:
    """The text of the error that node `rank` raises; `called`: what each node called."""
    groups: dict[Signature, list[int]] = {}
    for node, signature in called.items():
        groups.setdefault(signature, []).append(node)
    if len(groups) < 2:
        other = worded(*groups) if groups else "another operation"
        return (
            f"{call}: node {rank} has left {other} before its end. Finish that first, by the same call again."
        )
    texts = [worded(signature) for signature in groups]
    lines = []
    for words, nodes in zip(texts, groups.values(), strict=True):
        again = " (of another shape, or made of other types)" if texts.count(words) > 1 else ""
        lines.append(f"  {ranks_text(nodes)}: {words}{again}")
    return "\n".join([f"{call}: the nodes called different operations:", *lines, _ADVICE])
