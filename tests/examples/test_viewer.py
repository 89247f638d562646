# SPDX-License-Identifier: MIT
"""Viewer: one frame for each question, the latest position, and exceptions that the reader sees."""

import io

import numpy as np
import pytest
from rendering import view_matrix

pytest.importorskip("anywidget", reason="pip install --group notebooks")
import viewer as module
from PIL import Image
from viewer import Viewer


class Front:
    """The front end of a viewer: the messages that it receives."""

    def __init__(self, monkeypatch, draw=None, **options):
        self.messages = []
        self.views = []
        self.viewer = Viewer(draw or self.draw, **options)
        monkeypatch.setattr(
            self.viewer, "send", lambda content, buffers: self.messages.append((content, buffers))
        )

    def draw(self, view):
        self.views.append(view)
        return np.full((32, 48, 3), [200, 100, 50], np.uint8)

    def ask(self, right, down):
        """As anywidget delivers what the browser sends."""
        self.viewer._handle_custom_msg({"right": right, "down": down}, [])
        return self.messages[-1]


def test_each_question_has_one_answer_with_a_frame(monkeypatch):
    front = Front(monkeypatch)
    for number in range(1, 4):
        content, [frame] = front.ask(0.1, 0)
        assert len(front.messages) == len(front.views) == number
        assert (content["answer"], content["frames"]) == (True, number)
        image = np.asarray(Image.open(io.BytesIO(frame)))
        assert image.shape == (32, 48, 3) and abs(image.astype(int) - [200, 100, 50]).max() <= 3


@pytest.mark.parametrize(("right", "down"), [(0.25, 0), (0, 0.1), (-0.5, 0), (0, -0.2)])
def test_what_is_in_front_follows_the_mouse(monkeypatch, right, down):
    """The point of the surface that is nearest to the eye moves as the mouse does."""
    start = view_matrix(0.7, -0.4)
    front = Front(monkeypatch, view=start)
    front.ask(right, down)
    nearest = -start[2]
    across, up, _away = front.views[0] @ nearest
    assert np.allclose([across, up], [np.sin(right * np.pi), -np.sin(down * np.pi)])


def test_many_turns_keep_the_right_angles(monkeypatch):
    front = Front(monkeypatch)
    for step in np.random.default_rng(1).uniform(-0.2, 0.2, (2000, 2)):
        front.ask(*step)
    assert np.allclose(front.views[-1] @ front.views[-1].T, np.eye(3), atol=1e-12)
    assert np.linalg.det(front.views[-1]) == pytest.approx(1)


def test_an_exception_is_shown_and_the_next_question_answered(monkeypatch):
    def draw(view):
        if not front.messages:
            raise ValueError("no light\nand more")
        return np.zeros((8, 8, 3), np.uint8)

    front = Front(monkeypatch, draw)
    assert front.ask(0, 0) == ({"text": "ValueError: no light", "answer": True, "frames": 0}, [])
    content, [_frame] = front.ask(0, 0)
    assert content["frames"] == 1
    front.messages.clear()
    with pytest.raises(ValueError, match="no light"):
        front.viewer.turn(2)


def test_a_turn_ends_where_it_began(monkeypatch):
    start = view_matrix(0.3, 0.5)
    front = Front(monkeypatch, view=start)
    assert front.viewer.turn(frames=8) > 0
    assert len(front.views) == 8 and np.allclose(front.viewer.view, start)
    assert np.allclose([view @ [0, 1, 0] for view in front.views], start @ [0, 1, 0]), "the axis stands still"
    assert np.allclose(front.views[3] @ [1, 0, 0], -start @ [1, 0, 0])
    assert not any(content["answer"] for content, _frame in front.messages), "nobody has asked"
    with pytest.raises(ValueError, match="at least one frame"):
        front.viewer.turn(0)


def test_the_rate_leaves_out_pauses(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])

    def draw(view):
        clock[0] += 0.04
        return np.zeros((8, 8, 3), np.uint8)

    front = Front(monkeypatch, draw, caption="{:.2f}".format)
    shown = []
    for pause in [0, 0.01, 0.01, 60.0, 0.06, *[0.01] * 30]:
        clock[0] += pause
        shown.append(front.ask(0, 0)[0]["text"])
    assert shown[:5] == ["25.00", f"{2 / 0.09:.2f}", f"{3 / 0.14:.2f}", "25.00", f"{2 / 0.14:.2f}"]
    assert shown[-1] == "20.00"
