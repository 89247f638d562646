# SPDX-License-Identifier: MIT
"""Steps that Hypothesis draws, and that the nodes of a pool carry out.

`make test` has few examples, the same each time. With CHECK_SCALE, which --everything sets to 1, there are others each
time, and so many times as many as the test says.
"""

import os

from hypothesis import HealthCheck, Phase, settings

from nodepool import verdict

FEW = 0.1
SCALE = float(os.environ.get("CHECK_SCALE", FEW))


def examples(count, phases=(Phase.generate, Phase.shrink)):
    """The settings for so many of them."""
    return settings(
        max_examples=max(1, round(count * SCALE)), deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck), phases=phases, derandomize=SCALE == FEW,
    )  # fmt: skip


def run_on_nodes(pool, name, arguments):
    """Have all nodes call the function of this name, in the file of this name beside this one."""
    pool.ensure()
    answers = pool.run(os.path.join(os.path.dirname(__file__), f"{name}.py"), name, arguments)
    failed = {rank: text for rank, (status, text) in answers.items() if status == "failed"}
    if failed:
        # Hypothesis calls the test again, and if that passes, it shows neither the arguments nor what happened.
        print(f"{name} has failed on {pool.config} with {arguments}")
        for rank, text in failed.items():
            print(f"==== {rank}\n{text}")
        if pool.process.poll() is None:  # nodes that one has failed are no good for the next example
            pool.kill()
    verdict(answers)
