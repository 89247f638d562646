# SPDX-License-Identifier: MIT
"""The programs of course/ print what other MPIs print."""

import os
import shutil

import pytest

import course_expected as course

slow = pytest.mark.slow
RUNS = [
    pytest.param(4),
    *[pytest.param(nodes, marks=slow) for nodes in (2, 3, 8)],
]
OPTIONS = {
    "boxes": (["--boxes", "2"], "shared"),
    "rendezvous": (["--rendezvous", "0"], "buffered"),
    **{f"perturb-{seed}": (["--perturb", "--seed", str(seed)], "") for seed in (1, 2, 3)},
}


@pytest.fixture(scope="module")
def executable(tmp_path_factory):
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        pytest.skip("there is no C compiler")
    return course.compiled(tmp_path_factory.mktemp("course"))


@pytest.fixture(params=course.LANGUAGES)
def run(request, launch):
    """Runs the course, and compares what it prints with what is expected."""

    def run(nodes, *options, without=""):
        words = ["--without", without] if without else []
        if request.param == "c":
            program, environment = request.getfixturevalue("executable"), {}
        else:
            request.getfixturevalue("mpi4py")
            program, environment = course.COURSE / "course.py", {}
        result = launch("-n", nodes, *options, program, *words, env=environment)
        assert result.code == 0, result
        found, wanted = course.parts(result.out), course.expected(request.param, nodes)
        assert len(found) >= len(wanted) / 2
        wanted = {name: text for name, text in wanted.items() if name in found or not without}
        different = course.differences(wanted, found)
        assert not different, different

    return run


@pytest.mark.parametrize("nodes", RUNS)
def test_the_course(run, nodes):
    run(nodes)


@slow
@pytest.mark.parametrize("nodes", course.NODES)
@pytest.mark.parametrize("option", OPTIONS)
def test_the_course_with_options(run, nodes, option):
    words, without = OPTIONS[option]
    run(nodes, *words, without=without)


@slow
@pytest.mark.parametrize("nodes", course.NODES)
@pytest.mark.parametrize("language", course.LANGUAGES)
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_another_mpi(library, language, nodes, tmp_path):
    found = course.command(library, language, nodes, tmp_path)
    if found is None:
        pytest.skip(f"{library} is not installed")
    assert not course.differences(course.expected(language, nodes), course.parts(course.ask(*found)))
