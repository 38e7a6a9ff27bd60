"""`manage.py credit_report`: how well the credit rules meet their goals on simulated populations."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.engine.rules import Rules, RuleSet
from extras.laboratory.trials.collusion import collusion_goals
from extras.laboratory.trials.experiment import MAX_SEEDS, goal_json
from extras.laboratory.trials.goals import Goal, goal_steps
from extras.laboratory.trials.neutrality import GPUS_ONLY, WITH_BOTH, measure_neutrality

NAME_WIDTH: Final = 100
MAX_PROCESSES: Final = 256


class Command(BaseCommand):
    help = (
        "Measure the goals of the credit rules (device neutrality, equal credit for equal jobs, drift, what cheats and "
        "groups gain) on simulated populations, and print them beside their bounds. Exits with 1 where a bound is "
        "missed. Needs no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--rules", choices=[rule_set.value for rule_set in RuleSet], default=RuleSet.PUBLISHED.value
        )
        parser.add_argument(
            "--seeds", type=int, default=3, help=f"populations to measure, 1 to {MAX_SEEDS} (default: 3)"
        )
        parser.add_argument(
            "--processes", type=int, default=os.cpu_count() or 1, help="to measure in (default: one for each processor)"
        )
        parser.add_argument("--json", action="store_true")
        parser.add_argument(
            "--projects",
            action="store_true",
            help="credit per host-hour over three projects instead, before and after factors are averaged over them",
        )
        parser.add_argument(
            "--collusion", action="store_true", help="only what groups gain that want each other's workunits"
        )

    def handle(self, *args: Any, rules: str, seeds: int, processes: int, **options: Any) -> None:
        if not 1 <= seeds <= MAX_SEEDS:
            raise CommandError(f"--seeds must be from 1 to {MAX_SEEDS}, not {seeds}")
        if not 1 <= processes <= MAX_PROCESSES:
            raise CommandError(f"--processes must be from 1 to {MAX_PROCESSES}, not {processes}")
        if options["projects"]:
            self._write_projects(seeds)
            return
        populations = range(1, seeds + 1)
        steps = [] if options["collusion"] else goal_steps(Rules.of(rules), populations)
        # Independent of the rules: it depends on who gets which jobs.
        goals = _measured([*steps, partial(collusion_goals, populations)], processes)
        if options["json"]:
            self.stdout.write(json.dumps([goal_json(goal) for goal in goals], indent=1))
        else:
            self._write_table(goals)
        nmissed = sum(goal.is_met is False for goal in goals)
        if nmissed:
            raise CommandError(f"Bounds that are missed: {nmissed}")

    def _write_projects(self, seeds: int) -> None:
        self.stdout.write("Credit per host-hour, over the mean of the projects with programs for CPUs and GPUs:")
        names = [*WITH_BOTH, f"{GPUS_ONLY}, before", f"{GPUS_ONLY}, after"]
        self.stdout.write(" | ".join(["population", *names]))
        for seed in range(1, seeds + 1):
            neutrality = measure_neutrality(seed)
            credits = [*neutrality.others.values(), neutrality.before, neutrality.after]
            columns = (
                f"{neutrality.ratio(project):.2f}".rjust(len(name))
                for name, project in zip(names, credits, strict=True)
            )
            self.stdout.write(" | ".join([f"{seed:10}", *columns]))

    def _write_table(self, goals: Iterable[Goal]) -> None:
        self.stdout.write(f"{'goal':<{NAME_WIDTH}} {'mean':>8} {'worst':>8} {'bound':>7}")
        for goal in goals:
            bound = "" if goal.bound is None else f"{goal.bound:.2f}"
            verdict = "" if goal.is_met is None else "  met" if goal.is_met else "  MISSED"
            self.stdout.write(f"{goal.name:<{NAME_WIDTH}} {goal.measured:8.4f} {goal.worst:8.4f} {bound:>7}{verdict}")


def _measured(steps: Sequence[Callable[[], list[Goal]]], processes: int) -> list[Goal]:
    """Return the goals of all steps, in order; each process takes the next step that nobody has started."""
    if processes == 1:
        return [goal for measure_step in steps for goal in measure_step()]
    # The populations are pure numbers: a process needs only the steps from this one.
    with multiprocessing.get_context("spawn").Pool(min(processes, len(steps))) as pool:
        return [goal for goals in pool.map(_goals, steps, chunksize=1) for goal in goals]


def _goals(step: Callable[[], list[Goal]]) -> list[Goal]:
    return step()
