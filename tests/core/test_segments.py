# SPDX-License-Identifier: MIT
"""The extension that launchers use: the segment, who is there, what the system gives."""

import os
import subprocess
import sys
from contextlib import closing

import pytest

import leaks
from nodepool import environment
from spcomm import SpcommError
from spcomm._core import segments

ALL_FEATURES = ["memfd", "futex", "pidfd", "epoll", "wipe_on_fork"]


@pytest.mark.parametrize("nodes", [1, 2, 3, 64, 1024])
def test_a_segment(nodes):
    with closing(segments.Segment(nodes)) as segment:
        status = os.fstat(segment.fd)
        assert (segment.device, segment.inode) == (status.st_dev, status.st_ino)
        assert segment.nodes == nodes and segment.size == status.st_size > 0
        assert not os.get_inheritable(segment.fd)
        assert [segment.state(rank) for rank in range(nodes)] == [segments.STARTING] * nodes


def test_it_takes_room_only_where_it_is_touched():
    with closing(segments.Segment(64)) as segment:
        assert os.fstat(segment.fd).st_blocks * 512 < segment.size / 10


def test_without_memfd_nothing_is_left_behind():
    before = leaks.shared_files()
    with closing(segments.Segment(2, arena=1 << 20, disable=segments.disable_mask("memfd"))) as segment:
        assert leaks.shared_files() == before
        assert (
            os.fstat(segment.fd).st_blocks * 512 >= segment.size
        )  # all of it is reserved: no later surprise


def test_closed_twice_and_used_after():
    segment = segments.Segment(2)
    segment.close()
    segment.close()
    for call in (lambda: segment.state(0), lambda: segment.mark_finished(0), lambda: segment.mark_died(0, 1)):
        with pytest.raises((ValueError, RuntimeError, OSError, SpcommError)):
            call()


def test_ranks_are_checked():
    with closing(segments.Segment(2)) as segment:
        for rank in (-1, 2, 1 << 20):
            for call in (segment.state, segment.mark_finished, lambda rank: segment.mark_died(rank, 1)):
                with pytest.raises((ValueError, IndexError, OverflowError)):
                    call(rank)


@pytest.mark.parametrize("name", sorted(segments.LIMITS))
def test_limits_hold(name):
    minimum, maximum, _ = segments.LIMITS[name]
    segments.Segment(2, **{name: max(1, minimum)}).close()
    for wrong in [minimum - 1] * (minimum > 1) + [maximum + 1]:
        with pytest.raises((ValueError, OverflowError)) as caught:
            segments.Segment(2, **{name: wrong})
        assert str(minimum) in str(caught.value) or isinstance(caught.value, OverflowError)


@pytest.mark.parametrize("nodes", [0, -1, 1 << 20])
def test_numbers_of_nodes(nodes):
    with pytest.raises((ValueError, OverflowError)):
        segments.Segment(nodes)


def test_features_can_be_switched_off():
    assert set(segments.features()) == set(ALL_FEATURES)
    assert segments.features(segments.disable_mask(",".join(ALL_FEATURES))) == dict.fromkeys(
        ALL_FEATURES, False
    )
    for name in ALL_FEATURES:
        found = segments.features(segments.disable_mask(name))
        assert found == {**segments.features(), name: False}
    assert segments.disable_mask("") == 0
    assert segments.disable_mask(" memfd , futex ") in (segments.disable_mask("memfd,futex"),)


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match="colours"):
        segments.disable_mask("memfd,colours")


def test_cores():
    cores = segments.cores()
    assert isinstance(cores, float) and 0 < cores <= os.cpu_count()
    code = (
        "import os\nfrom spcomm._core import segments\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nassert segments.cores() <= 1, segments.cores()\n"
        "import sys\nassert 'numpy' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert result.returncode == 0, result.stderr
