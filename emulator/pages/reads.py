"""Reads for the emulator's pages about experiments and their runs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet, Value
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounting.models import Project as SiteProject
from emulator.engine.scenario import CPU, Processor, Scenario, StartState
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run, RunState, RunTimeline
from emulator.pages.drafts import changed
from emulator.pages.examples import example_runs, example_timeline
from emulator.pages.forms import TrialForm
from emulator.pages.texts import parameter_texts, preset_texts, variant_texts
from emulator.runs.comparison import Compared, Difference, Spread, compare, spread
from emulator.runs.estimate import expected_jobs, run_secs
from emulator.runs.experiments import READ, RUN, UNFINISHED
from emulator.runs.packed_timeline import Packed, unpack
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.models import User
from portal.people.access import own_hosts
from portal.requested_work import queue
from portal.templatetags.display import speed
from portal.templatetags.drawings import DATA_COLOURS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

FIGURES: Final[dict[str, tuple[_StrPromise, _StrPromise]]] = {
    "idle": (_("Idle"), _("The part of the computer’s available speed that was not used.")),
    "wasted": (_("Wasted"), _("The part that went into tasks that missed their deadline or failed.")),
    "share_violation_normalised": (
        _("Share violation"),
        _("0: every project got its share. 1: as far from the shares as possible."),
    ),
    "share_violation_avoidable": (
        _("Avoidable share violation"),
        _("The share violation without the part that no schedule could have avoided here."),
    ),
    "monotony": (_("Monotony"), _("0: the projects take turns all the time. 1: long periods with a single project.")),
    "rpcs_per_job": (_("Contacts per task"), _("How often projects were contacted for each task.")),
}
"""The figures of merit, and the share violation without its unavoidable part; less is better. The latter may be missing
in a run (emulator.runs.attainable).
"""


@dataclass(frozen=True, slots=True)
class VariantRow:
    """All runs of a variant: the finished ones' figures, and each project's fraction of the work."""

    label: str
    value: float | None
    runs: list[Run]
    figures: dict[str, Spread]
    got: list[Spread]
    jobs: float
    late: float
    compared_with: str = ""
    differences: dict[str, Difference] = field(default_factory=dict)

    @property
    def first(self) -> Run:
        """The run that has a timeline."""
        return self.runs[0]

    @property
    def ended(self) -> int:
        """How many of its runs are over, with whatever result."""
        return sum(run.state not in UNFINISHED for run in self.runs)


@dataclass(frozen=True, slots=True)
class RunFault:
    """Runs that failed or were cancelled for the same reason: which, in words, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProjectFraction:
    """A project's share and its fraction of the work, for the bars."""

    name: str
    colour: int
    share: float
    got: float
    row: dict[str, Any]


def read_experiments(owner: User) -> QuerySet[Experiment]:
    """Read the owner's experiments, latest first, with the settings of each (``tried``), the number of seeds
    (``nseeds``), and how many runs are not over (``unfinished``); one statement.
    """
    return (
        Experiment.objects.filter(owner=owner)
        .defer("scenario")
        .annotate(
            tried=ArrayAgg("runs__variant", filter=Q(runs__isnull=False), distinct=True, default=Value([])),
            nseeds=Count("runs__seed", distinct=True),
            unfinished=Count("runs", filter=Q(runs__state__in=UNFINISHED), distinct=True),
        )
        .order_by("-pk")
    )


def with_origins(experiments: Sequence[Experiment] | QuerySet[Experiment], owner: User) -> list[tuple[Experiment, str]]:
    """Return the owner's experiments, each with the source of its scenario in words. Two statements."""
    rows = list(experiments)
    numbers = {row.origin.partition(":")[2] for row in rows if row.origin.startswith("computer:")}
    hosts = own_hosts(owner).filter(pk__in=[int(number) for number in numbers if number.isdigit()])
    names = {host.pk: host.name for host in hosts} if numbers else {}
    return [(row, preset_texts.origin(row.origin, names)) for row in rows]


