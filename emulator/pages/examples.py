"""The examples as experiments that belong to nobody: their finished runs are files of the code, not rows."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404

from emulator.files.presets import Preset, preset
from emulator.files.scenario_json import to_json
from emulator.models import Experiment, Run, RunState
from emulator.pages.texts import case_texts, preset_texts, variant_texts
from emulator.runs.examples import SEED, stored_runs, stored_timeline, variants_of
from emulator.runs.packed_timeline import Packed

PREFIX: Final = "example-"
"""The prefix of an example's key in addresses."""


def example_of(experiment: Experiment) -> Preset | None:
    """Return the example whose finished run this is; None for an experiment of a volunteer."""
    return preset(experiment.origin.partition(":")[2]) if experiment.pk is None else None


def example_experiment(key: str) -> Experiment:
    """Return the example of that name as an experiment, which is not stored; Http404 if there is none."""
    try:
        example = preset(key)
    except KeyError:
        raise Http404("no such example") from None
    return Experiment(
        title=preset_texts.title_of(example),
        origin=f"example:{key}",
        scenario=to_json(example.scenario),
        days=example.days,
    )


def example_runs(experiment: Experiment) -> list[Run]:
    """Return the finished runs of an example's experiment."""
    example = example_of(experiment)
    assert example is not None
    pairs = zip(variants_of(example), stored_runs(example.key), strict=True)
    return [
        Run(
            experiment=experiment, number=number, variant=variant.label, policy=variant.policy,
            has_quirks=variant.has_quirks, seed=SEED, state=RunState.DONE, progress=1, figures=stored.figures,
            projects=stored.projects, answer=stored.answer,
        )
        for number, (variant, stored) in enumerate(pairs, 1)
    ]  # fmt: skip


def example_timeline(run: Run) -> Packed:
    """Return the timeline of an example's run."""
    example = example_of(run.experiment)
    assert example is not None
    return stored_timeline(example.key, run.number)


def offered() -> dict[str, list[dict[str, Any]]]:
    """Return all examples for the lists of a page: reported ``cases``, and ``others``."""
    rows = list(preset_texts.offered())
    for row in rows:
        row["results"] = _results(preset(row["key"]))
    return {
        "cases": [row for row in rows if row["results"]],
        "others": [row for row in rows if not row["results"]],
    }


def _results(example: Preset) -> list[tuple[str, str]]:
    """Return the result of each run of a reported case, by policy."""
    if example.case is None:
        return []
    pairs = zip(variants_of(example), stored_runs(example.key), strict=True)
    return [
        (variant_texts.label_of(variant.label), case_texts.result(example.case.figure, run.figures, run.projects))
        for variant, run in pairs
    ]
