# SPDX-License-Identifier: MIT
"""Rules for every file: licence line, contract, size, width, and nothing that belongs to one machine."""

import ast
import re
from pathlib import Path

import pytest

from checkout import ROOT, fail_with, files, relative

LINES = 900  # a module is one file until it is really two
LONGER = {  # one module, of more lines: why it is not two
    "csrc/api/spc_api_collective.c": "a call that was left continues in the same way, whatever it moves or combines",
    "csrc/comm/spc_comm_split.c": "splits, groups and duplicates share number, memory and node's half",
    "csrc/diagnose/spc_deadlock_report.c": "the report is made of the texts of calls, which few others need",
    "csrc/fork/spc_fork_supervisor.c": "the supervisor's signals and its last report are no one else's",
    "csrc/message/spc_inbox.c": "rows, filters and posted receives all put entries into one queue",
    "csrc/mpi/message/spc_mpi_request.c": "completion, the pool and the warnings at the end walk the same requests",
    "csrc/net/gateway/spc_gateway.c": "two threads, and the routes to other gateways, which one of them looks after",
    "csrc/net/gateway/spc_gateway_traffic.c": "messages, arrivals and ends keep one order, so each asks for the others",
}
WIDTH = 120  # the formatters say 110; tables and drawings in comments may be a little wider
C = (".c", ".h")
PYTHON = (".py", ".pyx", ".pxd")


def shared_places():
    """Patterns for paths of one machine and hosts of registries; written so as not to find themselves."""
    folders = ["root", "work", "tmp/plan", str(Path.home()).strip("/") or "root"]
    hosts = ["pypi" + r"\.org", "pythonhosted" + r"\.org", "debian" + r"\.org", "registry" + r"\.npmjs"]
    return re.compile("|".join([rf"(?<![\w.$}}/-])/{folder}/" for folder in folders] + hosts))


@pytest.mark.parametrize("suffix", [*C, *PYTHON, ".hpp", ".mk"])
def test_licence_line(suffix):
    expected = (
        "/* SPDX-License-Identifier: MIT */" if suffix in (*C, ".hpp") else "# SPDX-License-Identifier: MIT"
    )
    complaints = []
    for path in files(suffix):
        lines = path.read_text().splitlines()[:2] or [expected]  # an empty __init__.py needs none
        if expected not in lines:
            complaints.append(f"{relative(path)} does not start with {expected}")
    fail_with(complaints)


def test_headers_open_with_a_contract():
    complaints = []
    for path in files(".h", below="csrc"):
        match = re.search(r"/\*\n(.*?)\*/", path.read_text(), re.DOTALL)
        if not match or match.start() > 60 or len(match.group(1).split()) < 10:
            complaints.append(
                f"{relative(path)}: what is it for, who may call it, in which order, what if it fails?"
            )
    fail_with(complaints)


def test_sizes():
    too_long = {}
    for path in [*files(*C, *PYTHON, below="csrc"), *files(*PYTHON, ".pyi", below="spcomm")]:
        text = path.read_text()
        if path.suffix == ".pyx":  # a class may have much to say
            text = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
        count = len(text.splitlines())
        if count > LINES:
            too_long[str(relative(path))] = count
    fail_with(
        [f"{path} has {too_long[path]} lines; is it doing two things?" for path in too_long.keys() - LONGER]
        + [f"{path} is no longer too long" for path in LONGER.keys() - too_long]
    )


