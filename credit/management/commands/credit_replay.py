"""`manage.py credit_replay`: replay a trace of BOINC's validator through the engine and compare the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.engine.rules import Rules, RuleSet


class Command(BaseCommand):
    help = (
        "Replay a trace of BOINC's own validator and feeder through the credit engine, and print how many values of "
        "each kind were compared and how far they are off. With the deployed rules, ends with 1 if any is off by more "
        "than 1e-9. For developers: needs the folder tests/ of the source code, and no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the trace: phases.jsonl and the other files, plain or gzipped")
        parser.add_argument(
            "--rules",
            choices=[rule_set.value for rule_set in RuleSet],
            default=RuleSet.DEPLOYED.value,
            help="published, letter: only report what these rules would have done differently (default: deployed)",
        )

    def handle(self, *args: Any, folder: Path, rules: str, **options: Any) -> None:
        try:
            from tests.support.boinc_traces.replay import Replay, report
            from tests.support.boinc_traces.traces import TraceError, read_trace
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("tests"):
                raise
            raise CommandError("credit_replay needs the folder tests/ of the source code, which is missing") from error
        try:
            trace = read_trace(folder)
        except TraceError as error:
            raise CommandError(str(error)) from error
        comparison = Replay(trace, Rules.of(rules)).run()
        self.stdout.write("\n".join(report(trace, rules, comparison)))
        if rules == RuleSet.DEPLOYED and comparison.ndiffering:
            raise CommandError(f"{comparison.ndiffering} values differ by more than 1e-9")
