# SPDX-License-Identifier: MIT
"""mpi4py in a Cluster, whose nodes go from one run to the next: each call has a world of its own."""

import pytest

import spcomm
from owners import Owner

pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'mpi4py>=4.1'")

IMPORT = "from mpi4py import MPI\nimport numpy as np\nworld = MPI.COMM_WORLD\nmine = world.rank"


@pytest.fixture
def started(cluster):
    """Three nodes that have loaded the library in an earlier cell."""
    cluster.execute(IMPORT)
    return cluster


def works(cluster):
    """Whether messages and collectives of all three nodes work, also those for which mpi4py keeps a duplicate."""
    ring = "world.sendrecv(mine, (mine + 1) % 3, source=(mine - 1) % 3), world.allreduce(mine), MPI.COMM_SELF.size"
    return cluster.execute(ring) == [(2, 3, 1), (0, 3, 1), (1, 3, 1)]


def test_cells_have_the_world_of_their_own_run(started):
    assert (
        started.execute("total = np.zeros(1, int)\nworld.Allreduce(np.array([mine]), total)\nint(total[0])")
        == [3] * 3
    )
    assert started.execute("mine, int(total[0])") == [(0, 3), (1, 3), (2, 3)]
    assert (
        started.execute("import spcomm\ncomm.global_sum(world.size), spcomm.startup() is comm")
        == [(9, True)] * 3
    )


def test_functions_have_it_too(cluster):
    def work(comm):
        from mpi4py import MPI

        return MPI.COMM_WORLD.allgather(comm.rank)

    assert cluster.run(work) == cluster.run(work) == [[0, 1, 2]] * 3


def test_nodes_here_and_elsewhere(placed):
    placed.execute(IMPORT)
    assert works(placed)
    assert works(placed)


def test_an_error_in_a_cell(started):
    with pytest.raises(
        spcomm.ClusterError, match="node 1 raised ValueError; nodes 0, 2 raised Exception because"
    ):
        started.execute("if mine == 1: raise ValueError('here')\nworld.barrier()")
    assert works(started)
    with pytest.raises(spcomm.ClusterError, match="MPI_ERR_RANK: MPI_Send: dest=3: there is no rank 3"):
        started.execute("world.send(1, dest=3)")
    assert works(started)


def test_a_deadlock_in_a_cell(started):
    with pytest.raises(spcomm.DeadlockError) as error:
        started.execute("\nworld.Recv(np.zeros(1), source=(mine + 1) % 3)")
    assert "nodes 0-2  Recv(" in str(error.value) and "code:2" in str(error.value)
    assert works(started)


def test_a_request_that_a_cell_leaves_open_is_reported_once(started, capfd):
    started.execute("request = world.irecv(source=MPI.ANY_SOURCE, tag=9)")
    assert works(started)
    started.close()
    warnings = [line for line in capfd.readouterr().err.splitlines() if "got no message" in line]
    assert len(warnings) == 3, warnings


def test_objects_of_an_earlier_cell(started):
    started.execute(
        "row = world.Split(mine % 2)\n"
        "window = MPI.Win.Allocate(8, comm=world)\n"
        "memory = np.frombuffer(window, float)\n"
        "memory[0] = mine\n"
        "vector = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()"
    )
    with pytest.raises(spcomm.ClusterError, match=r"MPI_ERR_COMM: .* or is of an earlier cell: each cell"):
        started.execute("row.Get_rank()")
    with pytest.raises(spcomm.ClusterError, match="MPI_ERR_WIN"):
        started.execute("window.Fence()")
    assert started.execute("float(memory[0]), vector.size") == [(0.0, 16), (1.0, 16), (2.0, 16)]
    assert works(started)


def test_finalize_is_for_its_cell(started):
    assert started.execute("MPI.Finalize()\nMPI.Is_finalized()") == [True] * 3
    assert started.execute("MPI.Is_finalized()") == [False] * 3
    assert works(started)


def test_items_of_map_have_no_world(cluster):
    def alone(item):
        from mpi4py import MPI

        return MPI.COMM_WORLD.size * item

    assert cluster.map(alone, range(6)) == list(range(6))  # as MPI starts without a launcher
    cluster.execute(IMPORT)
    assert works(cluster)
    with pytest.raises(spcomm.ClusterError, match="this node works alone now: Cluster"):
        cluster.map(alone, range(6))
    assert works(cluster)


CELLS = """
    from IPython.terminal.embed import InteractiveShellEmbed
    shell = InteractiveShellEmbed.instance(banner1="", colors="NoColor")
    shell.run_cell("%load_ext spcomm")
    def run(cell):
        return shell.run_cell(cell, store_history=True).result
    print(run("%%spcomm -n 2\\nfrom mpi4py import MPI\\nworld = MPI.COMM_WORLD\\nworld.allreduce(world.rank)"))
    print(run("%%spcomm\\nworld.allgather(world.rank)"))
"""


@pytest.mark.slow
def test_the_magic():
    pytest.importorskip("IPython", reason="IPython is not installed: pip install ipykernel")
    code, out, err = Owner(CELLS).finish()
    assert code == 0 and out.endswith("[1, 1]\nOut[2]: [[0, 1], [0, 1]]\n[[0, 1], [0, 1]]\n"), (out, err)
