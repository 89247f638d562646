# SPDX-License-Identifier: MIT
"""A program's surroundings: everything as under plain Python, whichever way its nodes start."""

import json

import pytest

from pairwise import each
from spcomm.launch.cmdline.environment import THREADS

FACTS = """
    '''A docstring.'''
    import json, sys, __main__, os
    facts = {
        "argv": sys.argv, "path0": sys.path[0], "name": __name__, "file": __file__, "doc": __doc__, "spec":
        __spec__ and [__spec__.name, __spec__.origin], "package": __package__, "loader":
        type(__loader__).__name__, "cached": __cached__, "same": __main__.__dict__ is globals(), "globals":
        sorted(k for k in globals() if k.startswith("__")), "orig_argv": sys.orig_argv, "executable":
        sys.executable, "flags": list(sys.flags), "warnoptions": sys.warnoptions, "xoptions": sys._xoptions,
        "cwd": os.getcwd(), "stdout": [sys.stdout.name, sys.stdout.encoding, sys.stdout.errors,
        sys.stdout.mode, sys.stdout is sys.__stdout__], "stdin": [sys.stdin.name, sys.stdin.encoding,
        sys.stdin.errors, sys.stdin.mode, sys.stdin.fileno()], "stderr": [sys.stderr.name,
        sys.stderr.encoding, sys.stderr.errors, sys.stderr.mode],
    }
    print(json.dumps(facts))
"""


@pytest.mark.parametrize(
    "python", [(), ("-O",), ("-X", "dev", "-W", "error"), ("-P", "-s"), ("-I",)], ids=str
)
def test_interpreter_and_main_are_those_of_plain_python(launch, start, python):
    if "-I" in python and "PYTHONPATH" in launch.environment():
        pytest.importorskip("spcomm")  # -I sees only an installed spcomm
        if launch.python(*python, "-c", "import spcomm").code:
            pytest.skip("spcomm is not installed in this interpreter")
    script = launch.script(FACTS)
    result = launch("-n", 2, *start, script.name, "one", "two words", python=python)
    expected = json.loads(launch.python(*python, script.name, "one", "two words").out)
    assert result.code == 0, result
    for line in result.lines:
        assert without_options(json.loads(line)) == without_options(expected)


def without_options(facts):
    """Options have several spellings; what they set is compared."""
    command = facts["orig_argv"]
    start = next((i for i, word in enumerate(command) if word.endswith("program.py") or word == "-m"), 0)
    return {**facts, "orig_argv": command[start:]}


def test_a_module_runs_as_under_python_m(launch, start):
    launch.script("", "package/__init__.py")
    launch.script(FACTS, "package/tool.py")
    result = launch("-n", 2, *start, "-m", "package.tool", "one")
    expected = json.loads(launch.python("-m", "package.tool", "one").out)
    assert result.code == 0, result
    assert [without_options(json.loads(line)) for line in result.lines] == [without_options(expected)] * 2


def test_a_folder_with_main_runs(launch):
    launch.script("import helper; print(helper.value)", "tool/__main__.py")
    launch.script("value = 'found'", "tool/helper.py")
    assert launch("-n", 2, "tool").lines == ["found", "found"]


def test_nodes_load_no_openssl(launch):
    """Each node would take it apart at its end."""
    program = "import sys, spcomm; spcomm.startup(); print('_hashlib' in sys.modules)"
    assert launch("-n", 2, launch.script(program).name).lines == ["False", "False"]


def test_an_executable_gets_its_arguments_and_its_place(launch):
    result = launch("-n", 2, "sh", "-c", 'echo "$0 $1 ${SPCOMM_NODE#*:}"', "zero", "one two")
    assert result.code == 0, result
    assert sorted(line.split(":")[0] for line in result.lines) == ["zero one two 0", "zero one two 1"]


def test_stdin_goes_to_node_0_and_the_others_are_at_the_end(launch, start):
    result = launch.program(
        """
        import sys, spcomm
        comm = spcomm.startup()
        print(comm.rank, repr(sys.stdin.readline()), repr(sys.stdin.read()))
        """,
        options=("-n", 3, *start), stdin=b"first\nsecond\nthird",
    )  # fmt: skip
    assert sorted(result.lines) == ["0 'first\\n' 'second\\nthird'", "1 '' ''", "2 '' ''"], result


def test_what_makes_nodes_unbuffered_does_not_reach_their_children(launch, start):
    text = """
        import os, subprocess, sys
        print(os.environ.get("PYTHONUNBUFFERED"), flush=True)
        subprocess.run([sys.executable, "-c", "import sys; print(sys.stdout.write_through)"])
    """
    assert launch.program(text, options=("-n", 1, *start)).lines == ["None", "False"]
    given = launch.program(text, options=("-n", 1, *start), env={"PYTHONUNBUFFERED": "1"})
    assert given.lines == ["1", "True"]


