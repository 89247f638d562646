# SPDX-License-Identifier: MIT
"""examples/rendering: the picture of n nodes is that of one node, and it shows what is there."""

import doctest

import numpy as np
import pytest
import rendering
from rendering import view_matrix

import spcomm

SIZE = 61
# Each axis from both sides, along the axis or slanting.
ANGLES = (0, 0), (1.5, 0.3), (1.3, -0.9), (2.2, 1.4), (-2.9, -0.2), (4.5, 0.4)
VIEWS = [view_matrix(turn, tilt) for turn, tilt in ANGLES]


def share(count, rank, size):
    return slice(rank * count // size, (rank + 1) * count // size)


@pytest.fixture(scope="module")
def alone():
    with spcomm.Cluster(1) as found:
        yield found


def molecules():
    draw = np.random.default_rng(3)
    centers = draw.uniform(
        -1.2, 1.2, (400, 3)
    )  # some of them are outside the picture, and many pass through others
    centers[200:210] = centers[100:110]  # in the same place, in other colours
    return centers, draw.integers(0, 256, (400, 3))


def draw_spheres(comm, view, radius=0.13):
    centers, colors = molecules()
    mine = share(len(centers), comm.rank, comm.size)
    return rendering.render_spheres(comm, centers[mine], radius, colors[mine], view, size=SIZE)


def cloud(shape=(21, 14, 17)):
    rgba = np.random.default_rng(5).random((*shape, 4), np.float32)
    rgba[..., 3] = np.clip(rgba[..., 3] - 0.5, 0, 1)
    rgba[:, :3] = 0  # transparent at a side, and in the middle
    rgba[9:11] = 0
    return rgba


def draw_volume(comm, views, rgba, width=None, root=0):
    volume = rendering.Volume(comm, rgba[share(len(rgba), comm.rank, comm.size)])
    return [rendering.render_volume(comm, volume, view, size=SIZE, width=width, root=root) for view in views]


@pytest.mark.parametrize("nodes", range(2, 10))
def test_n_nodes_draw_what_one_node_draws(alone, nodes):
    root = nodes - 1
    with spcomm.Cluster(nodes) as cluster:
        for view in VIEWS[:3]:
            pictures = cluster.run(draw_spheres, view)
            assert np.array_equal(pictures[0], alone.run(draw_spheres, view)[0])
            assert pictures[1:] == [None] * (nodes - 1)
        found = cluster.run(lambda comm: draw_volume(comm, VIEWS, cloud(), root=root))
        assert found[0] == [None] * len(VIEWS)
    [expected] = alone.run(draw_volume, VIEWS, cloud())
    for one, other in zip(found[root], expected, strict=True):
        assert other.max() > 60
        # `over` is associative but for rounding: where a sum is next to a whole number, it falls on the other side.
        differences = abs(one.astype(int) - other)
        assert differences.max() <= 1 and differences.mean() < 0.01


def nearest(view, radius):
    """For each pixel the number of the nearest sphere, by the equation of the sphere; -1: none."""
    centers, _colors = molecules()
    right, up, away = (centers @ view.T).T
    at = (np.arange(SIZE) - (SIZE - 1) / 2) * 2 / SIZE
    rest = radius**2 - (at[None, :, None] - right) ** 2 - (-at[:, None, None] - up) ** 2
    depths = np.where(rest > 0, away - np.sqrt(np.maximum(rest, 0)), np.inf)
    return np.where(depths.min(axis=2) < np.inf, depths.argmin(axis=2), -1)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("radius", [0.011, 0.05, 0.13, 0.6])  # the first one is smaller than a pixel
def test_the_nearest_sphere_is_seen(alone, view, radius):
    def draw(comm):
        centers, _colors = molecules()
        numbers = 2 * (np.arange(len(centers)) % 100)  # those in the same place have the same colour
        shown = np.column_stack([np.full(len(centers), 255), numbers, numbers])
        return rendering.render_spheres(comm, centers, radius, shown, view, size=SIZE).astype(int)

    [picture] = alone.run(draw)
    expected = nearest(view, radius)
    assert np.array_equal(picture[..., 0] > 0, expected >= 0)
    seen = expected >= 0
    # Green is red in proportion to the number, times the same light; both are rounded down.
    red, green = picture[seen, 0], picture[seen, 1]
    number = 2 * (expected[seen] % 100)
    wrong = abs(green - red * number / 255) > 1.01
    assert wrong.sum() <= 2, "where two are equally near up to rounding, the other one may be seen"


def test_a_turned_volume_is_where_its_view_puts_it(alone):
    """A soft ball that is off the centre, from many sides: its picture's middle against its centre's projection."""
    center = np.array([5.0, -3.0, 4.0])
    axis = np.arange(25) - 12
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    square = (x - center[0]) ** 2 + (y - center[1]) ** 2 + (z - center[2]) ** 2
    ball = np.ones((25, 25, 25, 4), np.float32)
    ball[..., 3] = np.where(square < 30, 0.2 * np.exp(-square / 4), 0)
    views = [view_matrix(turn, tilt) for turn in np.arange(0, 6.2, 0.5) for tilt in (-1.5, -0.7, 0, 0.6, 1.2)]
    [pictures] = alone.run(draw_volume, views, ball, SIZE / 2)
    at = (np.arange(SIZE) - (SIZE - 1) / 2) / 2
    for view, picture in zip(views, pictures, strict=True):
        light = picture[..., 0] / picture[..., 0].sum()
        found = (light.sum(axis=0) * at).sum(), -(light.sum(axis=1) * at).sum()
        assert np.allclose(found, (view @ center)[:2], atol=0.02)  # voxels


def test_what_is_near_hides_what_is_far():
    """Along each axis, from both sides: six nearly opaque plates of different colours, on three nodes."""
    colors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], np.float32)

    def draw(comm, axis, away):
        plates = np.full((6, 6, 6, 4), 0.99, np.float32)
        plates[..., :3] = np.moveaxis(np.broadcast_to(colors[:, None, None], (6, 6, 6, 3)), 0, axis)
        view = np.roll(np.eye(3) * [1, away, away], axis - 2, axis=1)
        return draw_volume(comm, [view], plates, 12)[0]

    with spcomm.Cluster(3) as cluster:
        for axis in range(3):
            for away, first in ((1, colors[0]), (-1, colors[-1])):
                picture = cluster.run(draw, axis, away)[0]
                assert abs(picture[SIZE // 2, SIZE // 2] / 255 - first).max() < 0.02, (axis, away)
                assert picture[0].max() == 0


def test_light_through_a_homogeneous_block(alone):
    """Six slices of opacity 0.3 let 0.7 ** 6 of the light through; on a diagonal the way through each is longer."""
    block = np.full((6, 40, 40, 4), [1, 1, 1, 0.3], np.float32)
    views = [view_matrix(np.pi / 2 + angle) for angle in (0, 0.3, 0.7)]
    [pictures] = alone.run(draw_volume, views, block, 20)
    for angle, picture in zip((0, 0.3, 0.7), pictures, strict=True):
        assert abs(picture[SIZE // 2, SIZE // 2, 0] - 255 * (1 - 0.7 ** (6 / np.cos(angle)))) < 1.01


def test_nothing_is_black(alone):
    def draw(comm):
        spheres = rendering.render_spheres(comm, [], 0.1, [255, 0, 0], VIEWS[1], size=SIZE)
        far = rendering.render_spheres(
            comm, [[1e30, 0, 0], [0, -5, 0]], 0.1, [255, 0, 0], VIEWS[0], size=SIZE
        )
        return [spheres, far, *draw_volume(comm, VIEWS, np.zeros((3, 3, 3, 4)))]

    for picture in alone.run(draw)[0]:
        assert picture.shape == (SIZE, SIZE, 3) and picture.dtype == np.uint8 and not picture.any()


@pytest.mark.parametrize("view", [np.eye(2), 2 * np.eye(3), np.ones((3, 3)), np.full((3, 3), np.nan)])
def test_a_view_is_three_directions(alone, view):
    with pytest.raises(spcomm.ClusterError, match="at right angles"):
        alone.run(draw_spheres, view)


@pytest.mark.parametrize(
    "shapes",
    [[(2, 3, 3, 4), (2, 3, 2, 4)], [(2, 3, 3, 4), (0, 3, 3, 4)], [(2, 3, 3, 3)] * 2, [(2, 3, 3, 4), (3, 3)]],
)
def test_slabs_that_do_not_match(shapes):
    with spcomm.Cluster(2) as cluster:
        with pytest.raises(spcomm.ClusterError, match="a node's slab has the shape") as caught:
            cluster.run(lambda comm: rendering.Volume(comm, np.zeros(shapes[comm.rank])))
    assert all(str(shape) in str(caught.value) for shape in shapes)


def test_the_examples_of_the_docstrings():
    assert doctest.testmod(rendering).failed == 0