def origin_of(experiment: Experiment, owner: User | None) -> str:
    """Return the source of an experiment's scenario in words; its computer's name is shown to its owner only."""
    if owner is None:
        return preset_texts.origin(experiment.origin, {})
    [(_, words)] = with_origins([experiment], owner)
    return words


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a filled-in set-up: runs, jobs in each, processor time of all and of the longest (s), and whether
    that one is likely to exceed the limit.
    """

    nruns: int
    njobs: int
    total_secs: float
    longest_secs: float
    is_too_long: bool


def estimate(form: TrialForm, limit_secs: float) -> Estimate:
    """Return the estimate for a valid form. One statement."""
    scenario = changed(form.scenario, form.change())
    jobs = expected_jobs(scenario, form.cleaned_data["days"])
    nseeds = len(form.seeds())
    secs = run_secs([variant.policy for variant in form.variants()], jobs)
    longest = max(secs)
    return Estimate(len(secs) * nseeds, round(jobs), sum(secs) * nseeds, longest, longest > limit_secs)


def read_runs(experiment: Experiment) -> list[Run]:
    """Read its runs in order; those of an example are stored with the code."""
    return example_runs(experiment) if experiment.pk is None else list(experiment.runs.order_by("number"))


def is_unfinished(runs: Sequence[Run]) -> bool:
    return any(run.state in UNFINISHED for run in runs)


def progress(runs: Sequence[Run]) -> float:
    """Return the progress of all of them together, 0 to 1."""
    return fmean(1.0 if run.state not in UNFINISHED else run.progress for run in runs) if runs else 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many runs wait, the position of the first, and when the first and the last are likely to begin (seconds)."""

    nruns: int
    place: int
    begins_secs: float | None
    last_begins_secs: float | None


def waiting(runs: Sequence[Run], now: dt.datetime) -> Waiting | None:
    """Return the state of the waiting runs; None if none waits. One statement."""
    standings = queue.standings(RUN, [run.pk for run in runs if run.state == RunState.QUEUED], now)
    places = sorted(
        (standing for standing in standings.values() if standing.place), key=lambda standing: standing.place
    )
    if not places:
        return None
    return Waiting(len(places), places[0].place, places[0].begins_secs, places[-1].begins_secs)


def upload_standing(experiment: Experiment, now: dt.datetime) -> queue.Standing | None:
    """Return the queue position of reading its uploaded files; None once it is over. One statement."""
    return queue.standings(READ, [experiment.pk], now).get(experiment.pk)


