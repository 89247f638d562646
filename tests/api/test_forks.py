# SPDX-License-Identifier: MIT
"""A fork inside a node: the child is no node, and what it does hurts nobody."""

import os
import subprocess
import sys
import traceback

import numpy as np
import pytest

import spcomm
from nodetools import neighbours
from operations import OPERATIONS, call


def in_a_child(function):
    """Runs the function in a forked process and returns the text that it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = function()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


@pytest.mark.smoke
def test_every_call_raises_in_the_child(comm):
    def child():
        wrong = []
        for name, operation in OPERATIONS.items():
            try:
                wrong.append(f"{name} returned {call(comm, operation, comm.rank, 0)!r}")
            except spcomm.SpcommError as error:
                if "fork" not in str(error):
                    wrong.append(f"{name}: {error}")
        return "; ".join(wrong) or "all refused"

    assert in_a_child(child) == "all refused"
    comm.barrier()


def test_an_open_fuzzy_barrier_in_the_child(comm):
    fuzzy = comm.fuzzy_barrier()

    def child():
        try:
            fuzzy.wait()
        except spcomm.SpcommError as error:
            return str(error)
        return "returned"

    assert "fork" in in_a_child(child)
    fuzzy.wait()


@pytest.mark.slow
def test_views_that_die_in_the_child_live_on_in_the_node(comm):
    following, previous = neighbours(comm)
    comm.send(np.arange(50_000), following)
    array = comm.recv(previous)

    def child():
        nonlocal array
        total = int(array.sum())
        array = None
        return str(total)

    assert in_a_child(child) == str(sum(range(50_000)))
    for _ in range(5):  # were the block free, one of these would be written there
        comm.send(np.zeros(50_000), following)
        comm.recv(previous)
    assert np.array_equal(array, np.arange(50_000))


def test_a_child_that_ends_normally_does_not_end_the_node(comm):
    """Exit hooks of the child (close() among them) do nothing."""
    child = os.fork()
    if child == 0:
        try:
            comm.close()
        except spcomm.SpcommError:
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    comm.barrier()
    comm.send("alive", spcomm.ALL)
    assert [comm.recv(source) for source in range(comm.size)] == ["alive"] * comm.size


@pytest.mark.linux("reads /proc")
def test_descriptors_are_not_inherited_by_programs(comm):
    """No memory of the run is open in a program that a node starts."""
    code = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n.isdigit()" \
        " and os.path.exists(f'/proc/self/fd/{n}')])"  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, close_fds=False
    )
    assert "spcomm" not in result.stdout.replace("spcomm-pool-", ""), result.stdout


def test_forks_beside_messages(comm):
    following, previous = neighbours(comm)
    for step in range(10):
        comm.send((step, bytes(6000 * step)), following)
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert comm.recv(previous)[0] == step
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
