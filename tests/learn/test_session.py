# SPDX-License-Identifier: MIT
"""`spcomm learn` at a terminal: keys, saves in all the ways in which editors write, and the terminal at the end."""

import itertools
import os
import re
import signal
import subprocess
from types import SimpleNamespace

import pytest

import made
from pairwise import each
from processes import STOPPED, state
from spcomm.learn.catalogue import exercises
from spcomm.learn.lessons import Lessons
from spcomm.learn.session import Session
from spcomm.learn.terminal import Page
from terminal import Terminal

KEYS = "h hint  r run  n next"
ENDED = "the check was ended; r runs it again"
ENDED_BY_CTRL_C = "the check was ended by Ctrl-C"
CHECKING = "  checking, "
COLOR = re.compile(rb"\x1b\[[0-9;]*3[0-7][0-9;]*m")


class Learner:
    """`spcomm learn` at a terminal of pyte's, in a folder with three exercises."""

    def __init__(self, shelf, own, *words, env=None, columns=200, lines=100, cwd=None):
        self.shelf, self.own, self.words, self.cwd = shelf, own, words, cwd or own
        self.terminal = Terminal(columns=columns, lines=lines)
        self.written = bytearray()  # all that the terminal was told
        feed = self.terminal._stream.feed
        self.terminal._stream.feed = lambda data: (self.written.extend(data), feed(data))
        self.terminal.run(self, env={**made.environment(), **(env or {})})
        self.file = own / "01_hello" / "exercise.py"

    def start(self, env=None, **streams):
        """For Terminal.run."""
        return subprocess.Popen(made.command(self.shelf, *self.words), cwd=self.cwd, env=env, **streams)

    def shows(self, *texts, count=1):
        """Wait until so many lines have all of the texts."""

        def found(terminal):
            return sum(all(text in line for text in texts) for line in terminal.lines) >= count

        self.terminal.until(found)

    def type(self, keys):
        self.terminal.type(keys.encode())

    def checks(self):
        try:
            return (self.shelf / "checks").read_text().splitlines()
        except FileNotFoundError:
            return []

    def is_checking(self):
        return any(CHECKING in line for line in self.terminal.lines)

    def after(self, count):
        """Wait for so many checks, and be sure that there are no more: what is typed next is answered next."""
        self.terminal.until(lambda _t: len(self.checks()) >= count and not self.is_checking())
        for key, answer in (("s", "the solution of 01_hello is shown after it has passed"), ("l", "-> now")):
            self.type(key)
            self.shows(answer)
        assert len(self.checks()) == count

    def ends(self, code=0):
        assert self.terminal.wait() == code, self.terminal.lines
        self.terminal.check()
        assert "Traceback" not in "\n".join(self.terminal.lines)


@pytest.fixture
def learn(shelf, own):
    """Starts `spcomm learn`; q ends what a test leaves running."""
    found = []

    def start(*words, **more):
        found.append(Learner(shelf, own, *words, **more))
        return found[-1]

    yield start
    try:
        for learner in found:
            if learner.terminal.process.poll() is None:
                learner.type("q")
                learner.ends()
    finally:
        for learner in found:
            learner.terminal.process.kill()
            learner.terminal.process.wait()
            learner.terminal.close()


# ---- what is shown


def test_the_exercise_is_shown_and_checked(learn):
    learner = learn()
    learner.shows("] 0 of 3")
    learner.shows("Lesson 01_hello")
    learner.shows("passed  a list on 1 nodes")
    learner.shows("node 1 returned", "expected 42 (3 nodes)")
    learner.shows("next: change 01_hello/exercise.py and save it; h shows a hint")
    learner.shows("run it yourself:")
    learner.shows(KEYS)
    text = " ".join(
        " ".join(learner.terminal.lines).split()
    )  # the path to the command may be longer than a line
    assert text.count("run -n 3 01_hello/exercise.py") == 2, "the lesson and the verdict name it alike"
    assert "**this**" not in text and "```" not in text, "Markdown is shown as it is meant"
    assert not learner.terminal.is_echoing()


