# SPDX-License-Identifier: MIT
"""Renderer: pictures of spheres and of volumes, drawn by all nodes and combined by binary swap.

Like the renderer of ACLMPL (P. Hinker and others, section 6), it is a module that the nodes of a program call
together, on the public calls of spcomm. Copy this file beside your program, or put its folder into `sys.path`.

Each node has a part of the things and draws a whole picture of its part; `Comm.reduce` combines the pictures. For
spheres, an element of a picture is an integer with the depth in its upper half and the colour in its lower half, and
the smaller one is kept. Integers have no rounding errors, so the picture is the same on any number of nodes, bit for
bit.

A volume is drawn by shear and warp (P. Lacroute and M. Levoy, 1994): the slices are shifted against each
other until all rays are perpendicular to them, laid over each other, and the result is warped to the picture. In a
shifted slice all points lie in the same way between its voxels, so NumPy can interpolate a slice with four
multiplications of whole arrays.
"""

from typing import Any, NamedTuple

import numpy as np

import spcomm

__all__ = ["Volume", "render_spheres", "render_volume", "view_matrix"]

_LAMP = np.float32([-0.48, 0.60, -0.64])  # the direction that light comes from; right, up, away from the eye
_PIXELS = 1 << 16  # drawn at a time, so that the arrays in between stay in the cache
_NOTHING = np.uint64(2**64 - 1)


