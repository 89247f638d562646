# SPDX-License-Identifier: MIT
"""The commands around the MPI library: `mpicc`, `mpicxx`, `mpiexec`, and the checks of `spcomm run`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launching import stand_in_for_ssh
from spcomm import mpi
from spcomm.launch import mpiexec
from spcomm.launch.cmdline import table
from spcomm.mpi import bindings, linked

C = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *path = getenv("LD_LIBRARY_PATH");
    printf("%d of %d, path %s\\n", rank, size, path != NULL ? path : "none");
    return MPI_Finalize();
}
"""
CXX = """
#include <mpi.h>
#include <iostream>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::cout << "hello " << rank << std::endl;
    return MPI_Finalize();
}
"""
OTHER = "void MPI_Init(void) {} void MPI_Comm_rank(void) {} void MPI_Comm_size(void) {} void MPI_Finalize(void) {}"

linux = pytest.mark.linux("it reads executables in ELF")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")


def spcomm(*words, cwd=None, env=None):
    command = [sys.executable, "-m", "spcomm", *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120
    )


def compiled(launch, *words, name="hello"):
    """An executable of the program above."""
    launch.script(C, f"{name}.c")
    done = spcomm("mpicc", f"{name}.c", "-o", name, *words, cwd=launch.folder)
    assert done.returncode == 0, done.stderr
    return f"./{name}"


def linked_by_hand(launch, *words, name="hello"):
    """An executable without RPATH, linked by these words."""
    source = launch.script(C, f"{name}.c")
    line = ["cc", source, f"-I{mpi.folder('include')}", *words, "-o", launch.folder / name]
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return f"./{name}"


def other_mpi(launch, name):
    """The folder of another MPI's library."""
    folder = launch.folder / "other"
    folder.mkdir(exist_ok=True)
    source = launch.script(OTHER, "other.c")
    line = ["cc", "-shared", "-fPIC", source, f"-Wl,-soname,{name}", "-o", folder / name]
    subprocess.run([str(word) for word in line], check=True)
    return folder


# ---- compilers


@needs_cc
@pytest.mark.smoke
def test_a_program_in_c(launch):
    result = launch("-n", 2, compiled(launch))
    assert (result.code, sorted(result.lines)) == (0, ["0 of 2, path none", "1 of 2, path none"]), result


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler: c++")
def test_a_program_in_cxx(launch):
    launch.script(CXX, "hello.cpp")
    done = spcomm("mpicxx", "-Wall", "-Wextra", "-Werror", "hello.cpp", "-o", "hello", cwd=launch.folder)
    assert done.returncode == 0, done.stderr
    assert sorted(launch("-n", 2, "./hello").lines) == ["hello 0", "hello 1"]


@pytest.mark.parametrize(
    ("words", "has", "has_not"),
    [
        (["-show", "a.c"], ["/include", "a.c", "-lmpi_abi"], ["-show"]),
        (["--showme", "-c", "a.c"], ["/include", "-c a.c"], ["-lmpi_abi"]),
        (["-showme:compile"], ["/include"], ["-lmpi_abi"]),
        (["-compile_info"], ["/include"], ["-lmpi_abi"]),
        (["--showme:link"], ["-lmpi_abi", "/lib"], ["/include"]),
        (["-link-info"], ["-lmpi_abi", "/lib"], ["/include"]),
        (["--showme:command"], ["/other/cc -O"], ["mpi_abi"]),
        (["--showme:libs"], ["mpi_abi"], ["-l"]),
    ],
)
def test_what_a_compiler_shows(tmp_path, words, has, has_not):
    path = tmp_path / "other" / "cc"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    done = spcomm("mpicc", *words, env={"SPCOMM_CC": f"{path} -O", "CC": "mpicc"})
    assert (done.returncode, done.stderr) == (0, "")
    assert all(word in done.stdout for word in has) and not any(word in done.stdout for word in has_not)


WAITS = """
#include <mpi.h>
int main(int argc, char **argv) {
    int rank, theirs;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Recv(&theirs, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
"""


