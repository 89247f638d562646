# SPDX-License-Identifier: MIT
"""Chromium without a window, told what to do over its debugging port, as JavaScript and screenshots."""

import asyncio
import base64
import contextlib
import json
import re
import subprocess

from browser import PROGRAM  # tests/trace has the one that needs no telling

WATCHDOG_S = 150.0


class Chromium:
    """One page. Use it as an asynchronous context."""

    def __init__(self, folder, size=(1400, 1800)):
        self._command = [
            PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-breakpad", "--disable-extensions",
            "--no-first-run", "--force-device-scale-factor=1", f"--user-data-dir={folder / 'profile'}",
            f"--window-size={size[0]},{size[1]}", "--remote-debugging-port=0", "--remote-allow-origins=*",
            "about:blank",
        ]  # fmt: skip
        self._number = 0
        self.exceptions = []  # that nobody has caught in the page

    async def __aenter__(self):
        from tornado.httpclient import AsyncHTTPClient
        from tornado.websocket import websocket_connect

        self._process = subprocess.Popen(
            self._command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self._socket = None
        for line in self._process.stderr:
            if found := re.match(r"DevTools listening on ws://([^/]+)/", line):
                break
        else:
            raise AssertionError("the browser has ended")
        answer = await AsyncHTTPClient().fetch(f"http://{found[1]}/json/list")
        [page] = [one for one in json.loads(answer.body) if one["type"] == "page"]
        self._socket = await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=1 << 28)
        await self.tell("Page.enable")
        await self.tell("Runtime.enable")
        await self.tell("Emulation.setFocusEmulationEnabled", enabled=True)  # as if somebody looked at it
        return self

    async def __aexit__(self, *_error):
        if self._socket is not None:
            with contextlib.suppress(Exception):
                await self.tell("Browser.close")
            self._socket.close()
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()

    async def tell(self, method, **parameters):
        """One command, and its answer."""
        self._number += 1
        number = self._number
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            text = await asyncio.wait_for(self._socket.read_message(), WATCHDOG_S)
            assert text is not None, "the browser has ended"
            message = json.loads(text)
            if message.get("method") == "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.exceptions.append(details.get("exception", {}).get("description", details["text"]))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    async def open(self, url):
        await self.tell("Page.navigate", url=url)

    async def evaluate(self, code):
        """The value of some JavaScript; of a promise, what it comes to."""
        answer = await self.tell("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, code):
        """Wait until some JavaScript is true in the page, whatever page that is by then; it is asked at each frame."""
        deadline = asyncio.get_running_loop().time() + WATCHDOG_S
        while True:
            with contextlib.suppress(AssertionError):  # the page is being replaced by another one
                if found := await self.evaluate(f"new Promise(requestAnimationFrame).then(() => ({code}))"):
                    return found
            assert asyncio.get_running_loop().time() < deadline, f"the page never comes to {code}"

    async def picture(self, path):
        answer = await self.tell("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))
        return path
