# SPDX-License-Identifier: MIT
"""Each function of spcomm.h refuses what the catalogue of refusals says of its arguments, and does nothing."""

import re
from pathlib import Path

import pytest

import refusals
import spcomm

CSRC = Path(__file__).parents[1] / "csrc"
HEADER = Path(spcomm.__file__).parents[1] / "csrc" / "include" / "spcomm" / "spcomm.h"
FUNCTION = re.compile(r"^int (spcomm_\w+)\(([^)]*)\);", re.MULTILINE)
# Good values of parameters, or of parameters of a type; other pointers point to zeros.
GOOD = {
    "spcomm_t *comm": "comm", "spcomm_handler_t *handler": "handle", "int64_t *counts": "NULL",
    "spcomm_data_t values": "numbers", "spcomm_data_t": "spcomm_none()", "spcomm_simtime_t": "spcomm_simtime_from(0)",
    "int32_t": "0", "int64_t": "0", "double": "0",
}  # fmt: skip
PROGRAM = """\
#include "api_check.h"
static int handle(spcomm_t *where, spcomm_message_t *message, void *argument) {{
    return where == NULL && message == NULL && argument == NULL;
}}
int main(int argc, char **argv) {{
    static _Alignas(16) char room[1 << 16];
    const int64_t length = 4;
    const spcomm_data_t numbers = spcomm_array(room, 'f', 8, 1, &length);
    spcomm_t *comm = api_start(argc, argv), *closed;
    spcomm_message_t message;
    CHECK_OK(spcomm_split(comm, 0, 0, SPCOMM_FOREVER, &closed));
    CHECK_OK(spcomm_shutdown(closed, SPCOMM_FOREVER));
{calls}
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* none of these has entered or sent anything */
    CHECK(spcomm_try_recv(comm, SPCOMM_ANY, SPCOMM_ANY, &message) == SPCOMM_EAGAIN);
    return spcomm_shutdown(comm, SPCOMM_FOREVER);
}}
"""


def functions():
    """The functions of a communicator, with their parameters."""
    for name, text in FUNCTION.findall(HEADER.read_text()):
        if text.startswith("spcomm_t *comm"):
            yield name, " ".join(text.replace("const ", "").split()).split(", ")


def good(parameter):
    kind = parameter.rpartition(" ")[0]
    return GOOD.get(parameter) or ("(void *)room" if "*" in parameter else GOOD[kind])


def calls():
    """A line of C for each call that must fail."""
    for function, parameters in functions():
        text = ", ".join(parameters)
        for at, parameter in enumerate(parameters):
            for row in refusals.of(re.search(r"\w+$", parameter)[0]):
                # Numbers are for numbers, pointers for pointers; some nodes get no result, and may give NULL for it.
                is_ignored = row.c == "NULL" and at and ("root" in text or function == "spcomm_exscan")
                if row.c and ("*" in parameter) == (row.c in ("NULL", "closed")) and not is_ignored:
                    values = [*map(good, parameters[:at]), row.c, *map(good, parameters[at + 1 :])]
                    yield f'CHECK_FAILS({function}({", ".join(values)}), SPCOMM_{row.error}, "{row.sentence}");'


@pytest.fixture(scope="session")
def program(compiler):
    source = compiler.folder / "refusals.c"
    source.write_text(PROGRAM.format(calls="\n".join(f"    {line}" for line in calls())))
    return compiler(source, "-D_GNU_SOURCE", f"-I{CSRC}")


def test_each_row_about_c_is_tried():
    named = {name for row in refusals.REFUSALS if row.c for name in row.arguments.split()}
    assert not named - {re.search(r"\w+$", one)[0] for _, parameters in functions() for one in parameters}
    assert all(f'"{row.sentence}"' in "\n".join(calls()) for row in refusals.REFUSALS if row.c)


@pytest.mark.parametrize("n", [1, 2])
def test_under_the_launcher(program, n, launch):
    result = launch("-n", n, program)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_alone(program, alone):
    assert alone(program, 2) == (0, "", "")
