"""`manage.py credit_replay`: replay a trace of BOINC's validator through the engine, and say how close it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.engine.rules import Rules, RuleSet
from credit.replay.comparison import TOLERANCE, Comparison
from credit.replay.engine import Replay
from credit.replay.traces import Trace, TraceError, read_trace


class Command(BaseCommand):
    help = (
        "Replay a trace of BOINC's own validator and feeder through the credit engine, and print how many values of "
        "each kind were compared and how far they are off. With the deployed rules, ends with 1 if any is off by more "
        f"than {TOLERANCE:g}. Needs no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the trace: phases.jsonl and the other files, plain or gzipped")
        parser.add_argument(
            "--rules",
            choices=[rule_set.value for rule_set in RuleSet],
            default=RuleSet.DEPLOYED.value,
            help="published, letter: only say what these rules would have done differently (default: deployed)",
        )
        parser.add_argument(
            "--database",
            action="store_true",
            help="load the first queue of each app into the database and let this site's validator decide it, by the "
            "deployed rules; everything is rolled back",
        )

    def handle(self, *args: Any, folder: Path, rules: str, database: bool, **options: Any) -> None:
        try:
            trace = read_trace(folder)
        except TraceError as error:
            raise CommandError(str(error)) from error
        if database:
            self._in_database(trace)
            return
        comparison = Replay(trace, Rules.of(rules)).run()
        self._print(trace, rules, comparison)
        if rules == RuleSet.DEPLOYED and comparison.worst > TOLERANCE:
            raise CommandError(f"{comparison.ndiffering} values differ by more than {TOLERANCE:g}")

    def _in_database(self, trace: Trace) -> None:
        # The models, which the replay without a database does without.
        from credit.replay.database import replay

        done = replay(trace)
        self.stdout.write(f"{done.nworkunits} workunits of {done.napps} apps went through the validator")
        self._print_tallies(done.comparison)
        self.stdout.write(f"left out, behind updates that BOINC's validator lost: {done.nbehind_lost}")
        if done.comparison.worst > TOLERANCE:
            raise CommandError(f"{done.comparison.ndiffering} values differ by more than {TOLERANCE:g}")

    def _print(self, trace: Trace, rules: str, comparison: Comparison) -> None:
        events = [event for group in trace.events.values() for event in group]
        nresults = sum(len(event.results) for event in events)
        self.stdout.write(f"{len(trace.phases)} phases, {len(events)} workunits handled, {nresults} results")
        self._print_tallies(comparison)
        self.stdout.write(
            f"credit of all workunits: {comparison.computed_credit:.6f} by the {rules} rules, "
            f"{comparison.expected_credit:.6f} in the trace"
        )
        self.stdout.write(f"worst relative difference: {comparison.worst:.3g}")

    def _print_tallies(self, comparison: Comparison) -> None:
        self.stdout.write(f"{'quantity':<32}{'compared':>10}{'different':>11}{'worst (relative)':>18}")
        for quantity, tally in comparison.tallies.items():
            self.stdout.write(f"{quantity:<32}{tally.count:>10}{tally.ndiffering:>11}{tally.worst:>18.2g}")