def test_plain(learn):
    learner = learn("--plain")
    learner.shows("Do **this**")
    learner.shows("-- check of 01_hello")
    learner.shows(KEYS)
    learner.type("t")
    learner.shows("Do **this**", count=2)
    learner.file.write_text("hang")
    learner.shows("  1 s")
    learner.type("h")
    learner.shows(ENDED)
    learner.shows("What is missing?")
    learner.type("q")
    learner.ends()
    assert b"\x1b" not in learner.written


@pytest.mark.parametrize("has_colors", [True, False], ids=["colors", "NO_COLOR"])
def test_colors(learn, has_colors):
    learner = learn(env={"NO_COLOR": "" if has_colors else "1"})
    learner.shows("run it yourself:")
    learner.type("q")
    learner.ends()
    assert bool(COLOR.search(learner.written)) == has_colors
    assert b"\x1b[H" in learner.written


def lengthen(shelf, *names):
    for name in names:
        (shelf / name / "README.md").write_text("\n\n".join(f"{name}, line {n}." for n in range(1, 61)))


@pytest.mark.parametrize("columns, lines", [(80, 24), (100, 40)])
def test_a_lesson_opens_at_its_beginning_until_a_key_or_a_save(learn, shelf, columns, lines):
    lengthen(shelf, "01_hello", "02_ring")
    learner = learn(columns=columns, lines=lines)

    def opens(terminal, lines):
        shown = terminal.lines
        return (
            len(shown) == lines
            and shown[1].startswith("01_hello: About hello")
            and "lines below: Down, Space, End" in shown[-4]
        )

    learner.shows("] 0 of 3", "not passed yet: End shows it")
    assert opens(learner.terminal, lines)
    learner.terminal.resize(60, 20)
    learner.terminal.until(lambda t: opens(t, 20))
    learner.terminal.resize(columns, lines)
    learner.terminal.until(lambda t: opens(t, lines))
    learner.file.write_text("right")
    learner.shows("01_hello has passed")
    learner.shows("] 1 of 3")
    assert not any("End shows it" in line for line in learner.terminal.lines)
    learner.type("n")
    learner.shows("] 1 of 3", "not passed yet: End shows it")
    assert "02_ring: About ring" in learner.terminal.lines[1]
    learner.type(" ")
    learner.shows("lines above: Up, Page Up, t")
    learner.type("t")
    learner.terminal.until(lambda t: "02_ring: About ring" in t.lines[1])
    learner.terminal.resize(40, lines)  # lines of another length: still its beginning
    learner.terminal.until(lambda t: "02_ring: About ring" in t.lines[1] and t.lines[-1].endswith("x reset"))
    learner.type("h")
    learner.shows("What is missing?")


def test_a_terminal_of_three_lines(learn, shelf):
    """One line of the document, the bar, the keys: none of them scrolls away."""
    lengthen(shelf, "01_hello")
    learner = learn(columns=10, lines=3)
    learner.terminal.until(lambda _t: len(learner.checks()) == 1 and not learner.is_checking())
    learner.type("\x1b[B\x1b[F")
    learner.terminal.until(lambda t: t.lines[0].endswith("py"))
    assert learner.terminal.lines[1:] == ["[--------", "h hint  r"]
    learner.terminal.resize(80, 24)
    learner.shows("run it yourself:")