def variants(runs: Sequence[Run]) -> list[VariantRow]:
    """Return runs by variant, in order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.variant, []).append(run)
    done = [{run.seed: run.figures for run in group if run.state == RunState.DONE} for group in groups.values()]
    compared = compare(done, [group[0].value for group in groups.values()], figures_of(runs))
    labels = [variant_texts.label_of(label) for label in groups]
    return [
        _variant(labels, number, group, row)
        for number, (group, row) in enumerate(zip(groups.values(), compared, strict=True))
    ]


def figures_of(runs: Sequence[Run]) -> list[str]:
    """Return the names of the figures that all finished runs among these have."""
    done = [run for run in runs if run.state == RunState.DONE]
    return [name for name in FIGURES if all(run.figures.get(name) is not None for run in done)]


def faults(runs: Sequence[Run]) -> list[RunFault]:
    """Return why some runs have no figures; each reason once."""
    groups: dict[tuple[str, Message | None], list[Run]] = {}
    for run in runs:
        if run.state in (RunState.FAILED, RunState.CANCELLED):
            groups.setdefault((run.state, run.fault), []).append(run)
    return [RunFault(_whose(same, len(runs)), sentence(fault)) for (_state, fault), same in groups.items()]


def _whose(same: Sequence[Run], number: int) -> str:
    first, is_failed = same[0], same[0].state == RunState.FAILED
    if len(same) == 1:
        one = gettext("%(variant)s, seed %(seed)s: failed.")
        if not is_failed:
            one = gettext("%(variant)s, seed %(seed)s: cancelled.")
        return one % {"variant": variant_texts.label_of(first.variant), "seed": first.seed}
    if len(same) == number:
        text = gettext("All %(number)s runs failed.") if is_failed else gettext("All %(number)s runs were cancelled.")
    elif is_failed:
        text = ngettext("%(number)s run failed.", "%(number)s runs failed.", len(same))
    else:
        text = ngettext("%(number)s run was cancelled.", "%(number)s runs were cancelled.", len(same))
    return text % {"number": len(same)}


def _variant(labels: Sequence[str], number: int, runs: list[Run], compared: Compared) -> VariantRow:
    done = [run for run in runs if run.state == RunState.DONE]
    projects = len(done[0].projects) if done else 0
    return VariantRow(
        label=labels[number],
        value=runs[0].value,
        runs=runs,
        figures=compared.spreads,
        got=[spread([run.projects[place]["got_fraction"] for run in done]) for place in range(projects)],
        jobs=fmean(sum(row["jobs"] for row in run.projects) for run in done) if done else 0.0,
        late=fmean(sum(row["late"] for row in run.projects) for run in done) if done else 0.0,
        compared_with="" if compared.reference is None else labels[compared.reference],
        differences=compared.differences,
    )


def colours(names: Sequence[str]) -> list[int]:
    """Return the data colour of each project: a project of this site has its usual one, others a free one.

    If two in a scenario have the same colour, the second takes a free one. One statement.
    """
    site_colours = dict(SiteProject.objects.filter(name__in=names).values_list("name", "colour"))
    chosen: dict[int, int] = {}
    for number, name in enumerate(names):
        if name in site_colours and site_colours[name] % DATA_COLOURS not in chosen.values():
            chosen[number] = site_colours[name] % DATA_COLOURS
    free = [colour for colour in range(DATA_COLOURS) if colour not in chosen.values()]
    for number in range(len(names)):
        if number not in chosen:
            chosen[number] = free.pop(0) if free else number % DATA_COLOURS
    return [chosen[number] for number in range(len(names))]


def project_fractions(run: Run, palette: Sequence[int]) -> list[ProjectFraction]:
    """Return share and outcome by project."""
    return [
        ProjectFraction(row["name"], colour, row["share"], row["got_fraction"], row)
        for row, colour in zip(run.projects, palette, strict=True)
    ]


def charts(experiment: Experiment, rows: Sequence[VariantRow]) -> list[dict[str, Any]]:
    """Build a chart of each figure for static/portal/bars.js: bars side by side, or a line of each policy over the
    sweep.
    """
    finished = [row for row in rows if row.figures]
    if len(finished) < 2:
        return []
    if not experiment.parameter:
        common = {"x": "", "labels": [row.label for row in finished], "lies": True}
        return [
            {**_chart(name), **common, "series": [{**_series(name, "", finished), "by_bar": True}]}
            for name in finished[0].figures
        ]
    places = sorted({row.value for row in finished if row.value is not None})
    of_policies: dict[str, dict[Any, VariantRow]] = {}
    for row in finished:
        of_policies.setdefault(row.label.rsplit(",", 1)[0], {})[row.value] = row
    common = {"x": parameter_texts.with_unit(experiment.parameter), "labels": places, "places": places}
    return [
        {
            **_chart(name),
            **common,
            "series": [
                _series(name, policy, [mine.get(place) for place in places]) for policy, mine in of_policies.items()
            ],
        }
        for name in finished[0].figures
    ]


def _chart(figure: str) -> dict[str, Any]:
    return {"id": f"figure-{figure}", "y": str(FIGURES[figure][0]), "least_top": 0.05}


def _series(figure: str, name: str, rows: Sequence[VariantRow | None]) -> dict[str, Any]:
    """Return the means, and the range over the seeds; nothing for a missing row."""
    spreads = [row and row.figures[figure] for row in rows]
    return {
        "name": name or str(FIGURES[figure][0]),
        "values": [spread and spread.mean for spread in spreads],
        "low": [spread and spread.low for spread in spreads],
        "worst": [spread and spread.high for spread in spreads],
    }


def scenario_of(experiment: Experiment) -> Scenario:
    return from_json(experiment.scenario)


def at_start(scenario: Scenario) -> list[str]:
    """Describe the tasks at the start by their state: "2 running", "6 not started"."""
    counts = Counter(job.state for job in scenario.jobs)
    words = {
        StartState.RUNNING: ngettext("%(number)s running", "%(number)s running", counts[StartState.RUNNING]),
        StartState.BEGUN: ngettext("%(number)s preempted", "%(number)s preempted", counts[StartState.BEGUN]),
        StartState.NEW: ngettext("%(number)s not started", "%(number)s not started", counts[StartState.NEW]),
        StartState.SUSPENDED: ngettext("%(number)s suspended", "%(number)s suspended", counts[StartState.SUSPENDED]),
        StartState.FINISHED: ngettext(
            "%(number)s finished but not reported", "%(number)s finished but not reported", counts[StartState.FINISHED]
        ),
    }
    return [text % {"number": counts[state]} for state, text in words.items() if counts[state]]


def processors_text(scenario: Scenario) -> str:
    """Describe processors: 4 CPUs at 4 GFLOPS, 1 NVIDIA GPU at 5 TFLOPS."""
    return ", ".join(_processor_text(row) for row in scenario.host.processors)


def _processor_text(row: Processor) -> str:
    if row.kind == CPU:
        text = ngettext("%(number)s CPU at %(speed)s", "%(number)s CPUs at %(speed)s", row.instances)
    else:
        text = ngettext("%(number)s %(kind)s GPU at %(speed)s", "%(number)s %(kind)s GPUs at %(speed)s", row.instances)
    return text % {"number": row.instances, "kind": row.kind, "speed": speed(row.peak_flops)}


def timeline_of(run: Run) -> Packed | None:
    """Return the columns of a run; None if it is not done, or has none."""
    if run.state != RunState.DONE or not run.keeps_timeline:
        return None
    return example_timeline(run) if run.pk is None else read_timeline(run.pk)


@lru_cache(maxsize=8)
def read_timeline(run_id: int) -> Packed | None:
    """Return the columns of a finished run; None if it has none. A finished run never changes, so a few are cached."""
    data = RunTimeline.objects.filter(run=run_id).values_list("data", flat=True).first()
    return unpack(bytes(data)) if data is not None else None
