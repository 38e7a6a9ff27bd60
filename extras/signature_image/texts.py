"""The words of signature images, on the picture and for people who cannot see it."""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext, ngettext

from extras.signature_image.reads import ImageFacts
from portal.templatetags.display import localised


def lines(facts: ImageFacts) -> list[str]:
    """Return the lines below the name."""
    texts = []
    if facts.total is not None:
        texts.append(gettext("Estimated credit %(number)s") % {"number": grouped(facts.total)})
    if facts.average is not None:
        texts.append(gettext("Recent average %(number)s a day") % {"number": grouped(facts.average)})
    texts += [
        gettext("%(project)s %(number)s") % {"project": name, "number": grouped(number)}
        for name, number in facts.projects
    ]
    if facts.nbadges is not None:
        text = ngettext("%(number)s badge", "%(number)s badges", facts.nbadges)
        texts.append(text % {"number": grouped(facts.nbadges)})
    return texts


def title(facts: ImageFacts) -> str:
    """Return the first line: the name or, without one, the picture's subject."""
    return facts.name or gettext("Computing for science")


def alternative(facts: ImageFacts) -> str:
    """Return the alternative text of the picture."""
    return "; ".join([title(facts), *lines(facts), settings.SITE_NAME])


def grouped(number: int) -> str:
    """Format 1234567 as "1 234 567", with thin spaces, or as the page's language writes it."""
    return localised(f"{number:,}")
