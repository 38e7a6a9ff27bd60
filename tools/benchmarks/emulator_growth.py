"""How the emulator's cost grows with the length of the queue, as a table and a chart for the documentation.

`python -m tools.benchmarks.emulator_growth` measures, prints the table and draws docs/images/emulator-growth.svg.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from emulator.engine.client import Client
from emulator.engine.kernel import simulations
from emulator.engine.policies.rec import Rec
from emulator.engine.quirks import Quirks
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Version,
)
from emulator.engine.timeline.recorder import DecisionLog
from tools.benchmarks.harness.rounds import least_cpu_secs

LENGTHS: Final = (100, 200, 400, 800, 1600)
REPEATS: Final = 7
CPUS: Final = 8
JOB_SECS: Final = 5400.0  # longer than a time slice, so that slices matter
IMAGE: Final = Path(__file__).parents[2] / "docs" / "images" / "emulator-growth.svg"
SERIES: Final = {
    "forecast": ("One forecast, CPU jobs (ms)", "#0b6e99"),
    "forecast_with_gpus": ("One forecast, GPU jobs too (ms)", "#c2410c"),
    "day": ("One simulated day under rec (ms)", "#15803d"),
}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 440, 70, 50, 730, 380


def measure() -> dict[str, Any]:
    """Measure the least processor time of several runs, in ms, by number of queued jobs."""
    figures: dict[str, Any] = {}
    for length in LENGTHS:
        figures[str(length)] = {
            "forecast": _forecast_ms(length, gpus=False),
            "forecast_with_gpus": _forecast_ms(length, gpus=True),
            "day": _day_ms(length),
        }
    return figures


def _scenario(length: int, *, gpus: bool) -> Scenario:
    """Return two projects and a buffer that this many jobs fill."""
    size = Normal(JOB_SECS * 1e9)
    versions = (Version(1e9), Version(1e9, 0.1, "NVIDIA", 0.5)) if gpus else (Version(1e9),)
    apps = tuple(App(f"a{n}", (version,), size, size, 1000 * DAY_SECS) for n, version in enumerate(versions))
    processors = [Processor(CPU, CPUS, 1e9), *([Processor("NVIDIA", 4, 5e9, 0.2)] if gpus else [])]
    days = length * JOB_SECS / CPUS / DAY_SECS
    projects = tuple(Project(name, 100, apps) for name in "AB")
    return Scenario(Host(tuple(processors)), projects, Preferences(days / 2, days / 2))


def _forecast_ms(length: int, *, gpus: bool) -> float:
    scenario = _scenario(length, gpus=gpus)
    client = Client(scenario, 1, Quirks(), None, DecisionLog(0.0, 0.0))
    offers = [offer for project in client.projects for app in project.apps for offer in app.offers]
    for number in range(length):
        offer = offers[number % len(offers)]
        client.arrive(client.server.job(offer, JOB_SECS * 1e9, JOB_SECS * 1e9, 0.0, 1000 * DAY_SECS))
    policy = Rec()
    policy.begin(client)
    table = policy.table()

    def once() -> None:
        table.run[0]["sim_at"] = -1.0  # or the result would only be a remembered one
        simulations.forecast(table, 0.0)

    return _least_ms(once)


def _day_ms(length: int) -> float:
    scenario = _scenario(length, gpus=False)
    days = 3 * length * JOB_SECS / CPUS / DAY_SECS  # the buffer is used up several times
    return round(_least_ms(lambda: run(scenario, Rec(), days)) / days, 3)


def _least_ms(work: Callable[[], object]) -> float:
    return round(least_cpu_secs(work, REPEATS) * 1000, 3)


def draw(figures: dict[str, Any]) -> str:
    """Draw the chart as SVG: both axes logarithmic, and a dashed line of n log n through the first forecast."""
    lengths = [int(length) for length in figures]
    values = [value for row in figures.values() for value in row.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(length: float, value: float) -> str:
        x = LEFT + (RIGHT - LEFT) * math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])
        return f"{x:.1f},{BOTTOM - (BOTTOM - TOP) * (math.log10(value) - low) / (high - low):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="Processor time by number of queued jobs"><rect width="{WIDTH}" '
        f'height="{HEIGHT}" fill="#fff"/><text x="{LEFT}" y="26" font-size="16">Processor time by number of queued '
        "jobs</text>"
    ]
    for power in range(low, high + 1):
        y = place(lengths[0], 10.0**power).partition(",")[2]
        parts.append(f'<path d="M{LEFT} {y}H{RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end" dy="4">{10.0**power:g}</text>')
    for length in lengths:
        x = place(length, 1.0).partition(",")[0]
        parts.append(f'<text x="{x}" y="{BOTTOM + 20}" text-anchor="middle">{length}</text>')
    middle = (LEFT + RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{BOTTOM + 44}" text-anchor="middle">Queued jobs (logarithmic)</text>')
    parts.append(f'<text transform="translate(18 {(TOP + BOTTOM) / 2}) rotate(-90)" text-anchor="middle">ms</text>')
    first = figures[str(lengths[0])]["forecast"] / (lengths[0] * math.log(lengths[0]))
    lines = [
        (title, colour, "", [place(length, figures[str(length)][name]) for length in lengths])
        for name, (title, colour) in SERIES.items()
    ]
    growth = [place(length, first * length * math.log(length)) for length in lengths]
    lines.append(("Growth with n log n", "#555", ' stroke-dasharray="6 4"', growth))
    for number, (title, colour, dashes, points) in enumerate(lines):
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
            f'<path d="M{LEFT + 15} {TOP + 14 + 20 * number}h24" stroke="{colour}" stroke-width="2"{dashes}/>'
            f'<text x="{LEFT + 46}" y="{TOP + 18 + 20 * number}">{title}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Measure, print the table for the documentation and draw the chart."""
    figures = measure()
    titles = [title for title, _ in SERIES.values()]
    rows = [["queued jobs", *titles], ["---"] * (1 + len(titles))]
    rows += [[length, *(f"{row[name]:g}" for name in SERIES)] for length, row in figures.items()]
    for row in rows:
        sys.stdout.write(f"| {' | '.join(row)} |\n")
    IMAGE.write_text(draw(figures))


if __name__ == "__main__":
    main()