@pytest.mark.parametrize("lines", [24, 40])
def test_the_end_of_the_lesson_the_verdict_and_the_bar_are_on_the_screen(learn, shelf, lines):
    (shelf / "01_hello" / "README.md").write_text("\n\n".join(f"Line {n}." for n in range(1, 61)))
    learner = learn(columns=80, lines=lines)
    learner.shows("not passed yet: End shows it")
    learner.type("r")
    learner.shows("run it yourself:")
    learner.terminal.until(lambda t: t.lines[-4].endswith("01_hello/exercise.py"))  # the line below it, too
    shown = learner.terminal.lines
    assert len(shown) == lines
    assert "lines above: Up, Page Up, t" in shown[0] and "Line 60." in shown
    assert any("node 1 returned" in line for line in shown)
    assert shown[-2].startswith("[---") and shown[-2].endswith("] 0 of 3") and shown[-1].startswith(KEYS)
    learner.type("t")
    learner.shows("lines below: Down, Space, End")
    assert "01_hello: About hello" in learner.terminal.lines[1] and "Line 1." in learner.terminal.lines
    seen = set(learner.terminal.lines)
    keys = itertools.cycle([" ", "\x1b[6~"])
    while "Line 60." not in learner.terminal.lines:  # page by page nothing is left out
        below = learner.terminal.lines[lines - 4]  # the last line of the document that is drawn
        learner.type(next(keys))
        learner.terminal.until(lambda t, below=below: t.lines[lines - 4] != below)
        seen.update(learner.terminal.lines)
    assert {f"Line {n}." for n in range(1, 60)} <= seen
    learner.type("\x1b[F")
    learner.terminal.until(lambda t: t.lines == shown)
    learner.type("\x1b[A")
    learner.shows("2 lines below")
    learner.terminal.resize(60, 30)
    learner.terminal.until(lambda t: len(t.lines) == 30 and "] 0 of 3" in t.lines[-2])


def test_keys_that_do_nothing_say_so(learn):
    learner = learn()
    learner.after(1)
    learner.type("z")
    learner.shows("z is not one of the keys")
    learner.type("\x1b[Z")
    learner.shows("that is not one of the keys")
    learner.type("s")
    learner.shows("the solution of 01_hello is shown after it has passed; h shows a hint")
    for number in (1, 2, 3):
        learner.type("h")
        learner.shows(f"hint {number} of 3 for 01_hello:")
    learner.type("h")
    learner.shows("that was the last hint")


def test_a_solution_is_wrapped(learn, shelf):
    (shelf / "solutions" / "01_hello.py").write_text(f"right = '{'x' * 90} the end'\n")
    learner = learn(columns=80)
    learner.after(1)
    learner.file.write_text("right")
    learner.shows("01_hello has passed: 3 runs")
    learner.shows("1 of 3")
    assert not any("0 of 3" in line for line in learner.terminal.lines)
    learner.type("s")
    learner.shows("the end'")


@pytest.mark.slow
def test_keys(learn):
    learner = learn()
    learner.after(1)
    learner.type("h\x1b[Z?r")
    learner.terminal.until(lambda _t: len(learner.checks()) == 2)
    learner.shows("hint 1 of 3 for 01_hello:")  # it stays
    learner.shows("run it yourself:")
    learner.type("n")
    learner.shows("01_hello has not passed yet, and comes again later")
    learner.shows("02_ring: About ring")
    learner.shows("it builds on 01_hello")
    learner.shows("run it yourself:")
    learner.type("x")
    learner.shows("nothing to reset")
    learner.type("n")
    learner.shows("03_sums: About sums")
    learner.type("n")
    learner.shows("01_hello: About hello")


def test_from_the_first_exercise_to_the_last(learn):
    learner = learn()
    for number, name in enumerate(made.NAMES, 1):
        learner.shows(f"checking {name}/exercise.py")
        learner.shows("next: change")
        (learner.own / name / "exercise.py").write_text("right")
        learner.shows(f"{name} has passed: 3 runs")
        learner.shows(f"] {number} of 3")
        if name == "01_hello":
            learner.type("s")
            learner.shows("print('right')  # ours")
        learner.type("n")
    learner.shows("all exercises have passed")


