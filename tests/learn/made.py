# SPDX-License-Identifier: MIT
"""Three small exercises, a judge who does what the program says, and `spcomm learn` with both of them.

The judge notes each check in the file `checks` beside the exercises, so that tests can count them.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from spcomm.learn.catalogue import exercises
from spcomm.learn.running import Cancelled

NAMES = ["01_hello", "02_ring", "03_sums"]
LESSON = "# Lesson {name}\n\nDo **this**, then run it.\n\n```\nspcomm run -n 3 exercise.py\n```\n"
STUB = '"""Exercise of {name}."""\n# TODO: say it\n'
WATCHDOG_S = 60.0
HANGING = "import sys; print('hangs', flush=True); sys.stdin.read()"  # ends with the process that started it


def make(folder):
    """The exercises, as the package has them."""
    for name in NAMES:
        place = folder / name
        place.mkdir(parents=True)
        place.joinpath("README.md").write_text(LESSON.format(name=name))
        place.joinpath("exercise.py").write_text(STUB.format(name=name))
        place.joinpath("check.py").write_text("# never copied\n")
        info = {"title": f"About {name[3:]}", "teaches": "something", "stub_says": "TODO"}
        needs = [] if name == NAMES[0] else [NAMES[0]]
        hints = ["What is missing?", "A word.", "The word is: right."]
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in info.items())
        place.joinpath("info.toml").write_text(
            f"{text}needs = {json.dumps(needs)}\nhints = {json.dumps(hints)}\n"
        )
    folder.joinpath("solutions").mkdir()
    folder.joinpath("solutions", "01_hello.py").write_text("print('right')  # ours\n")
    return folder


def judge(folder):
    """A judge for `grade=`: `right` in the program passes, `hang` has to be ended; `late` has a verdict all the same.

    With `waits` in the program the verdict comes when a byte comes through `goes on`, a pipe beside the exercises;
    with `pauses` the first run is right, and the rest comes after the byte.
    """

    def grade(path, exercise=None, seed=None, on_case=None, cancellation=None):
        text = Path(path).read_text()
        with open(folder / "checks", "a") as file:
            file.write(f"{exercise.name} {len(text)}\n")
        if "hang" in text:
            with contextlib.suppress(Cancelled if "late" in text else ()):
                hang(cancellation)
        if "waits" in text:
            with open(folder / "goes on", "rb", buffering=0) as pipe:
                pipe.read(1)
        cases = []
        for nodes, right in ((1, True), (3, "right" in text), (5, True)):
            message = "" if right else "node 1 returned \x1b[31mNone; expected 42 (3 nodes)"
            cases.append(SimpleNamespace(name=f"a list on {nodes} nodes", passed=right, message=message))
            if on_case is not None:
                on_case(cases[-1])
            if "pauses" in text and nodes == 1:
                pause(folder / "goes on", cancellation)
        return SimpleNamespace(
            exercise=exercise.name,
            passed=all(case.passed for case in cases),
            cases=cases,
            message=next((case.message for case in cases if case.message), ""),
            isolation="none",
            seed=seed or 1,
        )

    return grade


def pause(pipe, cancellation):
    """Wait for a byte, in a child that ends with the check."""
    with subprocess.Popen(["head", "-c1", pipe], stdout=subprocess.DEVNULL, start_new_session=True) as child:
        with cancellation.covering(child):
            child.wait()


def hang(cancellation):
    """A run that does not end by itself, and is ended with the check."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], stdin=subprocess.PIPE, start_new_session=True
    ) as child:
        with cancellation.covering(child):
            child.wait()


def run(folder, *words, cwd=None, env=None):
    """`spcomm learn` without a terminal."""
    return subprocess.run(
        command(folder, *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        cwd=cwd,
        env={**environment(), **(env or {})},
    )


def command(folder, *words):
    return [sys.executable, str(Path(__file__)), str(folder), *map(str, words)]


def environment():
    root = str(Path(__import__("spcomm").__path__[0]).parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NO_COLOR": "1", "TERM": "xterm"}


def fill():
    """From now on the disk is full for files that are put in place of others."""
    from spcomm.learn import copying

    def full(_fd):
        raise OSError(28, "No space left on device")

    copying.os = SimpleNamespace(**{**vars(os), "fsync": full})


def main(folder, *words):
    """As `spcomm learn` in a process of its own."""
    from spcomm import cli
    from spcomm.learn.learning import main as learn

    where = Path(folder)
    if os.environ.get("FULL"):
        fill()
    cli._COMMANDS["learn"] = (lambda words: learn(words, lambda: exercises(where), judge(where)), "")
    return cli.main(["learn", *words])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
