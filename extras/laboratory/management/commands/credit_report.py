"""`manage.py credit_report`: how far the credit rules meet their goals on simulated populations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.engine.rules import RuleSet
from extras.laboratory.trials.collusion import collusion_goals
from extras.laboratory.trials.experiment import MAX_SEEDS, Experiment, Variant, goal_json, measure
from extras.laboratory.trials.goals import Goal
from extras.laboratory.trials.neutrality import GPUS_ONLY, WITH_BOTH, measure_neutrality

NAME_WIDTH: Final = 100


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
        parser.add_argument("--json", action="store_true")
        parser.add_argument(
            "--projects",
            action="store_true",
            help="credit per host-hour over three projects instead, before and after factors are averaged over them",
        )
        parser.add_argument(
            "--collusion", action="store_true", help="only what groups gain that want each other's workunits"
        )

    def handle(self, *args: Any, rules: str, seeds: int, **options: Any) -> None:
        if not 1 <= seeds <= MAX_SEEDS:
            raise CommandError(f"--seeds must be from 1 to {MAX_SEEDS}, not {seeds}")
        if options["projects"]:
            self._write_projects(seeds)
            return
        goals: list[Goal] = []
        if not options["collusion"]:
            [found] = measure(Experiment([Variant(rules)], nseeds=seeds, is_document=True))
            goals += found.goals
        # Whatever the rules: it is a matter of who gets which jobs.
        goals += collusion_goals(range(1, seeds + 1))
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
            found = measure_neutrality(seed)
            credits = [*found.others.values(), found.before, found.after]
            columns = (f"{found.ratio(each):.2f}".rjust(len(name)) for name, each in zip(names, credits, strict=True))
            self.stdout.write(" | ".join([f"{seed:10}", *columns]))

    def _write_table(self, goals: Iterable[Goal]) -> None:
        self.stdout.write(f"{'goal':<{NAME_WIDTH}} {'mean':>8} {'worst':>8} {'bound':>7}")
        for goal in goals:
            bound = "" if goal.bound is None else f"{goal.bound:.2f}"
            verdict = "" if goal.is_met is None else "  met" if goal.is_met else "  MISSED"
            self.stdout.write(f"{goal.name:<{NAME_WIDTH}} {goal.measured:8.4f} {goal.worst:8.4f} {bound:>7}{verdict}")
