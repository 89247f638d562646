# SPDX-License-Identifier: MIT
"""C, C++ and Python nodes in one run: what crosses the border between languages, and what cannot."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize("start", ["fork", "exec"])
def test_c_and_python(half, start, compiler, launch):
    program = compiler(PROGRAMS / "mixed.c", "-D_GNU_SOURCE")
    python = ["-n", half, "--start", start, PROGRAMS / "mixed.py"]
    result = launch("--no-label", "-n", half, program, ":", *python)
    assert (result.code, sorted(result.lines)) == (0, ["C is done"] * half + ["Python is done"] * half), (
        result
    )
    assert result.err == ""


def test_cxx_and_python(compiler, launch):
    """The paper's functions give C++ the bytes of whatever it can read; what they send is `bytes` in Python."""
    source = launch.script(
        r"""
        #include <cstdio>
        #include <spcomm/speedescomm.hpp>
        int main() {
            SpComm_StartUp(0, 0, 0, nullptr);
            int nbytes, sum = SpComm_GlobalSum(1);
            char text[] = "from C++";
            SpComm_Send(1, 5, sizeof(text) - 1, text);
            for (int type = 6; type <= 8; type++) {
                void *found;
                try {
                    while ((found = SpComm_Receive(type, nbytes)) == nullptr) {
                    }
                    std::printf("%d bytes of type %d, sum %d\n", nbytes, type, sum);
                    delete[] static_cast<char *>(found);
                } catch (const SpCommError &error) {
                    std::printf("%s\n", error.what());
                }
            }
            return 0;
        }
        """,
        "cxx.cpp",
    )
    node = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        comm.global_sum(1)
        assert comm.recv(0, 5) == b"from C++"
        comm.send(2.5, 0, 6)
        comm.send({"no": 1}, 0, 7)
        comm.send("text", 0, 8)
        """,
        "node.py",
    )
    result = launch("--no-label", "-n", 1, compiler(source), ":", "-n", 1, node)
    assert result.code == 0, result
    first, second, third = result.lines
    assert (first, third) == ("8 bytes of type 6, sum 2", "4 bytes of type 8, sum 2")
    assert second.startswith("SpComm_Receive(type, nbytes): the message from node 1 (tag 7) is a Python dict")


def test_different_operations_are_named_in_both(compiler, launch):
    source = launch.script(
        r"""
        #include <spcomm/spcomm.h>
        #include <stdio.h>
        int main(void) {
            spcomm_t *comm;
            spcomm_startup(0, 0, 0, NULL, &comm);
            printf("%d %s\n", spcomm_barrier(comm, SPCOMM_FOREVER), spcomm_last_error());
            return 0;
        }
        """,
        "barrier.c",
    )
    node = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        try:
            comm.global_max(1.5)
        except spcomm.MismatchError as error:
            print(str(error).replace(chr(10), " "))
        """,
        "node.py",
    )
    result = launch("--no-label", "-n", 1, compiler(source), ":", "-n", 1, node)
    assert result.code == 0, result
    in_c, in_python = sorted(result.lines)
    assert in_c.startswith(
        "-10 spcomm_barrier(): the nodes called different operations: node 0 barrier(), node 1 global_max() of a float"
    )
    assert "node 0: barrier()" in in_python
    assert "node 1: global_max() of a float" in in_python
