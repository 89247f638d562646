# SPDX-License-Identifier: MIT
"""Examples that Hypothesis draws.

`make test` has few examples, the same each time. With CHECK_SCALE, which --everything sets to 1, there are others each
time, and so many times as many as the test says.
"""

import os

from hypothesis import HealthCheck, Phase, settings

FEW = 0.1
SCALE = float(os.environ.get("CHECK_SCALE", FEW))


def examples(count):
    """The settings for so many of them."""
    return settings(
        max_examples=max(1, round(count * SCALE)), deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink), derandomize=SCALE == FEW,
    )  # fmt: skip
