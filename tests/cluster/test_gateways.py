# SPDX-License-Identifier: MIT
"""`--link mpi` in jobs of Slurm: srun starts the gateways. `make mpi-link` has the MPIs that it needs."""

import os
import signal

import pytest

import nodepool
from processes import name
from spcomm.bench import peers

pytestmark = pytest.mark.slow

# The interface of srun by which each MPI starts.
INTERFACES = {"mpich": "pmi2", "openmpi": "pmix"}
SAYS = """
    import os, socket, spcomm
    comm = spcomm.startup()
    other = (comm.rank + 2) % 4
    comm.send(b"x" * 3_000_000, other)
    assert len(comm.recv(other)) == 3_000_000
    print(comm.rank, comm.box, socket.gethostname(), comm.allreduce(comm.rank), flush=True)
"""
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    comm.barrier()
    open(f"node{comm.rank}", "w").close()
    signal.pause()
"""


class Gateways:
    """Runs scripts in jobs of two machines; their gateways are processes of an MPI."""

    def __init__(self, cluster, slurm, contender):
        self.cluster, self.contender = cluster, contender
        self.interface = INTERFACES[contender.name]
        tried = slurm("srun", "--quiet", f"--mpi={self.interface}", "-N1", "-n1", "true")
        if "can not load" in tried.stderr:
            pytest.skip(f"srun has no {self.interface}; on Debian: apt install libpmix-dev")

    def submit(self, text, *options, **variables):
        # Pretend machines have one kernel, so MPI would expect that they share memory.
        found = {**self.contender.environment, **self.contender.remote_environment}
        found |= {"SLURM_MPI_TYPE": self.interface, **variables}
        return self.cluster.submit("--link", "mpi", *options, self.cluster.script(text), env=found)


@pytest.fixture(params=peers.MPIS)
def gateways(request, cluster, slurm):
    if missing := nodepool.missing_mpi(request.param):
        pytest.skip(missing)
    return Gateways(cluster, slurm, peers.MPIS[request.param]())


def test_messages_over_mpi(gateways):
    result = gateways.submit(SAYS, "--stats=all").result()
    assert result.code == 0, result
    assert sorted(result.lines) == ["0 0 box0 6", "1 0 box0 6", "2 1 box1 6", "3 1 box1 6"], result
    counted = result.err.partition("spcomm: frames between gateways")[2]
    assert [line.split()[:2] for line in counted.splitlines()[2:]] == [["0-1", "out"], ["0-1", "in"]], result


def test_an_interface_of_another_mpi(gateways):
    """The remedy is named, and what MPI says of it."""
    [other] = set(INTERFACES.values()) - {gateways.interface}
    result = gateways.submit(SAYS, SLURM_MPI_TYPE=other).result()
    assert result.code in (1, 125) and "Traceback" not in result.out, result
    if "can not load" in result.last:  # there is no other
        assert f"mpi/{other}" in result.last, result
        return
    assert "SLURM_MPI_TYPE to pmix (Open MPI) or pmi2 (MPICH)" in result.last, result
    if gateways.contender.name == "mpich":
        assert "unsupported PMI version" in result.last, result
    else:
        assert "srun starts processes of another MPI: of its 2 processes each finds 1" in result.last, result


@pytest.mark.parametrize("box", [0, 1])
def test_a_killed_gateway(gateways, box):
    job = gateways.submit(WAITS)
    job.wait_for(*[f"node{rank}" for rank in range(4)])
    [gateway] = [pid for pid in gateways.cluster.alive() if name(pid) == f"spcomm gw {box}"]
    os.kill(gateway, signal.SIGKILL)
    result = job.result()
    where = ["the gateway of box 0", "host box1: the gateway there"][box]
    assert result.code == 125 and f"{where} was killed by SIGKILL" in result.last, result


def test_a_job_that_is_cancelled(gateways, slurm):
    job = gateways.submit(WAITS)
    job.wait_for(*[f"node{rank}" for rank in range(4)])
    assert slurm("scancel", job.number).returncode == 0
    result = job.result()
    assert result.code == 143 and "told to end by SIGTERM (exit code 143)" in result.last, result
