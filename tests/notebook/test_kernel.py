# SPDX-License-Identifier: MIT
"""`%%spcomm` in a real Jupyter kernel, through the protocol that notebooks use."""

import os
import signal

import pytest

from kernel import Kernel
from owners import KEPT, have_ended

pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install ipykernel")
pytest.importorskip("jupyter_client", reason="jupyter_client is not installed: pip install ipykernel")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.leaves("the client of the kernel keeps sockets and threads until it is collected"),
]
NEW = "the nodes are new, and their variables are gone"


@pytest.fixture(scope="module")
def kernel():
    """One for all tests: they begin with nodes of their own."""
    found = Kernel()
    try:
        cell = found.run("%load_ext spcomm")
        assert (cell.error, cell.err) == ("", "")
        yield found
    finally:
        found.close()


@pytest.fixture
def nodes(kernel):
    """The kernel with four new nodes."""
    kernel.run("%spcomm stop")
    cell = kernel.run("%%spcomm -n 4\nmark = comm.rank + 100\nmark")
    assert cell.result == "[100, 101, 102, 103]", cell
    return kernel


def processes(kernel):
    return [int(line.split()[-1]) for line in kernel.run("%spcomm status").out.splitlines()[1:]]


# ---- what goes well


def test_variables_stay_and_comm_is_there(nodes):
    assert nodes.run("%%spcomm\nx = comm.rank ** 2\ncomm.global_sum(x)").result == "[14, 14, 14, 14]"
    assert nodes.run("%%spcomm\nx").result == "[0, 1, 4, 9]"
    assert nodes.run("_").result == "[0, 1, 4, 9]"
    cell = nodes.run("%%spcomm\ny = 5")
    assert (cell.result, cell.out, cell.err, cell.error) == (None, "", "", "")


def test_results_can_be_kept_and_hidden(nodes):
    assert nodes.run("%%spcomm\nmark;").result is None
    assert nodes.run("values = %spcomm pull mark\nvalues[2]").result == "102"
    assert nodes.run("%spcomm pull mark mark").result == "{'mark': [100, 101, 102, 103]}"


def test_output_streams_by_node(nodes):
    cell = nodes.run("%%spcomm\nimport sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert sorted(cell.out.splitlines()) == [f"[{rank}] out" for rank in range(4)]
    assert sorted(cell.err.splitlines()) == [f"[{rank}] err" for rank in range(4)]


def test_output_by_node(nodes):
    cell = nodes.run("%%spcomm --group\nfor i in range(2):\n    comm.barrier()\n    print(i)")
    assert cell.out == "".join(f"[{rank}] {i}\n" for rank in range(4) for i in range(2))


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("%%spcomm --tr", "--trace"),
        ("%%spcomm -n 4 ", "--fresh"),
        ("%spcomm st", "status"),
        ("%spcomm explain SP10", "SP101"),
        ("%spcomm check 0", "02"),
        ("%spcomm run --fr", "--fresh"),
        ("%spcomm push note", "notebook_name"),
        ("%spcomm pull ma", "mark"),
        ("%%spcomm\ncomm.ba", "barrier"),
        ("%%spcomm\nif comm.rank:\n    comm.send", "sendrecv"),
        ("%%spcomm\nx = ma", "mark"),
        ("%%spcomm\nmark.bit", "bit_count"),
    ],
)
def test_completion(nodes, code, wanted):
    nodes.run("notebook_name = 1")
    assert any(word.rpartition(".")[2] == wanted for word in nodes.complete(code))


def test_names_of_nodes_are_offered_in_their_cells_only(nodes):
    assert "mark" not in nodes.complete("mar")
    assert nodes.complete("comm.ba") == nodes.complete("%%timeit\ncomm.ba") == []
    assert "stop" in nodes.complete("%spcomm sto") and "--trace" not in nodes.complete("%spcomm --tr")


def test_help_at_shift_tab(nodes):
    assert nodes.inspect("%%spcomm\ncomm.barrier").startswith(
        "comm.barrier(timeout=None)\n\nWait until all nodes"
    )
    assert "an int from 0 to" in nodes.inspect("%%spcomm\ncomm.rank")
    assert nodes.inspect("%%spcomm\nmark") == "mark: int\n\n100\n(on node 0)"
    assert nodes.inspect("%%spcomm\nnobody_knows") == nodes.inspect("%%spcomm\ncomm.nothing") == ""
    text = nodes.inspect("%%spcomm")
    assert all(
        f"  {label} " in text
        for label in ("-n N", "--boxes B", "--timeout TIME", "--trace", "--watch", "--fresh")
    )


