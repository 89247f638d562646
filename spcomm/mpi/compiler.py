# SPDX-License-Identifier: MIT
"""`spcomm mpicc` and `spcomm mpicxx`: a C or C++ compiler that finds mpi.h and spcomm's MPI library."""

import os
import shlex
import shutil
import sys

from spcomm import mpi
from spcomm.argument_parser import ArgumentParser

# (variable that names the compiler, compilers in the order in which they are tried)
_COMPILERS = {
    "mpicc": ("SPCOMM_CC", ("cc", "gcc", "clang")),
    "mpicxx": ("SPCOMM_CXX", ("c++", "g++", "clang++")),
}
_LANGUAGES = {"mpicc": "C", "mpicxx": "C++"}
_WITHOUT_LINKING = {"-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"}


def parser(name: str) -> ArgumentParser:
    """Return the parser of `spcomm mpicc` or `spcomm mpicxx`."""
    variable, compilers = _COMPILERS[name]
    ending = "c" if name == "mpicc" else "cpp"
    rows = [
        ("--showme, -show", "print the command in place of running it"),
        ("--showme:compile, -compile_info", "print the options for compiling"),
        ("--showme:link, -link_info", "print the options for linking"),
        ("--showme:command", "print the compiler"),
        ("--showme:incdirs", "print the folder of mpi.h"),
        ("--showme:libdirs", "print the folder of the library"),
        ("--showme:libs", "print the name of the library"),
        ("--showme:version", "print the version of spcomm"),
    ]
    made = ArgumentParser(
        f"spcomm {name}",
        f"spcomm {name} [compiler's words]",
        f"Compiles and links an MPI program in {_LANGUAGES[name]}, which spcomm run starts:\n\n"
        f"  spcomm {name} hello.{ending} -o hello && spcomm run -n 4 ./hello",
        f"All other words go to the compiler: ${variable}, else the first of {', '.join(compilers)} that is "
        "installed. CC and CXX are not read, since makefiles set them to the names of MPI's compilers. Macros make "
        "calls note their lines for reports; a file that defines MPI functions itself needs -USPCOMM_MPI_LINES. "
        "spcomm config --mpi-bin prints a folder in which the command has its plain name.",
        completed="FILE",
    )
    made.sections.append(("", rows))
    return made


def compiling() -> "list[str]":
    """Return the options for compiling, as words. With them each MPI call notes its line for reports."""
    return [f"-I{mpi.folder('include')}", "-DSPCOMM_MPI_LINES"]


def linking() -> "list[str]":
    """Return the options for linking, as words; they follow the program's own files.

    On Linux the folder goes into the RPATH, which the loader searches before LD_LIBRARY_PATH, where another
    MPI may lie.
    """
    folder = mpi.folder("lib")
    tags = ["-Wl,--disable-new-dtags"] if sys.platform.startswith("linux") else []
    return [f"-L{folder}", *tags, f"-Wl,-rpath,{folder}", "-lmpi_abi"]


def main(words: "list[str]", name: str) -> int:
    """Entry point of `spcomm mpicc` and `spcomm mpicxx`: runs the compiler in place of this process."""
    if "-h" in words or "--help" in words:
        print(parser(name).format_help(), end="")
        return 0
    variable, compilers = _COMPILERS[name]
    chosen = shlex.split(os.environ.get(variable, ""))
    compiler = chosen or [found for found in compilers if shutil.which(found)][:1]
    if not compiler or not shutil.which(compiler[0]):
        missing = f"{variable} is {compiler[0]}, which" if chosen else f"none of {', '.join(compilers)}"
        print(
            f"spcomm {name}: {missing} is {'not ' if chosen else ''}installed; on Debian and Ubuntu: apt install g++",
            file=sys.stderr,
        )
        return 125
    shown = next((word for word in words if _question(word)), None)
    rest = [word for word in words if word != shown]
    has_files = any(not word.startswith("-") for word in rest)
    is_linking = (has_files or shown is not None) and not _WITHOUT_LINKING & set(rest)
    line = [*compiler, *compiling(), *rest, *(linking() if is_linking else [])]
    if shown is not None:
        answers = _answers(line, compiler)
        answer = answers.get(_question(shown))
        if answer is None:
            print(f"spcomm {name}: {shown}: there are {', '.join(answers)} after --showme:", file=sys.stderr)
            return 125
        print(answer)
        return 0
    try:
        os.execvp(line[0], line)
    except OSError as error:
        print(f"spcomm {name}: {line[0]} cannot be executed: {error.strerror}", file=sys.stderr)
        return 126


def _question(word: str) -> str:
    """Return what a word asks for: `compile`, `link` …; "" if the word is for the compiler."""
    bare = word.lstrip("-").replace("-", "_")
    if not word.startswith("-"):
        return ""
    if bare in ("show", "showme"):
        return "all"
    if bare in ("compile_info", "link_info"):
        return bare.removesuffix("_info")
    return bare.removeprefix("showme:") if bare.startswith("showme:") else ""


def _answers(line: "list[str]", compiler: "list[str]") -> "dict[str, str]":
    from importlib.metadata import version

    return {
        "all": shlex.join(line),
        "compile": shlex.join(compiling()),
        "link": shlex.join(linking()),
        "command": shlex.join(compiler),
        "incdirs": mpi.folder("include"),
        "libdirs": mpi.folder("lib"),
        "libs": "mpi_abi",
        "version": f"spcomm {version('spcomm')}",
    }