def test_classes_of_the_script_can_be_pickled_also_at_exit(launch, start):
    result = launch.program(
        """
        import atexit, pickle
        class Point:
            def __init__(self, x): self.x = x
        def last():
            print(pickle.loads(pickle.dumps(Point(5))).x)
        atexit.register(last)
        print(pickle.loads(pickle.dumps(Point(4))).x)
        """,
        options=("-n", 1, *start),
    )
    assert result.lines == ["4", "5"], result


def test_what_a_program_leaves_open_is_finalised(launch, start):
    result = launch.program(
        """
        import atexit, threading, weakref, sys
        kept = open(f"left-open", "w")
        kept.write("written")
        class Loud:
            def __del__(self): print("deleted")
        loud, cycle = Loud(), [Loud()]
        cycle.append(cycle)
        weakref.finalize(loud, print, "finalised")
        atexit.register(print, "exit function")
        threading.Thread(target=lambda: print("thread")).start()
        print("partial", end="")
        """,
        options=("-n", 1, *start),
    )
    assert result.code == 0, result
    assert (launch.folder / "left-open").read_text() == "written"
    found = result.out.replace("partial", "").split()
    assert found.count("deleted") == 2
    assert {"thread", "exit", "finalised"} <= set(found) and "partial" in result.out


@pytest.mark.parametrize("python", [(), ("-X", "dev")], ids=["", "dev"])
def test_the_end_has_the_order_of_plain_python(launch, start, python):
    launch.script(
        """
        class Late:
            def __init__(self, name): self.name = name
            def __del__(self): print("del", self.name)
        kept = Late("imported")
        """,
        "library.py",
    )
    script = launch.script(
        """
        import atexit, sys, threading
        import library
        from library import Late
        _underscore, ring, plain = Late("underscore"), [Late("ring")], Late("plain")
        ring.append(ring)
        sys.attribute = Late("sys")
        atexit.register(print, "exit")
        threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
        print("program")
        """
    )
    expected = launch.python(*python, script).out
    result = launch("-n", 1, *start, script, python=python)
    assert result.code == 0, result
    assert sorted(result.lines) == sorted(expected.splitlines()), result
    assert result.lines[:3] == ["program", "thread", "exit"] and result.err == ""


def test_what_c_libraries_keep_is_written(launch, start):
    result = launch.program("import ctypes; ctypes.CDLL(None).printf(b'from C')", options=("-n", 1, *start))
    assert result.out == "from C", result


@pytest.mark.parametrize(
    "code", each(2, ["0", "None", "True", "7", "-1", "256", "2**31", "2**70", "'text'", "(1, 2)", "1.5"])
)
def test_exit_codes_are_those_of_plain_python(launch, start, code):
    script = launch.script(f"import sys; sys.exit({code})")
    expected = launch.python(script)
    result = launch("-n", 1, *start, script)
    assert result.code == expected.code, result
    assert result.err.startswith(expected.err), result


def test_a_stream_that_cannot_be_flushed_gives_the_exit_code_of_plain_python(launch):
    script = launch.script("import os; print('x', end=''); os.close(1)")
    expected = launch.python(script)
    result = launch("-n", 1, script)
    assert result.code == expected.code == 120, result


def test_exit_functions_of_preloaded_modules_run_in_the_nodes(launch):
    launch.script("import atexit; atexit.register(print, 'module says goodbye')", "polite.py")
    result = launch.program("print('program')", options=("-n", 2, "--preload", "polite"))
    assert sorted(result.lines) == ["module says goodbye"] * 2 + ["program"] * 2, result


@pytest.mark.slow
def test_nodes_draw_different_random_numbers(launch, start):
    result = launch.program(
        "import random as a, numpy.random as b; print(a.random(), b.random(), b.default_rng().random())",
        options=("-n", 4, *start, *(("--preload", "numpy.random,random") if start[1] == "fork" else ())),
    )
    columns = list(zip(*(line.split() for line in result.lines), strict=True))
    assert [len(set(column)) for column in columns] == [4, 4, 4], result


def test_all_nodes_hash_alike_and_runs_differ(launch, start):
    runs = [launch.program("print(hash('x'))", options=("-n", 3, *start)).lines for _ in range(2)]
    assert [len(set(lines)) for lines in runs] == [1, 1]
    assert runs[0] != runs[1]
    given = launch.program("print(hash('x'))", options=("-n", 2, *start), env={"PYTHONHASHSEED": "7"}).lines
    assert given == launch.python("-c", "print(hash('x'))", env={"PYTHONHASHSEED": "7"}).lines * 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_inside_a_node_works_and_breaks_nothing(launch, start, method):
    result = launch.program(
        f"""
        import multiprocessing, os, warnings
        import spcomm

        def square(x):
            return x * x

        if __name__ == "__main__":
            comm = spcomm.startup()
            context = multiprocessing.get_context({method!r})
            with context.Pool(2) as pool:
                print(comm.rank, pool.map(square, [1, 2, 3]))
            print(comm.rank, comm.size)
        """,
        options=("-n", 2, *start),
    )
    assert result.code == 0, result
    assert sorted(result.lines) == ["0 2", "0 [1, 4, 9]", "1 2", "1 [1, 4, 9]"], result


