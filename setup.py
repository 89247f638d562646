# SPDX-License-Identifier: MIT
"""The compiled part of spcomm; everything else about the package stands in pyproject.toml.

The C core (csrc/) is compiled once. spcomm/_core/libspc.so is the one copy of it in a Python process: every extension
finds it beside itself. Programs in C and C++ link the same objects from spcomm/lib/libspcomm.a, beside spcomm/include
in wheels (`spcomm config` knows where). The extensions are the .pyx files of spcomm/_core, and two in plain C:
spcomm/net_types, and the simulator of spcomm/model. All are found by looking, so that a new file needs no change here.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.install_lib import install_lib

if sys.platform == "win32":
    raise SystemExit(
        "spcomm runs on Linux and macOS; on Windows, install it inside WSL (first: wsl --install)."
    )

os.chdir(Path(__file__).resolve().parent)

MACOS = sys.platform == "darwin"
FLAGS = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-pthread"]
LINK = ["-pthread"] + (
    ["-lrt", "-ldl"] if sys.platform.startswith("linux") else []
)  # shm_open, dlsym, before glibc 2.34
# Nothing may come between two functions of the core, so calls within it are direct. On macOS they always are.
CORE_FLAGS = FLAGS if MACOS else [*FLAGS, "-fno-semantic-interposition"]
CORE_NAME = "libspc.dylib" if MACOS else "libspc.so"
NAMES = ["-install_name", f"@rpath/{CORE_NAME}"] if MACOS else [f"-Wl,-soname,{CORE_NAME}", "-Wl,-Bsymbolic"]
CORE_LINK = [*LINK, *NAMES]
# More flags for the extensions, not for the core: `make sanitize` compiles them with the sanitizers.
EXTRA_FLAGS = os.environ.get("SPCOMM_EXTENSION_FLAGS", "").split()
EXTENSION_FLAGS = [*FLAGS, "-fvisibility=hidden", *EXTRA_FLAGS]
BESIDE = "@loader_path" if MACOS else "$ORIGIN"
EXTENSION_LINK = [*LINK, f"-Wl,-rpath,{BESIDE}", *EXTRA_FLAGS]


def found(folder, *patterns):
    """Relative paths of the files below folder that match one of the patterns, sorted."""
    return sorted(str(path) for pattern in patterns for path in Path(folder).rglob(pattern))


def imported(folder, module):
    """A module of the checkout."""
    sys.path.insert(0, os.path.abspath(folder))
    try:
        return importlib.import_module(module)
    finally:
        del sys.path[0]


def lasting_folders(distribution):
    """(folder of objects, folder of extensions) of an editable install that is not strict; else (None, None).

    pip names folders for them that it deletes afterwards, and `build_ext --inplace` would compile everything again.
    """
    if not distribution.get_command_obj("build_ext").editable_mode:
        return None, None
    if distribution.get_command_obj("editable_wheel").mode == "strict":
        return None, None  # it links to what lies in pip's folder
    usual = build(distribution)
    usual.ensure_finalized()
    return usual.build_temp, usual.build_lib


# Where shells look for completions, below share.
COMPLETIONS = {
    "bash": "bash-completion/completions/spcomm",
    "zsh": "zsh/site-functions/_spcomm",
    "fish": "fish/vendor_completions.d/spcomm.fish",
}
HEADERS = found("csrc", "*.h")
SOURCES = [path for path in found("csrc", "*.c") if not path.startswith("csrc/mpi/")]
# The MPI library: one source for two ABIs. The names are those by which programs look for it.
MPI_SOURCES = found("csrc/mpi", "*.c")
MPI_LIBRARIES = {
    "mpich": "libmpi.12.dylib" if MACOS else "libmpi.so.12",
    "standard": "libmpi_abi.1.dylib" if MACOS else "libmpi_abi.so.1",
}


def replace_by_copy(built, copy):
    copy.parent.mkdir(parents=True, exist_ok=True)
    unfinished = copy.with_suffix(".new")  # somebody may load or link the old one at this moment
    shutil.copyfile(built, unfinished)
    unfinished.replace(copy)


class BuildCore(build_clib):
    """Compile the C core: each file when it, a header or the flags are newer, several at a time."""

    def finalize_options(self):
        temp, _ = lasting_folders(self.distribution)
        self.build_temp, self.build_clib = temp or self.build_temp, temp or self.build_clib
        super().finalize_options()

    def build_libraries(self, libraries):
        for name, info in libraries:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                objects = list(
                    pool.map(lambda source, info=info: self.compile(source, info), info["sources"])
                )
            archive = Path(self.compiler.library_filename(name, output_dir=self.build_clib))
            library = Path(self.build_clib, CORE_NAME)
            for made in (archive, library):
                made.unlink(missing_ok=True)  # neither may keep objects whose sources are gone
            self.compiler.create_static_lib(objects, name, output_dir=self.build_clib)
            if MACOS:  # Python's own command makes bundles, which cannot be linked
                words = self.compiler.linker_so
                self.compiler.linker_so = ["-dynamiclib" if word == "-bundle" else word for word in words]
            self.compiler.link_shared_object(objects, str(library), extra_postargs=CORE_LINK)

    def compile(self, source, info, folder=None):
        folder = folder or self.build_temp
        [object_file] = self.compiler.object_filenames([source], output_dir=folder)
        newest = max(os.stat(path).st_mtime_ns for path in [source, *info["depends"]])
        if self.force or not os.path.exists(object_file) or os.stat(object_file).st_mtime_ns <= newest:
            self.compiler.compile(
                [source],
                output_dir=folder,
                include_dirs=info["include_dirs"],
                extra_postargs=info["cflags"],
            )
        return object_file


class BuildExtensions(build_ext):
    """Build the core first, also for ``build_ext --inplace``, then the extensions, several at a time."""

    def finalize_options(self):
        temp, lib = lasting_folders(self.distribution)
        self.build_temp, self.build_lib = temp or self.build_temp, lib or self.build_lib
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def run(self):
        if self.distribution.has_c_libraries():
            self.run_command("build_clib")
        self.translate()
        super().run()
        self.copy_core()
        for abi in MPI_LIBRARIES:
            self.build_mpi(abi)
        write_stubs(Path("." if self.inplace else self.build_lib, "spcomm", "_core"))

    def copies(self):
        """(built file, its copy) of the core: in the checkout if the extensions are there, too."""
        core = self.get_finalized_command("build_clib")
        package = Path("." if self.inplace else self.build_lib, "spcomm")
        yield Path(core.build_clib, CORE_NAME), package / "_core" / CORE_NAME
        yield Path(core.build_clib, "libspc.a"), package / "lib" / "libspcomm.a"

    def copy_core(self):
        for built, copy in self.copies():
            replace_by_copy(built, copy)

    def mpi_copies(self, abi):
        """(built file, its copy) of the MPI library of one ABI; of the standard's, what C programs link."""
        built = Path(self.build_temp, "mpi", abi)
        folder = Path("." if self.inplace else self.build_lib, "spcomm", "mpi")
        name = MPI_LIBRARIES[abi]
        yield built / name, folder / "lib" / name
        if abi == "standard":
            yield (
                built / name,
                folder / "lib" / re.sub(r"\.so\.1$|\.1\.dylib$", ".dylib" if MACOS else ".so", name),
            )
            yield built / "mpi.h", folder / "include" / "mpi.h"

    def build_mpi(self, abi):
        """Compile csrc/mpi for one ABI, and link it to the core beside the extensions."""
        folder = Path(self.build_temp, "mpi", abi)
        subprocess.run([sys.executable, "csrc/mpi/generate.py", abi, str(folder)], check=True)
        sources = [*MPI_SOURCES, str(folder / "entries.c")]
        info = {
            "depends": [*HEADERS, *map(str, folder.glob("*.h")), "setup.py"],
            "include_dirs": [str(folder), "csrc", "csrc/include"],
            "cflags": [
                *CORE_FLAGS,
                "-fvisibility=hidden",
                *(["-DSPC_MPI_STANDARD_ABI"] if abi == "standard" else []),
            ],
        }
        core = self.get_finalized_command("build_clib")
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = list(pool.map(lambda source: core.compile(source, info, str(folder)), sources))
        name = MPI_LIBRARIES[abi]
        to_core = [
            f"-Wl,-rpath,{BESIDE}/../../_core",
            f"-Wl,-rpath,{BESIDE}/../_core",
            str(Path(core.build_clib, CORE_NAME)),
        ]
        # A name that nothing defines ends the build, as it always does on macOS, and not the program that calls it.
        names = (
            ["-install_name", f"@rpath/{name}"] if MACOS else [f"-Wl,-soname,{name}", "-Wl,--no-undefined"]
        )
        self.compiler.link_shared_object(
            objects, str(folder / name), extra_postargs=[*to_core, *LINK, *names]
        )
        for built, copy in self.mpi_copies(abi):
            replace_by_copy(built, copy)

    def get_outputs(self):
        copies = [*self.copies(), *(pair for abi in MPI_LIBRARIES for pair in self.mpi_copies(abi))]
        return [*super().get_outputs(), *(str(copy) for _, copy in copies)]

    def translate(self):
        """Let Cython make C of the .pyx files, in build/cython-*; here, so that other commands need not wait for it."""
        import numpy
        from Cython.Build import cythonize

        # The result depends on NumPy's declarations, and several environments may build one checkout.
        folder = f"build/cython-{sys.implementation.cache_tag}-numpy-{numpy.__version__}"
        self.declare_core(Path(folder, "libspc.pxd"))
        translated = {
            done.name: done
            for done in cythonize(
                self.extensions,
                build_dir=folder,
                include_path=[folder],
                language_level=3,
                compiler_directives={"annotation_typing": False},  # annotations are for the stubs
            )
        }
        for extension in self.extensions:
            extension.sources = translated[extension.name].sources
            extension.include_dirs.append(numpy.get_include())

    def declare_core(self, written):
        """Write Cython's declarations of the C core, from its headers."""
        declarations = imported("scripts", "declarations").declarations
        header = "spcomm/_core/libspc.h"
        preprocessed = written.with_suffix(".i")
        written.parent.mkdir(parents=True, exist_ok=True)
        preprocessed.unlink(missing_ok=True)  # setuptools compares it with that header alone
        self.get_finalized_command("build_clib").compiler.preprocess(
            header, str(preprocessed), include_dirs=CORE["include_dirs"], extra_postargs=["-dD", *FLAGS]
        )
        text = declarations(Path(header).name, preprocessed.read_text())
        if not written.exists() or written.read_text() != text:
            written.write_text(text)


