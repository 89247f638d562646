# SPDX-License-Identifier: MIT
"""The compiled part of spcomm; everything else about the package stands in pyproject.toml.

The C core (csrc/) is compiled once, into a static library that every extension links, and that programs in C and C++
link, too: it is spcomm/lib/libspcomm.a then, beside spcomm/include in wheels (`spcomm config` knows where). The
extensions are the .pyx files of spcomm/_core, and net_types, which is plain C. All are found by looking, so a new file
needs no change here.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
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

FLAGS = ["-O3", "-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", "-pthread"]
LINK = ["-pthread"] + (["-lrt"] if sys.platform.startswith("linux") else [])  # shm_open, before glibc 2.34


def found(folder, *patterns):
    """Relative paths of the files below folder that match one of the patterns, sorted."""
    return sorted(str(path) for pattern in patterns for path in Path(folder).rglob(pattern))


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


HEADERS = found("csrc", "*.h")
SOURCES = found("csrc", "*.c")


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
            archive.unlink(missing_ok=True)  # ar would keep objects whose sources are gone
            self.compiler.create_static_lib(objects, name, output_dir=self.build_clib)

    def compile(self, source, info):
        [object_file] = self.compiler.object_filenames([source], output_dir=self.build_temp)
        newest = max(os.stat(path).st_mtime_ns for path in [source, *info["depends"]])
        if self.force or not os.path.exists(object_file) or os.stat(object_file).st_mtime_ns <= newest:
            self.compiler.compile(
                [source],
                output_dir=self.build_temp,
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
        self.copy_library()

    def build_extensions(self):
        """After a change of the core's .c files only link: no object of an extension depends on them."""
        compile_all = self.compiler.compile

        def compile_newer(sources, output_dir=None, depends=None, **options):
            objects = self.compiler.object_filenames(sources, output_dir=output_dir)
            inputs = [*sources, *HEADERS, *found("spcomm/_core", "*.h"), "setup.py"]
            newest = max(os.stat(path).st_mtime_ns for path in inputs)
            if not self.force and all(
                os.path.exists(made) and os.stat(made).st_mtime_ns > newest for made in objects
            ):
                for made in objects:
                    os.utime(made)  # the linker looks only at the times of objects, not at that of the core
                return objects
            return compile_all(sources, output_dir=output_dir, depends=depends, **options)

        self.compiler.compile = compile_newer
        super().build_extensions()

    def library(self):
        """Where programs in C and C++ find the core; in the checkout if the extensions are there, too."""
        return Path("." if self.inplace else self.build_lib, "spcomm", "lib", "libspcomm.a")

    def copy_library(self):
        core = self.get_finalized_command("build_clib")
        built = Path(core.compiler.library_filename("spc", output_dir=core.build_clib))
        self.library().parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.library().with_suffix(".new")  # somebody may link it at this moment
        shutil.copyfile(built, unfinished)
        unfinished.replace(self.library())

    def get_outputs(self):
        return [*super().get_outputs(), str(self.library())]

    def translate(self):
        """Let Cython make C of the .pyx files, in build/cython-*; here, so that other commands need not wait for it."""
        import numpy
        from Cython.Build import cythonize

        # The result depends on NumPy's declarations, and several environments may build one checkout.
        folder = f"build/cython-{sys.implementation.cache_tag}-numpy-{numpy.__version__}"
        translated = {
            done.name: done for done in cythonize(self.extensions, build_dir=folder, language_level=3)
        }
        for extension in self.extensions:
            extension.sources = translated[extension.name].sources
            extension.include_dirs.append(numpy.get_include())


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
            if path.is_file() and path.suffix != ".so":
                path.unlink()

    def data_copies(self):
        """(file, its copy) of what a wheel carries beside modules: headers, examples, exercises, documents."""
        for path in map(Path, found("csrc/include", "*.h", "*.hpp")):
            yield path, Path(self.build_lib, "spcomm", "include", path.relative_to("csrc/include"))
        data = Path(self.build_lib, "spcomm", "data")
        for path in map(Path, found("examples", "*") + found("exercises", "*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, data / path
        for path in [*Path().glob("*.md"), *map(Path, found("csrc", "*.md") + found("docs", "*.md"))]:
            yield path, data / "documents" / path

    def get_outputs(self, include_bytecode=True):
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else outputs + [str(copy) for _, copy in self.data_copies()]


class InstallModules(install_lib):
    """What is packed or installed has no debug information, four fifths of it; the build keeps its own."""

    def install(self):
        copies = super().install()
        compiled = [path for path in copies or [] if path.endswith((".so", ".a"))]
        if compiled and (strip := shutil.which("strip")):
            subprocess.run([strip, "-S", *compiled], check=True)
        return copies


EXTENSIONS = [
    Extension(
        name=source.removesuffix(".pyx").replace("/", "."),
        sources=[source],
        depends=[*HEADERS, *SOURCES, "setup.py"],
        include_dirs=["csrc", "csrc/include"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
    )
    for source in found("spcomm/_core", "*.pyx")
]
# Plain C, and nothing of the core: NumPy's interface for dtypes is one for C (docs/internals/net_types.md).
EXTENSIONS.append(
    Extension(
        name="spcomm._core.net_types",
        sources=found("spcomm/_core", "net_types*.c"),
        depends=[*found("spcomm/_core", "net_types*.h"), *HEADERS, "setup.py"],
        include_dirs=["csrc/include"],
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
    )
)

CORE = {
    "sources": SOURCES,
    "depends": [*HEADERS, "setup.py"],
    "include_dirs": ["csrc", "csrc/include"],
    "cflags": FLAGS,
}

setup(
    libraries=[("spc", CORE)] if SOURCES else [],
    ext_modules=EXTENSIONS,
    cmdclass={
        "build_clib": BuildCore,
        "build_ext": BuildExtensions,
        "build_py": BuildModules,
        "install_lib": InstallModules,
    },
)
