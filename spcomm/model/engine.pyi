# SPDX-License-Identifier: MIT
def run(
    program: int,
    nodes: int,
    radix: int,
    rounds: int,
    bytes: int,
    fanout: int,
    hot_percent: int,
    seed: int,
    torus: tuple[int, int, int, int],
    costs: tuple[int, ...],
    noise: bytes,
    noise_series: int,
    is_logging: bool,
    /,
) -> tuple[int, float, int, int, int, int, list[tuple[int, int, int, int, bool]] | None]: ...
def measure_noise(work_ns: int, count: int, /) -> bytes: ...
