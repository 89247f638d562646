# SPDX-License-Identifier: MIT
"""`%%spcomm` under plain IPython, without a kernel."""

import re

import pytest

from owners import Owner, have_ended

pytest.importorskip("IPython", reason="IPython is not installed: pip install ipykernel")

SHELL = """
    import os, signal, sys
    from IPython.terminal.embed import InteractiveShellEmbed
    shell = InteractiveShellEmbed.instance(banner1="", colors="NoColor")
    shell.run_cell("%load_ext spcomm")
    def run(cell):
        result = shell.run_cell(cell, store_history=True)
        return result.result
"""


@pytest.mark.slow
def test_cells_and_results():
    owner = Owner(f"""{SHELL}
    print(run("%%spcomm -n 2\\nx = comm.rank\\nprint('in', x)\\nx + 1"))
    print(run("%%spcomm\\ncomm.global_sum(x)"))
    run("%%spcomm\\n\\n1 / 0 if x else comm.barrier()")
    print(run("%spcomm pull x"))
""")
    code, out, err = owner.finish()
    assert code == 0, err
    assert re.search(r"\[[01]\] in [01]\n\[[01]\] in [01]\n.*\[1, 2\]\n", out, re.DOTALL), out
    assert "[1, 1]" in out
    assert "node 1 raised ZeroDivisionError; node 0 raised NodeLostError because of it" in out
    assert re.search(
        r'File "In\[\d+\]", line 3, in <module>\n\[1\]     1 / 0 if x else comm.barrier\(\)', out
    ), out
    assert out.endswith("[0, 1]\n")


@pytest.mark.slow
def test_a_terminal_shows_the_timeline_at_the_end():
    owner = Owner(f"""{SHELL}
    print(run("%%spcomm -n 2 --watch\\ncomm.barrier()\\ncomm.rank"))
""")
    code, out, err = owner.finish()
    assert code == 0 and "spcomm: --watch needs a notebook" in err and "HTML" not in out
    assert out.count("parallel efficiency") == 1 and out.endswith("[0, 1]\n")


@pytest.mark.slow
def test_ctrl_c():
    owner = Owner(f"""{SHELL}
    run("%%spcomm -n 2\\nx = comm.rank")
    run(f"%%spcomm\\nimport os, signal, time\\nif x: os.kill({{os.getpid()}}, signal.SIGINT)\\ntime.sleep(1000)")
    print(run("%%spcomm\\nx"))
""")
    _code, out, err = owner.finish()
    assert "KeyboardInterrupt: where the nodes were:" in out + err
    assert out.endswith("[0, 1]\n")


def test_the_end_of_ipython_ends_the_nodes():
    owner = Owner(f"""{SHELL}
    print(*run("%%spcomm -n 2\\nimport os\\nos.getpid()"))
    os.kill(os.getpid(), signal.SIGKILL)
""")
    while not (line := owner.line()).replace(" ", "").isdecimal():
        assert line, owner.finish()
    assert have_ended(map(int, line.split()))
    owner.finish()
