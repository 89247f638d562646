# SPDX-License-Identifier: MIT
"""Each header compiles by itself; those that stand alone also as C++11. A macro that `#if` asks for is included."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from checkout import ROOT, fail_with, files, relative

INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"
HEADERS = ["spcomm/simtime.h", "spcomm/destination.h", "spcomm/net_types.h"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
# Macros of systems and libraries by the headers that define them; an undefined one would count as 0.
OF_HEADERS = {
    r"_POSIX_\w+": "unistd.h",
    r"SIG\w+": "signal.h",
    r"RLIMIT_\w+": "sys/resource.h",
    r"(MADV|MAP|PROT)_\w+": "sys/mman.h",
    r"(SYS|__NR)_\w+": "sys/syscall.h",
    r"PR_\w+": "sys/prctl.h",
    r"(MSG|SO|AF)_\w+": "sys/socket.h",
    r"__GLIBC\w+": r"\w+.h",  # each header of the C library
    r"(Py|PY)\w+": "Python.h|.*net_types.h",
}
# Names that no header defines: those of the compiler, and answers to it.
OF_COMPILERS = r"defined|__(?!GLIBC|NR_)\w+|_(GNU|DARWIN_C)_SOURCE|[a-z_]+"
PROGRAM = """
#include "spcomm/simtime.h"
#include "spcomm/destination.h"
int main(void) {
    spcomm_simtime_t early = spcomm_simtime_from(1.5), late = early;
    late.priority[3] = 1;
    spcomm_destination_t to = {{0}, 0, 0};
    if (spcomm_destination_set(&to, 1000) != 0 || spcomm_destination_set(&to, 3) != 0) {
        return 1;
    }
    return !(spcomm_simtime_compare(early, late) < 0 && spcomm_destination_first(&to) == 3
             && spcomm_destination_next(&to) == 1000 && spcomm_destination_next(&to) == -1);
}
"""


def compiler(language):
    names = {
        "c": [os.environ.get("CC"), "cc", "gcc"],
        "c++": [os.environ.get("CXX"), "c++", "g++", "clang++"],
    }
    for name in filter(None, names[language]):
        command = name.split()
        if shutil.which(command[0]):
            return command
    pytest.skip(f"there is no compiler for {language} on this machine")


def compile(language, source, *options):
    standard = {"c": "-std=c11", "c++": "-std=c++11"}[language]
    command = [*compiler(language), standard, *WARNINGS, f"-I{INCLUDE}", *options, "-x", language, "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_by_itself_and_twice(language, header):
    compile(
        language,
        f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n',
        "-fsyntax-only",
    )


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program(language, tmp_path):
    compile(language, PROGRAM, "-o", str(tmp_path / "program"))
    assert subprocess.run([tmp_path / "program"]).returncode == 0


def test_a_header_of_the_core_by_itself():
    """In one call of the compiler, which names each header that does not compile."""
    # Those of csrc/mpi include the mpi.h of an ABI, which the build makes.
    headers = [path for path in files(".h", below="csrc") if "csrc/mpi" not in path.as_posix()]
    assert len(headers) > 50
    options = ["-D_GNU_SOURCE", "-Wundef", f"-I{ROOT / 'csrc'}", "-fsyntax-only", *map(str, headers)]
    compile("c", "int nothing_more;\n", *options)


def test_a_macro_that_is_asked_for_is_included():
    """The headers of one C library include each other where those of another do not."""
    texts = {
        path: re.sub(r"/\*.*?\*/|\\\n", " ", path.read_text(), flags=re.DOTALL)
        for top in ("csrc", "spcomm", "tests")
        for path in files(".c", ".h", ".cpp", ".hpp", below=top)
    }
    ours = set(re.findall(r"^\s*#\s*define\s+(\w+)", "\n".join(texts.values()), re.MULTILINE))
    ours |= {"SPC_WAIT_ENDLESS_SLICES", "SPC_MPI_STANDARD_ABI"}  # builds define them
    ours |= {"SPCOMM_MPI_LINES"}  # spcomm mpicc defines it, for the mpi.h that builds make
    ours |= {"QUICK", "CLEAR_LATE"}  # tests/models/run defines them
    fail_with([f"{relative(path)} {said}" for path, text in texts.items() for said in unincluded(text, ours)])


def unincluded(text, ours):
    """Complaints about the macros of a file that no include above them defines."""
    for found in re.finditer(r"^\s*#\s*(?:el)?if(?:n?def)?\b(.*)", text, re.MULTILINE):
        for name in re.findall(r"\b[A-Za-z_]\w*", found[1]):
            if wanted := [header for macro, header in OF_HEADERS.items() if re.fullmatch(macro, name)]:
                if not re.search(rf'#\s*include\s+[<"]({wanted[0]})[>"]', text[: found.start()]):
                    yield f"asks for {name}, and does not include {wanted[0]} above"
            elif name not in ours and not re.fullmatch(OF_COMPILERS, name):
                yield f"asks for {name}, which no file defines: add its header to OF_HEADERS"
