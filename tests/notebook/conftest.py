# SPDX-License-Identifier: MIT
"""Fixtures of the tests of Cluster and of Jupyter."""

import pytest

import spcomm
from rooming import CODE, Room
from spcomm.launch.room import join_code
from spcomm.notebook import room_nodes


@pytest.fixture
def cluster():
    """Three nodes."""
    with spcomm.Cluster(3) as found:
        yield found


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A room, and its code in the environment."""
    monkeypatch.setenv(join_code.VARIABLE, CODE)
    monkeypatch.setattr(room_nodes, "_keys", {})
    found = Room(tmp_path)
    yield found
    found.close()


@pytest.fixture
def two(request, room):
    """A room with two members, which take two nodes and one; parameters are options of the server."""
    room.serve("--room", *getattr(request, "param", ()))
    room.join("ann", "--nodes", 2)
    room.join("bob", "--nodes", 1)
    return room


@pytest.fixture(params=["one box", "two boxes", "room"])
def placed(request):
    """Three nodes; the last one may be elsewhere: in another box, or on another member of a room."""
    options = {"boxes": 2} if request.param == "two boxes" else {}
    if request.param == "room":
        options = {"room": request.getfixturevalue("two").place}
    with spcomm.Cluster(3, **options) as found:
        yield found
