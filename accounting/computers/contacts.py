"""A computer's latest contacts for its page: when they were, how each was answered, and how often in a row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_noop as _

from accounting.choosing.texts import listed, types_text
from accounting.engine.choice.facts import TroubleKind
from accounting.models import Answer, Project
from accounting.rpc.contact_log import MAX_ANSWERS
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.models import Host

_MOST_NAMED: Final = 12
# Without the rest of the ledger row: the client's report about itself is long, and not needed here.
_COLUMNS: Final = (
    "host_id",
    "slot",
    "at",
    "content",
    "before_times",
    "before_last_at",
    "host__merged_into_id",
    "host__ledger__same_answers",
    "host__ledger__last_at",
)


@dataclass(frozen=True, slots=True)
class ContactLine:
    """Consecutive contacts with the same answer: the first and the last of them, their number, and the answer.

    ``orders``: what the client was told about its projects, ``said``: the problems it reported there, ``messages``:
    sentences for its log.
    """

    first_at: dt.datetime
    last_at: dt.datetime
    times: int
    delay_secs: int
    orders: list[str]
    said: list[str]
    messages: list[str]

    @property
    def delay_micro(self) -> int:
        return self.delay_secs * 1_000_000


@dataclass(frozen=True, slots=True)
class Contacts:
    """The latest contacts, newest first. ``are_several``: two clients report as this computer."""

    lines: list[ContactLine]
    are_several: bool


def read_contacts(host: Host, projects: Mapping[int, Project]) -> Contacts:
    """Read a computer's latest contacts, with those of the records merged into it; one statement."""
    rows: dict[int, list[Answer]] = {}
    answers = Answer.objects.filter(Q(host=host) | Q(host__merged_into=host)).select_related("host__ledger")
    for row in answers.order_by("at", "slot").only(*_COLUMNS):
        rows.setdefault(row.host_id, []).append(row)
    lines = [line for of_one in rows.values() for line in _lines(of_one, projects)]
    lines.sort(key=lambda line: line.last_at, reverse=True)
    return Contacts(
        lines[:MAX_ANSWERS], are_two_clients([str(row.content.get("cpid", "")) for row in rows.get(host.pk, [])])
    )


def _lines(rows: Sequence[Answer], projects: Mapping[int, Project]) -> list[ContactLine]:
    """Build the lines of one record's answers, oldest first. A row has the count and end of the answer before it."""
    lines = []
    for place, row in enumerate(rows):
        if place + 1 < len(rows):
            times, last_at = rows[place + 1].before_times, rows[place + 1].before_last_at
        else:
            ledger = getattr(row.host, "ledger", None)
            times, last_at = (ledger.same_answers, ledger.last_at) if ledger is not None else (1, None)
        lines.append(_line(row, max(times, 1), last_at, projects))
    return lines


def are_two_clients(ids: Sequence[str]) -> bool:
    """Whether an id returns after a different one. A single client that got a new id never reports its old one."""
    seen: set[str] = set()
    before = ""
    for id_ in filter(None, ids):
        if id_ != before and id_ in seen:
            return True
        seen.add(id_)
        before = id_
    return False


def _line(row: Answer, times: int, last_at: dt.datetime | None, projects: Mapping[int, Project]) -> ContactLine:
    content: dict[str, Any] = row.content
    accounts: list[dict[str, Any]] = content.get("accounts", [])
    return ContactLine(
        first_at=row.at,
        last_at=max(row.at, last_at) if last_at is not None else row.at,
        times=times,
        delay_secs=int(content.get("delay_secs", 0)),
        orders=_orders(accounts, int(content.get("accounts_left_out", 0)), projects),
        said=_said(accounts, projects),
        messages=[sentence(Message.from_json(message)) for message in content.get("messages", [])],
    )


_ORDERS: Final[tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...]] = (
    (_("Attach %(names)s"), lambda account: account.get("order") == "attach"),
    (_("Continue with %(names)s"), lambda account: account.get("order") == "keep"),
    (_("Detach %(names)s when its tasks are finished"), lambda account: account.get("order") == "detach_when_done"),
    (_("No new tasks from %(names)s"), lambda account: bool(account.get("no_new_work"))),
    (_("Drop tasks of %(names)s that have not started"), lambda account: bool(account.get("drop_waiting"))),
    (_("Suspend %(names)s"), lambda account: account.get("suspend") is True),
    (_("Resume %(names)s"), lambda account: account.get("suspend") is False),
    (_("Contact %(names)s now"), lambda account: bool(account.get("update"))),
)


def _orders(accounts: list[dict[str, Any]], left_out: int, projects: Mapping[int, Project]) -> list[str]:
    orders = []
    for text, applies in _ORDERS:
        if names := [_name(account, projects) for account in accounts if applies(account)]:
            orders.append(gettext(text) % {"names": _named(names)})
    names_by_order: dict[tuple[str, ...], list[str]] = {}
    for account in accounts:
        if types := tuple(map(str, account.get("no_rsc", ()))):
            names_by_order.setdefault(types, []).append(_name(account, projects))
    text = gettext("Do not use the %(types)s for %(names)s")
    orders += [text % {"types": types_text(types), "names": _named(names)} for types, names in names_by_order.items()]
    if left_out:
        text = ngettext(
            "and instructions for %(number)s more project", "and instructions for %(number)s more projects", left_out
        )
        orders.append(text % {"number": left_out})
    return orders or [gettext("No project")]


def _said(accounts: list[dict[str, Any]], projects: Mapping[int, Project]) -> list[str]:
    met: dict[tuple[str, str], list[str]] = {}
    for account in accounts:
        for kind, type_ in account.get("met", ()):
            of = type_ if kind == TroubleKind.NO_WORK else ""
            met.setdefault((kind, of), []).append(_name(account, projects))
    return [_trouble(kind, type_, names) for (kind, type_), names in met.items()]


def _trouble(kind: str, type_: str, names: list[str]) -> str:
    if kind == TroubleKind.NO_WORK:
        text = gettext("No work for the %(types)s at %(names)s")
    elif kind == TroubleKind.FAILING:
        text = gettext("Requests to %(names)s fail")
    else:
        text = ngettext("%(names)s says that it has ended", "%(names)s say that they have ended", len(names))
    return text % {"types": types_text((type_,)), "names": _named(names)}


def _name(account: dict[str, Any], projects: Mapping[int, Project]) -> str:
    """Return the project's name, or the URL of one that this site never knew."""
    project = account.get("project")
    if isinstance(project, int):
        return (
            projects[project].name
            if project in projects
            else (gettext("project No. %(number)s (deleted)") % {"number": project})
        )
    return str(project)


def _named(names: list[str]) -> str:
    first_names = names[:_MOST_NAMED]
    return listed(first_names if len(names) <= _MOST_NAMED else [*first_names, _more(len(names) - _MOST_NAMED)])


def _more(number: int) -> str:
    return ngettext("%(number)s more", "%(number)s more", number) % {"number": number}