def view_matrix(turn: float = 0.0, tilt: float = 0.0) -> np.ndarray:
    """Return the view of a scene that is turned and tilted.

    Parameters
    ----------
    turn, tilt : float
        Angles in radians: the front moves to the right, around the vertical axis, and then downwards.

    Returns
    -------
    ndarray
        Shape (3, 3); its rows are the directions to the right, upwards, and away from the eye.

    Examples
    --------
    >>> import rendering
    >>> rendering.view_matrix()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    sin_turn, cos_turn, sin_tilt, cos_tilt = np.sin(turn), np.cos(turn), np.sin(tilt), np.cos(tilt)
    around = np.array([[cos_turn, 0, -sin_turn], [0, 1, 0], [sin_turn, 0, cos_turn]])
    climb = np.array([[1, 0, 0], [0, cos_tilt, sin_tilt], [0, -sin_tilt, cos_tilt]])
    return climb @ around


def _view(view: Any) -> np.ndarray:
    found = np.asarray(view, dtype=np.float64)
    if found.shape != (3, 3) or not np.allclose(found @ found.T, np.eye(3), atol=1e-6):
        raise ValueError(
            "view: its rows are three directions of length 1, at right angles (shape (3, 3)); "
            "view_matrix(turn, tilt) makes one"
        )
    return found


# Spheres


def render_spheres(
    comm: "spcomm.Comm",
    centers: Any,
    radius: float,
    colors: Any,
    view: Any,
    *,
    size: int = 256,
    width: float = 2.0,
    root: int = 0,
) -> "np.ndarray | None":
    """Draw spheres: each node its own, the nearest one visible. A collective call.

    Parameters
    ----------
    comm : Comm
        The nodes.
    centers : array_like
        The centers of this node's spheres, shape (n, 3). The picture's middle is at (0, 0, 0).
    radius : float
        The radius of all spheres.
    colors : array_like
        Red, green and blue from 0 to 255; shape (n, 3), or (3,) for all spheres.
    view : array_like
        As `view_matrix` returns it.
    size : int, optional
        Pixels a side.
    width : float, optional
        The part of the space that the picture shows, from its left to its right.
    root : int, optional
        The node that receives the picture.

    Returns
    -------
    ndarray or None
        Red, green and blue, shape (size, size, 3), type uint8; None on all nodes but `root`. It is the same, bit for
        bit, however the spheres are divided among the nodes.

    Examples
    --------
    >>> import rendering, spcomm
    >>> with spcomm.Cluster(2) as cluster:
    ...     pictures = cluster.run(lambda comm: rendering.render_spheres(
    ...         comm, [[comm.rank, 0, 2 * comm.rank]], 0.5, [255, 0, 0], rendering.view_matrix()))
    >>> pictures[0].shape, pictures[1]
    ((256, 256, 3), None)
    """
    x, y, z = np.asarray(centers, np.float64).reshape(-1, 3).T
    # A matrix product may round in another way for another number of spheres.
    places = np.column_stack([x * row[0] + y * row[1] + z * row[2] for row in _view(view)])
    keys = _splat(places, radius, colors, size, width)
    whole = comm.reduce(keys, op=spcomm.MIN, root=root, algorithm="binary-swap")
    if comm.rank != root:
        return None
    rgb = np.where(whole == _NOTHING, 0, whole)[:, None] >> np.uint64([16, 8, 0])
    return rgb.astype(np.uint8).reshape(size, size, 3)


def _splat(places: np.ndarray, radius: float, colors: Any, size: int, width: float) -> np.ndarray:
    """A picture of spheres at these places (right, up, away): for each pixel the smallest key of a sphere there."""
    # Pixels to the right and downwards; the middle of pixel 0 is at 0.
    scale = size / width
    x, y = places[:, 0] * scale + (size - 1) / 2, (size - 1) / 2 - places[:, 1] * scale
    reach = radius * scale
    # Outside the picture a sphere has no pixel; those that are left have coordinates that fit into an int.
    seen = np.flatnonzero(
        (abs(x - size / 2) < size / 2 + reach + 1) & (abs(y - size / 2) < size / 2 + reach + 1)
    )
    x, y, z = x[seen], y[seen], places[seen, 2]
    rgb = np.broadcast_to(np.asarray(colors, np.float32).reshape(-1, 3), (len(places), 3))[seen]
    box = np.arange(-int(reach) - 1, int(reach) + 2)
    down, across = (offsets.ravel() for offsets in np.meshgrid(box, box, indexing="ij"))
    # A centre is within half a pixel's diagonal of its pixel's middle.
    kept = np.hypot(down, across) <= reach + 0.75
    down, across = down[kept], across[kept]

    keys = np.full(size * size, _NOTHING, np.uint64)
    step = max(1, _PIXELS // len(down))
    for begin in range(0, len(x), step):
        part = slice(begin, begin + step)
        column, row = np.rint(x[part]).astype(np.int64), np.rint(y[part]).astype(np.int64)
        columns, rows = column[:, None] + across, row[:, None] + down
        dx = ((columns - x[part, None]) / reach).astype(np.float32)
        dy = ((y[part, None] - rows) / reach).astype(np.float32)
        rest = 1 - dx * dx - dy * dy
        inside = (rest > 0) & (columns >= 0) & (columns < size) & (rows >= 0) & (rows < size)
        number, _offset = np.nonzero(inside)
        dx, dy, dz = dx[inside], dy[inside], -np.sqrt(rest[inside])  # the surface's direction
        light = 0.25 + 0.75 * np.maximum(dx * _LAMP[0] + dy * _LAMP[1] + dz * _LAMP[2], 0)
        shades = (light[:, None] * rgb[part][number]).astype(np.uint64)
        color = shades[:, 0] << np.uint64(16) | shades[:, 1] << np.uint64(8) | shades[:, 2]
        depth = (z[part][number] + radius * dz).astype(np.float32)
        np.minimum.at(keys, rows[inside] * size + columns[inside], _ordered(depth) << np.uint64(32) | color)
    return keys


def _ordered(numbers: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of some float32: their bits, with the sign so that negative ones come first."""
    bits = numbers.view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)


# Volumes