@pytest.mark.parametrize("key", ["\n", "n\n", "\x04"], ids=["yes", "no", "Ctrl-D"])
def test_a_folder_without_exercises(learn, tmp_path, key):
    """They are copied to a new one; next time `spcomm learn` goes on in that."""
    empty = tmp_path / "empty"
    empty.mkdir()
    for question in (
        "Copy all 3 to my-exercises, and begin? [Y/n]",
        "Go on with those in my-exercises? [Y/n]",
    ):
        learner = learn(cwd=empty)
        learner.shows("There are no exercises in this folder.")
        learner.shows(question)
        learner.type(key)
        if key != "\n":
            learner.shows("`spcomm learn init my-exercises` copies them to a new one")
            learner.ends(1)
            assert list(empty.iterdir()) == []
            return
        learner.shows("next: change my-exercises/01_hello/exercise.py and save it")
        learner.type("q")
        learner.ends()
        assert (empty / "my-exercises" / "03_sums" / "README.md").is_file()


# ---- saves


def in_place(file, text):
    file.write_text(text)


def renamed_over(file, text):
    new = file.with_name(".exercise.py.swp")
    new.write_text(text)
    os.replace(new, file)


def with_a_backup(file, text):
    file.with_name("4913").touch()
    file.with_name("4913").unlink()
    os.rename(file, file.with_name("exercise.py~"))
    with open(file, "x") as new:
        new.write(text)
        new.flush()
        os.fsync(new.fileno())
    file.with_name("exercise.py~").unlink()


def piece_by_piece(file, text):
    with open(file, "w") as new:
        for letter in text:
            new.write(letter)
            new.flush()


SAVES = [in_place, renamed_over, with_a_backup, piece_by_piece]


@pytest.mark.slow
@pytest.mark.parametrize("save", each(2, SAVES))
def test_one_check_for_each_save(learn, save):
    learner = learn()
    learner.after(1)
    for count, text in ((2, "# wrong\n" * 50), (3, "# still wrong\n" * 40)):
        save(learner.file, text)
        learner.after(count)
        assert learner.checks()[-1] == f"01_hello {len(text)}", "it was checked half written"
    learner.file.with_name("exercise.py~").write_text("a backup")
    learner.file.with_name("other.py").write_text("right")
    learner.after(3)


@pytest.mark.slow
def test_a_program_that_is_gone_and_comes_back(learn):
    learner = learn()
    learner.after(1)
    learner.file.unlink()
    learner.shows("exercise.py is gone; x writes it again")
    learner.type("r")
    learner.shows("is missing; `spcomm learn reset 01` writes it anew")
    learner.type("x")
    learner.shows("exercise.py is there again")
    learner.file.write_text("right")
    learner.shows("01_hello has passed")


def test_the_screen_says_that_progress_was_lost_or_cannot_be_kept(learn, own):
    (own / ".spcomm-learn.json").write_text("{")
    learner = learn(env={"FULL": "1", "COLUMNS": "60"})  # the terminal has 200
    learner.shows(".spcomm-learn.json was damaged and is now .spcomm-learn.json.damaged; no exercise counts")
    learner.shows("run it yourself:")
    learner.file.write_text("right")
    learner.shows("cannot keep your progress in", "No space left on device")
    learner.shows("01_hello has passed")
    learner.type("n")
    learner.shows("02_ring: About ring")
    learner.shows("cannot keep your progress in")
    learner.shows("run it yourself:")


@pytest.mark.slow
def test_a_folder_in_the_place_of_the_program(learn):
    learner = learn()
    learner.after(1)
    learner.file.unlink()
    learner.file.mkdir()
    learner.shows("01_hello/exercise.py is no file; move it away")
    learner.type("x")
    learner.shows("cannot write 01_hello/exercise.py: Is a directory")


@pytest.mark.slow
def test_a_reset_is_no_save(learn):
    learner = learn()
    learner.after(1)
    learner.file.write_text("# mine")
    learner.after(2)
    learner.type("x")
    learner.shows("yours is in exercise.py.before")
    learner.after(2)


