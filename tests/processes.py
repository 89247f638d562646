# SPDX-License-Identifier: MIT
"""Processes as the system shows them: parent, children, name and state of one that a test did not start itself."""

import os

import psutil

GOING_ON = {"running", "sleeping", "disk-sleep"}
STOPPED = {"stopped", "tracing-stop"}


def parent(pid):
    return psutil.Process(pid).ppid()


def children(pid):
    return [child.pid for child in psutil.Process(pid).children()]


def name(pid):
    """As `ps` shows it; "" once the process has ended."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


def named(pids, beginning):
    """{name: process id} of those whose name begins so."""
    found = {name(pid): pid for pid in pids}
    return {its_name: pid for its_name, pid in found.items() if its_name.startswith(beginning)}


def state(pid):
    """A word of psutil's, such as "sleeping"; "gone" once the process has been reaped."""
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "gone"


def until(pid, states):
    """Wait until the process is in one of these states."""
    while state(pid) not in states:
        os.sched_yield()
