"""Read the facts of a signature image: from the roll-up's sums, so a long history costs no more."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from accounting.engine.amounts import MICRO
from accounting.ledger.rollup import average_of
from accounting.models import UserProject
from extras.signature_image.models import SignatureImage
from portal.extras import awards_titles, titles_of

MOST_PROJECTS: Final = 3


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """None, or nothing, for facts that its owner did not choose. Credit in whole credits; ``average``: per day."""

    name: str
    total: int | None
    average: int | None
    projects: list[tuple[str, int]]
    nbadges: int | None


def read_facts(image: SignatureImage, now: dt.datetime) -> ImageFacts:
    """Read the facts; two statements at most, and those of the apps that award badges."""
    rows = list(
        UserProject.objects.filter(user=image.user_id, total_ec__gt=0).select_related("project").order_by("-total_ec")
    )
    average = sum(average_of(row, now) for row in rows)
    top = rows[:MOST_PROJECTS] if image.shows_projects else []
    return ImageFacts(
        name=image.shown_name,
        total=sum(row.total_ec for row in rows) // MICRO if image.shows_total else None,
        average=int(average) if image.shows_average else None,
        projects=[(row.project.name, row.total_ec // MICRO) for row in top],
        nbadges=len(titles_of(image.user, now.date())) if image.shows_badges and awards_titles() else None,
    )