# ---- a save or a key ends a check


def hanging(learner, text="hang"):
    """A check that does not end by itself."""
    learner.after(1)
    learner.file.write_text(text)
    learner.terminal.until(lambda _t: len(learner.checks()) == 2)
    learner.shows("hangs")


def test_a_save_ends_the_check_and_its_verdict_is_never_shown(learn):
    learner = learn()
    learner.shows("run it yourself:")
    learner.file.write_text("hang late" + " " * 1000)
    learner.shows("hangs")
    learner.shows(CHECKING, "1 s")  # the clock runs
    learner.written.clear()
    learner.file.write_text("right")
    learner.shows("01_hello has passed: 3 runs")
    assert learner.checks()[1:] == ["01_hello 1009", "01_hello 5"]
    assert b"failed" not in learner.written and b"returned" not in learner.written


def test_the_clock_runs_on_after_each_case():
    shown = []
    page = SimpleNamespace(clock=shown.append)
    check = SimpleNamespace(progress=lambda page: page.clock(None), seconds=lambda: 3)
    session = SimpleNamespace(_running=check, _page=page)
    for _case in range(2):
        Session._progress(session)
    assert shown == [None, 3, None, 3]


@pytest.mark.slow
def test_each_key_ends_the_check(learn):
    learner = learn()
    hanging(learner, "hang late")
    for key, answer in (
        ("h", "What is missing?"),
        ("l", "-> now"),
        ("s", "is shown after it has passed"),
        ("\x03", ENDED_BY_CTRL_C),
        ("n", "02_ring: About ring"),
    ):
        learner.written.clear()
        learner.type(key)
        learner.shows(answer)
        if key != "n":
            learner.shows("the check was ended")
            assert not learner.is_checking() and b"failed" not in learner.written
            count = len(learner.checks())
            learner.type("r")
            learner.terminal.until(lambda _t, count=count: len(learner.checks()) == count + 1)
            learner.shows("hangs")
    learner.shows("run it yourself:")
    learner.type("n")
    learner.shows("03_sums: About sums")
    learner.shows("run it yourself:")
    learner.type("n")
    learner.shows("01_hello: About hello")
    learner.shows("hangs")
    learner.type("x")
    learner.shows("yours is in exercise.py.before")
    learner.type("n")
    learner.shows("02_ring: About ring")
    (learner.own / "02_ring" / "exercise.py").write_text("hang")
    learner.shows("hangs")


@pytest.mark.slow
def test_reading_the_lesson_and_other_keys_leave_the_check_alone(learn):
    learner = learn(columns=80, lines=12)
    learner.shows(KEYS)
    hanging(learner)
    learner.type("t")
    learner.shows("lines below")
    learner.type("?\x1b[B\x1b")
    learner.shows("lines above")
    learner.type("\x1b[F")
    learner.shows(CHECKING)
    assert len(learner.checks()) == 2


@pytest.mark.slow
def test_a_check_that_ends_with_a_key(learn):
    """Both wait for the process when it goes on: the result counts, or the check was ended, and the key is answered."""
    learner = learn()
    pipe = learner.shelf / "goes on"
    os.mkfifo(pipe)
    fd = os.open(pipe, os.O_RDWR)
    learner.after(1)
    for count, key, answer in ((2, "h", "What is missing?"), (3, "l", "-> now"), (4, "n", "02_ring: About")):
        learner.file.write_text("right, waits" + " " * count)
        learner.terminal.until(lambda _t, count=count: len(learner.checks()) == count)
        learner.shows(CHECKING)
        learner.terminal.process.send_signal(signal.SIGSTOP)
        learner.terminal.until(lambda t: state(t.process.pid) in STOPPED)
        learner.type(key)
        os.write(fd, b".")
        learner.terminal.process.send_signal(signal.SIGCONT)
        learner.shows(answer)
        if key != "n":
            both = ("01_hello has passed", ENDED)
            assert sum(any(text in line for line in learner.terminal.lines) for text in both) == 1
    learner.shows("run it yourself:")
    learner.type("q")
    learner.ends()
    os.close(fd)


