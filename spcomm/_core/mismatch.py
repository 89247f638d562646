# SPDX-License-Identifier: MIT
"""The words for collective operations that do not match: who called what."""

from spcomm._core.endings import Note, at
from spcomm._core.reductions import is_simtimes
from spcomm._core.signatures import MOVES_DATA, worded
from spcomm.text import ranks_text

Signature = tuple[int, ...]

_ADVICE = "All nodes must call the same operations in the same order, with values of the same type and shape."
_ADVICE_FOR_DATA = "All nodes must call the same operations in the same order, with the same root."


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
