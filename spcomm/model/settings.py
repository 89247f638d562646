# SPDX-License-Identifier: MIT
"""Settings of a command line, ``latency=10us,compute=0.5``: names, and numbers with their units."""

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches

from spcomm.model import ModelError

# Nanoseconds of a unit.
UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIME, NUMBER = "a time such as 500ns or 10us", "a number such as 0.5"
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+)\s*([a-zµ]*)", re.IGNORECASE)


def parse(text: str, kinds: "Mapping[str, str]", option: str) -> "dict[str, float]":
    """Read ``name=value,name=value``.

    Parameters
    ----------
    text
        The settings.
    kinds
        `TIME` or `NUMBER` by name.
    option
        The option's name, for complaints.

    Returns
    -------
    dict
        Times are in nanoseconds.

    Raises
    ------
    ModelError
        A name is unknown or given twice, or a value is none of its kind.

    Examples
    --------
    >>> parse("send=10us, recv=500ns", {"send": TIME, "recv": TIME}, "--costs")
    {'send': 10000.0, 'recv': 500.0}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, has_value, value = (word.strip() for word in part.partition("="))
        kind = kinds.get(name)
        if not has_value or kind is None:
            near = get_close_matches(name, kinds, 1)
            hint = f"did you mean {near[0]}=?" if near and kind is None else f"it takes {', '.join(kinds)}"
            raise ModelError(
                f"{option} has {part.strip()!r}, not a setting such as {next(iter(kinds))}=…; {hint}"
            )
        if name in found:
            raise ModelError(f"{option} has {name} twice; give it once")
        found[name] = _value(name, value, kind, option)
    return found


def _value(name: str, text: str, kind: str, option: str) -> float:
    match = _NUMBER.fullmatch(text)
    number = float(match[1]) if match else math.nan
    unit = match[2] if match else ""
    allowed = unit in UNITS if kind is TIME else not unit
    if kind is TIME and not unit and number == 0:
        allowed = True
    if not math.isfinite(number) or not allowed:
        raise ModelError(f"{option} has {name}={text}, and {name} takes {kind}")
    return number * UNITS.get(unit, 1.0)


def time_text(ns: float) -> str:
    """Format a time with three digits and its unit.

    >>> time_text(12_345)
    '12.3 µs'
    """
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= 0.9995 * factor:
            return f"{ns / factor:.{max(0, 2 - int(math.log10(abs(ns) / factor * 1.0005)))}f} {unit}"
    return f"{ns:.0f} ns"
