# SPDX-License-Identifier: MIT
"""Lower floors never include or import upper ones."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
C_FLOORS = ["base", "segment", "reduce", "message", "collect", "net", "comm"]
# From the ground up; what stands on one line does not import each other.
PYTHON_FLOORS = [
    ["types", "config"],
    ["_core"],
    ["startup", "joining", "engines"],
    ["diagnose", "trace", "model"],
    ["launch"],
    ["notebook", "learn", "bench", "demo"],
    ["speedes"],
    ["cli"],
    ["__main__"],
]
VARIABLE = re.compile(
    r"^(?=\w)(?!const|typedef|extern|return|enum)(static\s+)?[\w\s*]+\b\w+(\[.*\])?\s*(=.*)?;$"
)
needs_sources = pytest.mark.skipif(not (ROOT / "csrc").is_dir(), reason="the sources are not here")


def c_files():
    return sorted(path for path in (ROOT / "csrc").rglob("*.[ch]") if "include" not in path.parts)


def c_floor(path):
    return C_FLOORS.index(path.split("/")[0] if "/" in path else "comm")


@needs_sources
def test_c_floors():
    wrong = []
    for path in c_files():
        name = str(path.relative_to(ROOT / "csrc"))
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            if c_floor(included) > c_floor(name):
                wrong.append(f"{name} includes {included}")
            if not (ROOT / "csrc" / included).exists():
                wrong.append(f"{name} includes {included}, which is not a path from csrc/")
    assert not wrong, "\n".join(wrong)


@needs_sources
def test_no_python_in_the_core():
    for path in c_files():
        assert not re.search(r"#\s*include\s+[<\"](Python|numpy)", path.read_text()), path


@needs_sources
def test_no_static_mutable_state():
    """Ranks can be threads of one process."""
    wrong = []
    for path in c_files():
        for line in path.read_text().splitlines():
            if VARIABLE.match(line) and "const" not in line and "(" not in line:
                wrong.append(f"{path.name}: {line}")
    assert not wrong, "\n".join(wrong)


@needs_sources
def test_every_c_file_names_its_licence():
    for path in c_files():
        assert "SPDX-License-Identifier: MIT" in path.read_text().splitlines()[0], path


def python_modules():
    import spcomm

    package = Path(spcomm.__file__).resolve().parent
    files = (path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyx"))
    return sorted(path for path in files if "data" not in path.relative_to(package).parts), package


def python_floor(name):
    return next((index for index, names in enumerate(PYTHON_FLOORS) if name in names), None)


def imported(path):
    """Names of the modules of spcomm that a file imports, also late ones."""
    text = path.read_text()
    if path.suffix == ".pyx":
        return set(re.findall(r"^\s*(?:from|import|cimport)\s+spcomm\.(\w+)", text, re.MULTILINE))
    found = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and (node.module or "").split(".")[0] == "spcomm"
        ):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("spcomm.")}
    return found


def test_python_floors():
    wrong = []
    modules, package = python_modules()
    for path in modules:
        part = path.relative_to(package).parts[0].removesuffix(".py")
        if part == "__init__":  # the public names, imported when they are asked for
            continue
        assert python_floor(part) is not None, f"spcomm.{part} has no floor in this test"
        for name in imported(path):
            other = python_floor(name)
            if other is not None and name != part and other >= python_floor(part):
                wrong.append(f"{path.relative_to(package)} imports spcomm.{name}")
    assert not wrong, "\n".join(wrong)
