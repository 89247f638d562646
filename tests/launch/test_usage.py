# SPDX-License-Identifier: MIT
"""Command lines: what they mean, and one clear sentence for each that cannot be obeyed."""

import os
import subprocess
import sys

import pytest

from spcomm import cli
from spcomm.launch.base.process import interpreter_flags
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline import options, table
from spcomm.launch.cmdline.groups import Group
from spcomm.launch.cmdline.options import parse
from spcomm.launch.cmdline.ranks import ranks


def only(found):
    """The options of the only program."""
    (part,) = found.parts
    return part


def test_the_first_word_that_is_no_option_is_the_program():
    found = parse(["-n", "4", "-l", "x.py", "-n", "9", "--", "-m"])
    part = only(found)
    assert (part.nodes, found.label) == (4, True)
    assert (part.program, part.arguments) == ("x.py", ["-n", "9", "--", "-m"])


@pytest.mark.parametrize("words", [["-n4"], ["-np", "4"], ["-np4"], ["-n=4"], ["-n", "04"]], ids=str)
def test_spellings_of_the_number(words):
    assert only(parse([*words, "x.py"])).nodes == 4


def test_a_module_takes_the_rest():
    found = parse(["--timeout=2.5", "-m", "package.module", "-n", "3"])
    part = only(found)
    assert (found.timeout, part.module, part.program) == (2.5, "package.module", None)
    assert part.arguments == ["-n", "3"]


@pytest.mark.parametrize(
    ("word", "tool", "nodes"),
    [
        ("--debug", None, {0}),
        ("--debug=2", None, {2}),
        ("--debug=pdb", "pdb", {0}),
        ("--debug=gdb:3", "gdb", {3}),
        ("--debug=debugpy:all", "debugpy", {0, 1, 2, 3}),
        ("--debug=all", None, {0, 1, 2, 3}),
    ],
)
def test_spellings_of_debug(word, tool, nodes):
    found = parse([word, "x.py"])
    assert only(found).program == "x.py"
    assert (found.debug.tool, found.debug.ranks.indices(worlds((0, 4)))) == (tool, nodes)
    assert found.stall == 0, "who sits at a debugger keeps the others waiting"


@pytest.mark.parametrize(
    ("words", "seconds"), [([], 5.0), (["--stall", "2.5"], 2.5), (["--stall=0"], 0.0)], ids=str
)
def test_spellings_of_stall(words, seconds):
    assert parse([*words, "x.py"]).stall == seconds


def worlds(*pairs):
    """Groups with such numbers and sizes."""
    made, first = [], 0
    for number, size in pairs:
        made.append(Group(number, first, size))
        first += size
    return made


@pytest.mark.parametrize(
    ("text", "pairs", "nodes"),
    [
        ("none", [(0, 4)], set()),
        ("all", [(0, 4)], {0, 1, 2, 3}),
        ("0,2-3", [(0, 4)], {0, 2, 3}),
        ("3, 1", [(0, 4)], {1, 3}),
        ("0:1", [(0, 4)], {1}),
        ("all", [(7, 2), (2, 3)], {0, 1, 2, 3, 4}),
        ("2:0-1,7:1", [(7, 2), (2, 3)], {1, 2, 3}),
        ("2:all", [(7, 2), (2, 3)], {2, 3, 4}),
    ],
)
def test_ranks(text, pairs, nodes):
    assert ranks("--show", text).indices(worlds(*pairs)) == nodes


@pytest.mark.parametrize(
    ("text", "pairs", "words"),
    [
        ("4", [(0, 4)], "there is no node 4; this run has nodes 0 to 3 (-n 4)"),
        ("1-9999999999", [(0, 4)], "there is no node 9999999999"),
        ("1", [(0, 1)], "there is no node 1; this run has node 0 only (-n 1)"),
        ("0", [(7, 2), (2, 3)], "of which group? This run has several; write --show 7:0"),
        ("3:0", [(7, 2), (2, 3)], "there is no group 3; this run has 7, 2"),
        ("7:2", [(7, 2), (2, 3)], "there is no node 2; group 7 has nodes 0 to 1"),
    ],
)
def test_ranks_that_are_not_there(text, pairs, words):
    with pytest.raises(UsageError) as caught:
        ranks("--show", text).indices(worlds(*pairs))
    assert str(caught.value).startswith(f"spcomm run: --show {text}: ") and words in str(caught.value)