def test_completion_starts_no_nodes_and_breaks_none(nodes):
    before = processes(nodes)
    assert nodes.run("%%spcomm\nclass Odd:\n    def __dir__(self): raise SystemExit\nodd = Odd()").error == ""
    assert nodes.complete("%%spcomm\nodd.x") == []
    assert processes(nodes) == before and nodes.run("%%spcomm\nmark").result == "[100, 101, 102, 103]"
    nodes.run("%spcomm stop")
    assert "mark" not in nodes.complete("%%spcomm\nmar")
    assert nodes.run("%spcomm status").out.startswith("spcomm: there are no")


def test_a_program_in_a_file(nodes, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, spcomm\nfound = spcomm.startup().rank, list(sys.argv), __file__, __name__\nprint(*sys.argv[1:])\n"
    )
    cell = nodes.run(f"%spcomm run -n 2 --group {program} a b")
    assert (cell.out, cell.error) == ("[0] a b\n[1] a b\n", "")
    whole = [(rank, [str(program), "a", "b"], str(program), "__main__") for rank in range(2)]
    assert (
        nodes.run("values = %spcomm pull found").error == ""
        and nodes.run("values == " + repr(whole)).result == "True"
    )
    program.write_text("\n1 / 0")
    error = nodes.run(f"%spcomm run {program}").error
    assert f'{program}", line 2' in error and "ZeroDivisionError" in error
    assert "cannot read nowhere.py: No such file" in nodes.run("%spcomm run nowhere.py").err
    assert "which program?" in nodes.run("%spcomm run -n 2").err


def test_a_code_is_explained(kernel):
    assert kernel.run("%spcomm explain SP101").out.startswith("SP101: deadlock")
    assert "there is no code 'SP1'" in kernel.run("%spcomm explain SP1").err


def test_push(nodes):
    nodes.run("table = {'a': 1}\ndef double(x): return 2 * x\n%spcomm push table double")
    assert nodes.run("%%spcomm\ndouble(table['a'] + comm.rank)").result == "[2, 4, 6, 8]"


def test_another_number_of_nodes_and_fresh_ones(nodes):
    cell = nodes.run("%%spcomm -n 4\nmark")
    assert (cell.result, cell.err) == ("[100, 101, 102, 103]", "")
    cell = nodes.run("%%spcomm --fresh\n'mark' in globals()")
    assert (cell.result, cell.err) == ("[False, False, False, False]", f"spcomm: {NEW}\n")
    cell = nodes.run("%%spcomm -n 2\ncomm.size")
    assert cell.result == "[2, 2]"
    assert cell.err == "spcomm: 2 nodes instead of 4: they are new, and all variables are gone\n"
    cell = nodes.run("%%spcomm --boxes 2\ncomm.box, comm.global_sum(1)")
    assert cell.result == "[(0, 2), (1, 2)]"
    assert cell.err == "spcomm: 2 nodes in 2 boxes: they are new, and all variables are gone\n"
    assert "spcomm: 2 nodes in 2 boxes, since" in nodes.run("%spcomm status").out
    assert nodes.run("%%spcomm --boxes 1 -n 4\ncomm.box").result == "[0, 0, 0, 0]"


def test_figures_appear(nodes):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    cell = nodes.run(
        "%%spcomm -n 2\nimport matplotlib.pyplot as plt\nprint('first')\nplt.plot([comm.rank, 1])\nplt.title('x')"
    )
    assert cell.pictures == 2, cell
    assert sorted(cell.out.splitlines()) == ["[0] figure:", "[0] first", "[1] figure:", "[1] first"]
    assert "non-interactive" not in nodes.run("%%spcomm\nplt.plot([1])\nplt.show()").err


def test_a_timeline(nodes):
    cell = nodes.run("%%spcomm --trace\nfor _ in range(5):\n    comm.barrier()\ncomm.global_sum(1)")
    assert cell.result == "[4, 4, 4, 4]"
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert "parallel efficiency" in cell.out, cell
    else:
        assert cell.pictures == 1, cell
    assert nodes.run("%%spcomm --trace\npass").error == ""


HELD = """\
import os, time
if comm.rank == 0:
    while not os.path.exists({path!r}): time.sleep(0.001)
    for to in range(1, comm.size): comm.send(None, to)
else:
    comm.recv(source=0)
{end}"""


