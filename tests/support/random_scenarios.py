"""Small random scenarios that meet most of what policies decide about within days."""

from __future__ import annotations

from random import Random

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Version,
)


def random_scenario(seed: int, *, is_plain: bool = False) -> Scenario:
    """Two or three projects on some CPUs and perhaps GPUs; some deadlines are tight, some computers often off. A plain
    one has CPUs alone, of which each job takes one."""
    draw = Random(seed)
    has_gpu = draw.random() < 0.5 and not is_plain
    processors = [Processor(CPU, draw.randint(1, 4), 1e9)]
    processors += [Processor("NVIDIA", draw.randint(1, 2), 5e9, 0.2)] * has_gpu

    def app(number: int) -> App:
        hours = draw.choice([0.5, 1.5, 4.0])
        version = Version(1e9, 1.0 if is_plain else draw.choice([1.0, 1.0, 2.0]))
        if has_gpu and number:
            version = Version(1e9, 0.3, "NVIDIA", draw.choice([0.5, 1.0]))
        latency_secs = draw.choice([1.5 * hours * 3600, 2 * DAY_SECS, 20 * DAY_SECS])
        limit = 0 if is_plain else draw.choice([0, 0, 0, 1])
        flop = hours * 3.6e12
        return App(str(number), (version,), Normal(flop, 0.2 * flop), Normal(flop), latency_secs, max_concurrent=limit)

    projects = tuple(
        Project(f"P{number}", draw.choice([10, 50, 100]), tuple(app(place) for place in range(draw.randint(1, 2))))
        for number in range(draw.randint(2, 3))
    )
    up = Availability(draw.choice([1.0, 0.7]), 4 * 3600.0)
    return Scenario(Host(tuple(processors), on=up), projects, Preferences(0.1, draw.choice([0.0, 0.3, 1.0])))