@needs_cc
@pytest.mark.parametrize(("command", "name"), [("mpicc", "waits.c"), ("mpicxx", "waits.cpp")])
def test_a_report_has_the_line_of_a_compiled_program(launch, command, name):
    if command == "mpicxx" and shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler: c++")
    launch.script(WAITS, name)
    done = spcomm(command, name, "-o", "waits", cwd=launch.folder)
    assert (done.returncode, done.stderr) == (0, "")
    done = spcomm("run", "-n", 2, "./waits", cwd=launch.folder)
    assert done.returncode == 99 and f"{name}:7 in main" in done.stderr, done.stderr
    assert "| MPI_Recv(&theirs, 1, MPI_INT, 1 - rank" in done.stderr


def test_a_compiler_that_is_not_installed():
    done = spcomm("mpicxx", "a.cpp", env={"SPCOMM_CXX": "no-compiler"})
    assert done.returncode == 125 and "SPCOMM_CXX is no-compiler, which is not installed" in done.stderr


@needs_cc
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_a_makefile_with_plain_names(launch):
    launch.script(C, "hello.c")
    (launch.folder / "Makefile").write_text(
        "CC = mpicc\nrun: hello\n\tmpirun --allow-run-as-root --oversubscribe -np 2 ./hello\n"
    )
    own = Path(sys.executable).parent
    path = os.pathsep.join([spcomm("config", "--mpi-bin").stdout.strip(), str(own), os.environ["PATH"]])
    line = ["make", "--no-print-directory", "CC=mpicc"]  # which reaches the compiler's environment
    done = subprocess.run(
        line,
        cwd=launch.folder,
        env=launch.environment({"PATH": path}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[-2:]) == ["0 of 2, path none", "1 of 2, path none"]


@needs_cc
@pytest.mark.parametrize("command", ["mpicc", "mpicxx"])
def test_the_plain_names_where_pip_hides_the_package(launch, command):
    """As in an isolated build: the first module on the path takes the installed packages away."""
    (launch.folder / "site").mkdir()
    launch.script(
        "import sys\nsys.path[:] = [path for path in sys.path if path.startswith((sys.base_prefix, 'site'))]\n"
        "sys.meta_path[:] = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]\n",
        "site/sitecustomize.py",
    )
    own = Path(sys.executable).parent
    hidden = {
        "PATH": os.pathsep.join([str(own), os.environ["PATH"]]),
        "PYTHONPATH": str(launch.folder / "site"),
        "PYTHONNOUSERSITE": "1",
    }
    folder = spcomm("config", "--mpi-bin").stdout.strip()

    def answer(*line, **more):
        return subprocess.run(
            line,
            cwd=launch.folder,
            env=launch.environment(hidden | more),
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert "No module named 'spcomm'" in answer(own / "spcomm", "--version").stderr
    for more in ({}, {"PYTHONHOME": "/nowhere"}):
        done = answer(Path(folder, command), "--showme:incdirs", **more)
        assert (done.returncode, done.stdout.strip()) == (0, mpi.folder("include")), done.stderr


# ---- executables of other compilers


@linux
@needs_cc
@pytest.mark.parametrize("before", ["", "/nowhere"])
@pytest.mark.parametrize("name", [mpi.MPICH, mpi.STANDARD])
def test_the_loader_finds_the_library_and_children_get_the_users_path(launch, name, before):
    program = linked_by_hand(launch, f"-L{mpi.folder('lib')}", f"-l:{name}", "-Wl,--allow-shlib-undefined")
    if name == mpi.MPICH:  # the values in mpi.h are those of the other library
        launch.script(C.replace("MPI_COMM_WORLD", "(MPI_Comm)0x44000000"), "mpich.c")
        program = linked_by_hand_of(launch, "mpich.c", f"-L{mpi.folder('lib')}", f"-l:{name}")
    result = launch("-n", 2, program, env={"LD_LIBRARY_PATH": before} if before else None)
    assert result.code == 0, result
    assert sorted(result.lines) == [f"{rank} of 2, path {before or 'none'}" for rank in range(2)]


def linked_by_hand_of(launch, source, *words):
    line = ["cc", source, f"-I{mpi.folder('include')}", *words, "-o", "mpich"]
    done = subprocess.run(line, cwd=launch.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return "./mpich"


@linux
@needs_cc
def test_an_executable_of_another_mpi(launch):
    folder = other_mpi(launch, "libmpi.so.40")
    result = launch("-n", 2, linked_by_hand(launch, f"-L{folder}", "-l:libmpi.so.40"))
    assert result.code == 126 and result.err == (
        "spcomm run: ./hello: is linked to another MPI (libmpi.so.40); compile it with spcomm mpicc (C++: spcomm "
        "mpicxx), as in: spcomm mpicc hello.c -o hello\n"
    )


@linux
@needs_cc
def test_an_rpath_or_a_library_path_to_another_mpi(launch):
    folder = other_mpi(launch, mpi.MPICH)
    words = [f"-L{folder}", f"-l:{mpi.MPICH}"]
    program = linked_by_hand(launch, *words, "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/other")
    result = launch("-n", 2, program)
    assert (
        result.code == 126 and "has an RPATH to another MPI (" in result.err and "spcomm mpicc" in result.err
    )
    result = launch("-n", 2, linked_by_hand(launch, *words), env={"LD_LIBRARY_PATH": folder})
    assert result.code == 126 and "to which LD_LIBRARY_PATH leads" in result.err
    environment = {}
    program = linked_by_hand(launch, *words, "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/other")
    assert (
        linked.prepare(str(launch.folder / program), environment) == ""
    )  # the library path comes before a RUNPATH
    assert environment[mpi.LOADER_VARIABLE] == mpi.folder("lib")


@linux
@needs_cc
@pytest.mark.parametrize(("words", "title"), [("MPIR_CVAR_CH4_", "MPICH"), ("OMPI_MCA_btl", "Open MPI")])
def test_an_executable_that_contains_another_mpi(launch, words, title):
    source = launch.script(
        f'{OTHER} const char *setting = "{words}"; int main(void) {{ return *setting == 0; }}', "a.c"
    )
    subprocess.run(["cc", source, "-o", launch.folder / "a"], check=True)
    result = launch("-n", 2, "./a")
    assert (
        result.code == 126 and f"contains another MPI ({title}); compile it with spcomm mpicc" in result.err
    )


@linux
def test_files_that_are_no_executables_of_mpi(tmp_path):
    assert linked.problem(sys.executable, {}) == ("", False)
    for at, data in enumerate(
        (b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(9), b"\x7fELF\x02\x01" + b"\xff" * 90)
    ):
        path = tmp_path / str(at)
        path.write_bytes(data)
        assert linked.problem(str(path), {}) == ("", False)


# ---- mpi4py

SHOW = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)\n"


@pytest.mark.parametrize("start", ["fork", "exec"])
def test_mpi4py_loads_the_library(launch, mpi4py, start):
    result = launch.program(SHOW, options=("-n", 2, "--start", start))
    assert (result.code, sorted(result.lines), result.err) == (0, ["0 2", "1 2"], ""), result


def test_a_library_that_the_user_has_chosen_stays(launch):
    launch.script(
        "import os\nprint(os.environ['MPI4PY_LIBMPI'])\ntry:\n    import mpi4py\nexcept ImportError: pass",
        "a.py",
    )
    result = launch("-n", 1, "a.py", env={"MPI4PY_LIBMPI": "/other/libmpi.so"})
    assert result.lines == ["/other/libmpi.so"] and result.err == ""  # the import is not certain
    launch.script("import os\nprint(os.environ['MPI4PY_LIBMPI'])\n'''\nimport mpi4py\n'''", "b.py")
    result = launch("-n", 1, "b.py", env={"MPI4PY_LIBMPI": "/other/libmpi.so"})
    assert result.lines == ["/other/libmpi.so"]
    assert result.err.startswith("spcomm: note: MPI4PY_LIBMPI is /other/libmpi.so, so mpi4py loads that MPI")
    assert launch("-n", 1, "b.py").lines == [mpi.library(mpi.MPICH)]


def without_mpi4py(launch):
    """Variables with which no Python finds mpi4py."""
    (launch.folder / "hidden").mkdir()
    (launch.folder / "hidden" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'mpi4py':\n"
        "            raise ModuleNotFoundError(\"No module named 'mpi4py'\", name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    path = launch.environment()["PYTHONPATH"]
    return {"PYTHONPATH": os.pathsep.join([str(launch.folder / "hidden"), path])}


@linux  # where nodes are forked: an executed Python has no hook before it joins
def test_a_missing_mpi4py(launch):
    launch.script(SHOW)
    result = launch("-n", 2, "program.py", env=without_mpi4py(launch))
    assert result.code == 1
    assert (
        result.err.count("mpi4py is not installed in this Python; python -m pip install 'spcomm[mpi]'") == 1
    ), result


def test_a_missing_mpi4py_of_executed_nodes(launch):
    launch.script(SHOW)
    result = launch("-n", 2, "--start", "exec", "program.py", env=without_mpi4py(launch))
    assert result.code == 1 and "ModuleNotFoundError" in result.err
    assert "mpi4py is not installed" not in result.err  # it is: only the import is hidden
    isolated = launch.folder / "isolated"
    launch.script("import mpi4py\n", "other.py")
    done = spcomm_without_packages(launch, isolated, "-n", 2, "--start", "exec", "other.py")
    note = "spcomm: note: mpi4py is not installed in this Python; python -m pip install 'spcomm[mpi]' installs it"
    assert done.stderr.splitlines()[0] == note, done


def spcomm_without_packages(launch, folder, *words):
    """`spcomm run` with a `sys.path` that has spcomm, and no folder in which mpi4py is installed."""
    folder.mkdir()
    (folder / "spcomm").symlink_to(Path(mpi.__file__).parents[1])
    program = (
        "import os, sys\n"
        "sys.path[:] = [entry for entry in sys.path if not os.path.isdir(os.path.join(entry, 'mpi4py'))]\n"
        f"sys.path.append({str(folder)!r})\n"
        "from spcomm.__main__ import main\n"
        "sys.exit(main())\n"
    )
    line = [sys.executable, "-S", "-c", program, "run", *map(str, words)]
    return subprocess.run(line, cwd=launch.folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def bound(launch, tmp_path):
    """The variables with which Python finds an mpi4py that is bound to another MPI, and the folder of it."""
    library = other_mpi(launch, "libmpi.so.40")
    package = tmp_path / "site" / "mpi4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    source = launch.script("void MPI_Init(void); void init(void) { MPI_Init(); }", "module.c")
    module = package / "MPI.cpython-311-x86_64-linux-gnu.so"
    line = ["cc", "-shared", "-fPIC", source, f"-L{library}", "-l:libmpi.so.40", "-o", module]
    subprocess.run([str(word) for word in line], check=True)
    launch.script(SHOW)
    launch.script(SHOW, "package/__main__.py")
    path = launch.environment()["PYTHONPATH"]
    return {"PYTHONPATH": os.pathsep.join([str(package.parent), path])}, package


@linux
@needs_cc
@pytest.mark.parametrize(
    "words",
    [
        ["program.py"],
        ["--start", "exec", "program.py"],
        ["-m", "program"],
        ["--start", "exec", "-m", "package"],
        ["package"],
        ["-c", "import mpi4py"],
        ["--boxes", "2", "program.py"],
        ["--host", "alpha:1,beta:1", "--tunnel", "none", "--listen", "127.0.0.1", "-m", "package"],
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_an_mpi4py_of_another_mpi(launch, bound, words, tmp_path):
    environment, package = bound
    where = ["--ssh", stand_in_for_ssh(tmp_path)] if "--host" in words else ["-n", 2]
    result = launch(*where, *words, env=environment)
    assert (
        f"the mpi4py in {package} is bound to another MPI (libmpi.so.40); python -m pip install --force-reinstall "
        "'mpi4py>=4.1' brings one that is not\n"
    ) in result.err
    assert result.code == 125 and result.out == ""


@linux
@needs_cc
def test_which_mpi4py_is_looked_at(bound, monkeypatch):
    _, package = bound
    monkeypatch.setattr(sys, "path", [str(package.parent)])
    assert "bound to another MPI" in bindings.complaint({})
    (package / "MPI.mpich.cpython-311-x86_64-linux-gnu.so").touch()
    assert bindings.complaint({}) == ""


# ---- mpiexec


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("-n 4 ./a -x", "-n 4 ./a -x"),
        ("-np 4 --oversubscribe --allow-run-as-root ./a", "-n 4 ./a"),
        ("--np 2 -x A=1 ./a : -np 1 ./b", "-n 2 -x A=1 ./a : -n 1 ./b"),
        ("-genv A 1 -env B=2 -genvlist C,D -n 1 ./a", "-x A=1 -x B=2 -x C -x D -n 1 ./a"),
        ("-genvnone -l ./a", "--env none --label ./a"),
        ("--bind-to core --map-by core ./a", "--bind-to core ./a"),
        ("-bind-to core:overload-allowed ./a", "--bind-to core ./a"),
        ("--bind-to socket --map-by slot:OVERSUBSCRIBE --rank-by core ./a", "./a"),
        ("--map-by node ./a", "./a"),
        ("--map-by node -H a:2,b:2 ./a", "--map=cyclic --host a:2,b:2 ./a"),
        ("--mca btl tcp,self -launcher fork ./a", "./a"),
        ("--hostfile h -wd f --timeout=9 ./a", "--hostfile h --wdir f --timeout 9 ./a"),
        ("-f h --tag-output -report-bindings ./a", "--hostfile h --label --report-bindings ./a"),
        ("--stats --trace t.json --watch=browser -n4 ./a", "--stats --trace t.json --watch=browser -n4 ./a"),
        ("-x SPCOMM_TEST_UNSET -x PATH -n 2 ./a", "-x PATH -n 2 ./a"),
        ("--cpus-per-proc 2 --stream-buffering 0 -no-oversubscribe ./a", "./a"),
        (
            "-host localhost,localhost -genv OMP_NUM_THREADS 2 -n 2 -l ./a : -wdir f -n 1 ./b",
            "--host localhost,localhost -x OMP_NUM_THREADS=2 -n 2 --label ./a : --wdir f -n 1 ./b",
        ),
        ("-n 2 -m module -n 3", "-n 2 -m module -n 3"),
        ("-n 2 -- ./a", "-n 2 -- ./a"),
        ("", ""),
    ],
)
def test_options_of_other_launchers(given, found):
    assert " ".join(mpiexec.translated(given.split())) == found


def test_options_that_are_mapped_exist():
    mapped = [*mpiexec._MAPPED.values(), *(words[0] for words in mpiexec._MAPPED_ALONE.values())]
    assert set(mapped) <= set(table.parser().options)
    kinds = [
        mpiexec._MAPPED,
        mpiexec._MAPPED_ALONE,
        mpiexec._WITHOUT_EFFECT,
        mpiexec._REFUSED,
        mpiexec._SPECIAL,
    ]
    names = [name for kind in kinds for name in kind]
    assert len(names) == len(set(names))


def test_the_word_python_may_stay(launch):
    launch.script("import sys, spcomm\nprint(sys.argv, spcomm.startup().size)")
    python = Path(sys.executable)
    assert mpiexec.translated(["-n", "2", str(python), "a.py", "1"]) == ["-n", "2", "a.py", "1"]
    assert mpiexec.translated([str(python), "-m", "a"]) == ["-m", "a"]
    assert mpiexec.translated([str(python), "-u", "a.py"]) == [str(python), "-u", "a.py"]
    assert mpiexec.translated(["/other/python", "a.py"]) == ["/other/python", "a.py"]
    done = subprocess.run(
        [sys.executable, "-m", "spcomm", "mpiexec", "-n", "2", python, "program.py", "x"],
        cwd=launch.folder,
        env=launch.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "['program.py', 'x'] 2\n" * 2, "")


def test_help_and_version_of_mpiexec():
    assert "usage: spcomm mpiexec" in spcomm("mpiexec", "--help").stdout
    assert spcomm("mpiexec", "--version").stdout == f"spcomm {__import__('spcomm').__version__}\n"
