"""The badges that every new site starts with. All are off: operators switch on those that they want."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

from extras.badges.models import Badge
from extras.badges.rules import BadgeKind

_BIOLOGY: Final = 9
_ASTRONOMY: Final = 1
USUAL: Final = (
    (_("First task"), _("A computer of yours finished its first task."), BadgeKind.TASKS, None, 1),
    (_("1,000 tasks"), "", BadgeKind.TASKS, None, 1_000),
    (_("10,000 credits"), "", BadgeKind.CREDIT, None, 10_000),
    (_("100,000 credits"), "", BadgeKind.CREDIT, None, 100_000),
    (_("1 million credits"), "", BadgeKind.CREDIT, None, 1_000_000),
    (_("100 days"), _("Your computers have worked on 100 days."), BadgeKind.DAYS, None, 100),
    (_("Two years"), _("You contributed in two calendar years."), BadgeKind.YEARS, None, 2),
    (_("Five years"), _("You contributed in five calendar years."), BadgeKind.YEARS, None, 5),
    (_("First hour on a GPU"), "", BadgeKind.GPU_HOURS, None, 1),
    (
        _("Three fields of science"),
        _("You worked for projects of three fields of science."),
        BadgeKind.SUBJECTS,
        None,
        3,
    ),
    (_("1,000 hours for biology and medicine"), "", BadgeKind.SUBJECT_HOURS, _BIOLOGY, 1_000),
    (_("1,000 hours for astronomy"), "", BadgeKind.SUBJECT_HOURS, _ASTRONOMY, 1_000),
)
TEXTS: Final = tuple(text for title, description, *_rule in USUAL for text in (title, description) if text)


def make_usual() -> None:
    """Create them where the site has no badge. Safe to repeat, also at the same time: titles are unique."""
    if not Badge.objects.exists():
        badges = [
            Badge(title=title, text=text, kind=kind.value, subject=subject, threshold=threshold)
            for title, text, kind, subject, threshold in USUAL
        ]
        Badge.objects.bulk_create(badges, ignore_conflicts=True)
