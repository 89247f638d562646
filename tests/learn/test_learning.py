# SPDX-License-Identifier: MIT
"""`spcomm learn` without a terminal: copies, checks, hints, progress, and one sentence for what cannot be done."""

import json
import os

import pytest

import made
from made import NAMES, STUB, run
from spcomm.learn import terminal
from spcomm.learn.progress import FILE


def complaint(answer, code=1):
    """The one sentence."""
    assert (answer.returncode, answer.stdout) == (code, ""), answer
    assert answer.stderr.count("\n") == 1 and answer.stderr.startswith("spcomm learn: ")
    return answer.stderr.removeprefix("spcomm learn: ").rstrip("\n")


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def solve(own, name, text="print('right')\n"):
    (own / name / "exercise.py").write_text(text)


def passed(own):
    return json.loads((own / FILE).read_text())["passed"]


# ---- init


def test_init_copies_lessons_and_programs_and_nothing_of_the_judge(shelf, tmp_path):
    own = tmp_path / "new" / "own"
    answer = run(shelf, "init", own)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == f"3 exercises are in {own}; next: cd {own}, then spcomm learn\n"
    wanted = [f"{name}/{file}" for name in NAMES for file in ("README.md", "exercise.py")]
    assert sorted(files(own)) == sorted([FILE, "README.md", *wanted])
    about = (own / "README.md").read_text()
    assert "`exercise.py` alone" in about and "`cd 01_hello`" in about and "exercise.ipynb" not in about
    for command in ("next", "check", "hint", "list", "reset", "solution"):
        assert f"`spcomm learn {command}" in about


def test_init_again_changes_nothing(shelf, own):
    before = files(own)
    assert "already" in run(shelf, "init", own).stdout
    assert files(own) == before


def test_init_never_overwrites(shelf, own):
    solve(own, "02_ring", "mine")
    (own / "01_hello" / "README.md").unlink()
    before = files(own)
    assert "02_ring/exercise.py in" in (text := complaint(run(shelf, "init", own)))
    assert "nothing was copied" in text and files(own) == before


