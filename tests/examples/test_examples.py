# SPDX-License-Identifier: MIT
"""Every example is short, says what it shows, runs on any number of nodes, and checks itself."""

import ast
import re
import sys
from pathlib import Path

import pytest

from pairwise import each
from programs import finish, ok, run, start

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATHS = sorted(EXAMPLES.glob("[0-9]*.py"))
NAMES = [path.name for path in PATHS]

# Less data than nodes, or none: (example, arguments).
SMALL = [
    ("03_pi.py", 3), ("04_monte_carlo.py", 5), ("05_primes.py", 2), ("05_primes.py", 5), ("08_heat_rod.py", 1),
    ("08_heat_rod.py", 3, 0), ("09_heat_plate.py", 0), ("10_life.py", 9, 1), ("10_life.py", 9, 3),
    ("10_life.py", 0), ("11_nbody.py", 3), ("12_sample_sort.py", 1), ("12_sample_sort.py", 3),
    ("13_odd_even_sort.py", 1), ("13_odd_even_sort.py", 3), ("14_matrices.py", 1), ("14_matrices.py", 3),
    ("15_kmeans.py", 2), ("16_master_workers.py", 3, 2), ("16_master_workers.py", 3, 7),
    ("17_pipeline.py", 1), ("17_pipeline.py", 0), ("18_sparse_exchange.py", 0), ("19_simulation.py", 0),
    ("19_simulation.py", 1.5), ("21_latency.py", 1),
]  # fmt: skip


def is_checked(result):
    return re.search(r"^checked: .+$", ok(result).out, re.MULTILINE)


def test_they_are_numbered_without_gaps():
    assert [int(name[:2]) for name in NAMES] == list(range(1, len(NAMES) + 1))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_it_is_short_and_says_what_it_shows(path):
    text = path.read_text()
    assert len(text.splitlines()) < 60
    said = ast.get_docstring(ast.parse(text))
    assert re.search(rf"^    spcomm run -n \d {path.name}\b", said, re.MULTILINE)
    assert re.search(r"^Look: ", said, re.MULTILINE) and re.search(r"^Try: ", said, re.MULTILINE)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("name", each(2, NAMES))
def test_runs(tmp_path, name, nodes):
    result = run(tmp_path, nodes, "", program=EXAMPLES / name)
    assert is_checked(result) and result.err == ""
    assert not list(tmp_path.iterdir())  # pictures are drawn only when asked for


@pytest.mark.stress
@pytest.mark.parametrize("nodes", [1, 3, 8])
@pytest.mark.parametrize(("name", "arguments"), [(name, rest) for name, *rest in SMALL], ids=str)
def test_more_nodes_than_data(tmp_path, name, arguments, nodes):
    assert is_checked(run(tmp_path, nodes, "", program=EXAMPLES / name, arguments=arguments))


@pytest.mark.stress
@pytest.mark.parametrize("name", NAMES)
def test_runs_without_a_launcher(tmp_path, name):
    assert is_checked(finish(start([sys.executable, EXAMPLES / name], cwd=tmp_path)))


def test_words_of_given_files(tmp_path):
    (tmp_path / "some words.txt").write_text("one two two\nthree three three\n", encoding="utf-8")
    name = tmp_path / "some words.txt"
    result = ok(run(tmp_path, 5, "", program=EXAMPLES / "07_word_count.py", arguments=[name]))
    assert "1 files, 2 lines, 6 words, 3 different ones" in result.out
    assert "three 3, two 2, one 1" in result.out


# One line of an example is spoilt, and its check has to see it: (example, line, what it becomes).
SPOILT = [
    ("01_hello.py", "comm.global_sum(comm.rank)", "comm.global_max(comm.rank)"),
    ("02_ring.py", '[*signatures, f"node {comm.rank}"]', "signatures"),
    ("03_pi.py", "comm.global_sum(mine)", "comm.global_max(mine)"),
    ("04_monte_carlo.py", "comm.global_sum(", "comm.global_max("),
    ("05_primes.py", "before = comm.exscan(", "before = comm.scan("),
    ("06_mandelbrot.py", "    yield row\n    for row", "    for row"),
    ("07_word_count.py", "lines[comm.rank :: comm.size]", "lines[comm.rank :: comm.size + 1]"),
    ("08_heat_rod.py", "comm.sendrecv(float(u[1])", "comm.sendrecv(float(u[2])"),
    ("09_heat_plate.py", "comm.sendrecv(u[-2]", "comm.sendrecv(u[-3]"),
    ("10_life.py", "np.vstack([over, mine, under])", "np.vstack([under, mine, over])"),
    ("11_nbody.py", "np.concatenate(comm.allgather(x))\n    v", "x\n    v"),
    (
        "12_sample_sort.py",
        "np.sort(np.concatenate(comm.allgather(",
        "np.sort(np.concatenate((lambda x: [x])(",
    ),
    ("13_odd_even_sort.py", "if comm.rank < partner", "if comm.rank > partner"),
    ("14_matrices.py", "column.bcast(strip_b, here", "column.bcast(strip_b, 0"),
    ("15_kmeans.py", "start, comm.global_sum)", "start, lambda mine: mine)"),
    ("16_master_workers.py", "max(best, result)", "max(best, (0, 0))"),
    ("17_pipeline.py", "COEFFICIENTS[first:last])", "COEFFICIENTS[first : last - 1])"),
    ("18_sparse_exchange.py", "comm.ssend(number, dest, tag=1)", "comm.ssend(number + 1, dest, tag=1)"),
    ("19_simulation.py", "float(now) + 1", "float(now) + 3"),
    ("20_spheres.py", "comm.rank, 240, comm.size", "comm.rank, 240, comm.size + 1"),
    ("21_latency.py", "comm.send(comm.recv(0, out=back), 0)", "comm.send(comm.recv(0, out=back) + 1, 0)"),
    ("22_byte_order.py", ".byteswap()", ".copy().byteswap().byteswap()[::-1]"),
]


def test_each_check_is_tested():
    assert [name for name, *_ in SPOILT] == NAMES


@pytest.mark.stress
@pytest.mark.parametrize(("name", "line", "other"), SPOILT, ids=NAMES)
def test_the_check_sees_a_mistake(tmp_path, name, line, other):
    text = (EXAMPLES / name).read_text()
    assert text.count(line) == 1
    (tmp_path / "picture.py").write_text((EXAMPLES / "picture.py").read_text())
    (tmp_path / name).write_text(text.replace(line, other))
    result = run(tmp_path, 4, "", program=tmp_path / name)
    assert result.code != 0 and "checked: " not in result.out, str(result)


def test_the_page_on_byte_order_shows_what_the_example_prints(tmp_path):
    text = (EXAMPLES.parent / "docs" / "howto" / "net_types.md").read_text()
    shown = text.partition("examples/22_byte_order.py\n")[2].partition("```")[0]
    result = ok(run(tmp_path, 2, "", program=EXAMPLES / "22_byte_order.py"))
    assert [line.rstrip() for line in result.out.splitlines()] == shown.splitlines()