class Volume:
    """A node's slab of a volume, prepared for `render_volume`. Making one is a collective call.

    Parameters
    ----------
    comm : Comm
        The nodes. Their slabs, by rank, are the volume, along its first axis.
    rgba : array_like
        This node's slices, shape (slices, height, width, 4): red, green, blue and opacity from 0 to 1. The opacity is
        that of a voxel's thickness. There is at least one slice on each node.

    Attributes
    ----------
    shape : tuple
        The shape of the whole volume, without the colours.
    begin, end : int
        The slices of this node.

    Notes
    -----
    A volume holds the four numbers of each voxel three times, once for each axis along which the eye may look. It does
    not keep `comm`, so a node of a `Cluster` can use it in later calls.

    Examples
    --------
    >>> import numpy as np, rendering, spcomm
    >>> with spcomm.Cluster(2) as cluster:
    ...     cluster.run(lambda comm: rendering.Volume(comm, np.zeros((4, 9, 9, 4))).shape)
    [(8, 9, 9), (8, 9, 9)]
    """

    def __init__(self, comm: "spcomm.Comm", rgba: Any) -> None:
        slab = np.asarray(rgba, np.float32)
        told = comm.allgather((slab.shape, slab.size > 0))
        if (
            any(len(shape) != 4 or shape[1:] != slab.shape[1:] or not full for shape, full in told)
            or slab.shape[3] != 4
        ):
            raise ValueError(
                f"Volume: a node's slab has the shape (slices, height, width, 4), with as much height and width as the "
                f"others; these are {', '.join(str(shape) for shape, _full in told)}"
            )
        counts = [shape[0] for shape, _full in told]
        self.begin = sum(counts[: comm.rank])
        self.end = self.begin + counts[comm.rank]
        self.shape = (sum(counts), *slab.shape[1:3])
        # The points between the last slice of a node and the first one of the next node belong to the former, and the
        # points before the first slice to node 0.
        given: list[Any] = [None] * comm.size
        if comm.rank > 0:
            given[comm.rank - 1] = slab[:1]
        received = comm.alltoall(given)
        nothing = np.zeros_like(slab[:1])
        ghost = received[comm.rank + 1] if comm.rank < comm.size - 1 else nothing
        front = nothing[comm.rank :]
        voxels = np.pad(np.concatenate([front, slab, ghost]), ((0, 0), (1, 1), (1, 1), (0, 0)))
        # Extinction along the way, and light that is emitted in proportion to it: both can be interpolated.
        voxels[..., 3] = -np.log1p(-np.clip(voxels[..., 3], 0, 0.999))
        voxels[..., :3] *= voxels[..., 3:]
        self._along = [self._stack(voxels, axis) for axis in range(3)]

    def _stack(self, voxels: np.ndarray, axis: int) -> "list[_Slice]":
        """The slices of this node along an axis, each with the rectangle that is not transparent."""
        turned = np.ascontiguousarray(np.moveaxis(np.moveaxis(voxels, axis, 0), 3, 1))
        first = [self.begin or -1, -1, -1]
        numbers = range(self.begin, self.end) if axis == 0 else range(self.shape[axis])
        others = [first[other] for other in range(3) if other != axis]
        found = []
        for number in numbers:
            layer = turned[number - first[axis]]
            rows, columns = (np.flatnonzero(layer[3].any(axis=1 - i)) for i in (0, 1))
            if rows.size:
                top, left = max(rows[0] - 1, 0), max(columns[0] - 1, 0)
                bottom, right = min(rows[-1] + 2, layer.shape[1]), min(columns[-1] + 2, layer.shape[2])
                found.append(
                    _Slice(number, others[0] + top, others[1] + left, layer[:, top:bottom, left:right])
                )
        return found


class _Slice(NamedTuple):
    number: int  # along the axis
    row: int  # where the rectangle begins
    column: int
    layer: np.ndarray  # red, green, blue times extinction, and extinction


@spcomm.op(elementwise=True, element_axes=1)
def _over(front: np.ndarray, back: np.ndarray) -> np.ndarray:
    """A picture in front of another: red, green, blue, and the light that gets through (Porter and Duff 1984)."""
    through = front[:, 3:]
    whole = through * back
    whole[:, :3] += front[:, :3]
    return whole


@spcomm.op(elementwise=True, element_axes=1)
def _under(back: np.ndarray, front: np.ndarray) -> np.ndarray:
    """The same with the higher ranks in front."""
    return _over(front, back)


def render_volume(
    comm: "spcomm.Comm",
    volume: Volume,
    view: Any,
    *,
    size: int = 256,
    width: "float | None" = None,
    root: int = 0,
) -> "np.ndarray | None":
    """Draw a volume, whose slabs the nodes have, before black. A collective call.

    Parameters
    ----------
    comm : Comm
        The nodes that have made `volume`, in the same order.
    volume : Volume
        The volume; this node's part.
    view : array_like
        As `view_matrix` returns it. It looks at the middle of the volume; the first axis of the volume is the first
        axis of the space.
    size : int, optional
        Pixels a side.
    width : float, optional
        The number of voxels that the picture shows, from its left to its right. None: the whole volume, from every
        side.
    root : int, optional
        The node that receives the picture.

    Returns
    -------
    ndarray or None
        Red, green and blue, shape (size, size, 3), type uint8; None on all nodes but `root`. On other numbers of nodes
        a colour may differ by 1, because rounding depends on which parts are combined first.

    Examples
    --------
    >>> import numpy as np, rendering, spcomm
    >>> def draw(comm):
    ...     volume = rendering.Volume(comm, np.full((4, 8, 8, 4), 0.5))
    ...     return rendering.render_volume(comm, volume, rendering.view_matrix(), width=8)
    >>> with spcomm.Cluster(2) as cluster:
    ...     cluster.run(draw)[0][128, 128]
    array([127, 127, 127], dtype=uint8)
    """
    shear = _Shear(_view(view), volume.shape)
    op = _over if shear.view[2, 0] >= 0 else _under
    whole = comm.reduce(_lay(volume, shear), op=op, root=root, algorithm="binary-swap")
    if comm.rank != root:
        return None
    if width is None:
        width = float(np.linalg.norm(volume.shape))
    return _warp(whole, shear, size, width)


