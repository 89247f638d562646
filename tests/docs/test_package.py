# SPDX-License-Identifier: MIT
"""The installed package: version, commands, type stubs."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from checkout import ROOT

HERE = Path(__file__).parent


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=150, **options
    )


@pytest.mark.smoke
def test_versions_agree():
    import spcomm

    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (metadata.version("spcomm"), spcomm.__version__) == (wanted, wanted)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None and cited[1] == wanted
    recipe = ROOT / ".github" / "conda" / "recipe.yaml"  # not in a source package
    assert not recipe.exists() or f'version: "{wanted}"' in recipe.read_text()


def test_what_only_a_communicator_has_is_said():
    import spcomm

    assert spcomm.Comm is not None
    with pytest.raises(
        AttributeError, match=r"no attribute 'rank'; write comm = spcomm.startup\(\), then comm.rank"
    ):
        spcomm.rank
    with pytest.raises(AttributeError, match=r"no attribute 'rnk'$"):
        spcomm.rnk


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Get_rank", "; in spcomm mpi4py's Get_rank() is comm.rank"),
        ("isend", "; in spcomm mpi4py's isend() is comm.send(), which copies"),
        ("Isend", "; in spcomm mpi4py's Isend() is comm.send(), which copies"),
        ("Allreduce", "; in spcomm mpi4py's Allreduce() is comm.allreduce(), also for arrays"),
        ("sise", ""),
        ("Ibcast", "; in spcomm mpi4py's Ibcast() is comm.bcast(), without the i"),
        ("Alltoallw", "; in spcomm mpi4py's Alltoallw() is comm.alltoall()"),
        ("Create_cart", "; in spcomm mpi4py's Create_cart() is arithmetic with comm.rank"),
        ("Get_processor_name", "; in spcomm mpi4py's Get_processor_name() is platform.node()"),
        ("Spawn", "; in spcomm mpi4py's Spawn() is spcomm run -n N"),
    ],
)
def test_names_of_mpi4py_are_recognized(name, words):
    import spcomm

    with pytest.raises(AttributeError) as caught:
        getattr(spcomm.startup(), name)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"'Comm' object has no attribute {name!r}{words}")
    assert words or str(caught.value).endswith("'")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ANY_SOURCE", "; in spcomm mpi4py's ANY_SOURCE is spcomm.ANY"),
        ("MPI", "; in spcomm mpi4py's MPI is comm = spcomm.startup()"),
        ("COMM_WORLD", "; in spcomm mpi4py's COMM_WORLD is comm = spcomm.startup()"),
        ("Wtime", "; in spcomm mpi4py's Wtime() is time.perf_counter()"),
        ("Status", "; in spcomm mpi4py's Status is comm.recv_message()"),
        ("Comn", ""),
    ],
)
def test_names_of_the_module_of_mpi4py_are_recognized(name, words):
    import spcomm

    with pytest.raises(AttributeError) as caught:
        getattr(spcomm, name)
    assert str(caught.value).startswith(f"module 'spcomm' has no attribute {name!r}{words}")
    assert words or str(caught.value).endswith("'")


def test_every_method_that_a_hint_names_exists():
    import spcomm
    from spcomm._core import names
    from spcomm._core.comm import Comm

    for hint in names._MPI.values():
        assert all(hasattr(Comm, name) for name in re.findall(r"\bcomm\.(\w+)", hint)), hint
        assert all(hasattr(spcomm, name) for name in re.findall(r"\bspcomm\.(\w+)", hint)), hint


def test_errors_go_by_the_names_that_programs_catch():
    import pickle

    import spcomm

    names = [name for name in spcomm.__all__ if name.endswith("Error")]
    assert {getattr(spcomm, name).__module__ for name in names} == {"spcomm"}
    error = pickle.loads(pickle.dumps(spcomm.NodeLostError("gone")))
    assert type(error) is spcomm.NodeLostError and error.args == ("gone",)


@pytest.mark.smoke
def test_every_public_name_can_be_had():
    import spcomm

    assert [name for name in spcomm.__all__ if getattr(spcomm, name, None) is None] == []
    assert set(spcomm.__all__) <= set(dir(spcomm))


@pytest.mark.smoke
def test_both_commands_answer(tmp_path):
    script = Path(sys.executable).parent / "spcomm"
    for command in ([script], [sys.executable, "-m", "spcomm"]):
        answer = run(*command, "--help", cwd=tmp_path)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert all(word in answer.stdout for word in ("run", "demo", "bench"))


@pytest.mark.smoke
def test_a_first_program_runs(tmp_path):
    program = tmp_path / "first.py"
    program.write_text("import spcomm\ncomm = spcomm.startup()\nprint(comm.global_sum(comm.rank))\n")
    answer = run(sys.executable, "-m", "spcomm", "run", "-n", "4", "--no-label", program, cwd=tmp_path)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "6\n" * 4, "")


@pytest.mark.parametrize(("module", "names"), [("comm", ["Comm"]), ("simtime", ["SimTime"])], ids=str)
def test_editors_show_the_docstrings_of_the_modules(module, names):
    """In an editable install, too: an editor reads the stub beside the module."""
    found = importlib.import_module(f"spcomm._core.{module}")
    stub = ast.parse(Path(found.__file__).with_name(f"{module}.pyi").read_text())
    compared = 0
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and node.name in names:
            here = getattr(found, node.name)
            assert ast.get_docstring(node) == inspect.getdoc(here)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    assert ast.get_docstring(inner) == inspect.getdoc(getattr(here, inner.name)), inner.name
                    compared += 1
    assert compared


@pytest.mark.parametrize(
    ("system", "library", "machine", "target"),
    [
        ("linux", "glibc", "x86_64", "manylinux_2_28_x86_64"),
        ("linux", "glibc", "aarch64", "manylinux_2_28_aarch64"),
        ("linux", "", "x86_64", "musllinux_1_2_x86_64"),
        ("linux", "glibc", "riscv64", None),
        ("darwin", "", "x86_64", None),
    ],
)
def test_the_wheel_of_this_machine(monkeypatch, system, library, machine, target):
    wheels = script("cross-wheels")
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(wheels.platform, "libc_ver", lambda: (library, ""))
    monkeypatch.setattr(wheels.platform, "machine", lambda: machine)
    if target:
        assert wheels.this_machine() == target
    else:
        with pytest.raises(SystemExit, match="for which it builds no wheel; `make wheel` may"):
            wheels.this_machine()


def script(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_carries_what_the_checkout_has(tmp_path):
    """Modules, the page of traces, headers, examples, exercises, documents: nothing is listed by name in the build."""
    pytest.importorskip("setuptools")
    answer = run(sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", tmp_path, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    packed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    wanted = script("check-packages").copied_files()
    examples = {
        "spcomm/py.typed",
        "spcomm/trace/page/page.html",
        "spcomm/include/spcomm/spcomm.h",
        "spcomm/data/exercises/01_hello/check.py",
        "spcomm/data/docs/howto/install.md",
        "spcomm/data/docs/pictures/timeline-light.png",
        "spcomm/data/docs/tutorial/listings/01_hello.py",
        "spcomm/data/README.md",
    }
    assert examples <= wanted and len(wanted) > 400
    assert wanted - packed == set()


@pytest.mark.parametrize(
    ("policy", "target", "good"),
    [
        ("manylinux_2_17_x86_64", "manylinux_2_28_x86_64", True),
        ("manylinux_2_28_aarch64", "manylinux_2_28_aarch64", True),
        ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", False),
        ("manylinux_2_100_x86_64", "manylinux_2_28_x86_64", False),
        ("musllinux_1_2_x86_64", "manylinux_2_28_x86_64", False),
        ("linux_x86_64", "manylinux_2_28_x86_64", False),
    ],
)
def test_what_auditwheel_finds_is_compared_with_the_name(policy, target, good):
    assert script("cross-wheels").fits(policy, target) is good


def stubs_alone(package, folder):
    """Copies the stubs and nothing else, so that only they are taken for the truth; returns the modules without."""
    without = []
    for path in package.rglob("*"):
        module = path.parent if path.stem == "__init__" else path.with_name(path.name.partition(".")[0])
        if path.suffix == ".pyi":
            copy = folder / "spcomm" / path.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        elif path.suffix in (".py", ".so"):
            stubs = [module / "__init__.pyi", module.with_suffix(".pyi")]
            if not any(stub.exists() for stub in stubs):
                name = ".".join(["spcomm", *module.relative_to(package).parts])
                without.append(re.escape(name) + (r"(\.\w+)?" if path.stem == "__init__" else r"(\..*)?"))
    for parent in [path for path in folder.rglob("*") if path.is_dir()]:
        (parent / "__init__.pyi").touch()
    return without


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_stubs_match_the_module(tmp_path):
    pytest.importorskip("mypy.stubtest")
    package = Path(__import__("spcomm").__file__).parent
    without = stubs_alone(package, tmp_path / "stubs")
    assert "spcomm" not in without, "there is no spcomm/__init__.pyi"
    allowed = tmp_path / "allowed"
    allowed.write_text((HERE / "stubtest-allowlist.txt").read_text() + "\n".join(without) + "\n")
    # Not from the checkout: mypy would take the sources there for the stubs.
    environment = {**os.environ, "MYPYPATH": str(tmp_path / "stubs"), "PYTHONPATH": str(package.parent)}
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "spcomm",
        "--allowlist",
        allowed,
        "--ignore-unused-allowlist",
    ]
    answer = run(*command, cwd=tmp_path, env=environment)
    if answer.returncode != 0:
        pytest.fail(answer.stdout + answer.stderr, pytrace=False)


FOLDERS = """
import setuptools
from distutils.core import run_setup

found = run_setup("setup.py", stop_after="init")
pip = found.get_command_obj("build")
pip.build_temp, pip.build_lib = "pip/temp", "pip/lib"
found.get_command_obj("build_ext").editable_mode = {editable}
found.get_command_obj("editable_wheel").mode = {mode!r}
for name in ("build_clib", "build_ext"):
    command = found.get_command_obj(name)
    command.ensure_finalized()
    print(command.build_temp.startswith("pip/"), getattr(command, "build_lib", "").startswith("pip/"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "editable, mode, said",
    [
        (True, None, ["False False", "False False"]),
        (True, "strict", ["True False", "True True"]),
        (False, None, ["True False", "True True"]),
    ],
)
def test_an_editable_install_keeps_what_it_compiles(editable, mode, said):
    """Else `make` compiles everything twice: pip deletes its own folders."""
    pytest.importorskip("setuptools")
    answer = run(sys.executable, "-c", FOLDERS.format(editable=editable, mode=mode), cwd=ROOT)
    assert answer.stdout.split("\n")[:2] == said, answer