@pytest.mark.parametrize("kind", ["cell", "program"])
@pytest.mark.parametrize("end", ["comm.global_sum(1)", "1 / 0"])
def test_nodes_are_shown_while_they_run(nodes, tmp_path, kind, end):
    pytest.importorskip("PIL", reason="pip install 'spcomm[notebook]'")
    path, program = tmp_path / "go", tmp_path / "program.py"
    seen = []

    def updated(data):
        seen.append(data)
        if "3 wait" in data.get("text/html", ""):  # node 0 computes, or waits for a core
            path.touch()

    code = HELD.format(path=str(path), end=end)
    program.write_text(f"import spcomm\ncomm = spcomm.startup()\n{code}")
    line = f"%spcomm run --watch {program}" if kind == "program" else f"%%spcomm --watch\n{code}"
    cell = nodes.run(line, updated=updated)
    assert path.exists() and "(4 ended)" in seen[-2]["text/html"]
    assert cell.ename == ("ClusterError" if end == "1 / 0" else ""), cell
    final = seen[-1]["text/html"]
    assert final.startswith("<iframe srcdoc=") and "&quot;recv&quot;" in final
    assert "parallel efficiency" in seen[-1]["text/plain"] and cell.pictures == 0


def test_comm_outside_of_the_nodes_gets_a_hint(nodes):
    hint = "comm exists on the nodes: begin the cell with %%spcomm"
    cell = nodes.run("comm.rank")
    assert cell.ename == "NameError" and cell.error.count(hint) == 1, cell
    cell = nodes.run("unheard_of")
    assert cell.ename == "NameError" and "%%spcomm" not in cell.error, cell
    nodes.run("%%spcomm\nmeasured = comm.rank")
    cell = nodes.run("print(measured)")
    hint = "measured exists on the nodes: begin the cell with %%spcomm, or take their values: "
    assert cell.ename == "NameError" and cell.error.count(hint) == 1, cell


def test_a_page_that_is_too_long_is_a_picture(nodes):
    nodes.run("import spcomm.notebook.magics as m\nkept = m._FRAME_BYTES\nm._FRAME_BYTES = 100")
    try:
        cell = nodes.run("%%spcomm --watch\ncomm.barrier()")
    finally:
        nodes.run("m._FRAME_BYTES = kept")
    assert "spcomm: the trace is too long for a page in a notebook" in cell.err and cell.error == ""
    assert "text/html" not in cell.updates[-1] and "text/plain" in cell.updates[-1]


def test_a_cluster_in_a_notebook(kernel):
    cell = kernel.run("""
import spcomm
def half(comm):
    comm.barrier()
    return 1 / 0
with spcomm.Cluster(2) as cluster:
    print(cluster.run(lambda comm: comm.rank))
    cluster.run(half)
""")
    assert cell.out == "[0, 1]\n"
    assert cell.ename == "ClusterError"
    told = cell.error.partition("ClusterError: node")[2]
    assert f'File "In[{cell.number}]", line 4, in half' in told
    assert "return 1 / 0" in told
    cell = kernel.run("""
def step(comm):
    return comm.recv()
with spcomm.Cluster(2) as cluster:
    cluster.run(step)
""")
    assert f"nodes 0-1  recv(source=ANY, tag=ANY)  In[{cell.number}]:2 in step" in cell.error


def test_cells_may_await(nodes):
    cell = nodes.run("""%%spcomm
import asyncio
async def total():
    await asyncio.sleep(0)
    return comm.global_sum(comm.rank)
queue = asyncio.Queue()
await total()""")
    assert cell.result == "[6, 6, 6, 6]", cell
    assert (
        nodes.run("%%spcomm\nawait queue.put(mark)\nx = await queue.get()\nx").result
        == "[100, 101, 102, 103]"
    )


# ---- what goes wrong