def test_two_dashes_end_the_options():
    assert only(parse(["-n", "2", "--", "-odd"])).program == "-odd"


def test_a_value_after_an_equals_sign_may_begin_with_a_dash():
    assert parse(["--trace=-x", "x.py"]).trace == "-x"


def test_what_other_launchers_take_is_taken():
    found = parse(["--oversubscribe", "--allow-run-as-root", "--use-hwthread-cpus", "--tag-output", "x.py"])
    assert found.label is True and only(found).program == "x.py"


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("64K", 65536), ("2m", 2 << 20), ("1G", 1 << 30), ("8KiB", 8192), ("3MB", 3 << 20)],
)
def test_sizes(text, value):
    assert parse(["--ring", text, "x.py"]).buffers == {"ring": value}


def test_the_limit_of_nodes_is_that_of_the_core():
    from spcomm._core import segments

    assert segments.NODES_MAX == options.MOST_NODES
    assert set(segments.LIMITS) >= set(table.BUFFERS)


def test_programs_are_separated_by_a_colon():
    found = parse(
        ["-n", "2", "a.py", "-n", "9", ":", "-n3", "--group=4", "-x", "A=b=c", "-x", "B", "-m", "mod", "x"]
    )
    one, two = found.parts
    assert (one.nodes, one.group, one.program, one.arguments) == (2, 0, "a.py", ["-n", "9"])
    assert (two.nodes, two.group, two.module, two.arguments) == (3, 4, "mod", ["x"])
    assert two.exports == [("A", "b=c"), ("B", None)] and one.exports == []


def test_options_of_the_whole_run_are_taken_with_any_program():
    words = ["-n", "1", "--timeout", "5", "--ring", "4M", "a.py", ":", "-n", "1", "-l", "--ring=4096K"]
    found = parse([*words, "--timeout", "5.0", "b.py"])
    assert (found.timeout, found.label, found.buffers) == (5.0, True, {"ring": 4 << 20})


def test_the_last_of_two_is_meant_with_one_program():
    assert parse(["--timeout", "5", "--timeout", "6", "-l", "--no-label", "a.py"]).timeout == 6


@pytest.mark.parametrize(
    ("word", "argument"),
    [
        ("\\:", ":"),
        ("\\\\:", "\\:"),
        ("::", "::"),
        ("\\", "\\"),
        ("a:", "a:"),
        ("\\a:", "\\a:"),
        (":\\:", ":\\:"),
    ],
)
def test_an_escaped_colon_is_an_argument(word, argument):
    found = parse(["a.py", word])
    assert only(found).arguments == [argument]


@pytest.mark.parametrize("name", ["\udcff", "½..", "ä" * 80])
def test_hosts_that_no_system_can_look_up(name):
    from spcomm.launch.room.prompt import place

    with pytest.raises(UsageError, match="is neither a name nor an address of a machine"):
        parse(["--boxes", "2", "--listen", name, "x.py"])
    with pytest.raises(UsageError, match="is neither a host nor HOST:PORT"):
        place("spcomm run", f"{name}:1")
    assert parse(["--boxes", "2", "--listen", "zürich", "x.py"]).listen == "zürich"


def test_a_group_may_have_leading_zeros_and_its_limit():
    assert only(parse(["--group", "0" * 30 + "7", "a.py"])).group == 7
    assert only(parse(["--group", "2147483647", "a.py"])).group == 2147483647


def test_groups_may_have_more_nodes_together_than_one_has():
    assert len(parse(["-n", "1024", "a.py", ":", "-n", "1024", "--group", "1", "a.py"]).parts) == 2


def test_help_with_any_program():
    assert parse(["-n", "1", "a.py", ":", "--help"]).help


