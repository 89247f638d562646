# SPDX-License-Identifier: MIT
"""The words for collectives that move data: what cannot be given, and the error of nodes to whom nothing was given."""

from spcomm._core.errors import SpcommError, a_kind, shown


def wrong_number(call: str, found: int, size: int) -> ValueError:
    items = "1 item" if found == 1 else f"{found} items"
    return ValueError(
        f"{call}(objs): objs has {items} for {size} node{'s' if size > 1 else ''}; give one for each, in the order of "
        "their ranks: a sequence, or an array whose first axis is as long"
    )


def no_items(call: str, value: object) -> TypeError:
    found = "an array without axes" if hasattr(value, "ndim") else a_kind(value)
    return TypeError(
        f"{call}(objs={shown(value)}): objs is a sequence with one item for each node, or an array whose first axis is "
        f"as long, not {found}"
    )


def gave_nothing(call: str, rank: int, reason: str) -> SpcommError:
    """On the other nodes: a consequence of the error there, which the launcher reports in the first place."""
    error = SpcommError(f"{call}: node {rank} gave nothing, because it raised {reason or 'an error'}")
    error.is_consequence = True
    return error


def reason(error: BaseException) -> str:
    """What the others are told."""
    return f"{type(error).__name__}: {error}"
