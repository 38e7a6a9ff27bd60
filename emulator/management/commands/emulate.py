"""`manage.py emulate`: run a scenario under one policy or several, and print the results."""

from __future__ import annotations

import json
import math
import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.own import installed, is_file
from emulator.engine.policies.registry import policy_notes
from emulator.engine.policy import PolicyError
from emulator.engine.scenario import Scenario, ScenarioError
from emulator.files.presets import PRESETS
from emulator.files.scenario_json import Document
from emulator.pages import downloads
from emulator.pages.texts import decision_texts, row_texts
from emulator.runs import report
from emulator.runs.batch import RunOutcome, run_all
from emulator.runs.execution import order_of, policy_of
from emulator.runs.packed_timeline import unpack
from emulator.runs.sources import read_source
from emulator.runs.sweeps import read_values, split
from emulator.runs.variants import Variant, swept
from portal.languages.messages import Message

MAX_DAYS: Final = 1_000_000
SEEDS_MAX: Final = 10_000
RUNS_MAX: Final = 100_000
WRONG_ARGUMENTS: Final = 2
QUIRKS_SUFFIX: Final = "+boinc"
NO_ELIGIBILITY_SUFFIX: Final = "+no-eligibility"

DESCRIPTION: Final = """\
Emulate what a BOINC client does for some days under a scheduling policy, and print the figures of merit: how much of
the computer was idle or wasted, how far the projects are from their shares, how long one project has it alone, and
how often projects are contacted. Less is better in all. The same seed gives the same result on any machine.
Needs no database.

The scenario is one of: an example's name (--list shows them); a client's data folder, or the client_state.xml in it; a
ZIP of these files; a scenario as JSON (or a result.json that the site offers for download).
"""
EXAMPLES: Final = """\
examples:
  manage.py emulate s4_shares_60_30_10
  manage.py emulate /var/lib/boinc-client --days 30 --policies rec,ltd,debt --seeds 10
  manage.py emulate n10_projects --sweep buffer=0:5:0.5 --csv > buffer.csv
  manage.py emulate s3_tight_deadlines --policies rec,rec+boinc --seeds 20 --json
  manage.py emulate document-gpu-and-cpu --policies ltd,ltd+no-eligibility
  manage.py emulate s1_two_equal_cpu --policies rec --policy-file mine.py:EarliestDeadline --seeds 5
  manage.py emulate s2_gpu_example1 --days 2 --timeline schedule.csv

Exit status: 0 when all runs are done, 1 when a scenario cannot be read or a run fails, 2 for wrong arguments.
docs/how-to/emulator-command.md has more.
"""


