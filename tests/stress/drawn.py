# SPDX-License-Identifier: MIT
"""What Hypothesis draws, and how the nodes of a pool carry it out. CHECK_SCALE multiplies the number of examples."""

import os

from hypothesis import HealthCheck, Phase, settings

from nodepool import verdict

SCALE = float(os.environ.get("CHECK_SCALE", "1"))


def examples(count, phases=(Phase.generate, Phase.shrink)):
    """The settings for so many of them: the same each time, or, if CHECK_SCALE asks for others, never the same."""
    return settings(
        max_examples=max(1, round(count * SCALE)), deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck), phases=phases, derandomize=SCALE == 1,
    )  # fmt: skip


def run_on_nodes(pool, name, arguments):
    """Have all nodes call the function of this name, in the file of this name beside this one."""
    pool.ensure()
    answers = pool.run(os.path.join(os.path.dirname(__file__), f"{name}.py"), name, arguments)
    # Nodes that one has failed are no good for the next example.
    if any(status == "failed" for status, _ in answers.values()) and pool.process.poll() is None:
        pool.kill()
    verdict(answers)
