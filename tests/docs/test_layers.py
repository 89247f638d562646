# SPDX-License-Identifier: MIT
"""Lower floors never include or import upper ones: csrc/README.md and CONTRIBUTING.md have the picture."""

import ast
import re
import subprocess
import sys

import pytest

from checkout import ROOT, fail_with, files, relative

# What the files in a folder of csrc/ may include, beside their own folder. "" is csrc itself: spc_comm.
BELOW = {
    "base": set(),
    "segment": {"base"},
    "reduce": {"base", "segment"},
    "message": {"base", "segment"},
    "node": {"base", "segment", "message"},
    "diagnose": {"base", "segment", "reduce", "message"},
    "": {"base", "segment", "reduce", "message", "node"},
    "net": {"base", "segment", "reduce", "message", "node", "diagnose", ""},
    "collect": {"base", ""},
    "agent": {"base", "segment", "diagnose", ""},
    "api": {"base", "", "collect", "agent", "include"},
    "include": set(),
}
# Public headers that stand alone, values and no functions of the core: every floor may include them.
STAND_ALONE = {"spcomm/simtime.h", "spcomm/destination.h", "spcomm/net_types.h"}

# What the parts of spcomm/ may import, beside themselves; "" is the package itself, the public names.
PUBLIC = {""}
IMPORTS = {
    "": {"config", "joining", "_core", "types"},
    "types": set(),
    "config": {"_core"},
    "_core": {"types", "config"},
    "joining": {"_core", "config", "forking", "types"},
    "forking": {"_core", "config"},
    "engines": {"_core", "config", "types"},
    "diagnose": {"_core", "config", "types"},
    "trace": {"_core", "config", "types"},
    "launch": {
        "_core.agent",
        "_core.errors",
        "_core.net",
        "_core.places",
        "_core.waits",
        "config",
        "diagnose",
        "trace",
    },
    "model": set(),
    "speedes": PUBLIC | {"types", "_core.errors"},
    "bench": PUBLIC | {"launch", "config"},
    "learn": PUBLIC | {"launch", "config", "demo", "trace"},
    "notebook": PUBLIC
    | {
        "_core.agent",
        "_core.comm",
        "_core.endings",
        "_core.errors",
        "config",
        "diagnose",
        "joining",
        "launch",
        "learn",
        "trace",
    },
    "demo": PUBLIC | {"launch", "config"},
    "compiling": set(),
    "info": {"_core.agent"},
    "cli": PUBLIC
    | {"diagnose", "launch", "bench", "demo", "learn", "model", "trace", "config", "compiling", "info"},
    "__main__": {"cli"},
}
# (file, imported): why this one import goes up.
EXCEPTIONS = {
    (
        "spcomm/config.py",
        "spcomm.launch.report",
    ): "a node that was exec'ed tells its launcher of an uncaught exception",
    ("spcomm/forking.py", "spcomm.launch.report"): "a forked node tells its agent, in the same way",
}


def c_floor(path):
    parts = path.relative_to(ROOT / "csrc").parts
    return parts[0] if len(parts) > 1 else ""


def c_files():
    return files(".c", ".h", below="csrc")


def test_c_floors():
    headers = {path.name: path for path in c_files() if path.suffix == ".h"}
    complaints = []
    for path in c_files():
        mine = c_floor(path)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            header = headers.get(name.rpartition("/")[2])
            if name in STAND_ALONE:
                continue
            if header is None:
                complaints.append(f"{relative(path)} includes {name}, which is not in csrc/")
            elif not any((ROOT / folder / name).exists() for folder in ("csrc", "csrc/include")):
                complaints.append(f"{relative(path)} includes {name}, which is not a path from csrc/")
            elif c_floor(header) not in BELOW[mine] | {mine}:
                complaints.append(
                    f"{relative(path)} includes {name}: {mine or 'spc_comm'} stands below or beside it"
                )
    fail_with(complaints)


def test_c_headers_that_stand_alone():
    for name in STAND_ALONE:
        text = (ROOT / "csrc" / "include" / name).read_text()
        assert re.findall(r'#\s*include\s+"[^"]+"', text) == []


def test_c_private_headers_stay_private():
    complaints = []
    for path in c_files():
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)_private\.h"', path.read_text(), re.MULTILINE):
            if not path.name.startswith(name.rpartition("/")[2]):
                complaints.append(f"{relative(path)} includes {name}_private.h")
    fail_with(complaints)