class Formatter(RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Preserves the lines of the description and of the examples, and puts Django's own options last."""


class Command(BaseCommand):
    help = DESCRIPTION
    requires_system_checks: list[str] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, epilog=EXAMPLES, formatter_class=Formatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("scenario", nargs="?", help="an example's name, or a folder, ZIP or JSON file")
        parser.add_argument("--list", action="store_true", help="list the examples and the policies, and do nothing")
        tried = parser.add_argument_group("what to try")
        tried.add_argument(
            "--policies",
            "--policy",
            metavar="NAME,…",
            help="policies, compared side by side; default: the document's own, or rec, the present client's. With a "
            "suffix: rec+boinc does as BOINC's own emulator where it differs, ltd+no-eligibility lets every project "
            "collect debt",
        )
        tried.add_argument(
            "--policy-file",
            action="append",
            default=[],
            metavar="FILE.py:CLASS",
            help="also a policy of your own (docs/tutorials/own-policy.md); its code runs with your rights",
        )
        tried.add_argument("--quirks", choices=["boinc"], help="all policies as in BOINC's own emulator")
        tried.add_argument("--no-eligibility", action="store_true", help="ltd without its rule about who collects debt")
        tried.add_argument("--days", type=float, help="simulated days; default: the example's own, or 10")
        tried.add_argument(
            "--half-life", type=float, metavar="DAYS", help="of recent estimated credit (rec); default: 10 or more"
        )
        tried.add_argument(
            "--sweep",
            metavar="NAME=VALUES",
            help="vary a value: buffer, additional_buffer, half_life, period, cpus, max_cpus_percent, on_fraction, "
            "share:PROJECT, max_concurrent:PROJECT. Values are numbers, or ranges first:last:step: buffer=0:5:0.5,10",
        )
        tried.add_argument("--seed", type=int, help="of all random numbers; default: the document's own, or 1")
        tried.add_argument("--seeds", type=int, default=1, metavar="N", help="N runs of each, from --seed on")
        tried.add_argument(
            "--jobs", type=int, metavar="N", help="processes at once; default: as many as there are processors"
        )
        output = parser.add_argument_group("what to print")
        output.add_argument("--json", action="store_true", help="all figures as JSON")
        output.add_argument("--csv", action="store_true", help="one line of CSV for each run")
        output.add_argument(
            "--timeline",
            type=Path,
            metavar="FILE",
            help="write what ran when, for the first seed of a single policy, as CSV",
        )
        output.add_argument("--unused", action="store_true", help="list the elements of the files that are not used")
        output.add_argument("--explain", type=int, default=0, metavar="N", help="print the first N decisions")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            self._list()
            return
        days = self._checked(options)
        try:
            source = read_source(options["scenario"])
            days = source.days if days is None else days
            if source.document is not None:
                _follow(source.document, options)
            first_seed = 1 if options["seed"] is None else options["seed"]
            seeds = list(range(first_seed, first_seed + options["seeds"]))
            variants = self._variants(options)
            if (options["timeline"] or options["explain"]) and len(variants) > 1:
                raise _wrong("--timeline and --explain show a single policy without a sweep")
            results = self._run(source.scenario, variants, days, seeds, options)
        except (OSError, ScenarioError, PolicyError) as error:
            raise CommandError(str(error)) from error
        except BrokenProcessPool as error:
            raise CommandError("A process was killed, from outside or by a policy, or ran out of memory.") from error
        self._print(results, source.scenario, options)

    def _checked(self, options: dict[str, Any]) -> float | None:
        """Return the days; None: the scenario's own."""
        if not options["scenario"]:
            raise _wrong("name a scenario; --list shows the examples")
        days, half_life, jobs = options["days"], options["half_life"], options["jobs"]
        if days is not None and not 0 < days <= MAX_DAYS:
            raise _wrong(f"--days takes a number above 0, up to {MAX_DAYS}")
        if half_life is not None and not (math.isfinite(half_life) and 0.01 <= half_life <= 10_000):
            raise _wrong("--half-life takes a number of days from 0.01 to 10000")
        if not 1 <= options["seeds"] <= SEEDS_MAX:
            raise _wrong(f"--seeds takes a number from 1 to {SEEDS_MAX}")
        if jobs is not None and not 1 <= jobs <= 1024:
            raise _wrong("--jobs takes a number from 1 to 1024")
        if options["json"] and options["csv"]:
            raise _wrong("--json and --csv exclude each other")
        if options["timeline"] and options["timeline"].suffix != ".csv":
            raise _wrong("--timeline takes a file that ends in .csv")
        return None if days is None else float(days)

    def _variants(self, options: dict[str, Any]) -> list[Variant]:
        text = options["policies"] if options["policies"] is not None else "" if options["policy_file"] else "rec"
        names = [name for name in text.split(",") if name]
        bases = [_base(name, options) for name in [*names, *options["policy_file"]]]
        if not bases or len({base.label for base in bases}) < len(bases):
            raise _wrong("--policies takes at least one policy, and each once")
        if options["no_eligibility"] and not any(base.policy == PolicyName.LTD for base in bases):
            raise _wrong("--no-eligibility is for the policy ltd alone")
        if not options["sweep"]:
            return bases
        name, equals, values = options["sweep"].partition("=")
        if not equals or not values:
            raise _wrong("--sweep takes a name and values, such as buffer=0:5:0.5")
        parameter = ":".join(part for part in split(name.strip()) if part)
        return swept(bases, parameter, read_values(values))

    def _run(
        self, scenario: Scenario, variants: Sequence[Variant], days: float, seeds: list[int], options: dict[str, Any]
    ) -> report.ExperimentResults:
        number = len(variants) * len(seeds)
        if number > RUNS_MAX:
            raise _wrong(f"that makes {number} runs; the limit is {RUNS_MAX}")
        wants_timeline = bool(options["timeline"] or options["explain"])
        for variant in variants:
            policy_of(variant.policy, scenario, variant.parameters)  # an unknown one is reported before anything runs
        orders = [
            order_of(scenario, variant, days, seed, timeline=wants_timeline and seed == seeds[0])
            for variant in variants
            for seed in seeds
        ]
        outcomes = run_all(orders, options["jobs"] or _processors(), lambda done: self._progress(done, number))
        by_variant = [outcomes[first : first + len(seeds)] for first in range(0, number, len(seeds))]
        return report.ExperimentResults(days, seeds, variants, by_variant)

    def _progress(self, done: int, number: int) -> None:
        """Show progress: on a terminal one line that changes; in a log a line for every tenth of the runs."""
        if number == 1:
            return
        if sys.stderr.isatty():
            self.stderr.write(f"\r{done} of {number} runs", ending="\n" if done == number else "")
        elif done == number or done * 10 // number > (done - 1) * 10 // number:
            self.stderr.write(f"{done} of {number} runs")

    def _print(self, results: report.ExperimentResults, scenario: Scenario, options: dict[str, Any]) -> None:
        first = results.outcomes[0][0]
        notes = dict.fromkeys(note for variant in results.variants for note in policy_notes(variant.policy, scenario))
        if options["timeline"]:
            self._write_timeline(first, options["timeline"])
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(results, [*map(str, notes)])))
            return
        if options["csv"]:
            self.stdout.write(report.as_csv(results), ending="")
            return
        for note in (*scenario.notes, *notes):
            self.stdout.write(f"note: {note}")
        for row in scenario.unused if options["unused"] else ():
            self.stdout.write(f"not used: {row.file}, {row.element} ({row.count}): {Message(row.why)}")
        is_single = len(results.variants) == 1 and len(results.seeds) == 1
        self.stdout.write(report.run_table(first, results.days) if is_single else report.comparison_table(results))
        if options["explain"]:
            self._decisions(first, options["explain"])

    def _decisions(self, outcome: RunOutcome, count: int) -> None:
        """Return the first decisions, one a line."""
        assert outcome.timeline is not None
        packed, sentences = unpack(outcome.timeline), decision_texts.english()
        for number in range(min(count, len(packed["decisions.at_secs"]))):
            row = row_texts.decision(packed, number, sentences)
            self.stdout.write(f"{row['at_secs']:14.1f} s  {row['why']}")

    def _write_timeline(self, outcome: RunOutcome, path: Path) -> None:
        assert outcome.timeline is not None
        packed = unpack(outcome.timeline)
        try:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(downloads.blocks_csv(packed))
        except OSError as error:
            raise CommandError(f"--timeline: {error}") from error
        if not packed.texts["blocks_complete"]:
            self.stderr.write("The timeline is not complete: a run keeps its first million stretches.")

    def _list(self) -> None:
        self.stdout.write("Examples (with the days they run for):")
        for offered in PRESETS:
            self.stdout.write(f"  {offered.key:<40}{offered.days:>8g}")
        self.stdout.write("\nPolicies:")
        for policy in PolicyName:
            self.stdout.write(f"  {policy}")
        for name, point in installed().items():
            self.stdout.write(f"  {name:<40}from {point.dist.name if point.dist else point.value}")


