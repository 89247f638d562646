# SPDX-License-Identifier: MIT
"""Lower floors never include or import upper ones: csrc/README.md and CONTRIBUTING.md have the picture."""

import ast
import functools
import re
import subprocess
import sys
import sysconfig
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from checkout import ROOT, fail_with, files, relative

# The folders whose headers the files in a folder of csrc/ may include, beside their own folder. Of csrc/mpi the one
# header stands below its rooms, the files above them.
BELOW = {
    "base": set(),
    "segment": {"base"},
    "reduce": {"base", "segment"},
    "message": {"base", "segment"},
    "diagnose": {"base", "segment", "reduce", "message"},
    "node": {"base", "segment", "message", "diagnose"},
    "comm": {"base", "segment", "reduce", "message", "node", "diagnose"},
    "net/wire": {"base", "segment", "reduce"},
    "net/link": {"base", "net/wire"},
    "net/server": {"base", "reduce", "net/wire", "net/link"},
    "net/gateway": {"base", "segment", "reduce", "message", "diagnose", "comm", "net/wire", "net/link"},
    "fork": {"base", "segment", "diagnose", "comm"},
    "api": {"base", "diagnose", "comm", "fork", "include"},
    **{
        room: {"base", "segment", "reduce", "message", "node", "comm", "api"} | rooms
        for room, rooms in {
            "mpi": {"mpi/type", "mpi/message", "mpi/file"},
            "mpi/type": {"mpi"},
            "mpi/message": {"mpi", "mpi/type"},
            "mpi/comm": {"mpi", "mpi/type", "mpi/message"},
            "mpi/window": {"mpi", "mpi/type", "mpi/message"},
            "mpi/file": {"mpi", "mpi/type", "mpi/message"},
        }.items()
    },
    "include": set(),
}
# Public headers that stand alone, values and no functions of the core: every floor may include them.
STAND_ALONE = {"spcomm/simtime.h", "spcomm/destination.h", "spcomm/net_types.h"}

# The modules that the parts of spcomm/ may import, beside themselves; "" is the package itself, the public names.
PUBLIC = {""}
IMPORTS = {
    "": {"config", "joining", "_core", "net_types"},
    "net_types": set(),
    "text": set(),
    "resource_limits": {"text"},
    "argument_parser": {"text"},
    "config": {"_core", "text"},
    "_core": {"net_types", "config", "resource_limits", "text"},
    "joining": {"_core", "config", "forking", "text"},
    "forking": {"_core", "config", "resource_limits"},
    "diagnose": {"_core", "argument_parser", "config", "text"},
    "trace": {"_core", "argument_parser", "config", "text"},
    "launch": {
        "_core.segments",
        "_core.diagnose",
        "_core.errors",
        "_core.forking",
        "_core.mpi_channel",
        "_core.net",
        "_core.call_site",
        "argument_parser",
        "config",
        "diagnose",
        "mpi",
        "resource_limits",
        "trace",
        "text",
    },
    "mpi": {"argument_parser"},
    "speedes": PUBLIC | {"_core.errors"},
    "bench": PUBLIC | {"argument_parser", "compiling", "launch", "config", "mpi", "trace", "text"},
    "learn": PUBLIC | {"argument_parser", "launch", "config", "demo", "mpi", "trace", "text"},
    "docs": PUBLIC | {"cli", "argument_parser", "compiling", "demo", "diagnose", "learn", "text"},
    "model": PUBLIC | {"argument_parser", "bench", "text"},
    "notebook": PUBLIC
    | {
        "_core.segments",
        "_core.comm",
        "_core.exit_text",
        "_core.errors",
        "argument_parser",
        "config",
        "diagnose",
        "joining",
        "launch",
        "learn",
        "mpi",
        "resource_limits",
        "trace",
        "text",
    },
    "demo": PUBLIC | {"argument_parser", "launch", "config"},
    "compiling": {"argument_parser", "mpi"},
    "info": {"_core.segments", "argument_parser", "config", "launch.cmdline.allocation", "text"},
    "completion": {"cli", "argument_parser"},
    "cli": PUBLIC | {"argument_parser", "config", "launch.base.process"},
    "__main__": {"cli"},
}
# The packages that those of spcomm/launch may import, beside themselves; modules such as launch/command may import all.
LAUNCH = {
    "base": set(),
    "cmdline": {"base"},
    "local": {"base", "cmdline"},
    "remote": {"base", "cmdline", "local"},
    "supervise": {"base", "cmdline", "local", "remote"},
    "room": {"base", "cmdline", "local", "remote", "supervise"},
}
# (file, imported): why this one import goes up.
EXCEPTIONS = {
    (
        "spcomm/config.py",
        "spcomm.launch.base.report",
    ): "a node that was exec'ed tells its launcher of an uncaught exception",
    ("spcomm/forking.py", "spcomm.launch.base.report"): "a forked node tells its supervisor, in the same way",
    ("spcomm/mpi/bindings.py", "spcomm.launch.cmdline.plan.Plan"): "a type: the launcher hands its plan over",
    (
        "spcomm/mpi/bindings.py",
        "spcomm.launch.base.usage.UsageError",
    ): "the launcher's own refusal of a program",
}


