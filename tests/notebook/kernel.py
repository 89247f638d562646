# SPDX-License-Identifier: MIT
"""A real Jupyter kernel, as a notebook talks to it."""

import re
from queue import Empty

WATCHDOG_S = 90.0
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


class Cell:
    """The outcome of one cell."""

    def __init__(self):
        self.out = self.err = self.error = ""
        self.ename = ""
        self.result = None
        self.pictures = 0
        self.order = []  # of streams and pictures
        self.updates = []  # of a picture that changes: its data
        self.number = 0  # In [number]

    def take(self, kind, content):
        if kind == "stream":
            if content["name"] == "stdout":
                self.out += content["text"]
            else:
                self.err += content["text"]
            self.order.append(content["text"])
        elif kind == "execute_input":
            self.number = content["execution_count"]
        elif kind == "execute_result":
            self.result = content["data"]["text/plain"]
        elif kind == "display_data" and "image/png" in content["data"]:
            self.pictures += 1
            self.order.append("picture")
        elif kind == "update_display_data":
            self.updates.append(content["data"])
        elif kind == "error":
            self.ename = content["ename"]
            self.error = _COLORS.sub("", "\n".join(content["traceback"]))

    def __repr__(self):
        return f"Cell(out={self.out!r}, err={self.err!r}, result={self.result!r}, error={self.error!r})"


class Kernel:
    """Runs cells one after the other."""

    def __init__(self):
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3")

    def run(self, code, interrupt_at=None, updated=None):
        """Run a cell to its end. `interrupt_at`: press the button when this is in the output. `updated`: is called with
        each new form of a picture."""
        request = self.client.execute(code)
        cell = Cell()
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=WATCHDOG_S)
            except Empty:
                raise AssertionError(f"the cell does not end: {code}\n{cell}") from None
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            cell.take(message["msg_type"], content)
            if updated and message["msg_type"] == "update_display_data":
                updated(content["data"])
            if interrupt_at and interrupt_at in cell.out + cell.err:
                self.manager.interrupt_kernel()
                interrupt_at = None
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return cell

    def complete(self, code):
        """The words that a notebook offers for the end of some code."""
        return self._ask(self.client.complete, code, "complete_reply")["matches"]

    def inspect(self, code):
        """The help that a notebook shows at Shift-Tab; empty: none."""
        return self._ask(self.client.inspect, code, "inspect_reply")["data"].get("text/plain", "")

    def _ask(self, ask, code, kind):
        request = ask(code, len(code))
        while True:
            message = self.client.get_shell_msg(timeout=WATCHDOG_S)
            if message["parent_header"].get("msg_id") == request:
                assert message["msg_type"] == kind
                return message["content"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.client.context.destroy()