def write_stubs(folder):
    """Write the stubs beside the extensions, where type checkers and editors look for them."""
    stub = imported("scripts", "stubs").stub
    for source in map(Path, found("spcomm/_core", "*.pyx")):
        text = stub(source.stem, source.read_text())
        written = folder / f"{source.stem}.pyi"
        if not written.exists() or written.read_text() != text:
            written.write_text(text)


class BuildModules(build_py):
    """Copy modules, headers, and examples, exercises and documents as data; an editable install uses the checkout's."""

    def run(self):
        if not self.editable_mode:
            self.forget_old_files()
        super().run()
        if not self.editable_mode:
            for origin, copy in self.data_copies():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin, copy)

    def forget_old_files(self):
        """Remove what an earlier build left in build/lib: a wheel must not carry files that are gone."""
        for path in Path(self.build_lib, "spcomm").rglob("*"):
            if path.is_file() and not re.search(r"\.(so(\.\d+)?|dylib)$", path.name):
                path.unlink()

    def data_copies(self):
        """(file, its copy) of what a wheel carries beside modules; links between pages and examples work there, too."""
        for path in map(Path, found("csrc/include", "*.h", "*.hpp")):
            yield path, Path(self.build_lib, "spcomm", "include", path.relative_to("csrc/include"))
        data = Path(self.build_lib, "spcomm", "data")
        aside = {"__pycache__", "_ext", "_static", "conf.py"}  # the last three make the site
        for path in map(Path, found("examples", "*") + found("exercises", "*") + found("docs", "*")):
            if path.is_file() and not aside & set(path.parts):
                yield path, data / path
        for path in [*Path().glob("*.md"), *map(Path, found("csrc", "*.md"))]:
            yield path, data / path

    def get_outputs(self, include_bytecode=True):
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else outputs + [str(copy) for _, copy in self.data_copies()]


