# SPDX-License-Identifier: MIT
"""The headers that stand alone compile as C11 and as C++11, each by itself, without a warning."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"
HEADERS = ["spcomm/simtime.h", "spcomm/destination.h", "spcomm/net_types.h"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
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
