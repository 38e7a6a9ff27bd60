"""`manage.py simulate_results`: a population of computers works for an app, validated and normalised on the way."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.models import App
from extras.laboratory.trials.population import KINDS, Cheat, Cheats
from extras.laboratory.trials.simulation import (
    HOSTS_PER_USER,
    MAX_COMPUTERS,
    MAX_JOBS,
    SimulatedProject,
    make_computers,
    release_versions,
    run,
)


class Command(BaseCommand):
    help = (
        "Simulate volunteers' computers: jobs of an app are reported over some days up to now and wait to be validated;"
        " with --validate they are validated, and the scales renewed, as time goes by. Adds to what is there: meant"
        " for demonstrations and trials."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--app", default="simulated", help="short name of the app, made if it is missing")
        parser.add_argument("--hosts", type=int, default=100, help=f"computers (1 to {MAX_COMPUTERS})")
        parser.add_argument("--jobs", type=int, default=2000, help=f"workunits (1 to {MAX_JOBS})")
        parser.add_argument("--days", type=float, default=10.0, help="time over which they are reported (0.01 to 3650)")
        parser.add_argument("--replicas", type=int, default=2, help="quorum and results of a workunit (1 to 10)")
        parser.add_argument("--anonymous", type=float, default=0.1, help="part with programs of their own (0 to 1)")
        parser.add_argument(
            "--cheat",
            action="append",
            default=[],
            metavar="KIND=PART",
            help="part of the computers that cheat so: " + ", ".join(c for c in Cheat if c != Cheat.NONE),
        )
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--validate", action="store_true", help="validate and normalise on the way")

    def handle(self, *args: Any, **options: Any) -> None:
        _check("--jobs", options["jobs"], 1, MAX_JOBS)
        _check("--hosts", options["hosts"], 1, MAX_COMPUTERS)
        _check("--days", options["days"], 0.01, 3650)
        _check("--replicas", options["replicas"], 1, 10)
        _check("--anonymous", options["anonymous"], 0, 1)
        least = options["replicas"] * HOSTS_PER_USER if options["replicas"] > 1 else 1
        if options["hosts"] < least:
            raise CommandError(f"--hosts must be {least} at least: each replica goes to another volunteer, who has two")
        cheats = _cheats(options["cheat"])
        rng = Random(options["seed"])
        app = _app(options["app"])
        computers = make_computers(rng, options["hosts"], anonymous_part=options["anonymous"], cheats=cheats)
        project = SimulatedProject(app, KINDS, release_versions(app), computers, rng, options["replicas"])
        now = timezone.now()
        begin = now - dt.timedelta(days=options["days"])
        nresults, credit = run(project, options["jobs"], begin, now, validates=options["validate"])
        self.stdout.write(f"{options['jobs']} workunits with {nresults} results of {len(computers)} computers")
        if options["validate"]:
            self.stdout.write(f"{credit:.0f} credits were granted")


def _app(name: str) -> App:
    stored_app = App.objects.filter(name=name).first()
    if stored_app is not None:
        return stored_app
    app = App(name=name, user_friendly_name=name.capitalize())
    try:
        app.full_clean()
    except ValidationError as error:
        raise CommandError(f"--app {name}: {' '.join(error.messages)}") from error
    app.save()
    return app


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise CommandError(f"{name} must be from {low:g} to {high:g}, not {value:g}")


def _cheats(words: list[str]) -> Cheats:
    cheats: Cheats = {}
    for word in words:
        kind, _, part = word.partition("=")
        try:
            cheats[Cheat(kind)] = float(part)
        except ValueError as error:
            raise CommandError(f"--cheat {word}: KIND=PART, such as {Cheat.EXAGGERATE}=0.05") from error
        _check(f"--cheat {kind}", cheats[Cheat(kind)], 0, 1)
    return cheats