def c_floor(path):
    floor = path.relative_to(ROOT / "csrc").parent
    return "include" if floor.parts[0] == "include" else floor.as_posix()


def c_files():
    return files(".c", ".h", below="csrc")


def test_c_floors():
    headers = {path.name: path for path in c_files() if path.suffix == ".h"}
    complaints = []
    for path in c_files():
        mine = c_floor(path)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            header = headers.get(name.rpartition("/")[2])
            if name in STAND_ALONE or name == "spc_mpi_list.h":  # the build makes that one
                continue
            if header is None:
                complaints.append(f"{relative(path)} includes {name}, which is not in csrc/")
            elif not any((ROOT / folder / name).exists() for folder in ("csrc", "csrc/include")):
                complaints.append(f"{relative(path)} includes {name}, which is not a path from csrc/")
            elif c_floor(header) not in BELOW[mine] | {mine}:
                complaints.append(f"{relative(path)} includes {name}: {mine} stands below or beside it")
    fail_with(complaints)


def test_c_headers_that_stand_alone():
    for name in STAND_ALONE:
        text = (ROOT / "csrc" / "include" / name).read_text()
        assert re.findall(r'#\s*include\s+"[^"]+"', text) == []


def test_c_private_headers_stay_private():
    complaints = []
    for path in c_files():
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)_private\.h"', path.read_text(), re.MULTILINE):
            # Requests are part of the communicator; the MPI library is a second interface to it.
            extends = (path.name, name) in {
                ("spc_request.h", "comm/spc_comm"),
                ("spc_mpi.h", "comm/spc_comm"),
            }
            if not path.name.startswith(name.rpartition("/")[2]) and not extends:
                complaints.append(f"{relative(path)} includes {name}_private.h")
    fail_with(complaints)


def test_c_sockets_only_in_net():
    fail_with(
        [
            f"{relative(path)} includes <{name}>: only csrc/net knows sockets that others reach"
            for path in c_files()
            for name in re.findall(
                r"#\s*include\s+<(sys/socket|netinet/\w+|arpa/inet|sys/un|netdb)\.h>", path.read_text()
            )
            if not c_floor(path).startswith("net/")
            and path.name not in ("spc_meet.c", "spc_join.c")  # of this machine, to pass descriptors
        ]
    )


def test_c_does_not_know_python():
    fail_with([f"{relative(path)} includes Python.h" for path in c_files() if "Python.h" in path.read_text()])