class InstallData(Distribution().get_command_class("install_data")):
    """Write the completions of the shells, whose texts are those of `--help`, into share."""

    def run(self):
        folder = Path(self.get_finalized_command("build").build_temp, "share")
        self.data_files = []
        for path, text in shared_texts().items():
            written = folder / path
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text, encoding="utf-8")
            self.data_files.append((str(Path("share", path).parent), [str(written)]))
        super().run()


class InstallModules(install_lib):
    """Strip debug information, four fifths of the size, from what is packed or installed; the build keeps its own."""

    def install(self):
        copies = super().install()
        compiled = [path for path in copies or [] if re.search(r"\.(so(\.\d+)?|dylib|a)$", path)]
        if compiled and (strip := shutil.which(os.environ.get("STRIP", "strip"))):
            subprocess.run([strip, "-S", *compiled], check=True)
        return copies


def shared_texts():
    """{path below share: text} of what the shells find by themselves."""
    completion = imported(".", "spcomm.completion")
    return {Path(place): completion.script(shell) for shell, place in COMPLETIONS.items()}


EXTENSIONS = [
    Extension(
        name=source.removesuffix(".pyx").replace("/", "."),
        sources=[source],
        depends=[*HEADERS, "setup.py"],
        include_dirs=["csrc", "csrc/include", "spcomm/_core"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=EXTENSION_FLAGS,
        extra_link_args=EXTENSION_LINK,
    )
    for source in found("spcomm/_core", "*.pyx")
]
# Plain C, and nothing of the core: NumPy's interface for dtypes is one for C (docs/internals/types.md).
EXTENSIONS.append(
    Extension(
        name="spcomm.net_types.net_types",
        sources=found("spcomm/net_types", "*.c"),
        depends=[*found("spcomm/net_types", "*.h"), *HEADERS, "setup.py"],
        include_dirs=["csrc/include"],
        extra_compile_args=EXTENSION_FLAGS,
        # It needs nothing of the core, but setuptools links that to all extensions, and not every linker drops it.
        extra_link_args=[*LINK, f"-Wl,-rpath,{BESIDE}/../_core", *EXTRA_FLAGS],
    )
)
# A simulator (docs/internals/simulate.md), which needs nothing of the core and of NumPy.
EXTENSIONS.append(
    Extension(
        name="spcomm.model.engine",
        sources=found("spcomm/model", "*.c"),
        depends=[*found("spcomm/model", "*.h"), "setup.py"],
        extra_compile_args=EXTENSION_FLAGS,
        extra_link_args=[*LINK, f"-Wl,-rpath,{BESIDE}/../_core", *EXTRA_FLAGS],
    )
)

CORE = {
    "sources": SOURCES,
    "depends": [*HEADERS, "setup.py"],
    "include_dirs": ["csrc", "csrc/include"],
    "cflags": CORE_FLAGS,
}

setup(
    libraries=[("spc", CORE)] if SOURCES else [],
    ext_modules=EXTENSIONS,
    data_files=[("share", [])],  # InstallData finds all of them
    cmdclass={
        "build_clib": BuildCore,
        "build_ext": BuildExtensions,
        "build_py": BuildModules,
        "install_data": InstallData,
        "install_lib": InstallModules,
    },
)