def test_init_leaves_a_readme_of_ones_own(shelf, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    assert run(shelf, "init", ".", cwd=tmp_path).returncode == 0
    assert (tmp_path / "README.md").read_text() == "mine" and (tmp_path / FILE).is_file()


def test_init_adds_what_is_missing_and_keeps_what_was_done(shelf, own):
    solve(own, "01_hello")
    assert run(shelf, "check", "1", "--dir", own).returncode == 0
    (own / "01_hello" / "exercise.py").unlink()
    assert run(shelf, "init", own).returncode == 0
    assert passed(own) == ["01_hello"]


def test_init_where_nothing_can_be(shelf, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in complaint(run(shelf, "init", tmp_path / "file"))
    assert "cannot write" in complaint(run(shelf, "init", tmp_path / "file" / "below"))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if not os.access(closed, os.W_OK):
        assert "Permission denied" in complaint(run(shelf, "init", closed / "below"))


def test_init_follows_no_link_out_of_the_folder(shelf, tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (own / "02_ring").symlink_to(other)
    assert "leads out of" in complaint(run(shelf, "init", own))
    assert files(own) == files(other) == {}


def test_a_full_disk_leaves_nothing_behind(shelf, tmp_path, monkeypatch):
    from spcomm.learn import copying
    from spcomm.learn.errors import LearnError

    whole = copying._new

    def new(path, content):
        if path.name == "second":
            raise OSError(28, "No space left on device", str(path))
        return whole(path, content)

    monkeypatch.setattr(copying, "_new", new)
    with pytest.raises(LearnError, match="No space left on device; nothing was copied"):
        copying.write(tmp_path / "new" / "er", {"a/first": b"1", "b/second": b"2"})
    assert not (tmp_path / "new").exists()


# ---- checking


def test_a_check_says_what_passed_what_failed_and_what_to_do(shelf, own):
    answer = run(shelf, "check", "--dir", own)
    assert (answer.returncode, answer.stderr) == (1, "")
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("checking ") and lines[0].endswith("01_hello/exercise.py")
    assert lines[1:3] == ["  passed  a list on 1 nodes", "  failed  a list on 3 nodes"]
    assert lines[3] == "node 1 returned �[31mNone; expected 42 (3 nodes)"
    assert "01_hello/exercise.py and save it" in lines[4] and "`spcomm learn hint 01`" in lines[4]
    assert lines[5].startswith("run it yourself: ") and "run -n 3 " in lines[5]
    assert passed(own) == []


def test_what_has_passed_is_kept(shelf, own):
    solve(own, "02_ring")
    answer = run(shelf, "check", "ring", cwd=own)
    assert answer.returncode == 0, answer
    *_, done, following = answer.stdout.splitlines()
    assert done.endswith("] 1 of 3") and following == "next: 03_sums; `spcomm learn next` shows it"
    assert passed(own) == ["02_ring"]
    rows = run(shelf, "list", cwd=own / "03_sums").stdout.splitlines()
    assert [row.split()[0] for row in rows[:3]] == ["01_hello", "passed", "->"]


def test_next_skips_what_has_passed(shelf, own):
    assert "Lesson 01_hello" in run(shelf, "next", cwd=own).stdout
    solve(own, "01_hello")
    run(shelf, "check", "1", cwd=own)
    answer = run(shelf, "next", cwd=own)
    assert "Lesson 02_ring" in answer.stdout and "02_ring/exercise.py" in answer.stdout
    assert "Lesson 02_ring" in run(shelf, cwd=own).stdout
    for name in NAMES[1:]:
        solve(own, name)
        assert run(shelf, "check", name, cwd=own).returncode == 0
    assert "3 of 3" in (text := run(shelf, "next", cwd=own).stdout) and "all exercises have passed" in text


def test_without_a_terminal_it_checks_once(shelf, own):
    answer = run(shelf, cwd=own)
    assert answer.returncode == 1 and "there is no terminal: checked once" in answer.stdout
    assert "Lesson 01_hello\n\nDo **this**, then run it.\n\n    spcomm run -n 3" in answer.stdout
    assert (shelf / "checks").read_text().count("\n") == 1


def test_hints_come_one_by_one(shelf, own):
    found = [run(shelf, "hint", "2", cwd=own).stdout.splitlines() for _ in range(4)]
    assert [lines[1] for lines in found] == ["What is missing?", "A word.", *["The word is: right."] * 2]
    assert found[1][0] == "hint 2 of 3 for 02_ring:"
    last = "that was the last hint; the lesson, README.md, may say more"
    assert [last in lines for lines in found] == [False, False, False, True]


def test_reset_keeps_what_was_there(shelf, own):
    for number in ("", "2", "3"):
        solve(own, "01_hello", f"mine {number}")
        answer = run(shelf, "reset", "1", cwd=own)
        assert f"yours is in exercise.py.before{number}\n" in answer.stdout
        assert (own / "01_hello" / f"exercise.py.before{number}").read_text() == f"mine {number}"
        assert (own / "01_hello" / "exercise.py").read_text() == STUB.format(name="01_hello")
    assert "nothing to reset" in run(shelf, "reset", "1", cwd=own).stdout


def test_a_missing_program_is_written_anew(shelf, own):
    before = files(own)
    (own / "01_hello" / "exercise.py").unlink()
    assert "`spcomm learn reset 01` writes it anew" in complaint(run(shelf, "check", "1", cwd=own))
    assert "is there again" in run(shelf, "reset", "01", cwd=own).stdout
    assert files(own) == before


def test_the_solution_is_shown_after_it_has_passed_only(shelf, own):
    assert "shown after it has passed" in complaint(run(shelf, "solution", "1", cwd=own))
    for name in NAMES[:2]:
        solve(own, name)
        run(shelf, "check", name, cwd=own)
    assert run(shelf, "solution", "1", cwd=own).stdout == "print('right')  # ours\n"
    assert "there is no solution of 02_ring" in complaint(run(shelf, "solution", "2", cwd=own))


# ---- links


def test_a_link_within_the_folder_is_followed_and_one_out_of_it_is_not(shelf, own, tmp_path):
    (own / "01_hello").rename(own / "elsewhere")
    (own / "01_hello").symlink_to("elsewhere")
    assert run(shelf, "check", "1", "--dir", own).returncode == 1
    (own / "02_ring").rename(tmp_path / "outside")
    (own / "02_ring").symlink_to(tmp_path / "outside")
    before = files(tmp_path / "outside")
    for command in ("check", "reset"):
        assert "leads out of" in complaint(run(shelf, command, "2", "--dir", own))
    assert files(tmp_path / "outside") == before


# ---- the file of progress


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"passed": [1]}', '{"hints": {"a": "b"}}', "\xff", "[" * 9999]
)
def test_a_damaged_file_is_told_and_kept(shelf, own, content):
    for number in ("", "2"):
        (own / FILE).write_bytes(content.encode("latin-1"))
        answer = run(shelf, "hint", "1", cwd=own)
        assert answer.returncode == 0 and answer.stderr.count("\n") == 1
        assert f"was damaged and is now {FILE}.damaged{number};" in answer.stderr
        assert (own / f"{FILE}.damaged{number}").read_bytes() == content.encode("latin-1")
        assert json.loads((own / FILE).read_text())["hints"] == {"01_hello": 1}


FULL = "spcomm learn: cannot keep your progress in {}: No space left on device; it is unchanged\n"


def test_what_cannot_be_kept_is_told_and_the_old_file_stays(shelf, own):
    solve(own, "01_hello")
    run(shelf, "check", "1", cwd=own)
    solve(own, "03_sums")
    before = files(own)
    for words, text in (
        (["hint", "2"], "hint 1 of 3 for 02_ring:\nWhat is missing?"),
        (["next"], "Lesson 02_ring"),
        (["check", "3"], "03_sums has passed: 3 runs"),
    ):
        answer = run(shelf, *words, cwd=own, env={"FULL": "1"})
        assert (answer.returncode, answer.stderr) == (0, FULL.format(own / FILE)), words
        assert text in answer.stdout, words
    assert files(own) == before


def test_what_could_not_be_kept_counts_until_the_end(own, monkeypatch):
    from spcomm.learn import progress

    said = []
    found = progress.Progress(own, said.append)
    with monkeypatch.context() as patch:
        patch.setattr(progress.copying, "os", progress.copying.os)
        made.fill()
        for count in (1, 2):
            found.change(lambda state, count=count: state.hints.update(a=count))
        found.note_passed("01_hello")
    assert len(said) == 3 and passed(own) == []
    assert (found.read().passed, found.read().hints) == (["01_hello"], {"a": 2})
    found.note_passed("02_ring")
    assert len(said) == 3 and passed(own) == ["01_hello", "02_ring"]


def test_what_several_note_at_once_is_all_there(own):
    from concurrent.futures import ThreadPoolExecutor

    from spcomm.learn.progress import Progress

    names = [f"{number:02}_x" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: Progress(own, pytest.fail).note_passed(name), names))
    assert sorted(passed(own)) == names


