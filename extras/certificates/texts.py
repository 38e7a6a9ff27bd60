"""The words of a certificate, made from its statement in the reader's language."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.translation import gettext, gettext_lazy, ngettext

from extras.certificates.codes import grouped_code
from extras.certificates.registry import check_address
from portal.languages import supplied
from portal.templatetags.display import day, localised
from portal.wire.statements import Statement

MOST_BADGES: Final = 24
"""Badges that are named on a certificate."""
SHOWN_LABELS: Final = {
    "credit": gettext_lazy("Credit"),
    "run_time": gettext_lazy("CPU and GPU time"),
    "tasks": gettext_lazy("Finished tasks"),
    "computers": gettext_lazy("Number of computers"),
    "since": gettext_lazy("First day on which you contributed"),
    "badges": gettext_lazy("Badges that you had on the last day"),
}


@dataclass(frozen=True, slots=True)
class CertificateText:
    """The text of a certificate. ``lines``: label and value. ``code``: empty for a preview."""

    title: str
    name: str
    sentence: str
    lines: list[tuple[str, str]]
    notes: list[str]
    made: str
    code: str = ""
    address: str = ""

    @property
    def grouped(self) -> str:
        return grouped_code(self.code)


def certificate_text(statement: Statement) -> CertificateText:
    """Return the words of a statement; of a draft, which has no code, those of its preview."""
    code = str(statement.get("code", ""))
    values = {"site": settings.SITE_NAME, "day": _day(statement["made_on"])}
    return CertificateText(
        title=gettext("Certificate of computing for science"),
        name=str(statement.get("name", "")),
        sentence=_sentence(statement),
        lines=_lines(statement["facts"]),
        notes=_notes(statement),
        made=gettext("Issued by %(site)s on %(day)s (UTC), based on the totals on that day.") % values,
        code=code,
        address=check_address(code) if code else "",
    )


def _day(text: str) -> str:
    return day(dt.date.fromisoformat(text))


def _sentence(statement: Statement) -> str:
    about = statement["about"]
    values = {"first": _day(statement["first"]), "last": _day(statement["last"]), "about": about.get("name", "")}
    if about["kind"] == "project":
        return gettext("From %(first)s to %(last)s, the volunteer’s computers worked for %(about)s.") % values
    if about["kind"] == "subject":
        return (
            gettext(
                "From %(first)s to %(last)s, the volunteer’s computers worked for projects on this subject: %(about)s."
            )
            % values
        )
    return gettext("From %(first)s to %(last)s, the volunteer’s computers worked for scientific projects.") % values


def _lines(facts: Statement) -> list[tuple[str, str]]:
    """Return the lines in the order of the choices; facts missing from the statement are left out."""
    hours = gettext("%(number)s h")
    lines = [
        (label, text % {"number": _grouped(facts[name])})
        for name, label, text in (
            ("estimated_credits", gettext("Estimated credit"), "%(number)s"),
            ("granted_credits", gettext("Granted credit"), "%(number)s"),
            ("cpu_hours", gettext("CPU time"), hours),
            ("gpu_hours", gettext("GPU time"), hours),
            ("tasks", gettext("Finished tasks"), "%(number)s"),
            ("computers", gettext("Computers"), "%(number)s"),
        )
        if name in facts
    ]
    if "since" in facts:
        lines.append((gettext("Contributing since"), _day(str(facts["since"]))))
    if facts.get("badges"):
        lines.append((gettext("Badges"), _badges(facts["badges"])))
    return lines


def _badges(titles: list[str]) -> str:
    """Return the first badges earned, as many as the sheet has room for; the signed statement has all."""
    nmore = len(titles) - MOST_BADGES
    text = " · ".join(supplied.shown(title) for title in titles[:MOST_BADGES])
    if nmore <= 0:
        return text
    more = ngettext("and %(number)s more", "and %(number)s more", nmore) % {"number": nmore}
    return f"{text} {more}"


def _notes(statement: Statement) -> list[str]:
    facts, notes = statement["facts"], []
    if "estimated_credits" in facts:
        notes.append(
            gettext(
                "Estimated credit is calculated from the run times and speeds that the computers reported. One credit "
                "is the work of a 1 GFLOPS processor in 1/200 of a day."
            )
        )
    if "granted_credits" in facts:
        notes.append(
            gettext(
                "Granted credit is what projects granted on these days after checking the results, as far as they "
                "publish it. It measures the same work a second time, so do not add the two."
            )
        )
    if "cpu_hours" in facts:
        notes.append(gettext("CPU and GPU time are hours of run time, times the processors used."))
    if statement.get("name"):
        notes.append(gettext("The volunteer entered this name. The site has not checked their identity."))
    return notes


def _grouped(number: int) -> str:
    return localised(f"{number:,}")
