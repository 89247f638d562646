# SPDX-License-Identifier: MIT
"""Error messages of collectives that move data: for values that cannot be given, and for nodes that got nothing."""

from spcomm._core.errors import SpcommError, a_kind, shown


def wrong_number(call: str, found: int, size: int) -> ValueError:
    from spcomm.text import counted

    return ValueError(
        f"{call}(objs): objs has {counted(found, 'item')} for {counted(size, 'node')}; give one for each, in the order "
        "of their ranks: a sequence, or an array whose first axis is as long"
    )


def no_items(call: str, value: object) -> TypeError:
    found = "an array without axes" if hasattr(value, "ndim") else a_kind(value)
    return TypeError(
        f"{call}(objs={shown(value)}): objs is a sequence with one item for each node, or an array whose first axis is "
        f"as long, not {found}"
    )


def gave_nothing(call: str, rank: int, reason: str) -> SpcommError:
    """On the other nodes: a consequence of the error there, which the launcher reports instead."""
    error = SpcommError(f"{call}: node {rank} gave nothing, because it raised {reason or 'an error'}")
    error.is_consequence = True
    return error


def reason(error: BaseException) -> str:
    """What the others are told."""
    return f"{type(error).__name__}: {error}"