# ---- what cannot be meant


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["check", "17"],
            "there is no exercise '17' (the nearest is 03_sums); `spcomm learn list` lists them",
        ),
        (
            ["check", "rnig"],
            "there is no exercise 'rnig' (did you mean 02_ring?); `spcomm learn list` lists them",
        ),
        (
            ["check", "0"],
            "there is no exercise '0' (the nearest is 01_hello); `spcomm learn list` lists them",
        ),
        (["check", "0_"], "there is no exercise '0_'"),
        (["check", "9" * 5000], "there is no exercise with a name of 5000 letters"),
    ],
)
def test_one_clear_sentence(shelf, own, words, text):
    assert complaint(run(shelf, *words, cwd=own), 125).startswith(text)


@pytest.mark.parametrize("words", [["init", "n" * 5000], ["--dir", "n" * 5000, "list"]])
def test_names_that_no_file_can_have(shelf, own, words):
    text = complaint(run(shelf, *words, cwd=own))
    assert text.startswith("cannot use nnn") and "File name too long; name another place" in text


def test_names_that_would_steer_the_terminal(shelf, own):
    assert "there is no folder \ufffd[2J" in complaint(run(shelf, "--dir", "\x1b[2J", "list", cwd=own))


def test_the_old_name_of_check(shelf, own):
    old, new = run(shelf, "run", "1", cwd=own), run(shelf, "check", "1", cwd=own)
    assert (old.returncode, old.stdout) == (new.returncode, new.stdout)
    assert old.stderr == "spcomm learn: run is now called check; the next version knows check only\n"


def test_several_are_named(shelf, own):
    assert "in the names of several: 01_hello, 02_ring, 03_sums" in complaint(
        run(shelf, "check", "_", cwd=own), 125
    )


def test_where_there_are_no_exercises(shelf, tmp_path):
    assert "there are no exercises in this folder" in complaint(run(shelf, cwd=tmp_path))
    assert "there are no exercises in this folder" in complaint(run(shelf, cwd=shelf / "01_hello"))
    assert "`spcomm learn init x`" in complaint(run(shelf, "--dir", "x", cwd=tmp_path))
    (tmp_path / "file").write_text("")
    assert "is a file" in complaint(run(shelf, "--dir", "file", cwd=tmp_path))


def test_an_installation_without_exercises(tmp_path):
    assert "reinstall" in complaint(run(tmp_path, "init", tmp_path / "x"))
    assert "reinstall" in complaint(run(tmp_path))


# ---- plain text


def test_tables_of_plain_lessons_are_columns():
    lesson = (
        "# Calls\n\n| | |\n| --- | --- |\n| `recv()` | waits |\n| `poll` | no |\n\n```\n| kept |\n```\nEnd\n"
    )
    assert (
        terminal._plainer(lesson) == "Calls\n\n    `recv()`   waits\n    `poll`     no\n\n    | kept |\nEnd"
    )


def test_plain_lines_are_broken_between_words(monkeypatch):
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "11")
    assert terminal._broken("one two three\n  four five six\na/long/path/indeed ok") == (
        "one two\nthree\n  four five six\na/long/path/indeed\nok"
    )