STEP = "def step():\n    return comm.recv(source=(comm.rank + 1) % comm.size)\nstep()"
ENDS = {
    "exception": ("comm.barrier()\nif comm.rank == 2:\n    y = 1 / 0\ncomm.barrier()", "ClusterError", (
        "node 2 raised ZeroDivisionError; nodes 0-1, 3 raised NodeLostError because of it",
        '[2]   File "In[{n}]", line 4, in <module>\n[2]     y = 1 / 0\n')),
    "deadlock": (STEP, "DeadlockError", (
        "DEADLOCK — all 4 nodes wait", "recv(source=rank+1, tag=ANY)  In[{n}]:3 in step", KEPT)),
    "timeout": ("--timeout 1\nwhile True: pass", "WaitTimeoutError", ("In[{n}]:2", KEPT)),
    "syntax": ("mark = 0\nfor x in y\n    pass", "SyntaxError", ('File "In[{n}]", line 3', "expected ':'")),
    "death": ("import os\nif comm.rank == 2: os.kill(os.getpid(), 9)\ncomm.barrier()", "NodeLostError", (
        f"node 2 was killed (SIGKILL): {NEW}",)),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_a_cell_that_ends_early_shows_its_lines(nodes, end):
    code, name, texts = ENDS[end]
    cell = nodes.run(f"%%spcomm{' ' if code.startswith('--') else chr(10)}{code}")
    assert cell.ename == name and "spcomm/notebook" not in cell.error
    assert [text for text in texts if text.format(n=cell.number) not in cell.error] == [], cell
    kept = nodes.run("%%spcomm\n'mark' in globals() and mark").result
    assert kept == ("[False, False, False, False]" if end == "death" else "[100, 101, 102, 103]")


@pytest.mark.parametrize(
    "code", ["while True: pass", "comm.recv(source=0) if comm.rank else __import__('time').sleep(1000)"]
)
def test_interrupting_the_kernel_interrupts_the_nodes_and_nothing_else(nodes, code):
    before = processes(nodes)
    nodes.run("mine = 7")
    cell = nodes.run(f"%%spcomm\nif comm.rank == 0: print('go')\n{code}", interrupt_at="go")
    assert cell.ename == "KeyboardInterrupt"
    assert "where the nodes were:" in cell.error
    assert cell.error.endswith(KEPT)
    assert nodes.run("%%spcomm\nmark").result == "[100, 101, 102, 103]"
    assert nodes.run("mine").result == "7"
    assert processes(nodes) == before
    # and the kernel's own cells can be interrupted as before
    cell = nodes.run("print('go')\nwhile True: pass", interrupt_at="go")
    assert cell.ename == "KeyboardInterrupt"


def test_a_node_that_is_killed_between_cells_is_replaced(nodes):
    number = processes(nodes)[1]
    os.kill(number, signal.SIGKILL)
    assert have_ended([number])
    assert "have ended; the next cell starts new ones" in nodes.run("%spcomm status").out
    cell = nodes.run("%%spcomm\ncomm.global_sum(1)")
    assert cell.result == "[4, 4, 4, 4]"
    assert cell.err == f"spcomm: node 1 was killed (SIGKILL): {NEW}\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("%%spcomm -n 0\n1", "UsageError: %%spcomm: -n 0: the number of nodes is 1 to 1024\n"),
        (
            "%%spcomm --timeout -1\n1",
            "UsageError: %%spcomm: --timeout -1: a timeout is more than 0, and a number",
        ),
        (
            "%%spcomm --tiemout 1\n1",
            "UsageError: %%spcomm: unknown option --tiemout; did you mean --timeout?",
        ),
        (
            "%%spcomm x.py\n1",
            "UsageError: %%spcomm: 'x.py' is not an option; the program belongs in the lines below",
        ),
        ("%spcomm psuh x", "UsageError: %spcomm: there is no command 'psuh'; there are push NAME…"),
        (
            "%spcomm push nothing_here",
            "UsageError: %spcomm push nothing_here: there is no variable nothing_here",
        ),
        ("%%spcomm\n!ls", "nodes run plain Python, and !ls is IPython's; put it into a cell of its own\n"),
        (
            "%%spcomm\n" + "-" * 100_000 + "1",
            "UsageError: %%spcomm: the cell is too deep, or there is no memory",
        ),
    ],
)
def test_one_clear_sentence(nodes, code, text):
    cell = nodes.run(code)
    assert text in cell.err
    assert cell.err.count("\n") == 1
    assert cell.error == "" or cell.ename == "UsageError"
    assert nodes.run("%%spcomm\nmark").result == "[100, 101, 102, 103]"


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("spcomm.trace.reader.read", "the timeline cannot be shown (OSError: [Errno 28] full)"),
        ("spcomm.trace.picture.timeline", "the timeline cannot be shown (OSError: [Errno 28] full)"),
        ("tempfile.mkstemp", "there is no timeline: no file for the trace can be made ([Errno 28] full)"),
    ],
)
def test_a_timeline_that_fails_leaves_the_result(nodes, broken, text):
    module = broken.rpartition(".")[0]
    nodes.run(
        f"import {module}\nkept = {broken}\ndef full(*a, **k): raise OSError(28, 'full')\n{broken} = full"
    )
    try:
        cell = nodes.run("%%spcomm --trace\ncomm.global_sum(1)")
        assert (cell.result, cell.error) == ("[4, 4, 4, 4]", "")
        assert cell.err == f"spcomm: {text}\n"
        cell = nodes.run("%%spcomm --trace\n1 / 0")
        assert cell.ename == "ClusterError"
        assert cell.err == f"spcomm: {text}\n"
    finally:
        nodes.run(f"{broken} = kept")