@pytest.mark.slow
def test_a_process_that_a_node_starts_is_alone(launch, start):
    result = launch.program(
        """
        import os, subprocess, sys, spcomm
        comm = spcomm.startup()
        other = subprocess.run([sys.executable, "-c", "import spcomm; print(spcomm.startup().size)"],
                               capture_output=True, text=True)
        print(comm.size, other.stdout.strip(), "SPCOMM_NODE" in os.environ)
        """,
        options=("-n", 2, *start),
    )
    assert result.lines == ["2 1 False"] * 2, result


ANEW = """
    import os, sys, spcomm
    if sys.argv[1] == "after":
        spcomm.startup()
    if sys.argv[-1] != "anew":
        os.execv(sys.executable, [sys.executable, *sys.argv, "anew"])
    print(spcomm.startup().size)
"""


def test_a_node_that_executes_itself_anew_is_no_run_of_its_own(launch, start):
    """After `startup`, the program that it executes cannot be the node."""
    result = launch.program(ANEW, "after", options=("-n", 2, *start))
    assert result.code == 1 and result.out == "", result
    words = (
        "of 2 until it executed this program in its own place (as os.execv does), and this program is no node"
    )
    assert words in result.err and "subprocess.run()" in result.err, result


def test_a_node_may_execute_itself_anew_before_startup(launch):
    result = launch.program(ANEW, "before", options=("-n", 2, "--start", "exec"))
    assert (result.code, result.lines, result.err) == (0, ["2", "2"], ""), result


def test_a_fork_server_s_node_that_executes_itself_anew(launch):
    """Its place is in the memory that it loses, so it says so before `startup`, too."""
    result = launch.program(ANEW, "before", options=("-n", 2, "--start", "fork"))
    assert result.code == 1 and "of 2 until it executed this program" in result.err, result


def test_signal_handlers_and_mask_are_fresh(launch, start):
    script = launch.script(
        """
        import signal
        numbers = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
        print([(int(s), str(signal.getsignal(s))) for s in numbers if str(signal.getsignal(s)) != "0"])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.set_wakeup_fd(-1))
        """
    )
    result = launch("-n", 1, *start, script)
    assert result.code == 0, result

    def normal(text):
        return [line.split(" at 0x")[0] for line in text.splitlines()]

    assert normal(result.out) == normal(launch.python(script).out), result


@pytest.mark.linux("reads /proc")
def test_descriptors_are_those_of_plain_python_and_the_segment(launch):
    script = launch.script("import os; print(sorted(os.listdir('/proc/self/fd'), key=int))")
    found = launch("-n", 3, script).lines
    assert len(set(found)) == 1, "every node has the same descriptors, whichever was forked first"
    assert len(found[0].split()) <= 3 + 4, found  # segment, report, where, and the listing itself


def test_garbage_is_collected(launch):
    result = launch.program(
        """
        import gc, weakref
        class Ring: pass
        ring = Ring(); ring.self = ring
        alive = weakref.ref(ring)
        del ring
        gc.collect()
        print(gc.isenabled(), alive() is None)
        """,
        options=("-n", 1),
    )
    assert result.lines == ["True True"], result


@pytest.mark.parametrize(
    ("set_here", "others"), [({}, "1"), ({"OMP_NUM_THREADS": "2"}, "2"), ({"OMP_NUM_THREADS": "3,2"}, "3")]
)
def test_every_library_of_threads_has_the_count_of_openmp(launch, start, set_here, others):
    text = f"import os; print(*(os.environ[name] for name in {[*THREADS]}))"
    expected = {**dict.fromkeys(THREADS, others), "NUMBA_NUM_THREADS": "4", **set_here}
    result = launch.program(text, options=("-n", 1, "-x", "NUMBA_NUM_THREADS=4", *start), env=set_here)
    assert result.lines == [" ".join(expected.values())], result


def test_a_file_beside_the_script_named_as_a_library_module_is_found(launch):
    launch.script("value = 'mine'", "queue.py")
    result = launch.program("import queue; print(queue.value)", options=("-n", 1))
    assert result.lines == ["mine"], result


@pytest.mark.parametrize("name", ["spcomm.py", "my first.py"])
def test_names_of_programs_and_of_files_beside_them_hide_nothing_of_spcomm(launch, name):
    launch.script("raise SystemExit('of the program')", "my programs/random.py")
    script = launch.script(
        "import spcomm; comm = spcomm.startup(); print(comm.allreduce(comm.rank))", f"my programs/{name}"
    )
    result = launch("-n", 2, "--no-label", script)
    assert (result.code, result.out, result.err) == (0, "1\n1\n", ""), result


@pytest.mark.stress
def test_a_thousand_nodes(launch):
    result = launch.program(
        "import spcomm; comm = spcomm.startup(); print(comm.allreduce(1))",
        options=("-n", 1000, "--no-label", "--stall", 0),
    )
    assert (result.code, result.out, result.err) == (0, "1000\n" * 1000, ""), result