def test_c_sockets_only_in_net():
    fail_with(
        [
            f"{relative(path)} includes <{name}>: only csrc/net knows sockets"
            for path in c_files()
            for name in re.findall(
                r"#\s*include\s+<(sys/socket|netinet/\w+|arpa/inet|sys/un|netdb)\.h>", path.read_text()
            )
            if c_floor(path) != "net"
        ]
    )


def test_c_does_not_know_python():
    fail_with([f"{relative(path)} includes Python.h" for path in c_files() if "Python.h" in path.read_text()])


def part_of(module):
    """spcomm.launch.nodes -> launch; spcomm -> "" (the public names)."""
    return module.split(".")[1] if "." in module else ""


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """The spcomm modules that a file imports, anywhere in it."""
    text = path.read_text()
    if path.suffix in (".pyx", ".pxd"):
        lines = re.findall(
            r"^\s*from\s+(\S+)\s+c?import\s+\(?\s*(\w+)|^\s*c?import\s+(\S+)", text, re.MULTILINE
        )
        names = [f"{source}.{name}" if source else whole for source, name, whole in lines]
    else:
        names = []
        package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parents = package.split(".")
                    base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
                names += [f"{base}.{alias.name}" for alias in node.names]
    return [name for name in names if name.split(".")[0] == "spcomm"]


def is_allowed(name, allowed):
    """Whether one of the allowed parts, such as "launch" or "_core.agent", covers the imported name."""
    below = name.partition(".")[2]
    if "" in allowed and not (ROOT / "spcomm" / part_of(name)).is_dir() and not exists(part_of(name)):
        return True  # a public name
    return any(part and (below == part or below.startswith(f"{part}.")) for part in allowed)


def exists(part):
    return bool(part) and any((ROOT / "spcomm").glob(f"{part}.*"))


def test_python_parts():
    complaints = []
    for path in files(".py", ".pyx", ".pxd", below="spcomm"):
        mine = part_of(module_of(path))
        if "programs" in path.parts:  # what spcomm bench runs are users' programs
            continue
        allowed = IMPORTS.get(mine)
        if allowed is None:
            complaints.append(
                f"{relative(path)}: say in {relative(ROOT / __file__)} what {mine!r} may import"
            )
            continue
        for name in imported(path):
            known = any(
                (relative(path), exception) in EXCEPTIONS for exception in (name, name.rpartition(".")[0])
            )
            if name != "spcomm" and part_of(name) != mine and not known and not is_allowed(name, allowed):
                complaints.append(
                    f"{relative(path)} imports {name}; {mine or 'spcomm'} may import {sorted(allowed)}"
                )
    fail_with(complaints)


def test_only_core_touches_c():
    complaints = []
    for path in files(".pyx", ".pxd", below="spcomm"):
        if path.parent != ROOT / "spcomm" / "_core":
            complaints.append(f"{relative(path)} is Cython outside spcomm/_core")
    for path in files(".py", below="spcomm"):
        if re.search(r"^\s*(import|from)\s+cffi\b|CDLL\([^N)]", path.read_text(), re.MULTILINE):
            complaints.append(f"{relative(path)} loads a C library; only spcomm/_core may")
    for path in files(".pyx", ".pxd", below="spcomm"):
        if not re.fullmatch(r"lib\w+\.pxd", path.name) and re.search(
            r'cdef extern from "(?!Python\.h|numpy)', path.read_text()
        ):
            complaints.append(
                f"{relative(path)} declares C functions; libspc.pxd, or another lib*.pxd, is the place"
            )
    fail_with(complaints)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import spcomm", ["numpy", "spcomm.launch", "spcomm.bench", "spcomm._core.comm"]),
        ("import spcomm.config", ["numpy", "spcomm._core.agent", "spcomm.launch"]),
        ("from spcomm._core import agent", ["numpy", "spcomm._core.comm"]),
        ("import spcomm.cli", ["numpy", "spcomm.launch", "spcomm.bench", "argparse"]),
    ],
)
def test_imports_cost_little(statement, unwanted):
    code = f"import sys; {statement}; print(*[name for name in {unwanted} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr, result.stdout.split()) == (0, "", [])
