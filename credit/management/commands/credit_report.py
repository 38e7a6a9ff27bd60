"""`manage.py credit_report`: how far the credit rules meet their goals on simulated populations."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.engine.rules import Rules, RuleSet
from credit.laboratory.goals import measure_goals

MAX_SEEDS: Final = 100


class Command(BaseCommand):
    help = (
        "Measure the goals of the credit rules (device neutrality, equal credit for equal jobs, drift, what cheats "
        "gain) on simulated populations, and print them beside their bounds. Needs no database."
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

    def handle(self, *args: Any, rules: str, seeds: int, **options: Any) -> None:
        if not 1 <= seeds <= MAX_SEEDS:
            raise CommandError(f"--seeds must be from 1 to {MAX_SEEDS}, not {seeds}")
        goals = measure_goals(Rules.of(rules), range(1, seeds + 1))
        if options["json"]:
            self.stdout.write(json.dumps([{**asdict(goal), "is_met": goal.is_met} for goal in goals], indent=1))
            return
        self.stdout.write(f"{'goal':<100} {'mean':>8} {'worst':>8} {'bound':>7}")
        for goal in goals:
            bound = "" if goal.bound is None else f"{goal.bound:.2f}"
            verdict = "" if goal.is_met is None else "  met" if goal.is_met else "  MISSED"
            self.stdout.write(f"{goal.name:<100} {goal.measured:8.4f} {goal.worst:8.4f} {bound:>7}{verdict}")
