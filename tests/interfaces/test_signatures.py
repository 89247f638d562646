# SPDX-License-Identifier: MIT
"""C++ has each function of the paper with exactly its types; the headers compile everywhere they should."""

import pytest

import signatures
from pairwise import each


def program(table):
    """A program that only compiles if there is a function of each of these types."""
    lines = ["#include <spcomm/speedescomm.hpp>", "#include <type_traits>"]
    for signature in table:
        pointer = signature.pointer
        lines += [
            f"static_assert(std::is_same<decltype(static_cast<{pointer}>(&{signature.name})), {pointer}>::value,",
            f'              "{signature}");',
        ]
    return "\n".join([*lines, "int main() { return 0; }", ""])


def test_the_table_is_the_papers():
    assert len(signatures.PAPER) == 24
    assert len({signature.name for signature in signatures.PAPER}) == 14
    assert len({str(signature) for signature in signatures.ALL}) == 25
    send = signatures.PAPER[14]
    assert (send.types, send.inputs) == (("int", "int", "int", "void *"), ("dest", "type", "nbytes", "buff"))


@pytest.mark.parametrize("signature", each(8, [*signatures.ALL, *signatures.NET]), ids=str)
def test_cxx_has(signature, compiler, tmp_path):
    source = tmp_path / "one.cpp"
    source.write_text(program([signature]))
    answer = compiler.run(source)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
@pytest.mark.slow
def test_cxx_has_all_of_them_together(standard, compiler, tmp_path):
    source = tmp_path / "all.cpp"
    source.write_text(program([*signatures.ALL, *signatures.NET]))
    answer = compiler.run(source, f"-std={standard}")
    assert answer.returncode == 0, answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("SpComm_Send", {"parameters": (("long", "dest"), *signatures.PAPER[14].parameters[1:])}),
        ("SpComm_GlobalSum", {"parameters": (("SpSimTime", "simTime"),), "returns": "SpSimTime"}),
        ("SpComm_GetNumNodes", {"returns": "long"}),
    ],
)
def test_another_type_does_not_compile(name, change, compiler, tmp_path):
    """The tests above can fail."""
    found = next(signature for signature in signatures.PAPER if signature.name == name)
    source = tmp_path / "other.cpp"
    source.write_text(program([found._replace(**change)]))
    assert compiler.run(source).returncode != 0


@pytest.mark.parametrize(
    ("suffix", "standard"),
    [
        (".c", "c11"),
        pytest.param(".c", "c17", marks=pytest.mark.slow),
        (".cpp", "c++11"),
        pytest.param(".cpp", "c++17", marks=pytest.mark.slow),
        (".cpp", "c++20"),
    ],
)
@pytest.mark.parametrize("header", ["spcomm.h", "simtime.h", "destination.h", "speedescomm.hpp"])
def test_headers_stand_alone(header, suffix, standard, compiler, tmp_path):
    if header.endswith(".hpp") and suffix == ".c":
        pytest.skip("a C++ header")
    source = tmp_path / f"header{suffix}"
    source.write_text(
        f"#include <spcomm/{header}>\n#include <spcomm/{header}>\nint main(void) {{ return 0; }}\n"
    )
    answer = compiler.run(source, f"-std={standard}")
    assert answer.returncode == 0, answer.stderr


@pytest.mark.slow
def test_two_files_of_one_program_may_include_it(compiler, tmp_path):
    """Header-only: no function is defined twice."""
    (tmp_path / "other.cpp").write_text(
        "#include <spcomm/speedescomm.hpp>\nint other() { return SpComm_GetNumNodes(); }\n"
    )
    (tmp_path / "two.cpp").write_text(
        "#include <spcomm/speedescomm.hpp>\nint other();\n"
        "int main() { SpComm_StartUp(0, 0, 0, nullptr); return other() - SpComm_GetNumNodes(); }\n"
    )
    compiler(tmp_path / "two.cpp", str(tmp_path / "other.cpp"))
