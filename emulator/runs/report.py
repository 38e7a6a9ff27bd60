"""The results of `manage.py emulate` as tables, CSV and JSON. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from emulator.runs.batch import RunOutcome
from emulator.runs.comparison import CONFIDENCE, FIGURES, Compared, compare
from emulator.runs.variants import Variant

_WIDTH: Final = 12
_SHORT: Final = {
    "share_violation": "share viol.",
    "share_violation_normalised": "normalised",
    "rpcs_per_job": "RPCs/job",
    "share_violation_least": "least viol.",
    "share_violation_avoidable": "avoidable",
}


@dataclass(frozen=True, slots=True)
class ExperimentResults:
    """All runs: for each variant one per seed, in the order of the seeds."""

    days: float
    seeds: Sequence[int]
    variants: Sequence[Variant]
    outcomes: Sequence[Sequence[RunOutcome]]

    def names(self) -> list[str]:
        """The names of the figures that all runs have."""
        runs = [run for _variant, _seed, run in self.rows()]
        return [name for name in FIGURES if all(run.figures[name] is not None for run in runs)]

    def compared(self) -> list[Compared]:
        """Each variant's figures over the seeds, and the differences between variants."""
        figures = [
            {seed: _present(run.figures) for seed, run in zip(self.seeds, runs, strict=True)} for runs in self.outcomes
        ]
        return compare(figures, [variant.value for variant in self.variants], self.names())

    def rows(self) -> Iterator[tuple[Variant, int, RunOutcome]]:
        for variant, runs in zip(self.variants, self.outcomes, strict=True):
            for seed, run in zip(self.seeds, runs, strict=True):
                yield variant, seed, run


def _present(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if value is not None}


def as_json(results: ExperimentResults, notes: Sequence[str]) -> dict[str, Any]:
    """Return a single run in its original form; several with each variant's figures and differences beside the runs."""
    if len(results.variants) == 1 and len(results.seeds) == 1:
        outcome = results.outcomes[0][0]
        columns = ("share", "got_fraction", "jobs", "late")
        return {
            "figures_of_merit": outcome.figures,
            "projects": {row["name"]: {name: row[name] for name in columns} for row in outcome.projects},
            "notes": [*notes],
            "cpu_secs": round(outcome.cpu_secs, 6),
        }
    return {
        "days": results.days,
        "notes": [*notes],
        "runs": [
            {
                "variant": variant.label,
                "policy": variant.policy,
                "quirks": variant.has_quirks,
                "parameters": variant.parameters,
                "value": variant.value,
                "seed": seed,
                "figures_of_merit": run.figures,
                "projects": run.projects,
                "cpu_secs": round(run.cpu_secs, 6),
            }
            for variant, seed, run in results.rows()
        ],
        "variants": [
            {
                "variant": variant.label,
                "figures": {name: asdict(spread) for name, spread in row.spreads.items()},
                "compared_with": None if row.reference is None else results.variants[row.reference].label,
                "differences": {name: asdict(difference) for name, difference in row.differences.items()},
            }
            for variant, row in zip(results.variants, results.compared(), strict=True)
        ],
    }


def as_csv(results: ExperimentResults) -> str:
    """Return one line for each run: its variant, its figures, and each project's fraction of the work."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    projects = [row["name"] for row in results.outcomes[0][0].projects]
    columns = ["variant", "policy", "quirks", "value", "seed", "days", *FIGURES, "jobs", "late"]
    writer.writerow([*columns, *(f"got {name}" for name in projects)])
    for variant, seed, run in results.rows():
        value = "" if variant.value is None else variant.value
        writer.writerow(
            [
                *(variant.label, variant.policy, int(variant.has_quirks), value, seed, results.days),
                *(run.figures[name] for name in FIGURES),
                *(sum(row[name] for row in run.projects) for name in ("jobs", "late")),
                *(row["got_fraction"] for row in run.projects),
            ]
        )
    return out.getvalue()


def run_table(outcome: RunOutcome, days: float) -> str:
    """Return the figures of a single run, and its projects."""
    lines = [
        f"{name:<28}{'not calculated' if value is None else f'{value:.6f}'}" for name, value in outcome.figures.items()
    ]
    lines.append(f"\n{'project':<24}{'share':>9}{'got':>9}{'jobs':>9}{'late':>7}{'RPCs':>7}")
    for row in outcome.projects:
        lines.append(
            f"{row['name'][:23]:<24}{row['share']:>9.2%}{row['got_fraction']:>9.2%}"
            f"{row['jobs']:>9}{row['late']:>7}{row['rpcs']:>7}"
        )
    lines.append(f"\n{days:g} days in {outcome.cpu_secs:.3f} CPU seconds")
    return "\n".join(lines)


def comparison_table(results: ExperimentResults) -> str:
    """Return each variant's mean figures; below, the differences over the seeds with their confidence intervals."""
    compared, names = results.compared(), results.names()
    width = 2 + max(len(variant.label) for variant in results.variants)
    head = f"{'':<{width}}" + "".join(f"{_SHORT.get(name, name):>{_WIDTH}}" for name in names)
    of_seeds = "" if len(results.seeds) == 1 else f", means of {len(results.seeds)} seeds"
    lines = [f"Figures of merit over {results.days:g} days{of_seeds} (lower is better)", head]
    for variant, row in zip(results.variants, compared, strict=True):
        lines.append(f"{variant.label:<{width}}" + "".join(f"{row.spreads[n].mean:>{_WIDTH}.6f}" for n in names))
    for variant, row in zip(results.variants, compared, strict=True):
        if row.reference is None or not row.differences:
            continue
        lines.append(f"\n{variant.label} less {results.variants[row.reference].label}, {CONFIDENCE:.0%} interval")
        for name, difference in row.differences.items():
            mark = "" if difference.is_clear else "  (may be chance)"
            lines.append(
                f"  {name:<28}{difference.mean:>+11.6f}  {difference.low:+.6f} to {difference.high:+.6f}{mark}"
            )
    return "\n".join(lines)
