# SPDX-License-Identifier: MIT
"""``check-packages.py FOLDER``: what the wheels and source packages in FOLDER must carry, and must not."""

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = sorted(f"spcomm/{path.name}" for path in ROOT.glob("csrc/include/spcomm/*.h*"))
EXTENSIONS = sorted(path.stem for path in ROOT.glob("spcomm/_core/*.pyx"))
PAGE = sorted(path.name for path in ROOT.glob("spcomm/trace/page/*"))
SHARED = (
    "man/man1/spcomm.1",
    "man/man1/spcomm-run.1",
    "bash-completion/completions/spcomm",
    "zsh/site-functions/_spcomm",
    "fish/vendor_completions.d/spcomm.fish",
)


def require(names, *endings):
    missing = [
        ending for ending in endings if not any(name.endswith(ending) or ending in name for name in names)
    ]
    return [f"has no {ending}" for ending in missing]


def refuse(names, *endings):
    return [f"carries {name}" for name in names if name.endswith(endings)]


def check_wheel(path):
    names = zipfile.ZipFile(path).namelist()
    complaints = require(names, *[f"spcomm/_core/{name}." for name in EXTENSIONS], "py.typed", "__init__.pyi")
    complaints += require(names, "spcomm/net_types/net_types.cpython-", "spcomm/net_types/net_types.pyi")
    complaints += require(
        names,
        "spcomm/data/examples/01_",
        *[
            f"spcomm/data/exercises/01_hello/{name}"
            for name in ("README.md", "exercise.py", "check.py", "info.toml")
        ],
        "spcomm/data/exercises/solutions/01_hello.py",
        "spcomm/data/documents/README.md",
        "licenses/LICENSE",
        *[f"data/share/{name}" for name in SHARED],
    )
    complaints += require(
        names,
        *[
            f"spcomm/bench/programs/{name}"
            for name in ("relay.c", "loop.c", "floor.c", "layers.c", "batches.h")
        ],
        *[f"spcomm/trace/page/{name}" for name in PAGE],
        "spcomm/_core/libspc.",
        "spcomm/lib/libspcomm.a",
        *[f"spcomm/include/{name}" for name in HEADERS],
    )
    sources = ("spcomm/include/", "spcomm/data/examples/", "spcomm/bench/programs/")  # meant for compilers
    inside = [name for name in names if not name.startswith(sources)]
    complaints += refuse(inside, ".pyx", ".pxd", ".c", ".h", ".pyc")
    complaints += debug_information(path)
    if '"""Send an object' not in zipfile.ZipFile(path).read("spcomm/_core/comm.pyi").decode():
        complaints.append("has stubs without docstrings")
    return complaints + [f"installs {n} beside spcomm" for n in names if not n.startswith("spcomm")]


def debug_information(path):
    """Only extensions in ELF are looked at, and only where `strip` was there to remove it."""
    wheel = zipfile.ZipFile(path)
    compiled = [name for name in wheel.namelist() if name.endswith(".so")] if shutil.which("strip") else []
    return [f"has debug information in {name}" for name in compiled if b"\0.debug_info\0" in wheel.read(name)]


def check_source(path):
    with tarfile.open(path) as archive:
        names = archive.getnames()
    complaints = require(
        names, *[f"spcomm/_core/{name}.pyx" for name in EXTENSIONS], ".pxd", ".h", "/LICENSE"
    )
    complaints += require(
        names,
        *[f"/csrc/include/{name}" for name in HEADERS],
        "/examples/01_",
        "/exercises/01_",
        "/tests/conftest.py",
        "/tests/csrc/csrc.mk",
        "/scripts/find-python",
    )
    return complaints + refuse(names, ".so", ".o", ".pyc") + [f"carries {n}" for n in names if "/build/" in n]


complaints = []
packages = [*Path(sys.argv[1]).glob("*.whl"), *Path(sys.argv[1]).glob("*.tar.gz")]
for package in packages:
    check = check_wheel if package.suffix == ".whl" else check_source
    complaints += [f"{package.name} {complaint}" for complaint in check(package)]
if not packages:
    complaints = [f"there is no package in {sys.argv[1]}"]
print(*complaints or [f"{package.name}: complete" for package in packages], sep="\n")
sys.exit(1 if complaints else 0)
