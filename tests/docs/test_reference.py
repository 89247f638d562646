# SPDX-License-Identifier: MIT
"""The pages of the reference have everything, once."""

import re
from collections import Counter

import public
from checkout import ROOT, fail_with, files
from spcomm.docs import pages

API = ROOT / "docs" / "reference" / "api"


def test_every_public_name_is_on_one_page():
    marks = [mark for page in API.glob("*.md") for mark in pages.MARK.findall(page.read_text())]
    found = Counter(name for kind, _, table in marks if kind == "api" for name in pages.names_in(table))
    wanted = set(public.objects())
    assert found, "there are no tables of names"
    fail_with(
        [f"{name} is on no page of {API.name}" for name in sorted(wanted - set(found))]
        + [f"{name} is on a page, and is no public name" for name in sorted(set(found) - wanted)]
        + [f"{name} is there {count} times" for name, count in found.items() if count > 1]
    )


def test_every_public_header_has_a_page():
    texts = "".join(page.read_text() for page in (ROOT / "docs" / "reference" / "headers").glob("*.md"))
    headers = [path.name for path in (ROOT / "csrc" / "include" / "spcomm").iterdir()]
    assert headers
    fail_with([f"{name} has no page" for name in headers if f"<!-- header: spcomm/{name} -->\n" not in texts])


def names_of_the_environment():
    """The variables that the sources read or set in the environment, where the name is written out."""
    found = set()
    for path in [*files(".py", ".pyx", below="spcomm"), ROOT / "setup.py"]:
        text = path.read_text()
        found |= set(re.findall(r'"(SPCOMM_[A-Z]+(?:_[A-Z]+)*)"', text))
        found |= set(re.findall(r'environ(?:\.get\(|\.pop\(|\.setdefault\(|\[)"(\w+)"', text))
    for path in files(".c", ".h", below="csrc"):
        text = path.read_text()
        found |= set(re.findall(r'getenv\("(\w+)"\)', text)) | set(
            re.findall(r'VARIABLE "(SPCOMM_\w+)"', text)
        )
    return found


def test_every_environment_variable_is_on_its_page():
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    listed = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
    read = names_of_the_environment()
    assert {"SPCOMM_CODE", "SPCOMM_WAIT", "NO_COLOR", "SPCOMM_REPORT"} <= read
    fail_with(
        [f"{name} is read, and is not on the page" for name in sorted(read - listed)]
        + [
            f"{name} is on the page, and nothing reads it"
            for name in sorted(listed)
            if name[:7] == "SPCOMM_" and name not in read
        ]
    )


def test_the_page_has_the_features_and_the_threads():
    from spcomm._core import segments
    from spcomm.launch.cmdline import environment

    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    for name in [*segments.features(0), *environment.THREADS]:
        assert f"`{name}`" in page