def test_output_without_end_can_be_interrupted(nodes):
    """Also that of a thread that goes on after its cell."""
    cell = nodes.run("%%spcomm\nwhile True: print('go')", interrupt_at="go")
    assert (cell.ename, cell.error[-len(KEPT) :]) == ("KeyboardInterrupt", KEPT)
    cell = nodes.run("""%%spcomm
import threading
stop = threading.Event()
def chatter():
    while not stop.is_set():
        print("on and on")
if comm.rank == 1:
    threading.Thread(target=chatter).start()
mark""")
    assert cell.result == "[100, 101, 102, 103]"
    assert nodes.run("%%spcomm\nstop.set()\nmark").result == "[100, 101, 102, 103]"


def test_what_the_system_refuses_is_one_line(nodes):
    name = "n" * 300 + ".py"
    assert nodes.run(f"%spcomm check 01 {name}").error == f"OSError: [Errno 36] File name too long: {name!r}"


def test_a_cell_that_was_meant_for_the_nodes(kernel):
    cell = kernel.run("import spcomm\nspcomm.startup().send(1, 1)")
    assert (
        "this is a run of one node: begin the cell with `%%spcomm -n 4`, after %load_ext spcomm" in cell.error
    )
    cell = kernel.run("spcomm.startup(local_nodes=4)")
    assert "%%spcomm -n 4" in cell.error or "this run has 1 node" in cell.error


def test_before_there_are_nodes(kernel):
    kernel.run("%spcomm stop")
    text = "UsageError: %%spcomm: there are no nodes yet; say how many, as in %%spcomm -n 4\n"
    assert kernel.run("%%spcomm\n1").err == text
    assert "there are no nodes yet" in kernel.run("x = 1\n%spcomm push x").err
    assert "there are no nodes yet" in kernel.run("%spcomm pull x").err
    assert (
        kernel.run("%spcomm status").out == "spcomm: there are no nodes; a cell starts them: %%spcomm -n 4\n"
    )
    assert kernel.run("%spcomm stop").out == "spcomm: there are no nodes\n"


# ---- the end


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "shutdown", "unload"])
def test_the_end_of_the_kernel_ends_the_nodes(how):
    kernel = Kernel()
    try:
        kernel.run("%load_ext spcomm")
        kernel.run("%%spcomm -n 2\n1")
        numbers = processes(kernel)
        assert len(numbers) == 2
        if how == "kill":
            kernel.client.execute("%%spcomm\nwhile True: pass")
            kernel.manager.signal_kernel(signal.SIGKILL)
        elif how == "shutdown":
            kernel.manager.shutdown_kernel()
        else:
            assert kernel.run("%unload_ext spcomm").error == ""
            assert "not found" in kernel.run("%spcomm status").err
        assert have_ended(numbers)
    finally:
        kernel.close()


# ---- the notebook's own process, as a run of one node


def test_a_cell_that_waits_for_itself_is_told():
    """Another cell, in a subshell, may still send what it waits for: so that is a warning, and the cell goes on."""
    own = Kernel()
    try:
        assert own.run("import spcomm\ncomm = spcomm.startup()").error == ""
        cell = own.run("comm.recv(tag=3)", interrupt_at="SP101")
        assert (
            "the node has been waiting for " in cell.err
            and "only another thread of this program can end that" in cell.err
        )
        assert "recv(source=ANY, tag=3)  In[2]:1" in cell.err and "%%spcomm -n 4" in cell.err
        assert cell.ename == "KeyboardInterrupt"
        assert own.run("comm.send(5, 0)\ncomm.recv()").result == "5"
    finally:
        own.close()
