# SPDX-License-Identifier: MIT
"""Viewer: a picture in a notebook that the mouse turns, redrawn by a function for each view.

The browser asks for a picture, and for the next one only when it has drawn that one; until then it adds up how far the
mouse has moved. So positions that nobody can draw in time never reach the kernel, neither of them has a queue, and
frames follow each other as fast as the slowest of nodes, kernel and browser.

It is made with anywidget, because that brings its JavaScript to the front end itself: in JupyterLab, Jupyter Notebook
and VS Code nothing else is installed. (The package of ipyevents has an extension for JupyterLab only.) Frames are JPEG,
since Jupyter's server drops messages beyond a megabyte a second.
"""

import io
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rendering import view_matrix

try:
    import anywidget
    import traitlets
    from PIL import Image
except ImportError as error:
    raise ImportError(f"viewer.py needs {error.name}: pip install 'spcomm[notebook]' installs it") from None

PAUSE_S = 0.5  # without a frame for so long, the mouse rests: that does not count as slow
_FRAMES_AVERAGED = 20
_TURN = np.pi  # of a drag across the whole picture


class Viewer(anywidget.AnyWidget):
    """A picture that the mouse turns. Show it as the last line of a cell.

    Parameters
    ----------
    draw : callable
        Called as ``draw(view)`` for each frame, `view` being a matrix as `rendering.view_matrix` returns it. It
        returns red, green and blue, shape (size, size, 3), type uint8.
    caption : callable, optional
        Called as ``caption(frames_per_s)``; returns the text below the picture.
    view : array_like, optional
        The view at first.
    size : int, optional
        Pixels a side on the screen.

    Attributes
    ----------
    view : ndarray
        The view of the latest frame.
    frames : int
        How many frames were drawn.

    Notes
    -----
    Drag to turn the picture, or click it and use the arrow keys. The front end asks for the next frame when it has
    drawn the last one, so frames are as fast as nodes, kernel and browser together.

    An exception of `draw` is shown below the picture, and the next turn tries again.

    Examples
    --------
    >>> import numpy as np
    >>> from viewer import Viewer
    >>> viewer = Viewer(lambda view: np.zeros((64, 64, 3), np.uint8))
    >>> viewer.turn(frames=3) > 0
    True
    """

    _esm = (Path(__file__).parent / "viewer.js").read_text(encoding="utf-8")
    _size = traitlets.Int(256).tag(sync=True)

    def __init__(
        self,
        draw: "Callable[[np.ndarray], np.ndarray]",
        *,
        caption: "Callable[[float], str]" = "{:.1f} frames/s".format,
        view: Any = None,
        size: int = 256,
    ) -> None:
        super().__init__(_size=size)
        self.view = view_matrix() if view is None else np.asarray(view, dtype=np.float64)
        self.frames = 0
        self._draw = draw
        self._caption = caption
        self._ends: deque[float] = deque(maxlen=_FRAMES_AVERAGED + 1)
        self.on_msg(self._asked)

    def turn(self, frames: int = 24) -> float:
        """Turn once around the vertical axis, as the mouse would, and return the frames per second.

        Parameters
        ----------
        frames : int, optional
            Into how many frames the turn is divided.

        Raises
        ------
        Exception
            Whatever `draw` raises.
        """
        if frames < 1:
            raise ValueError(f"turn(frames={frames}): at least one frame")
        upright = self.view
        begin = time.monotonic()
        for number in range(1, frames + 1):
            self._show(upright @ view_matrix(2 * np.pi * number / frames), answer=False)
        return frames / (time.monotonic() - begin)

    def _asked(self, _widget: object, way: "dict[str, float]", _buffers: object) -> None:
        """Answer a front end that asks for a frame, turned by so many widths and heights of the picture.

        JupyterLab has it called in another thread than cells (a subshell).
        """
        view = _right_angles(view_matrix(way["right"] * _TURN, way["down"] * _TURN) @ self.view)
        try:
            self._show(view, answer=True)
        except Exception as error:
            lines = str(error).splitlines() or [""]
            text = f"{type(error).__name__}: {lines[0]}"
            self.send({"text": text, "answer": True, "frames": self.frames}, [])

    def _show(self, view: np.ndarray, answer: bool) -> None:
        begin = time.monotonic()
        if self._ends and begin - self._ends[-1] > PAUSE_S:
            self._ends.clear()
        if not self._ends:
            self._ends.append(begin)
        frame = _encoded(self._draw(view))
        self._ends.append(time.monotonic())
        self.frames += 1
        self.view = view
        rate = (len(self._ends) - 1) / max(self._ends[-1] - self._ends[0], 1e-9)
        self.send({"text": self._caption(rate), "answer": answer, "frames": self.frames}, [frame])


def _right_angles(view: np.ndarray) -> np.ndarray:
    """The nearest matrix with right angles; without it, thousands of small turns would add up their rounding errors."""
    left, _stretched, right = np.linalg.svd(view)
    return left @ right


def _encoded(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
