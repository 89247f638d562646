# SPDX-License-Identifier: MIT
"""Runs scripts whose first lines fork, by plain Python: no launcher."""

import sys

from launching import Launch

HEAD = """
import os, random, signal, sys, time
import spcomm
comm = spcomm.startup(local_nodes={nodes})
"""


class Forked(Launch):
    """As Launch, but what is started is Python itself."""

    def environment(self, extra=None):
        """Without threads of NumPy's library of linear algebra, which take longer to start than the nodes."""
        return {"OPENBLAS_NUM_THREADS": "1", **super().environment(extra)}

    def command(self, *arguments, python=()):
        return [sys.executable, *python, *map(str, arguments)]

    def begin(self, nodes, text, head=HEAD, **more):
        """Start a script without waiting for its end."""
        path = self.script(text)
        path.write_text(head.format(nodes=nodes) + path.read_text())
        return self.start(path, **more)

    def nodes(self, nodes, text, head=HEAD, **more):
        return self.finish(self.begin(nodes, text, head, **more))


def well(result):
    assert (result.code, result.err) == (0, ""), result
    return result


def refusal(result, *words):
    """The program ended with a ConfigError of startup that has these words."""
    assert result.code == 1, result
    assert result.last.startswith("spcomm.ConfigError: startup("), result
    for word in words:
        assert word in result.last, result
