# SPDX-License-Identifier: MIT
"""Limits, descriptors, streams and the umask that a run inherits from the process that starts it."""

import resource
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")

OK = "print('ok', comm.global_sum(1))"


class Surface:
    """One of the ways to have nodes."""

    def __init__(self, kind, launch, forked):
        self.kind = kind
        self.boxes = ("--boxes", 2) if kind == "boxes" else ()
        self._launch, self._forked = launch, forked

    def start(self, nodes, text, options=(), **more):
        """Start a program whose nodes run these lines; `comm` is their communicator."""
        if self.kind in ("run", "boxes"):
            script = self._launch.script(f"import spcomm\ncomm = spcomm.startup()\n{text}")
            return self._launch.start("-n", nodes, *self.boxes, *options, script, **more)
        head = {
            "local_nodes": f"import spcomm\ncomm = spcomm.startup(local_nodes={nodes})\n{text}",
            "Cluster": f"import spcomm\nwith spcomm.Cluster({nodes}) as cluster:\n    cluster.execute({text!r})",
        }
        return self._forked.start(self._forked.script(head[self.kind]), **more)

    def __call__(self, nodes, text, **more):
        return self._launch.finish(self.start(nodes, text, **more))


@pytest.fixture(params=["run", "boxes", "local_nodes", "Cluster"])
def surface(request, launch, forked):
    return Surface(request.param, launch, forked)


def limiting(what, value):
    """For `preexec_fn`: a limit as `ulimit` sets it."""
    return lambda: resource.setrlimit(what, (value, value))


# ---- resource limits


@pytest.mark.parametrize(
    ("what", "value", "nodes"),
    [
        (resource.RLIMIT_AS, 1_000_000 << 10, 4),
        (resource.RLIMIT_AS, 600_000 << 10, 2),
        (resource.RLIMIT_FSIZE, 1 << 20, 2),
        (resource.RLIMIT_NOFILE, 64, 4),
        (resource.RLIMIT_STACK, 256 << 10, 2),
        (resource.RLIMIT_MEMLOCK, 0, 2),
    ],
    ids=["v-1G", "v-600M", "f-1M", "n-64", "s-256K", "l-0"],
)
def test_a_run_fits_into_the_limits(surface, what, value, nodes):
    result = surface(nodes, OK, preexec_fn=limiting(what, value))
    assert (result.code, result.out.count(f"ok {nodes}")) == (0, nodes), result


def test_a_limit_of_files_that_is_too_small_is_named(surface):
    result = surface(16, OK, preexec_fn=limiting(resource.RLIMIT_FSIZE, 64 << 10))
    assert "ok" not in result.out and result.code != 0
    assert "raise the limit ulimit -f 64 (64K)" in result.err, result
    assert "Traceback" not in result.err or surface.kind in ("local_nodes", "Cluster")


def test_a_limit_of_descriptors_that_is_too_small_is_named(launch):
    script = launch.script("import spcomm\nspcomm.startup()")
    limit = limiting(resource.RLIMIT_NOFILE, 24)
    result = launch.finish(launch.start("-n", 16, script, preexec_fn=limit))
    assert result.code == 125 and result.last.endswith("raise the limit ulimit -n 24"), result


def test_a_size_beyond_the_limit_is_refused_by_its_name(launch):
    limit = limiting(resource.RLIMIT_AS, 1_000_000 << 10)
    script = launch.script("import spcomm\nspcomm.startup()")
    result = launch.finish(launch.start("-n", 4, "--arena", "300M", script, preexec_fn=limit))
    assert result.code == 125
    assert "a quarter of the memory that ulimit -v allows (976.6M); try --arena " in result.err, result
