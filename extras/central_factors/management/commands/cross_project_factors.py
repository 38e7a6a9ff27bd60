"""`manage.py cross_project_factors`: versions for GPUs without a counterpart for CPUs, and other projects' factors."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.models import AppVersion
from extras.central_factors.candidates import FIELD, Candidate, candidates
from extras.central_factors.collect import collect
from portal.audit import undo
from portal.audit.carry_out import NothingToDo, carry_out
from portal.models import Change

_REASON = "Set by manage.py cross_project_factors."


class Command(BaseCommand):
    help = (
        "Find app versions for GPUs without a counterpart for CPUs, and print which factor other projects give them "
        "and what it changes; set it, or undo that. Changes are kept as those made in the admin are."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--collect", action="store_true", help="first ask projects and the central server again")
        parser.add_argument(
            "--set", nargs="*", type=int, metavar="ID", help="set factors: of these versions, or of all"
        )
        parser.add_argument("--undo", type=int, metavar="ID", help="put back this version's factor of before")
        parser.add_argument("--reason", default=_REASON, help="kept with the change")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        if options["collect"]:
            collected = collect(now, is_due=True)
            self.stdout.write(f"Asked: {collected.nasked}, with trouble: {collected.nproblems}.")
        if options["undo"] is not None:
            self._undo(options["undo"], options["reason"])
        elif options["set"] is not None:
            self._set(now, options["set"], options["reason"])
        else:
            self._list(candidates(now))

    def _list(self, rows: list[Candidate]) -> None:
        for row in rows:
            self.stdout.write(f"{row.version.pk}: {row.version} ({row.version.processor_type}): {_sentence(row)}")
        if not rows:
            self.stdout.write("No version for GPUs lacks a counterpart for CPUs.")

    def _set(self, now: dt.datetime, ids: list[int], reason: str) -> None:
        rows = {row.version.pk: row for row in candidates(now) if row.can_be_set}
        if unknown := set(ids) - rows.keys():
            raise CommandError(f"No factor can be set for: {', '.join(map(str, sorted(unknown)))}")
        for pk in ids or list(rows):
            carry_out(rows[pk].proposal(), None, reason)
            self.stdout.write(f"{pk}: {rows[pk].version}: {_sentence(rows[pk])} Set.")
        if not rows:
            self.stdout.write("Nothing to set.")

    def _undo(self, pk: int, reason: str) -> None:
        version = AppVersion.objects.filter(pk=pk).first()
        if version is None:
            raise CommandError(f"There is no version {pk}.")
        # Not an undo, nor what it undid: the one before
        left = Change.objects.get_for_object(version).filter(changes__has_key=FIELD, undoes=None, undone_by=None)
        change = left.order_by("-pk").first()
        proposal = undo.proposal_of(change, version) if change is not None else None
        if proposal is None or FIELD not in proposal.changes:
            raise CommandError("No change of this version's factor is left to undo.")
        proposal.changes = {FIELD: proposal.changes[FIELD]}
        try:
            carry_out(proposal, None, reason)
        except NothingToDo as error:
            raise CommandError("It has that factor already.") from error
        before, after = proposal.changes[FIELD]
        self.stdout.write(f"{pk}: {version}: {before} → {after}.")


def _sentence(row: Candidate) -> str:
    version = row.version
    if not row.is_in_force:
        return f"{version.cross_project_scale:.6g} is set, and not in force: a version for CPUs counts."
    if row.found is None:
        return "other projects have no factor for it."
    basis = "its plan class" if row.found.plan_class is not None else "its type of processor"
    text = f"{row.found.scale:.6g}, of {basis} over {row.found.nprojects} project(s)."
    if not row.can_be_set:
        return f"{text} It is set."
    now = "none" if version.pfc_scale is None else f"{version.pfc_scale:.6g}"
    text += f" The factor now: {now}."
    if row.credit_ratio is not None:
        text += f" A job would bring {row.credit_ratio:.4g} times the credit."
    return text
