# SPDX-License-Identifier: MIT
"""``check-packages.py PATH ...``: what wheels and source packages, or those in a folder, must carry, and must not."""

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = sorted(f"spcomm/{path.name}" for path in ROOT.glob("csrc/include/spcomm/*.h*"))
COMPILED = {".pyx", ".pxd", ".c", ".h"}
EXTENSIONS = sorted(path.stem for path in ROOT.glob("spcomm/_core/*.pyx"))
SHARED = (
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


def copied_files():
    """Names in a wheel of the files that it copies from the checkout."""
    modules = {f"spcomm/{path}" for path in written("spcomm") if path.suffix not in COMPILED}
    programs = {f"spcomm/bench/programs/{path}" for path in written("spcomm/bench/programs")}
    headers = {f"spcomm/include/{path}" for path in written("csrc/include")}
    data = {f"{top}/{path}" for top in ("examples", "exercises") for path in written(top)}
    data |= {
        f"docs/{path}" for path in written("docs") if path.parts[0] not in ("_ext", "_static", "conf.py")
    }
    data |= {f"csrc/{path}" for path in written("csrc") if path.suffix == ".md"}
    data |= {path.name for path in ROOT.glob("*.md")}
    return modules | programs | headers | {f"spcomm/data/{path}" for path in data}


def written(folder):
    """Paths, relative to a folder of the checkout, of the files in it that no build made."""
    made = {".so", ".dylib", ".a", ".pyc"}
    core = ROOT / "spcomm" / "_core"
    library = {ROOT / "spcomm" / "mpi" / name for name in ("lib", "include")}
    for path in (ROOT / folder).rglob("*"):
        stub = path.suffix == ".pyi" and core in path.parents  # the build writes those of _core
        if path.is_file() and path.suffix not in made and not stub and not library & set(path.parents):
            yield path.relative_to(ROOT / folder)


def check_wheel(path):
    names = zipfile.ZipFile(path).namelist()
    complaints = require(names, *[f"spcomm/_core/{name}.cpython-" for name in EXTENSIONS])
    complaints += require(names, "spcomm/net_types/net_types.cpython-", "spcomm/model/engine.cpython-")
    complaints += require(names, *[f"spcomm/_core/{name}.pyi" for name in EXTENSIONS])
    complaints += require(names, "spcomm/_core/libspc.", "spcomm/lib/libspcomm.a", "licenses/LICENSE")
    complaints += require(
        names, "spcomm/mpi/lib/libmpi.", "spcomm/mpi/lib/libmpi_abi.", "spcomm/mpi/include/mpi.h"
    )
    complaints += require(names, *[f"data/share/{name}" for name in SHARED])
    complaints += unexecutable(path)
    complaints += [f"has no {name}" for name in sorted(copied_files() - set(names))]
    sources = (
        "spcomm/include/",
        "spcomm/mpi/include/",
        "spcomm/data/",
        "spcomm/bench/programs/",
    )  # meant for compilers
    inside = [name for name in names if not name.startswith(sources)]
    complaints += refuse(inside, ".pyx", ".pxd", ".c", ".h", ".pyc")
    complaints += debug_information(path)
    if '"""Send an object' not in zipfile.ZipFile(path).read("spcomm/_core/comm.pyi").decode():
        complaints.append("has stubs without docstrings")
    return complaints + [f"installs {n} beside spcomm" for n in names if not n.startswith("spcomm")]


def is_library(name):
    return name.endswith(".so") or ".so." in name.rpartition("/")[2]


def unexecutable(path):
    """The plain names of MPI's commands are scripts."""
    files = [file for file in zipfile.ZipFile(path).infolist() if file.filename.startswith("spcomm/mpi/bin/")]
    modes = {file.filename: file.external_attr >> 16 for file in files}
    return [
        f"has {name} without the permission to execute it" for name, mode in modes.items() if not mode & 0o100
    ]


def debug_information(path):
    """Only extensions in ELF are looked at, and only where `strip` was there to remove it."""
    wheel = zipfile.ZipFile(path)
    compiled = [name for name in wheel.namelist() if is_library(name)] if shutil.which("strip") else []
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


def main(*paths):
    complaints, packages = [], []
    for path in map(Path, paths):
        packages += [*path.glob("*.whl"), *path.glob("*.tar.gz")] if path.is_dir() else [path]
    for package in packages:
        check = check_wheel if package.suffix == ".whl" else check_source
        complaints += [f"{package.name} {complaint}" for complaint in check(package)]
    if not packages:
        complaints = [f"there is no package in {' '.join(paths)}"]
    print(*complaints or [f"{', '.join(path.name for path in packages)}: no file is missing"], sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
