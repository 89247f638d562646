# SPDX-License-Identifier: MIT
"""Rebuild check of an editable checkout: finds a C source newer than the compiled core."""

import os


def newer_source(package: str) -> "str | None":
    """Return the path of a C source that is newer than the compiled core, relative to the checkout, or None.

    One `stat` per file below csrc/, if that stands beside the package; nothing otherwise.
    """
    root = os.path.dirname(package)
    built = [
        entry.stat().st_mtime for entry in _files(os.path.join(package, "_core"), (".so", ".dylib", ".pyd"))
    ]
    if not built:
        return None
    for entry in _files(os.path.join(root, "csrc"), (".c", ".h")):
        if entry.stat().st_mtime > max(built):
            return os.path.relpath(entry.path, root)
    return None


def _files(folder: str, endings: "tuple[str, ...]") -> "list[os.DirEntry]":
    found: list[os.DirEntry] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found += _files(entry.path, endings)
                elif entry.name.endswith(endings):
                    found.append(entry)
    except OSError:
        pass
    return found