class _Shear:
    """The shifts of the slices along one axis after which all rays are perpendicular to them.

    A pixel (g, h) is a ray; in the slice in the middle of the axis it goes through the point (g, h) - `margin`.
    """

    def __init__(self, view: np.ndarray, shape: "tuple[int, ...]") -> None:
        self.view = view
        away = view[2]
        self.axis = int(np.argmax(abs(away)))
        self.others = [other for other in range(3) if other != self.axis]
        self.middle = (np.array(shape) - 1) / 2
        self.slope = away[self.others] / away[self.axis]
        self.margin = np.ceil(abs(self.slope) * self.middle[self.axis]).astype(int) + 1
        self.pixels = np.array(shape)[self.others] + 2 * self.margin
        self.thickness = np.float32(1 / abs(away[self.axis]))  # of a slice, along a ray

    def shift(self, number: int) -> np.ndarray:
        """The difference between a pixel and its point in the slice."""
        return self.slope * (number - self.middle[self.axis]) - self.margin


def _lay(volume: Volume, shear: _Shear) -> np.ndarray:
    """This node's slices laid over each other, from front to back; shape (pixels, 4) as `_over` takes it."""
    rows, columns = shear.pixels
    seen = np.zeros((4, rows, columns), np.float32)
    light, through = seen[:3], seen[3]
    through[:] = 1
    stack = volume._along[shear.axis]
    for one in stack if shear.view[2, shear.axis] > 0 else reversed(stack):
        shift = shear.shift(one.number)
        whole = np.floor(shift).astype(int)
        down, right = (shift - whole).astype(np.float32)
        points = one.layer[:, :-1] * (1 - down)
        points += one.layer[:, 1:] * down
        layer = points[:, :, :-1] * (1 - right)
        layer += points[:, :, 1:] * right
        top, left = one.row - whole[0], one.column - whole[1]
        place = slice(top, top + layer.shape[1]), slice(left, left + layer.shape[2])
        extinction = layer[3]
        passes = np.exp(extinction * -shear.thickness)
        # The share of the light emitted in the slice that leaves it, and then gets through the slices in front of it.
        share = (1 - passes) / np.maximum(extinction, np.float32(1e-6))
        share *= through[place]
        layer[:3] *= share
        light[:, place[0], place[1]] += layer[:3]
        through[place] *= passes
    return np.ascontiguousarray(seen.reshape(4, -1).T)


def _warp(seen: np.ndarray, shear: _Shear, size: int, width: float) -> np.ndarray:
    """The picture, from the one whose rays are perpendicular to the slices."""
    right, up, _away = shear.view
    at = (np.arange(size) - (size - 1) / 2) * (width / size)
    rows, columns = shear.pixels
    first, second = (
        (right[other] - right[shear.axis] * slope) * at[None, :]
        - (up[other] - up[shear.axis] * slope) * at[:, None]
        + shear.middle[other]
        + margin
        for other, slope, margin in zip(shear.others, shear.slope, shear.margin, strict=True)
    )
    inside = (first >= 0) & (first < rows - 1) & (second >= 0) & (second < columns - 1)
    first, second = first[inside], second[inside]
    row, column = first.astype(np.int64), second.astype(np.int64)
    down, across = (
        (exact - whole).astype(np.float32)[:, None] for exact, whole in ((first, row), (second, column))
    )
    place = row * columns + column
    colors = np.clip(seen[:, :3] * 255, 0, 255)
    above = colors[place] * (1 - across) + colors[place + 1] * across
    below = colors[place + columns] * (1 - across) + colors[place + columns + 1] * across
    picture = np.zeros((size, size, 3), np.uint8)
    picture[inside] = above * (1 - down) + below * down
    return picture
