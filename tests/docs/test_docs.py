# SPDX-License-Identifier: MIT
"""`spcomm docs`: the list, one page, words that mean none, and the pages as a browser gets them."""

import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urljoin, urlsplit

import pytest

from checkout import ROOT, fail_with
from spcomm.docs import browser, pages


def docs(*words):
    return subprocess.run(
        [sys.executable, "-m", "spcomm", "docs", *words], capture_output=True, text=True, timeout=60
    )


@pytest.mark.smoke
def test_the_list_has_all_pages_for_users():
    answer = docs()
    assert (answer.returncode, answer.stderr) == (0, "")
    names = re.findall(r"^(\S+)  ", answer.stdout, re.MULTILINE)
    assert {"index", "tutorial/01_first_program", "howto/room", "reference/api/messages"} <= set(names)
    for name in names:
        text = pages.text(name)
        assert text.startswith("# ") and not pages.MARK.search(text), name


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("4", "tutorial/04_deadlock"),
        ("04_deadlock.md", "tutorial/04_deadlock"),
        ("docs/howto/room.md", "howto/room"),
        ("room", "howto/room"),
        ("internals/room", "internals/room"),
        ("network", "internals/network"),
        ("deadlock", "tutorial/04_deadlock"),  # rather than internals/deadlock
        ("install", "howto/install"),
        ("Tutorial", "tutorial/index"),
        ("howto/", "howto/index"),
        ("colle", "tutorial/02_collectives"),
        ("VS Code", "howto/editors"),
        ("vscode", "howto/editors"),
        ("tutorial/01", "tutorial/01_first_program"),
        ("reference/api/mess", "reference/api/messages"),
    ],
)
def test_a_page_by_its_name(word, name):
    assert pages.named(word) == name
    if word == "4":
        answer = docs(word)
        without_marks = re.sub(r"<!--.*?-->\n", "", pages.text(name))
        assert (answer.returncode, answer.stdout) == (0, without_marks)
        assert "comm.recv(left)" in answer.stdout and "DEADLOCK" in answer.stdout


def test_what_the_site_reads_from_the_package():
    assert "Send an object" in pages.text("reference/api/messages")
    assert "--queue-limit" in pages.text("reference/command")
    assert "SP108" in pages.text("reference/codes")
    assert "spcomm_send" in pages.text("reference/headers/spcomm_h")
    assert "## Rules" in pages.text("internals/changing")


@pytest.fixture
def served(tmp_path):
    """Gets a file from `spcomm docs --browser`, whose browser writes down what it is to open."""
    opened = tmp_path / "opened"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    program.chmod(0o755)
    command = [sys.executable, "-m", "spcomm", "docs", "--browser", "first_program"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": f"{program} %s"}
    )
    url = re.search(r"http://\S+", server.stdout.readline())[0]

    def get(path):
        connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")

    yield url, get
    server.send_signal(signal.SIGINT)
    assert server.wait(60) == 0
    assert opened.read_text() == url


def test_a_browser_gets_the_page_and_nothing_else(served):
    url, get = served
    status, text = get(urlsplit(url).path)
    assert status == 200 and "01_hello" in text and url.startswith("http://127.0.0.1:")
    for path in ("/.git/config", "/docs", "/docs/../.git/config", "/%2e%2e/etc/passwd", "/pyproject.toml"):
        assert get(path)[0] == 404, path


def test_links_between_pages_work_in_a_browser():
    """As HTML, in the folders of the checkout, which are those of a wheel."""
    complaints, count = [], 0
    for name, _title in pages.listed():
        text = browser.rendered(pages.path(name))
        for link in re.findall(r'(?:href|src|srcset)="([^"#]+)(?:#[^"]*)?"', text):
            if not urlsplit(link).scheme:
                count += 1
                target = urljoin(f"/docs/{name}.md", link)
                if not (ROOT / target[1:]).exists() and "deck.html" not in target:
                    complaints.append(f"{name}: {link}")
    assert count > 300
    fail_with(complaints)


def test_anchors_of_headings():
    assert browser.anchor("When a run goes [wrong](x.md), `--perturb`") == "when-a-run-goes-wrong---perturb"
    assert '<h2 id="one-file-many-nodes">' in browser.rendered(pages.path("tutorial/01_first_program"))