def by_shell(launch, command, *arguments):
    """The result of a run that a shell starts; `"$@"` in its command stands for the run."""
    return launch.call("/bin/sh", "-c", command, "sh", *launch.command(*arguments))


@pytest.mark.linux("others refuse to remove it, or to start there")
@pytest.mark.parametrize(
    "words",
    [
        ["hello.py"],
        ["-m", "hello"],
        ["--wdir", "x", "/bin/true"],
        ["--host", "alpha", "/bin/true"],
        ["--room", "127.0.0.1:1", "/bin/true"],
    ],
    ids=str,
)
def test_a_folder_that_is_gone(launch, words):
    result = by_shell(launch, 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "-n", 1, *words)
    assert result.code == 125 and result.err.startswith("spcomm run: "), result
    assert "the current folder does not exist any more" in result.last and result.err.count("\n") == 1


def test_a_program_is_found_from_a_folder_that_is_gone(launch):
    script = launch.script("open(__file__ + '.ran', 'w')")
    assert by_shell(launch, 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "-n", 1, script).code == 0
    assert os.path.exists(f"{script}.ran")


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others refuse to remove it, or to start there"
)
def test_a_box_may_start_in_a_folder_that_is_gone(launch):
    from launching import stand_in_for_ssh

    script = launch.script("open(__file__ + '.ran', 'w')")
    words = ("--ssh", stand_in_for_ssh(launch.folder), "--host", "alpha:1", "--wdir", launch.folder, script)
    result = by_shell(launch, 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', *words)
    assert result.code == 0 and os.path.exists(f"{script}.ran"), result


def test_help_without_a_stdout(launch):
    assert (found := by_shell(launch, 'exec "$@" >&-', "--help")).code == 0 and not found.err, found


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_on_a_full_disk(launch, word):
    result = by_shell(launch, 'exec "$@" > /dev/full', word)
    assert result.code == 125, result
    assert result.err == "spcomm run: its output cannot be written: No space left on device (exit code 125)\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_keeps_the_exit_code(launch):
    assert by_shell(launch, 'exec "$@" 2> /dev/full', "-n", 2, "missing.py").code == 127


def test_a_number_of_nodes_after_the_program_is_its_own_and_told(launch):
    launch.script("import sys\nprint(sys.argv[1:])", "hello.py")
    result = launch("hello.py", "-n", "1")
    assert result.code == 0 and set(result.lines) == {"['-n', '1']"}, result
    assert result.err.startswith("spcomm: note: -n 1 after hello.py is an argument of the program; ")
    assert result.err.endswith(": spcomm run -n 1 hello.py\n")
    assert launch("-n", 1, "hello.py", "-n", "1").err == "" == launch("hello.py", "-n", "x").err


def test_an_option_after_the_program_is_its_own_and_told_unless_the_program_knows_it(launch):
    launch.script("import sys\nprint(sys.argv[1:])", "hello.py")
    result = launch("-n", 1, "hello.py", "--timeout", "4")
    assert result.code == 0 and result.lines == ["['--timeout', '4']"], result
    assert result.err == (
        "spcomm: note: --timeout … after hello.py is an argument of the program; options of spcomm run come before it: "
        "spcomm run --timeout … hello.py\n"
    )
    assert "run --trace=t.json hello.py" in launch("-n", 1, "hello.py", "--trace=t.json").err
    assert launch("-n", 1, "hello.py", "--other").err == ""
    launch.script("import sys\nprint('--timeout' in sys.argv)", "own.py")
    assert launch("-n", 1, "own.py", "--timeout", "4").err == ""


def test_a_python_script_without_its_ending_runs_from_its_first_line(launch):
    launch.script("#!/usr/bin/env python3\nprint('hello')", "tool")
    assert launch("-n", 1, "tool").lines == ["hello"]


def test_an_executable_that_the_system_refuses(launch):
    path = launch.script("neither a script nor a program", "strange")
    path.chmod(0o755)
    result = launch("-n", 1, "./strange")
    assert result.code == 126 and "cannot execute" in result.err, result


def test_the_default_is_one_node_per_usable_core(launch):
    from spcomm._core import segments

    assert len(launch.program("print('x')").lines) == max(1, int(segments.cores()))


FLAGS = (
    *[(), ("-O", "-B"), ("-OO", "-v"), ("-I",), ("-E", "-s"), ("-P",), ("-W", "error", "-b"), ("-q", "-S")],
    *[("-bb", "-X", "dev"), ("-X", "utf8", "-X", "faulthandler")],
)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_interpreter_flags_are_those_of_subprocess(launch, flags):
    import spcomm

    root = os.path.dirname(spcomm.__path__[0])
    code = (
        f"import sys; sys.path.insert(0, {root!r})\n"
        "import subprocess, spcomm.launch.base.process as p\n"
        "print(sorted(p.interpreter_flags()) == sorted(' '.join(subprocess._args_from_interpreter_flags())"
        ".replace('-X ', '-X').split()), p.interpreter_flags(), subprocess._args_from_interpreter_flags())"
    )
    result = launch.python(*flags, "-c", code)
    assert result.out.startswith("True"), result
    assert isinstance(interpreter_flags(), list)


# Prints what each command says, each in a process of its own, since `spcomm run` ends it.
TEXTS = """
import os, sys
from spcomm import cli

helps = [[name, "--help"] for name in cli._COMMANDS if name not in ("help", "version")]
parts = [["bench", "figures"], *(["model", name] for name in ("fit", "predict", "sci", "simulate"))]
others = [["help"], ["run", "-h"], ["explain"], ["explain", "SP101"], ["examples"], ["examples", "02"], ["doctor"],
          ["docs"], ["docs", "3"],
          ["levels"], ["learn", "--list"], ["bench", "--list"], ["completion", "bash"], ["check"]]
for words in [*helps, *([*words, "--help"] for words in parts), *others]:
    print("====", *words, flush=True)
    if os.fork() == 0:
        sys.argv = ["spcomm", *words]
        sys.exit(cli.main(words))
    print("==== exit status", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def texts(launch, *python, code=TEXTS, **environment):
    command = [sys.executable, *python, "-c", code]
    return launch.finish(launch.popen(command, environment, stderr=subprocess.STDOUT), patience=120).raw


@pytest.mark.parametrize(
    "environment",
    [
        ASCII,
        pytest.param({"PYTHONIOENCODING": "latin-1"}, marks=pytest.mark.slow),
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_texts_of_all_commands_in_an_encoding_that_lacks_letters(launch, environment):
    found = texts(launch, **environment)
    assert b"Traceback" not in found, found[found.index(b"Traceback") :].decode(errors="replace")
    assert b"--window RANKS" in found and b"bind-to core|none|CPUS/CPUS/..." in found
    found.decode("latin-1" if "latin-1" in environment.values() else "ascii")


@pytest.mark.parametrize(
    "environment, shown",
    [(ASCII, b"\xfc ... -> \\xe9\n"), ({"PYTHONIOENCODING": "ascii"}, b"\\udcfc ... -> \\xe9\n")],
    ids=str,
)
def test_bytes_of_names_stay_in_the_locale_c(launch, environment, shown):
    code = "from spcomm import cli; cli._replace_what_streams_lack(); print('\\udcfc \\u2026 \\u2192 \\xe9')"
    assert texts(launch, code=code, **environment) == shown


@pytest.mark.slow
def test_docstrings_that_python_leaves_out_are_in_no_text(launch):
    assert texts(launch, "-OO") == texts(launch)


def test_an_unknown_command_names_those_that_exist(launch):
    text = f"spcomm: no command 'frobnicate'; commands: {', '.join(cli._COMMANDS)}\n"
    assert launch.spcomm("help", "frobnicate").err == text == launch.spcomm("frobnicate").err


def test_help_and_version(launch):
    assert "spcomm COMMAND" in launch.spcomm().out
    full = table.parser().format_help()
    assert launch.spcomm("run", "--help").out == full == launch.spcomm("help", "run").out
    assert launch.spcomm("--version").out.startswith("spcomm ")
