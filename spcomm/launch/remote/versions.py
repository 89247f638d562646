# SPDX-License-Identifier: MIT
"""Properties that must be the same on all machines of a run, and the error if they differ."""

import sys

from spcomm.launch.remote.framing import one_line


def mine() -> "dict[str, str]":
    """Return the properties of this machine."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": ".".join(map(str, sys.version_info[:3])), "order": sys.byteorder}
    for name in ("spcomm", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def compare(host: str, theirs: "dict[str, str]", ours: "dict[str, str] | None" = None) -> "tuple[str, str]":
    """Return why a box there cannot take part, and a warning; each empty if there is none."""
    ours = mine() if ours is None else ours
    theirs = {name: one_line(theirs.get(name, ""), 40) for name in ours}
    if theirs["spcomm"] != ours["spcomm"]:
        return (
            f"host {host} has spcomm {theirs['spcomm'] or '(not installed)'}, and this machine has {ours['spcomm']}; "
            "install the same version on both"
        ), ""
    if theirs["order"] != ours["order"]:
        return (
            f"host {host} is {theirs['order']}-endian, and this machine {ours['order']}-endian; they cannot share a run"
        ), ""
    different = []
    if _part(theirs["python"], 2) != _part(ours["python"], 2):
        different.append(f"Python {theirs['python']} there, {ours['python']} here")
    if _part(theirs["numpy"], 1) != _part(ours["numpy"], 1):
        different.append(f"NumPy {theirs['numpy'] or '(none)'} there, {ours['numpy'] or '(none)'} here")
    if different:
        return "", (
            f"host {host}: {', and '.join(different)}; objects may be unreadable, and results may differ"
        )
    return "", ""


def _part(version: str, count: int) -> "list[str]":
    return version.split(".")[:count]
