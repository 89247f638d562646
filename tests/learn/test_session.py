# SPDX-License-Identifier: MIT
"""`spcomm learn` at a terminal: keys, saves in all the ways in which editors write, and the terminal at the end."""

import os
import re
import signal
import subprocess

import pytest

import made
from pairwise import each
from spcomm.learn.keys import Interrupts
from terminal import Terminal

pytest.importorskip("rich", reason="rich is not installed: pip install 'spcomm[learn]'")
KEYS = "h hint   r run again   n next"
ENDED = "the check was ended by Ctrl-C"


class Learner:
    """`spcomm learn` at a terminal of pyte's, in a folder with three exercises."""

    def __init__(self, shelf, own, *words, env=None):
        self.shelf, self.own, self.words = shelf, own, words
        self.terminal = Terminal(columns=200, lines=300)
        self.terminal.run(self, env={**made.environment(), **(env or {})})
        self.file = own / "01_hello" / "exercise.py"

    def start(self, env=None, **streams):
        """For Terminal.run."""
        return subprocess.Popen(made.command(self.shelf, *self.words), cwd=self.own, env=env, **streams)

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

    def after(self, count):
        """Wait for so many checks, and be sure that there are no more: what is typed next is answered next."""
        self.terminal.until(lambda _t: len(self.checks()) >= count)
        self.shows(KEYS, count=count)
        for _time in range(2):
            lists = sum("About hello" in line for line in self.terminal.lines)
            self.type("l")
            self.terminal.until(lambda t, n=lists: sum("About hello" in line for line in t.lines) > n)
        assert len(self.checks()) == count

    def ends(self, code=0):
        assert self.terminal.wait() == code, self.terminal.lines
        self.terminal.check()
        assert "Traceback" not in "\n".join(self.terminal.lines)


@pytest.fixture
def learn(shelf, own):
    """Starts `spcomm learn`, and closes the terminals."""
    found = []

    def start(*words, **more):
        found.append(Learner(shelf, own, *words, **more))
        return found[-1]

    yield start
    for learner in found:
        if learner.terminal.process.poll() is None:
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
    assert "run -n 3 01_hello/exercise.py" in text
    assert "**this**" not in text and "```" not in text, "Markdown is shown as it is meant"
    assert not learner.terminal.is_echoing()
    learner.type("q")
    learner.ends()


def test_plain(learn):
    learner = learn("--plain")
    learner.shows("Do **this**")
    learner.shows("-- 01_hello, 0 of 3 have passed")
    learner.type("q")
    learner.ends()


def test_without_rich(learn):
    learner = learn(env={"WITHOUT": "rich rich.console"})
    learner.shows("Do **this**")
    learner.shows(KEYS)
    learner.type("q")
    learner.ends()


@pytest.mark.slow
def test_keys(learn):
    learner = learn()
    learner.shows(KEYS)
    learner.type("h")
    learner.shows("hint 1 of 3 for 01_hello:")
    learner.shows("What is missing?")
    learner.type("s")
    learner.shows("the solution of 01_hello is shown after it has passed")
    learner.type("\x1b[A?")
    learner.shows(KEYS, count=2)
    learner.type("r")
    learner.terminal.until(lambda _t: len(learner.checks()) == 2)
    learner.shows("-> now", "01_hello", count=0)
    learner.type("n")
    learner.shows("01_hello has not passed yet, and comes again later")
    learner.shows("02_ring: About ring")
    learner.shows("it builds on 01_hello")
    learner.shows("run it yourself:")
    learner.type("x")
    learner.shows("nothing to reset")
    learner.type("nn")
    learner.shows("03_sums: About sums")
    learner.shows("01_hello: About hello", count=2)
    learner.type("q")
    learner.ends()


def test_from_the_first_exercise_to_the_last(learn):
    learner = learn()
    for number, name in enumerate(made.NAMES, 1):
        learner.shows(f"checking {name}/exercise.py")
        learner.shows("next: change", count=number)
        (learner.own / name / "exercise.py").write_text("right")
        learner.shows(f"{name} has passed: 3 runs")
        learner.shows(f"] {number} of 3")
        if name == "01_hello":
            learner.type("s")
            learner.shows("print('right')  # ours")
        learner.type("n")
    learner.shows("all exercises have passed")
    learner.type("q")
    learner.ends()


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
@pytest.mark.spread("env")
@pytest.mark.parametrize("env", [{}, {"WITHOUT": "watchfiles"}], ids=["watchfiles", "polling"])
@pytest.mark.parametrize("save", each(2, SAVES))
def test_one_check_for_each_save(learn, save, env):
    learner = learn(env=env)
    learner.after(1)
    if env:
        learner.shows("watchfiles is not installed")
    for count, text in ((2, "# wrong\n" * 50), (3, "# still wrong\n" * 40)):
        save(learner.file, text)
        learner.after(count)
        assert learner.checks()[-1] == f"01_hello {len(text)}", "it was checked half written"
    learner.file.with_name("exercise.py~").write_text("a backup")
    learner.file.with_name("other.py").write_text("right")
    learner.after(3)
    learner.type("q")
    learner.ends()


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
    learner.type("q")
    learner.ends()


@pytest.mark.slow
def test_a_reset_is_no_save(learn):
    learner = learn()
    learner.after(1)
    learner.file.write_text("# mine")
    learner.after(2)
    learner.type("x")
    learner.shows("yours is in exercise.py.before")
    learner.after(2)
    learner.type("q")
    learner.ends()


# ---- ends


def hanging(learner):
    """A check that does not end by itself."""
    learner.after(1)
    learner.file.write_text("hang")
    learner.shows("hangs")


@pytest.mark.slow
def test_ctrl_c_ends_the_check_and_no_more(learn):
    learner = learn()
    hanging(learner)
    learner.type("\x03")
    learner.shows(ENDED)
    learner.file.write_text("right")
    learner.shows("01_hello has passed")
    learner.type("q")
    learner.ends()


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it(learn):
    learner = learn()
    hanging(learner)
    learner.type("\x03")
    learner.shows(ENDED)
    learner.type("\x03")
    learner.ends(130)


def test_a_second_ctrl_c_lets_the_check_end_first_and_a_third_does_not():
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert interrupts.count == 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupts.count == 3


@pytest.mark.slow
@pytest.mark.parametrize("checking", [False, True], ids=["waiting", "checking"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_signals(learn, number, checking):
    learner = learn()
    if checking:
        hanging(learner)
    else:
        learner.after(1)
    learner.terminal.process.send_signal(number)
    learner.ends(128 + number)


@pytest.mark.slow
def test_ctrl_d_ends_it(learn):
    learner = learn()
    learner.after(1)
    learner.type("\x04")
    learner.ends()


@pytest.mark.slow
def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(learn):
    learner = learn()
    learner.after(1)
    process = learner.terminal.process
    for _time in range(2):
        learner.type("\x1a")
        learner.terminal.until(lambda t: stopped(t.process.pid))
        assert learner.terminal.is_echoing()
        process.send_signal(signal.SIGCONT)
        learner.terminal.until(lambda t: not t.is_echoing())
    learner.file.write_text("right")
    learner.shows("01_hello has passed")
    learner.type("q")
    learner.ends()


@pytest.mark.slow
def test_a_judge_who_fails_leaves_the_terminal_intact(learn):
    learner = learn()
    learner.after(1)
    learner.file.write_bytes(b"\xff\xfe")  # this judge reads text
    assert learner.terminal.wait() == 1
    learner.terminal.check()
    assert re.search("UnicodeDecodeError", "\n".join(learner.terminal.lines))


def stopped(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"
