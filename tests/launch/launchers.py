# SPDX-License-Identifier: MIT
"""Other launchers than `spcomm run`: real ones, and one that only sets variables, as Open MPI does."""

import itertools
import os
import sys
import tempfile

import pytest

from forking import Forked
from processes import WATCHDOG_S, Result
from spcomm.bench import peers

LAUNCHERS = ("variables", "mpich", "openmpi")
_jobs = itertools.count()
# Such a launcher as a process: it gets the variables of each of its own.
STARTS = """
import ast, os, subprocess, sys
places = ast.literal_eval(sys.argv[1])
for process in [subprocess.Popen(sys.argv[2:], env={**os.environ, **place}) for place in places]:
    process.wait()
"""


class Outcome(Result):
    """As of one process; `codes` are those of all, or the launcher's."""

    def __init__(self, codes, out, err):
        super().__init__(codes[0], out, err)
        self.codes = set(codes)

    def said(self, text):
        """The number of lines on stderr that begin with this."""
        return sum(line.startswith(text) for line in self.err.splitlines())


class Launched(Forked):
    """Runs scripts as several processes of a launcher, which is none of ours."""

    def __init__(self, folder, launcher):
        super().__init__(folder)
        self.launcher = launcher
        self.contender = getattr(peers, launcher)() if launcher != "variables" else None
        if self.contender is not None and self.contender.missing:
            pytest.skip(self.contender.missing)

    def run(self, nodes, text, *arguments, env=None):
        """The outcome of a script on that many nodes."""
        return self.execute(nodes, self.command(self.script(text), *arguments), env)

    def execute(self, nodes, command, env=None):
        """The same with a command."""
        if self.contender is None:
            return self._with_variables(nodes, command, env or {})
        line = [*self.contender.command, *self.contender.crowded, "-n", str(nodes), *command]
        result = self.call(*line, env={**self.contender.environment, **(env or {})})
        return Outcome([result.code], result.raw, result.raw_err)

    def start(self, nodes, text):
        """A launcher that runs a script. Its stdout is a pipe."""
        words = self.command(self.script(text))
        if self.contender is None:
            job = f"test-{os.getpid()}-{next(_jobs)}"
            places = [variables(rank, nodes, job) for rank in range(nodes)]
            return self.popen([sys.executable, "-c", STARTS, repr(places), *words], stderr=None)
        line = [*self.contender.command, *self.contender.crowded, "-n", str(nodes), *words]
        return self.popen(line, self.contender.environment, stderr=None)

    def _with_variables(self, nodes, command, env):
        job = f"test-{os.getpid()}-{next(_jobs)}"
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = [
                self.popen(command, variables(rank, nodes, job) | env, stdout=out, stderr=err)
                for rank in range(nodes)
            ]
            codes = [process.wait(WATCHDOG_S) for process in started]
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return Outcome(codes, *texts)


def variables(rank, nodes, job):
    """The variables of one process."""
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    places = {
        f"OMPI_COMM_WORLD_{name}": str(value) for name, value in zip(names, (rank, nodes) * 2, strict=True)
    }
    return places | {"PMIX_NAMESPACE": job}
