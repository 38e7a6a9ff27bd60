"""The names of BOINC's keywords in the visitor's language; names of institutions are the same in all languages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from portal.wire.keywords import KEYWORDS

TRANSLATED: Final = (
    _("Astronomy"),
    _("Search for Extraterrestrial Intelligence"),
    _("Detection and study of pulsars"),
    _("Detection and study of gravitational waves"),
    _("Cosmology"),
    _("Chemistry"),
    _("Physics"),
    _("Particle physics"),
    _("Nanoscience"),
    _("Biology and Medicine"),
    _("Drug discovery"),
    _("Protein research"),
    _("Genetics and Phylogeny"),
    _("Disease research"),
    _("Cancer research"),
    _("COVID-19 and virology"),
    _("Mathematics and Computer Science"),
    _("Number Theory"),
    _("Cryptography"),
    _("Games"),
    _("Artificial Intelligence and Cognitive Science"),
    _("Earth sciences"),
    _("Environmental research"),
    _("Climate research"),
    _("International"),
    _("Europe"),
    _("Czech Republic"),
    _("France"),
    _("Germany"),
    _("Holland"),
    _("Hungary"),
    _("Ireland"),
    _("Poland"),
    _("Russia"),
    _("Spain"),
    _("United Kingdom"),
    _("Asia"),
    _("China"),
    _("Oceania"),
    _("Australia"),
    _("Africa"),
    _("Egypt"),
    _("Americas"),
    _("Canada"),
    _("United States"),
)


def keyword_name(id_: int) -> str:
    """Return the keyword's name. Raises KeyError for an unknown number."""
    return gettext(KEYWORDS[id_].name)


def keyword_names(ids: Collection[int]) -> list[str]:
    """Return the names of keywords, in the order of the tree; unknown numbers are left out."""
    return [keyword_name(id_) for id_ in KEYWORDS if id_ in ids]
