# SPDX-License-Identifier: MIT
"""The options of `%%spcomm` and the commands of `%spcomm`."""

import pytest

from spcomm.notebook.magic_options import MagicError, command, ends_silently, parse


def fields(line):
    return {name: value for name, value in vars(parse(line, 64)).items() if value not in (None, False)}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {}),
        ("-n 4", {"nodes": 4}),
        ("-n4", {"nodes": 4}),
        ("-n=64", {"nodes": 64}),
        ("--timeout 2.5 --trace", {"timeout": 2.5, "trace": True}),
        ("--watch -n 2", {"nodes": 2, "watch": True}),
        ("-n 4 --boxes 2", {"nodes": 4, "boxes": 2}),
        ("-n 4 --room desk:7800", {"nodes": 4, "room": "desk:7800"}),
        ("--timeout=3 -n 1 --fresh --group", {"timeout": 3.0, "nodes": 1, "fresh": True, "group": True}),
    ],
)
def test_what_options_say(line, found):
    assert fields(line) == found


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("-n", "-n needs a value: -n N"),
        ("--room --trace", "--room needs a value: --room HOST.*, and --trace is an option"),
        ("-n four", "-n four: the number of nodes is 1 to 64"),
        ("-n 65", "-n 65: the number of nodes is 1 to 64"),
        ("-n " + "9" * 5000, "-n " + "9" * 40 + r"\.\.\.: the number of nodes is 1 to 64"),
        ("--timeout " + "9" * 5000, "--timeout " + "9" * 40 + r"\.\.\.: a timeout is"),
        ("-n -1", "-n -1: the number of nodes is 1 to 64"),
        ("--boxes 0", "--boxes 0: the number of boxes is 1 to 64"),
        ("-n 2.5", "-n 2.5: the number of nodes is 1 to 64"),
        ("--timeout", "--timeout needs a value: --timeout TIME"),
        ("--timeout nan", "--timeout nan: a timeout is more than 0, and a number with a unit"),
        ("--room", "--room needs a value: --room HOST"),
        ("--timeout 0", "--timeout 0: a timeout is"),
        ("--timeout inf", "--timeout inf: a timeout is"),
        ("--freshh", r"unknown option --freshh; did you mean --fresh\?; there are -n N, --boxes B"),
        ("--trace=1", "--trace takes no value, but was given '1'"),
        ("-q", "unknown option -q; there are -n N"),
        ("4", "'4' is not an option; the program belongs in the lines below"),
    ],
)
def test_options_that_make_no_sense(line, text):
    with pytest.raises(MagicError, match=f"^%%spcomm: {text}") as error:
        parse(line, 64)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("push a b", ("push", ["a", "b"])),
        ("pull a", ("pull", ["a"])),
        ("status", ("status", [])),
        ("stop", ("stop", [])),
    ],
)
def test_what_commands_say(line, found):
    assert command(line) == found


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "%spcomm: a command is missing; there are push NAME…, pull NAME…, run"),
        ("pusch a", "%spcomm: there is no command 'pusch'; there are"),
        ("-n 4", "%spcomm: there is no command '-n'; .* options belong to a cell: %%spcomm"),
        ("push", "%spcomm push: name the variables, as in %spcomm push x"),
        ("pull 3", "%spcomm pull 3: that is not the name of a variable"),
        ("stop now", "%spcomm stop: it takes no argument, but was given 'now'"),
    ],
)
def test_commands_that_make_no_sense(line, text):
    with pytest.raises(MagicError, match=f"^{text}"):
        command(line)


@pytest.mark.parametrize(
    ("cell", "silent"),
    [
        ("x", False),
        ("x;", True),
        ("x;  # note\n\n", True),
        ("x  # note;", False),
        ("'a;'", False),
        ("", False),
    ],
)
def test_a_semicolon_hides_the_result(cell, silent):
    assert ends_silently(cell) is silent