def part_of(module):
    """spcomm.launch.nodes -> launch; spcomm -> "" (the public names)."""
    return module.split(".")[1] if "." in module else ""


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def walk(node, for_types=True):
    """As `ast.walk`, without expressions, which import nothing, or what only readers of types see."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"
        if not isinstance(child, ast.expr) and (for_types or not is_for_types):
            yield child
            yield from walk(child, for_types)


@functools.cache
def imported(path, for_types=True):
    """The spcomm modules that a file imports, anywhere in it."""
    text = path.read_text()
    if path.suffix in (".pyx", ".pxd"):
        lines = re.findall(
            r"^\s*from\s+(\S+)\s+c?import\s+\(?\s*(\w+)|^\s*c?import\s+(\S+)", text, re.MULTILINE
        )
        names = [f"{source}.{name}" if source else whole for source, name, whole in lines]
    else:
        names = []
        package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
        for node in walk(ast.parse(text), for_types):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parents = package.split(".")
                    base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
                names += [f"{base}.{alias.name}" for alias in node.names]
    return [name for name in names if name.split(".")[0] == "spcomm"]


def is_allowed(name, allowed):
    """Whether one of the allowed parts, such as "launch" or "_core.segments", covers the imported name."""
    below = name.partition(".")[2]
    if "" in allowed and not (ROOT / "spcomm" / part_of(name)).is_dir() and not exists(part_of(name)):
        return True  # a public name
    return any(part and (below == part or below.startswith(f"{part}.")) for part in allowed)


def exists(part):
    return bool(part) and any((ROOT / "spcomm").glob(f"{part}.*"))


def test_python_parts():
    complaints = []
    for path in files(".py", ".pyx", ".pxd", below="spcomm"):
        mine = part_of(module_of(path))
        if "programs" in path.parts:  # what spcomm bench runs are users' programs
            continue
        allowed = IMPORTS.get(mine)
        if allowed is None:
            complaints.append(
                f"{relative(path)}: say in {relative(ROOT / __file__)} what {mine!r} may import"
            )
            continue
        for name in imported(path):
            known = any(
                (relative(path), exception) in EXCEPTIONS for exception in (name, name.rpartition(".")[0])
            )
            if name != "spcomm" and part_of(name) != mine and not known and not is_allowed(name, allowed):
                complaints.append(
                    f"{relative(path)} imports {name}; {mine or 'spcomm'} may import {sorted(allowed)}"
                )
    fail_with(complaints)


def imports_of(package):
    """{module of spcomm/<package>: the others that it imports when it runs}"""
    modules = {module_of(path): path for path in files(".py", below=f"spcomm/{package}")}
    found = {}
    for mine, path in modules.items():
        names = {
            name if name in modules else name.rpartition(".")[0] for name in imported(path, for_types=False)
        }
        found[mine] = {name for name in names & modules.keys() if name not in (mine, f"spcomm.{package}")}
    return found


def package_of(module):
    """spcomm.launch.local.fork_server -> local; spcomm.launch.command -> "" """
    name = "".join(module.split(".")[2:3])
    return name if name in LAUNCH else ""


def test_packages_of_the_launcher():
    fail_with(
        [
            f"{mine} imports {name}; {package_of(mine)} may import {sorted(LAUNCH[package_of(mine)])}"
            for mine, names in imports_of("launch").items()
            for name in names
            if package_of(mine) and package_of(name) not in LAUNCH[package_of(mine)] | {package_of(mine)}
        ]
    )


# Not _core: what is said of an error there is imported late, by what is imported to say it.
@pytest.mark.parametrize(
    "package", ["bench", "diagnose", "docs", "launch", "learn", "model", "net_types", "notebook", "trace"]
)
def test_no_circle_of_modules(package):
    imports = imports_of(package)
    assert package != "launch" or "spcomm.launch.base.wire" in imports["spcomm.launch.base.loop"]
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(f"each of these imports the one before it: {', '.join(error.args[1])}")


def test_names_of_modules_are_unique_in_a_package():
    found = defaultdict(list)
    for path in files(".c", below="csrc") + files(".py", ".pyx", below="spcomm"):
        if path.stem != "__init__" and "programs" not in path.parts:
            found[path.relative_to(ROOT).parts[:2] if path.suffix != ".c" else "csrc", path.stem].append(path)
    fail_with([", ".join(map(relative, paths)) for paths in found.values() if len(paths) > 1])


def test_only_core_touches_c():
    complaints = []
    for path in files(".pyx", ".pxd", below="spcomm"):
        if path.parent != ROOT / "spcomm" / "_core":
            complaints.append(f"{relative(path)} is Cython outside spcomm/_core")
    for path in files(".py", below="spcomm"):
        if path.name == "munge.py":
            continue  # the cluster's own library, which is there or not
        if re.search(r"^\s*(import|from)\s+cffi\b|CDLL\([^N)]", path.read_text(), re.MULTILINE):
            complaints.append(f"{relative(path)} loads a C library; only spcomm/_core may")
    for path in files(".pyx", ".pxd", below="spcomm"):
        for header in re.findall(r'cdef extern from "([^"]+)"', path.read_text()):
            if (ROOT / "csrc" / header).exists():
                complaints.append(f"{relative(path)} declares {header}; spcomm/_core/libspc.h includes it")
    fail_with(complaints)


@pytest.mark.linux("it reads the symbols of ELF")
def test_one_copy_of_the_core_in_a_process():
    """An extension with functions of the core in itself would have their variables once more, too."""
    folder = ROOT / "spcomm" / "_core"
    core, extensions = folder / "libspc.so", list(folder.glob("*" + sysconfig.get_config_var("EXT_SUFFIX")))
    functions = symbols(core, "--dynamic")
    assert extensions and {"spc_comm_send", "spcomm_send", "spc_node_this_thread"} <= functions
    fail_with(
        [
            f"{relative(path)} has its own {sorted(symbols(path) & functions)[:3]}"
            for path in extensions
            if symbols(path) & functions
        ]
    )


# Functions that only other files of their own folder use: extern because a module has several files. It only shrinks.
EXTERN_FOR_THEIR_ROOM = {"core": 39, "mpi": 62}


@pytest.mark.linux("it reads the symbols of ELF")
@pytest.mark.parametrize("library", EXTERN_FOR_THEIR_ROOM)
def test_what_only_its_own_file_uses_is_static(library):
    defined, users = symbols_of_the_core() if library == "core" else symbols_of_the_mpi_library()
    rooms = rooms_of_the_core()
    others = "".join(
        path.read_text()
        for path in [
            *files(".pyx", ".pxd", ".h", ".hpp", below="spcomm"),
            *files(".h", ".hpp", below="csrc/include"),
            *files(".c", ".h", below="tests"),
            *(files(".c", ".h", below="csrc/mpi") if library == "core" else []),
        ]
    )
    elsewhere = set(re.findall(r"\w+", others))
    assert {"core": "spc_comm_send", "mpi": "spc_mpi_send"}[library] in defined
    fail_with(
        [
            f"{file} has {name}, which nothing else uses: make it static"
            for name, file in sorted(defined.items())
            if not users[name] - {file} and name not in elsewhere
        ]
    )
    of_a_room = sorted(
        f"{rooms[file]}: {name}"
        for name, file in defined.items()
        if {rooms.get(user) for user in users[name]} == {rooms[file]} and name not in elsewhere
    )
    assert len(of_a_room) <= EXTERN_FOR_THEIR_ROOM[library], "\n".join(of_a_room)


@pytest.mark.linux("it reads the symbols of ELF")
def test_files_of_a_room_do_not_call_in_circles():
    rooms = rooms_of_the_core()
    defined, users = symbols_of_the_core()
    calls = defaultdict(set)
    for name, file in defined.items():
        for user in users[name] - {file}:
            if rooms[user] == rooms[file]:
                calls[user].add(file)
    fail_with(
        [
            f"{rooms[file]}: {file} calls itself by way of others"
            for file in rooms
            if file in reached(calls, file)
        ]
    )


def reached(calls, start):
    """The files that a file calls, and those that these call, and so on."""
    found, left = set(), [start]
    while left:
        new = calls[left.pop()] - found
        found |= new
        left += new
    return found


def symbols_of_the_core():
    """Definitions and uses: {name: object file}, {name: object files}."""
    return symbols_of_objects(ROOT / "spcomm" / "lib" / "libspcomm.a")


def symbols_of_the_mpi_library():
    """The same of the library of one ABI, whose entry points are generated."""
    platform, tag = sysconfig.get_platform(), sys.implementation.cache_tag
    objects = (ROOT / "build" / f"temp.{platform}-{tag}" / "mpi" / "standard").rglob("*.o")
    defined, users = symbols_of_objects(*objects)
    return {name: file for name, file in defined.items() if file in rooms_of_the_core()}, users


def symbols_of_objects(*archives_and_objects):
    listing = subprocess.check_output(["nm", "-A", *archives_and_objects], text=True)
    defined, users = {}, defaultdict(set)
    for file, kind, name in re.findall(r"([^:/]+\.o):[0-9a-f ]* ([A-Z]) (\w+)$", listing, re.MULTILINE):
        if kind == "U":
            users[name].add(file)
        else:
            defined[name] = file
    return defined, users


def rooms_of_the_core():
    """{object file: the folder of its source}"""
    return {f"{path.stem}.o": c_floor(path) for path in files(".c", below="csrc")}


def symbols(library, *options):
    listing = subprocess.check_output(["nm", "--defined-only", *options, library], text=True)
    return {line.split()[2] for line in listing.splitlines()}


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import spcomm", ["numpy", "spcomm.launch", "spcomm.bench", "spcomm._core.comm"]),
        ("import spcomm.config", ["numpy", "spcomm._core.segments", "spcomm.launch"]),
        ("from spcomm._core import segments", ["numpy", "spcomm._core.comm"]),
        ("import spcomm.cli", ["numpy", "spcomm.launch", "spcomm.bench", "argparse"]),
    ],
)
def test_imports_cost_little(statement, unwanted):
    code = f"import sys; {statement}; print(*[name for name in {unwanted} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr, result.stdout.split()) == (0, "", [])
