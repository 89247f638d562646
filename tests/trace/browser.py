# SPDX-License-Identifier: MIT
"""Chromium without a window: opens a page, lets its time run, and gives back what has become of it."""

import html
import re
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for found in map(shutil.which, NAMES) if found), None)
needed = pytest.mark.skipif(PROGRAM is None, reason=f"there is no browser: none of {', '.join(NAMES)}")


class Opened:
    """A page after its scripts have run."""

    def __init__(self, document, log):
        self.document = document
        self.log = log
        [head] = re.findall(r"<html[^>]*>", document)
        self.told = {
            name: html.unescape(value) for name, value in re.findall(r'data-([a-z-]+)="([^"]*)"', head)
        }

    def number(self, name):
        return float(self.told[name])

    def complaints(self):
        """The lines that the page, or the browser about it, has written to the console."""
        return [line for line in self.log.splitlines() if "CONSOLE" in line]


def browse(url, folder, *more):
    # Time is virtual: it runs as fast as the page needs, and the browser ends when so much of it has passed.
    command = [
        PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-breakpad", "--disable-extensions",
        "--no-first-run", "--force-device-scale-factor=1", f"--user-data-dir={folder / 'profile'}",
        "--window-size=1400,1000", "--virtual-time-budget=4000", "--enable-logging=stderr", *more, url,
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert result.returncode == 0, result.stderr
    return result


def opened(path, folder, fragment=""):
    """The page after it has drawn itself."""
    result = browse(path.as_uri() + fragment, folder, "--dump-dom")
    return Opened(result.stdout, result.stderr)


def pictured(path, folder, fragment="", *more):
    """A picture of it: the name of a file."""
    picture = folder / "screen.png"
    result = browse(path.as_uri() + fragment, folder, f"--screenshot={picture}", *more)
    assert "CONSOLE" not in result.stderr, result.stderr
    return picture
