"""`manage.py emulate`: run a scenario of files under a policy, and print the results."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.run import run
from emulator.engine.scenario import Scenario, ScenarioError
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import Decisions, Result
from emulator.files.scenario import read_path
from emulator.pages import decision_texts
from emulator.runs.attainable import figures_of_merit

MAX_DAYS = 1_000_000


class Command(BaseCommand):
    help = (
        "Emulate what a client does for some days under a scheduling policy. The computer, its projects and what it is "
        "doing are read from a client's data folder, from a ZIP of it, or from its client_state.xml alone. The same "
        "seed gives the same result on any machine. Needs no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="the folder, its client_state.xml, or a ZIP of it")
        parser.add_argument(
            "--policy",
            choices=[*map(str, PolicyName)],
            default=PolicyName.REC.value,
            help="default: rec, the present client's",
        )
        parser.add_argument("--quirks", choices=["boinc"], help="do as BOINC's own emulator where it differs")
        parser.add_argument("--days", type=float, default=10.0, help="simulated days; default: 10")
        parser.add_argument("--seed", type=int, default=1, help="of all random numbers; default: 1")
        parser.add_argument("--half-life", type=float, default=None, help="of REC, in days; default: 10 or more")
        parser.add_argument("--json", action="store_true", help="print the figures as JSON")
        parser.add_argument("--unused", action="store_true", help="list the elements of the files that are not used")
        parser.add_argument("--explain", type=int, default=0, metavar="N", help="print the first N decisions")

    def handle(self, *args: Any, path: Path, days: float, half_life: float | None, **options: Any) -> None:
        if not 0 < days <= MAX_DAYS or (half_life is not None and not 0.001 <= half_life <= MAX_DAYS):
            raise CommandError(f"--days and --half-life take numbers above 0, up to {MAX_DAYS}")
        started = time.process_time()
        try:
            scenario = read_path(path)
            parameters = {} if half_life is None else {"half_life_days": half_life}
            policy = make_policy(options["policy"], scenario, parameters)
            quirks = BOINC if options["quirks"] else Quirks()
            result = run(scenario, policy, days, options["seed"], quirks, timeline=False)
        except (OSError, ScenarioError) as error:
            raise CommandError(str(error)) from error
        cpu_secs = time.process_time() - started
        if options["json"]:
            self.stdout.write(json.dumps({**_as_json(result), "cpu_secs": round(cpu_secs, 6)}))
            return
        for note in scenario.notes:
            self.stdout.write(f"note: {note}")
        for row in scenario.unused if options["unused"] else ():
            self.stdout.write(f"not used: {row.file}, {row.element} ({row.count}): {row.why}")
        self._table(result, cpu_secs)
        self._decisions(scenario, result.decisions, options["explain"])

    def _decisions(self, scenario: Scenario, made: Decisions, wanted: int) -> None:
        """The first decisions, one a line."""
        sentences = decision_texts.english()
        for row in range(min(wanted, len(made))):
            why = decision_texts.in_words(
                sentences[Reason(made.reason[row])],
                job=made.job[row],
                project=scenario.projects[made.project[row]].name,
                kind=scenario.host.processors[made.processor[row]].kind,
                amount_secs=made.amount[row],
            )
            self.stdout.write(f"{made.at_secs[row]:14.1f} s  {why}")

    def _table(self, result: Result, cpu_secs: float) -> None:
        for name, value in figures_of_merit(result).items():
            self.stdout.write(f"{name:<28}{'not calculated' if value is None else f'{value:.6f}'}")
        self.stdout.write(f"\n{'project':<24}{'share':>9}{'got':>9}{'jobs':>9}{'late':>7}{'RPCs':>7}")
        for row in result.projects:
            self.stdout.write(
                f"{row.name[:23]:<24}{row.share:>9.2%}{row.got_fraction:>9.2%}{row.jobs:>9}{row.late:>7}{row.rpcs:>7}"
            )
        self.stdout.write(f"\n{result.days:g} days in {cpu_secs:.3f} CPU seconds")


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "figures_of_merit": figures_of_merit(result),
        "projects": {
            row.name: {"share": row.share, "got_fraction": row.got_fraction, "jobs": row.jobs, "late": row.late}
            for row in result.projects
        },
    }
