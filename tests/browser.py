# SPDX-License-Identifier: MIT
"""Chromium without a window: opens a page, lets its time run, and gives back what has become of it. Or it is driven:
its DevTools protocol goes over two pipes, which needs no other package."""

import base64
import contextlib
import html
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for found in map(shutil.which, NAMES) if found), None)
needed = pytest.mark.skipif(PROGRAM is None, reason=f"there is no browser: none of {', '.join(NAMES)}")


WATCHDOG_S = 120.0
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-breakpad", "--disable-extensions", "--no-first-run",
    "--force-device-scale-factor=1",
)  # fmt: skip
_WINDOW = "--window-size=1400,1000"


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
        PROGRAM, *_OPTIONS, _WINDOW, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000",
        "--enable-logging=stderr", *more, url,
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


class Driven:
    """One page, in real time. Use it as a context."""

    def __init__(self, folder, size=(1400, 1000)):
        self._command = [
            PROGRAM,
            *_OPTIONS,
            f"--window-size={size[0]},{size[1]}",
            f"--user-data-dir={folder / 'profile'}",
            "--remote-debugging-pipe",
        ]
        self._number = 0
        self._received = b""
        self._session = {}
        self.complaints = []  # errors of the page, and of the browser about it

    def __enter__(self):
        to_it, self._out = os.pipe()
        self._in, from_it = os.pipe()
        # It reads its descriptor 3 and writes 4.
        moved = (
            f"import os, sys; os.dup2({to_it}, 3); os.dup2({from_it}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", moved, *self._command, "about:blank"],
            pass_fds=(to_it, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        targets = self.tell("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        answer = self.tell("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = {"sessionId": answer["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.tell(f"{domain}.enable")
        self.tell("Emulation.setFocusEmulationEnabled", enabled=True)  # as if somebody looked at it
        return self

    def __exit__(self, *_error):
        with contextlib.suppress(AssertionError, OSError):
            self._session = {}
            self.tell("Browser.close")
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def tell(self, method, **parameters):
        """One command, and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(found["params"]["exceptionDetails"])
            elif found.get("method") == "Log.entryAdded":
                self.complaints.append(found["params"]["entry"])
            elif found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]

    def _receive(self):
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], WATCHDOG_S)
            data = os.read(self._in, 1 << 20) if ready else b""
            assert data, "the browser has ended, or says nothing"
            self._received += data
        found, _, self._received = self._received.partition(b"\0")
        return json.loads(found)

    @property
    def exceptions(self):
        """Those that nobody has caught in the page."""
        return [found for found in self.complaints if "exceptionId" in found]

    def open(self, url):
        self.tell("Page.navigate", url=url)

    def evaluate(self, code):
        """The value of some JavaScript; of a promise, what it comes to."""
        answer = self.tell("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code):
        """Wait until some JavaScript is true in the page, whatever page that is by then; it is asked at each frame."""
        deadline = time.monotonic() + WATCHDOG_S
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):  # the page is being replaced by another one
                if found := self.evaluate(f"new Promise(requestAnimationFrame).then(() => ({code}))"):
                    return found
        pytest.fail(f"the page never comes to {code}")

    def picture(self, path):
        """Write what is on the screen as a PNG."""
        path.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"]))

    def told(self, name):
        """Return an attribute in which the page reports its state."""
        return self.evaluate(f"document.documentElement.dataset.{name}")
