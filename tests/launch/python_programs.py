# SPDX-License-Identifier: MIT
"""Programs that Python starts, or refuses: a table for tests that compare runs with plain Python."""

import os
import py_compile
import zipfile

FACTS = """
import json, os, sys
facts = {"argv": sys.argv, "path0": sys.path[0], "path": sys.path, "name": __name__, "package": __package__,
         "file": globals().get("__file__"), "spec": __spec__ and [__spec__.name, __spec__.origin],
         "loader": getattr(__loader__, "__name__", type(__loader__).__name__), "doc": __doc__,
         "names": sorted(name for name in globals() if name.startswith("__")), "stdin": sys.stdin.read(),
         "flags": list(sys.flags), "warnoptions": sys.warnoptions, "xoptions": sys._xoptions, "cwd": os.getcwd(),
         "orig_argv": sys.orig_argv[-len(sys.argv):]}
print(json.dumps(facts))
"""


def written(launch):
    """Write the programs of all cases."""
    folder = launch.folder
    for name in (
        "plain.py",
        "with a blank.py",
        "-dash.py",
        "sub/inner.py",
        "noending",
        "window.pyw",
        "tool/__main__.py",
        "package/__init__.py",
        "package/__main__.py",
        "package/part.py",
        "-folder/__main__.py",
    ):
        launch.script("" if name == "package/__init__.py" else FACTS, name)
    os.symlink("sub/inner.py", folder / "link.py")
    os.symlink(folder / "sub" / "inner.py", folder / "absolute-link.py")
    os.symlink("../sub/inner.py", folder / "tool" / "link.py")
    os.symlink("../link.py", folder / "sub" / "chain.py")
    os.symlink("tool", folder / "folder-link")
    (folder / os.fsdecode(b"gr\xfcn.py")).write_text(FACTS)
    py_compile.compile(str(folder / "plain.py"), cfile=str(folder / "compiled.pyc"))
    (folder / "compiled").write_bytes((folder / "compiled.pyc").read_bytes())
    (folder / "old.pyc").write_bytes(b"\0\0\r\n" + (folder / "compiled.pyc").read_bytes()[4:])
    for name in ("archive.pyz", "archive.zip", "archive"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("__main__.py", FACTS)
    (folder / "headed.pyz").write_bytes(b"#!/usr/bin/env python3\n" + (folder / "archive.zip").read_bytes())
    with zipfile.ZipFile(folder / "empty.zip", "w") as archive:
        archive.writestr("other.py", FACTS)
    for name, data in SOURCES.items():
        (folder / name).write_bytes(data)
    launch.script(FACTS, "__main__.py")
    launch.script("", "package_without_main/__init__.py")


TEXT = "# gr\xfc\xdfe\nprint('done')\n"
BOM = b"\xef\xbb\xbf"
SOURCES = {
    "latin-1.py": TEXT.encode("latin-1"),
    "latin-1-later.py": b"print('first')\n" * 2000 + "'\xfc'\n".encode("latin-1"),
    "latin-1-declared.py": b"# -*- coding: latin-1 -*-\nprint(ascii('\xfc\xe9'))\n",
    "cp1252-declared.py": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nprint(ascii('\x80'), __file__[-6:])\n",
    "cp1252-as-utf-8.py": "# coding: cp1252\nprint(ascii('\xfc'))\n".encode(),
    "shift-jis-declared.py": "# coding: shift_jis\nprint(ascii('\u30c6\u30b9\u30c8'))\n".encode("shift_jis"),
    "ascii-declared.py": b"# coding: ascii\n# gr\xc3\xbcn\nprint('done')\n",
    "unknown-declared.py": b"# coding: no-such-encoding\nprint('done')\n",
    "utf-8-wrongly-declared.py": b"# coding: utf-8\n# \xfc\nprint('done')\n",
    "bom.py": BOM + b"print('done')\n",
    "bom-and-latin-1.py": BOM + b"# coding: latin-1\nprint('done')\n",
    "bom-and-utf-8.py": BOM + b"# coding: utf-8\nprint(ascii('\xc3\xbc'))\n",
    "utf-16.py": TEXT.encode("utf-16"),
    "utf-16-le.py": TEXT.encode("utf-16-le"),
    "utf-32.py": TEXT.encode("utf-32"),
    "zero.py": b"print('done')\n\0",
    "zero-in-a-text.py": b"print('a\0b')\n",
    "truncated.py": b"print('\xc3\xbc')\n# \xe2\x82",
    "syntax.py": b"print('first')\nif True print()\n",
    "indented.py": b"print('first')\n    print('second')\n",
    "tabs.py": b"if 1:\n        print()\n\tprint()\n",
    "carriage.py": b"print('one')\r\nprint('two')\rprint('three')\n",
    "no-newline.py": b"print('done')",
    "nothing.py": b"",
    "octal.py": b"print(08)\n",
    "open-string.py": b"print('\n",
    "return.py": b"return 1\n",
    "future.py": b"from __future__ import nothing_known\n",
    "raises.py": b"def f():\n    1 / 0\n\nf()\n",
    "latin-1-raises.py": b"# coding: latin-1\ndef f():\n    '\xfc' + 0  # \xfc\n\nf()\n",
    "exits.py": b"# coding: latin-1\n'\xfc'\nraise SystemExit('text')\n",
}  # fmt: skip

FOUND = {
    "script": ["plain.py", "one", "two words"],
    "dotted": ["./plain.py"],
    "above": ["sub/../plain.py"],
    "twice": ["././sub//inner.py"],
    "blank": ["with a blank.py", "--option"],
    "dash": ["--", "-dash.py", "-x"],
    "dash-folder": ["--", "-folder"],
    "no ending": ["noending", "one"],
    "pyw": ["window.pyw"],
    "link": ["link.py", "one"],
    "absolute link": ["absolute-link.py"],
    "link in a folder": ["tool/link.py"],
    "chain": ["sub/chain.py"],
    "bytes": [os.fsdecode(b"gr\xfcn.py"), os.fsdecode(b"\xff")],
    "pyc": ["compiled.pyc", "one"],
    "pyc without its name": ["compiled"],
    "pyz": ["archive.pyz", "one"],
    "zip": ["archive.zip"],
    "zip below": ["sub/../archive.zip"],
    "zip without its name": ["archive"],
    "zip with a first line": ["headed.pyz"],
    "folder": ["tool", "one"],
    "folder with a slash": ["./tool/"],
    "folder link": ["folder-link"],
    "here": ["."],
    "module": ["-m", "package.part", "one"],
    "package": ["-m", "package", "-m", "two"],
    "code": ["-c", FACTS, "-c", "one"],
    "standard input": ["-", "one"],
}
STDIN = {"standard input": FACTS.encode()}
REFUSED = {name: [name] for name in SOURCES} | {
    "old pyc": ["old.pyc"],
    "empty zip": ["empty.zip"],
    "code with an error": ["-c", "if True print()"],
    "code that raises": ["-c", "def f():\n    1 / 0\nf()"],
    "package without main": ["-m", "package_without_main"],
    "input in Latin-1": ["-"],
    "input in Latin-1, declared": ["-"],
    "input that raises": ["-"],
    "no input": ["-"],
}
STDIN |= {
    "input in Latin-1": SOURCES["latin-1.py"],
    "input in Latin-1, declared": SOURCES["latin-1-declared.py"],
    "input that raises": SOURCES["raises.py"],
    "no input": b"",
}