def test_widths():
    complaints = []
    for path in files(*C, *PYTHON, ".hpp"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > WIDTH:
                complaints.append(f"{relative(path)}:{number} is {len(line)} columns wide")
    fail_with(complaints)


def test_widths_of_pages():
    """Rows of tables and what a terminal shows are as wide as they are."""
    complaints = []
    for path in files(".md"):
        text = re.sub(
            r"^ *```.*?^ *```", lambda match: "\n" * match[0].count("\n"), path.read_text(), flags=re.M | re.S
        )
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > WIDTH and not line.startswith("|"):
                complaints.append(f"{relative(path)}:{number} is {len(line)} columns wide")
    fail_with(complaints)


def test_no_state_outside_of_structures():
    """Nodes can be threads of one process, and several extensions link the same C: no static variables."""
    static = re.compile(r"^\s*static\s+(?!.*\bconst\b)[^(;{]*[;=]", re.MULTILINE)
    top = r"^(?=\w)(?!const|typedef|extern|return|enum|static|_Static_assert)(?!.*\()[\w *]+\b\w+(\[.*\])?\s*(=.*)?;$"
    complaints = []
    for path in files(*C, below="csrc"):
        # The public interfaces': there a process is one node.
        if (
            path.name in ("spc_api_call.c", "spc_api_startup.c", "spc_api_binding.c")
            or "csrc/mpi" in path.as_posix()
        ):
            continue
        text = path.read_text()
        for match in [*static.finditer(text), *re.finditer(top, text, re.MULTILINE)]:
            if "_Thread_local char token" not in match.group():  # only its address is used
                complaints.append(f"{relative(path)}: {match.group().strip()}")
    fail_with(complaints)


def test_nothing_of_one_machine():
    pattern = shared_places()
    complaints = []
    for path in files():
        if path.name == "LICENSE" or path.suffix in (".ppm", ".pdf"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                complaints.append(f"{relative(path)}:{number}: {line.strip()}")
    fail_with(complaints)


def test_same_nouns_at_every_level():
    """A C test is about a file of csrc/, as its name says; what comes after a second _ is its own affair."""
    nouns = {path.stem.removeprefix("spc_") for path in files(".c", ".h", below="csrc")}
    nouns |= {"faults", "shortage"}  # of several: nodes die, allocations fail
    complaints = []
    for path in (ROOT / "tests" / "csrc").glob("test_*.c"):
        noun = path.stem.removeprefix("test_")
        if not any(noun == known or noun.startswith(f"{known}_") for known in nouns):
            complaints.append(f"{relative(path)}: csrc/ has no spc_{noun}")
    fail_with(complaints)


@pytest.mark.parametrize("folder", ["csrc", "spcomm", "tests", "scripts", "docs", "examples", "exercises"])
def test_docstrings_and_comments_begin_with_their_subject(folder):
    """A docstring or comment names a thing and says what it is or does, unless it asks a question."""
    opening = re.compile(
        r'(?:"""|/\* |(?<!#)# )((?:What|Who|Whom|Whose|Whoever|How|Which|Of) [^.?"\n]*)([.?"\n])'
    )
    complaints = []
    for path in files(*PYTHON, *C, below=folder):
        text = path.read_text()
        for found in opening.finditer(text):
            if found[2] != "?":
                number = text.count("\n", 0, found.start()) + 1
                complaints.append(f"{relative(path)}:{number}: {found[1]}")
    fail_with(complaints)


def test_contracts_begin_with_their_subject():
    contract = re.compile(r"^/\*\n \* (\w+: (?:what|who|how|which|where|when|of) .*)", re.MULTILINE)
    fail_with(
        [
            f"{relative(path)}: {found[1]}"
            for path in [*files(*C, below="csrc"), *files(".h", below="tests")]
            for found in contract.finditer(path.read_text())
        ]
    )


def old_names():
    """The last section of the glossary: [(room, names of modules)], and names of anything."""
    text = (ROOT / "docs" / "internals" / "glossary.md").read_text().partition("## Old names")[2]
    rows = re.findall(r"^\| `(\S+)` \| (.*?) \|", text, re.MULTILINE)
    return [(room, re.findall(r"`(\w+)`", names)) for room, names in rows], re.findall(
        r"`(\w+)`", text.partition("Identifiers:")[2]
    )


def test_old_names_stay_away():
    """An old name means something else today, or nothing."""
    rooms, identifiers = old_names()
    assert len(rooms) > 5 and len(identifiers) > 5
    complaints = []
    for room, names in rooms:
        for path in files(*C, *PYTHON, below=room):
            if re.sub(r"^spc_(gateway_)?", "", path.stem) in names:
                complaints.append(f"{relative(path)}: the glossary has another name for it")
    pattern = re.compile(rf"\b_?({'|'.join(identifiers)})\b")
    for path in [*files(*C, below="csrc"), *files(*PYTHON, below="spcomm")]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := pattern.search(line):
                complaints.append(
                    f"{relative(path)}:{number}: {found[1]}: the glossary has another word for it"
                )
    fail_with(complaints)


# Tests that only name these, or do without them elsewhere.
ALSO_ELSEWHERE = {
    "test_command_lines_of_boxes",
    "test_debugpy_prints_a_port_for_each_node_and_lets_nobody_else_in",
    "test_the_page_says_what_matters",
    "test_threads_are_noticed_without_proc",
    "test_without_a_place_for_its_trace",
}


def is_marked(node, text):
    """A test, or its module."""
    marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    return "linux" in marks or re.search(r"^pytestmark.*linux", text, re.MULTILINE)


def test_what_only_linux_has_is_marked():
    complaints, needing = [], re.compile(r"/proc\b|pidfd|127\.0\.0\.2")
    for path in files(".py", below="tests"):
        if not path.name.startswith("test_") or path.parent.name in (
            "docs",
            "cluster",
        ):  # Slurm is Linux's, too
            continue
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name not in ALSO_ELSEWHERE:
                needs = needing.search("\n".join(lines[node.lineno - 1 : node.end_lineno]))
                if needs and node.name.startswith("test_") and not is_marked(node, text):
                    complaints.append(
                        f'{relative(path)}: {node.name} needs @pytest.mark.linux("{needs.group()}")'
                    )
    fail_with(complaints)