def _follow(document: Document, options: dict[str, Any]) -> None:
    """Apply the settings in a document, unless options override them."""
    if options["seed"] is None:
        options["seed"] = document.seed
    if options["policies"] is not None or options["policy_file"]:
        return
    options["policies"] = document.policy.value
    options["quirks"] = options["quirks"] or ("boinc" if document.quirks else None)
    if options["half_life"] is None and document.policy in (PolicyName.REC, PolicyName.REC_LETTER):
        options["half_life"] = document.parameters.half_life_days
    if document.policy == PolicyName.LTD and document.parameters.eligibility_rule is False:
        options["no_eligibility"] = True


def _base(name: str, options: dict[str, Any]) -> Variant:
    """Return a policy by name, with the options that apply to all."""
    label = name.rpartition(":")[2] if is_file(name) else name
    policy, has_quirks, parameters = name, options["quirks"] is not None, {}
    if policy.endswith(QUIRKS_SUFFIX):
        policy, has_quirks = policy.removesuffix(QUIRKS_SUFFIX), True
    if policy.endswith(NO_ELIGIBILITY_SUFFIX):
        policy = policy.removesuffix(NO_ELIGIBILITY_SUFFIX)
        parameters["eligibility_rule"] = False
        if policy != PolicyName.LTD:
            raise _wrong(f"{NO_ELIGIBILITY_SUFFIX} is for the policy ltd alone")
    if options["no_eligibility"] and policy == PolicyName.LTD:
        parameters["eligibility_rule"] = False
    base = Variant(label, policy, has_quirks, parameters)
    if options["half_life"] is not None:
        base = replace(base, parameters={**parameters, "half_life_days": options["half_life"]})
    return base


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _wrong(text: str) -> CommandError:
    return CommandError(text, returncode=WRONG_ARGUMENTS)
