"""Read the page of one project."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext

from accounting.choosing.keyword_names import keyword_name
from accounting.choosing.reads import ProjectWork, Selection, fractions, read_computers, read_parts, read_selection
from accounting.choosing.texts import explain, trouble_text, types_text
from accounting.engine.choice.facts import Trouble, TroubleKind
from accounting.models import PROCESSOR_TYPES, AccountTotal, OwnAccount, Project, ProjectProfile, UserProject
from accounting.projects.keywords import MAYBE, NO, YES
from accounting.reconciliation.card import card
from accounting.reconciliation.reads import last_days, read_reconciled, read_standings
from portal.models import User
from portal.wire.keywords import KEYWORDS

DAYS_SHOWN: Final = 30


@dataclass(frozen=True, slots=True)
class AccountTotals:
    """A person's accounts at projects, as these publish them, and their sum in micro-credits."""

    accounts: list[AccountTotal]

    @property
    def total(self) -> int:
        return sum(account.total_credit for account in self.accounts)


def read_account_totals(user: User) -> AccountTotals:
    """Read the totals of a person's own accounts, largest first. One statement."""
    totals = AccountTotal.objects.filter(user=user).select_related("project").order_by("-total_credit", "pk")
    return AccountTotals(list(totals))


def read_settled_parts(user: User) -> dict[int, ProjectWork]:
    """Read the volunteer's part by project, with the credit total shown on other pages; two statements."""
    totals: Counter[int] = Counter()
    for standing in read_standings(user):
        totals[standing.project_id] += standing.settled
    return {id_: replace(part, credit=totals[id_]) for id_, part in read_parts(user).items()}


def read_project_page(user: User, project_id: int, now: dt.datetime) -> dict[str, Any] | None:
    """Return the template values; None if there is no such project. Fourteen statements, and one more where volunteers
    have their own accounts.
    """
    selection = read_selection(user)
    project = selection.projects.get(project_id)
    if project is None:
        return None
    lines = []
    for host, computer in read_computers(user, now):
        choice = selection.choice_for(computer, now)
        whys = explain(choice, fractions(choice.shares), selection.projects)
        lines.append((host, next(why for why in whys if why.project.pk == project_id)))
    parts = [why.part for _, why in lines]
    row = selection.rows.get(project_id)
    today = now.astimezone(dt.UTC).date()
    settled = read_reconciled(user, *last_days(today, DAYS_SHOWN), today, project_id=project_id)
    return {
        "total": settled.settled,
        "project": project,
        "says_down_since": ProjectProfile.objects.filter(project=project)
        .values_list("says_down_since", flat=True)
        .first(),
        "colour": project.data_colour,
        "part": read_parts(user).get(project_id),
        "lines": lines,
        "fraction": sum(part or 0 for part in parts) / len(parts) if any(part is not None for part in parts) else None,
        **_own_account(user, project, row),
        "is_picked": row is not None and row.is_chosen,
        "keywords": _keywords(project, selection),
        "platforms": _platforms(project),
        "standings": list(project.standings.all()),
        "troubles": [
            (trouble_text(Trouble(TroubleKind(row.kind), row.processor_type, row.since)), row.since)
            for row in project.troubles.all()
        ],
        **card(settled, gettext("Granted and estimated credit, last %(number)s days") % {"number": DAYS_SHOWN}),
    }


def _own_account(user: User, project: Project, row: UserProject | None) -> dict[str, Any]:
    if not project.has_own_accounts:
        return {}
    return {
        "has_own_accounts": project.is_active,
        "account": OwnAccount.objects.filter(user=user, project=project).first(),
        "has_key": row is not None and bool(row.account_key),
    }


def _keywords(project: Project, selection: Selection) -> list[tuple[str, float, str]]:
    """Return each keyword with its parent, its weight, and the volunteer's answer to it or to the parent."""
    weights = {row.keyword: row.weight for row in project.keywords.all()}
    lines = []
    for id_ in KEYWORDS:
        if id_ in weights:
            kin = KEYWORDS[id_].kin
            path = ", ".join(keyword_name(id_) for id_ in kin)
            volunteer = selection.volunteer
            answer = NO if volunteer.no.intersection(kin) else YES if volunteer.yes.intersection(kin) else MAYBE
            lines.append((path, weights[id_], answer))
    return lines


def _platforms(project: Project) -> list[tuple[str, str]]:
    """Return platforms with their processor types in words."""
    types: dict[str, list[str]] = {}
    for row in project.versions.all():
        types.setdefault(row.platform or gettext("all platforms"), []).append(row.processor_type)
    # Processors before GPUs
    order = {type_: number for number, type_ in enumerate(PROCESSOR_TYPES)}
    return [
        (platform, types_text(tuple(sorted(type_names, key=lambda type_: order.get(type_, len(order))))))
        for platform, type_names in types.items()
    ]
