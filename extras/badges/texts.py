"""The words of badges: what a rule asks for."""

from __future__ import annotations

from django.utils import translation
from django.utils.translation import gettext, ngettext

from extras.badges.models import Badge
from extras.badges.rules import BadgeKind
from portal.templatetags.display import count
from portal.wire.keywords import KEYWORDS


def kept_rule(badge: Badge) -> str:
    """Return the rule as awards store it: in English, whoever reads it."""
    with translation.override(None):
        return rule_text(badge)[:200]


def rule_text(badge: Badge) -> str:
    """Return the rule's threshold in words, such as "10 000 credits"."""
    number = badge.threshold
    values = {"number": count(number)}
    match BadgeKind(badge.kind):
        case BadgeKind.CREDIT:
            return ngettext("%(number)s credit", "%(number)s credits", number) % values
        case BadgeKind.TASKS:
            return ngettext("%(number)s finished task", "%(number)s finished tasks", number) % values
        case BadgeKind.DAYS:
            return ngettext("%(number)s day with credit", "%(number)s days with credit", number) % values
        case BadgeKind.YEARS:
            return (
                ngettext("credit in %(number)s calendar year", "credit in %(number)s calendar years", number) % values
            )
        case BadgeKind.GPU_HOURS:
            return ngettext("%(number)s hour of GPU time", "%(number)s hours of GPU time", number) % values
        case BadgeKind.SUBJECTS:
            return (
                ngettext("credit in %(number)s field of science", "credit in %(number)s fields of science", number)
                % values
            )
        case BadgeKind.BEFORE_MOVE:
            return gettext("held before this project moved here")
        case BadgeKind.SUBJECT_HOURS:
            subject = KEYWORDS.get(badge.subject or 0)
            return ngettext(
                "%(number)s hour of run time for %(subject)s", "%(number)s hours of run time for %(subject)s", number
            ) % (values | {"subject": subject.name if subject else gettext("a subject that is gone")})
