# SPDX-License-Identifier: MIT
"""The infile: what `startup` makes of it, and that the reader finds what TOML says."""

import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spcomm
from forking import well
from pairwise import each
from spcomm._core.forking import read_infile

HEAD = "import spcomm\ncomm = spcomm.startup(infile='run.toml'{})\n"
NOTHING = {
    "local_nodes": 0,
    "total_nodes": 0,
    "group_id": 0,
    "timeout": 0,
    "server": "",
    "code": "",
    "ranks": [],
}


def start(forked, infile, more=""):
    (forked.folder / "run.toml").write_bytes(infile.encode())
    return forked.nodes(0, "print(comm.size, comm.group_id)\n", HEAD.replace("{}", more))


@pytest.mark.parametrize(
    ("infile", "more", "out"),
    each(
        2,
        [
            ("local_nodes = 3\r\ngroup_id = 7 # ours\r\n", "", "3 7\n" * 3),
            ("total_nodes = 2", "", "2 0\n" * 2),
            ("local_nodes = 3\ngroup_id = 1", ", local_nodes=2, group_id=4", "2 4\n" * 2),
            ("server = ''", "", "1 0\n"),
            ("local_nodes = 1", "", "1 0\n"),
        ],
    ),
)
def test_it_gives_what_is_0(forked, infile, more, out):
    assert well(start(forked, infile, more)).out == out


def test_it_agrees_with_the_launcher(launch):
    script = launch.script("import spcomm\nprint(spcomm.startup(infile='run.toml').size)\n")
    (launch.folder / "run.toml").write_text("local_nodes = 2\n")
    assert launch("-n", 2, script).out == "2\n2\n"
    result = launch("-n", 3, script)
    words = (
        "startup(infile='run.toml'), which says local_nodes = 2: this run has 3 nodes, started by spcomm run"
    )
    assert result.code == 1 and words in result.err, result


@pytest.mark.parametrize(
    ("infile", "words"),
    each(
        2,
        [
            ("\nlocal_nodes = four", "run.toml:2: local_nodes = four; a number is 0 to 2147483647"),
            (
                "nodes = 4",
                "run.toml:1: there is no key nodes; allowed are local_nodes, total_nodes, group_id, ranks, server",
            ),
            ("local_nodes = -1", "run.toml:1: local_nodes = -1; a number is"),
            ("local_nodes = 5000", "which says local_nodes = 5000: a run has up to 1024 nodes"),
            (
                "local_nodes = 4\ntotal_nodes = 2",
                "which says total_nodes = 2: that is less than local_nodes=4",
            ),
            (
                "server = 'box'",
                "it says server = 'box', so other machines have the rest of the nodes; say how many there are",
            ),
        ],
    ),
)
def test_what_is_wrong(forked, infile, words):
    result = start(forked, infile)
    assert result.code == 1 and result.last.startswith("spcomm.ConfigError: "), result
    assert words in result.last


@pytest.mark.parametrize("wrong", [4, 1.5, [], True])
def test_a_path_is_a_path(forked, wrong):
    result = forked.nodes(0, "", f"import spcomm\nspcomm.startup(infile={wrong!r})\n")
    assert result.code == 1 and "TypeError: startup(infile=" in result.last, result


# ---- against another reader of TOML

blank = st.text(" \t", max_size=3)
QUOTES = {'"': '"\\', "'": "'"}  # and what cannot stand between them
plain = st.characters(exclude_categories=("Cs", "Cc"))
comment = st.one_of(st.just(""), st.text(plain, max_size=20).map(lambda text: "#" + text))


def quoted(text):
    """A string in one of the ways in which TOML writes it without escapes."""
    return st.sampled_from([f"{quote}{text}{quote}" for quote in QUOTES if not {*QUOTES[quote]} & {*text}])


def short(text):
    return len(text.encode()) < 256


number = st.integers(0, 2**31 - 1).map(str)
name = st.text(plain, max_size=20).filter(
    lambda text: short(text) and not ("'" in text and {*'"\\'} & {*text})
)


@st.composite
def lists(draw):
    """Different numbers in a list on one line."""
    numbers = draw(st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=4))
    items = [f"{draw(blank)}{number}{draw(blank)}" for number in numbers]
    end = "," + draw(blank) if numbers and draw(st.booleans()) else ""
    return f"[{draw(blank)}{','.join(items)}{end}]"


VALUES = {
    **dict.fromkeys(("local_nodes", "total_nodes", "group_id", "timeout"), number),
    **dict.fromkeys(("server", "code"), name.flatmap(quoted)),
    "ranks": lists(),
}


@st.composite
def documents(draw):
    lines = [draw(st.tuples(blank, comment).map("".join)) for _ in range(draw(st.integers(0, 2)))]
    for key in draw(st.lists(st.sampled_from(list(VALUES)), unique=True)):
        around = [draw(blank) for _ in range(4)]
        value = draw(VALUES[key])
        lines.append(f"{around[0]}{key}{around[1]}={around[2]}{value}{around[3]}{draw(comment)}")
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


@given(documents())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_valid_files_say_the_same_to_tomllib(tmp_path, text):
    path = tmp_path / "valid.toml"
    path.write_bytes(text.encode())
    assert read_infile(path) == NOTHING | tomllib.loads(text)


@given(documents(), st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_both_accept_after_a_change_is_the_same(tmp_path, text, data):
    """One character more or less."""
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(st.sampled_from(["", *"\"'\\#=_+-0 9[],\n\r\t.u\x7f"]))
    changed = text[:at] + piece + text[at + data.draw(st.integers(0, 1)) :]
    path = tmp_path / "changed.toml"
    path.write_bytes(changed.encode())
    try:
        found = read_infile(path)
    except spcomm.ConfigError as error:
        assert str(error).startswith(str(path))
        return
    try:
        wanted = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:  # a wrong character in a comment or a string
        return
    assert found == NOTHING | wanted
