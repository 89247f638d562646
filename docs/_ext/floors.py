# SPDX-License-Identifier: MIT
"""Includes and imports, read from the sources: the floors of csrc/ and the parts of spcomm/, for drawings."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = "spc_comm"  # the files of csrc/ itself
# A node that fails tells its launcher so: tests/docs/test_layers.py has the reasons.
UPWARDS = {("config", "launch"), ("forking", "launch")}


def includes():
    """(file, the name of a header of csrc/ that it includes)"""
    for path in [*(ROOT / "csrc").rglob("*.c"), *(ROOT / "csrc").rglob("*.h")]:
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            yield path, name.rpartition("/")[2]


def c_includes():
    """(floor, floor) for each floor that includes another; values that stand alone count as none."""
    homes = {path.name: floor(path) for path in (ROOT / "csrc").rglob("*.h")}
    pairs = {(floor(path), homes.get(name)) for path, name in includes()}
    return {(mine, home) for mine, home in pairs if home and home not in (mine, "include")}


def floor(path):
    parts = path.relative_to(ROOT / "csrc").parts
    return parts[0] if len(parts) > 1 else CORE


def modules():
    """{header's stem: its floor}; spc_comm_send.c belongs to spc_comm."""
    found = (ROOT / "csrc").rglob("spc_*.h")
    return {path.stem: floor(path) for path in found if not path.stem.endswith("_private")}


def around(module):
    """The files that include a module of csrc/, and what its files include; other floors whole if there are many."""
    known = modules()

    def owner(path):
        fits = [
            name for name in known if f"{path.stem}_".startswith(f"{name}_") and known[name] == floor(path)
        ]
        return max(fits, key=len, default=None)

    homes = {path.name: owner(path) for path in (ROOT / "csrc").rglob("spc_*.h")}
    users, used = set(), set()
    for path, name in includes():
        user, header = owner(path), homes.get(name)
        if header == module and user not in (module, None):
            users.add(user)
        elif user == module and header not in (module, None):
            used.add(header)
    used -= users  # two modules of a floor that know each other
    upper, lower = (whole_floors(side, module, known) for side in (users, used))
    return "\n".join([*(f"{name} -> {module}" for name in upper), *(f"{module} -> {name}" for name in lower)])


def whole_floors(names, module, known):
    """At most about six: of other floors only their names, if there are more."""
    if len(names) > 6:
        names = {name if known[name] == known[module] else f"{known[name]}/" for name in names}
    return sorted(names)


@functools.cache
def python_imports():
    """(part, part) for each part of spcomm/ that imports another."""
    found = set()
    for path in (ROOT / "spcomm").rglob("*"):
        if path.suffix not in (".py", ".pyx") or "programs" in path.parts:
            continue
        mine = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
        found |= {(mine, other) for other in map(part, imported(path)) if other and other != mine}
    return {(a, b) for a, b in found if a} - UPWARDS


def imported(path):
    text = path.read_text()
    if path.suffix == ".pyx":
        return re.findall(r"^\s*(?:from|c?import)\s+(spcomm[\w.]*)", text, re.MULTILINE)
    names = []
    for node in walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.startswith("spcomm")]


def walk(node):
    """As ast.walk, without expressions, which import nothing, and without what only readers of types see."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"
        if not isinstance(child, ast.expr) and not is_for_types:
            yield child
            yield from walk(child)


def part(module):
    """spcomm.launch.remote.box -> launch; "" for the package itself and for what is no part."""
    name = module.split(".")[1] if "." in module else ""
    below = ROOT / "spcomm" / name
    exists = below.is_dir() or any((ROOT / "spcomm").glob(f"{name}.py*"))
    return name if name and exists and not name.startswith("__") else ""


def reduced(arrows):
    """Without the arrows that follow from others, so that a drawing can be read."""
    arrows = set(arrows)

    def reaches(a, b, without):
        todo, seen = [a], set()
        while todo:
            for pair in arrows:
                if pair[0] == todo[-1] and pair != without and pair[1] not in seen:
                    if pair[1] == b:
                        return True
                    seen.add(pair[1])
                    todo.insert(0, pair[1])
            todo.pop()
        return False

    return sorted(pair for pair in arrows if not reaches(*pair, pair))


def lines(arrows):
    """As the text of a drawing; those that nobody includes come first."""
    lower = {b for _, b in arrows}
    return "\n".join(f"{a} -> {b}" for a, b in sorted(arrows, key=lambda pair: (pair[0] in lower, pair)))


def text(source):
    """The source of a drawing: "c-floors", "python-parts", or a module such as "spc_inbox"."""
    if source == "c-floors":
        return lines(reduced(c_includes()))
    return lines(reduced(python_imports())) if source == "python-parts" else around(source)