@pytest.mark.slow
def test_many_saves_in_a_burst(learn):
    learner = learn()
    hanging(learner)
    for count in range(40):
        SAVES[count % len(SAVES)](learner.file, f"hang, number {count}")
    learner.file.write_text("right")
    learner.shows("01_hello has passed")
    assert learner.checks()[-1] == "01_hello 5"


def test_a_result_counts_that_is_there_when_a_key_is_pressed(shelf, own):
    """Whatever was pressed meanwhile."""
    every = exercises(shelf)
    lessons = Lessons(own, every)
    (own / "01_hello" / "exercise.py").write_text("right")
    session = Session(lessons, Page(), made.judge(shelf), every[0])

    class KeysWithOne:
        """Keys, one of which is pressed when the check has ended."""

        def wait(self, _other, _seconds):
            session._running._thread.join()
            return "n"

        def was_stopped(self):
            return False

    session._file = own / "01_hello" / "exercise.py"
    session._start()
    assert session._key(KeysWithOne()) == "n"
    assert lessons.has_passed(every[0]) and session._running is None


@pytest.mark.parametrize("skips", [False, True])
def test_a_check_that_passes_is_left_by_the_second_n(learn, shelf, skips):
    os.mkfifo(shelf / "goes on")
    learner = learn()
    learner.after(1)
    learner.file.write_text("right, pauses")
    learner.terminal.until(lambda t: len(learner.checks()) == 2 and not any("failed  " in x for x in t.lines))
    learner.shows("passed  a list on 1 nodes")
    learner.type("n")
    learner.shows("the check goes on, and 1 run passed so far; n again skips the exercise")
    if skips:
        learner.type("n")
        learner.shows("01_hello has not passed yet, and comes again later")
    else:
        (shelf / "goes on").write_bytes(b"!")
        learner.shows("01_hello has passed: 3 runs")
        learner.type("n")
        learner.shows("] 1 of 3")
    learner.shows("02_ring: About ring")


# ---- ends


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it(learn):
    learner = learn()
    hanging(learner)
    learner.type("\x03")
    learner.shows(ENDED_BY_CTRL_C)
    learner.type("\x03")
    learner.ends(130)


@pytest.mark.slow
@pytest.mark.parametrize("checking", [False, True], ids=["waiting", "checking"])
@pytest.mark.parametrize("end", ["Ctrl-D", signal.SIGTERM, signal.SIGHUP], ids=str)
def test_it_ends_at_once(learn, end, checking):
    learner = learn()
    if checking:
        hanging(learner)
    else:
        learner.after(1)
    if end == "Ctrl-D":
        learner.type("\x04")
        learner.ends()
    else:
        learner.terminal.process.send_signal(end)
        learner.ends(128 + end)


@pytest.mark.slow
def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(learn):
    learner = learn()
    learner.after(1)
    process = learner.terminal.process
    for _time in range(2):
        learner.type("\x1a")
        learner.terminal.until(lambda t: state(t.process.pid) in STOPPED)
        assert learner.terminal.is_echoing()
        process.send_signal(signal.SIGCONT)
        learner.terminal.until(lambda t: not t.is_echoing())
    learner.file.write_text("right")
    learner.shows("01_hello has passed")


@pytest.mark.slow
def test_a_judge_who_fails_leaves_the_terminal_intact(learn):
    learner = learn()
    learner.after(1)
    learner.file.write_bytes(b"\xff\xfe")  # this judge reads text
    assert learner.terminal.wait() == 1
    learner.terminal.check()
    assert re.search("UnicodeDecodeError", "\n".join(learner.terminal.lines))
