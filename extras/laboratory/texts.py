"""The words of an experiment's page: goals, rules and faults are stored in English, and parameters are marked only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from django.utils.translation import gettext, gettext_noop

from extras.laboratory.trials.parameters import Parameter
from portal.languages.numbers import localised_within
from portal.templatetags.display import localised

WAYS: Final = (gettext_noop("single results"), gettext_noop("adaptive replication"), gettext_noop("two replicas"))
_ERRORS: Final = (
    gettext_noop("cheats: %(number)s of %(hosts)s computers would cheat, and there may be %(most)s"),
    gettext_noop("variants: the choices make %(number)s, and there may be %(most)s. Choose fewer."),
    gettext_noop("%(name)s must be from %(low)s to %(high)s, not %(value)s"),
    gettext_noop("%(name)s: must be from %(low)s to %(high)s, not %(value)s"),
)
GOALS: Final = (
    gettext_noop("device neutrality: versions' mean grants apart"),
    gettext_noop("equal jobs on different hosts: mean deviation"),
    gettext_noop("drift of the mean grant per 1,000 jobs"),
    gettext_noop("device neutrality, two replicas"),
    gettext_noop("replicas' claims for one job apart"),
    gettext_noop("project neutrality: credit of CPU time here and at another project apart"),
    gettext_noop("project neutrality: credit of GPU time off the efficiency of its programs"),
    gettext_noop("gain of those who %(cheat)s, per FLOP"),
    gettext_noop("exaggerating tenfold, after %(number)s jobs, off honest (%(way)s)"),
    gettext_noop("exaggerating tenfold, gain in the first %(number)s jobs (%(way)s)"),
    gettext_noop("one-time cheat: greatest grant over the default (%(way)s)"),
    gettext_noop("one-time cheat: greatest grant over the default"),
    gettext_noop("picking short jobs: gain (%(way)s)"),
    gettext_noop("next to nothing on nine of ten jobs: gain (%(way)s)"),
    gettext_noop("picking jobs of hidden size: gain (%(way)s)"),
    gettext_noop("picking by %(cheat)s, others fail %(part)s: gain (%(way)s)"),
    gettext_noop("picking by %(cheat)s: gain (%(way)s)"),
    gettext_noop("honest computers that never fail: loss by host_scale_check (%(way)s)"),
    gettext_noop("honest computers that fail %(part)s of their jobs: loss by host_scale_check (%(way)s)"),
)
"""As extras.laboratory.trials names them; the first that fits counts."""
_SHORT: Final = (
    gettext_noop("credit of CPU time here and at another project apart"),
    gettext_noop("credit of GPU time off the efficiency of its programs"),
    gettext_noop("greatest grant over the default (%(way)s)"),
    gettext_noop("greatest grant over the default"),
)
"""Where the title of a chart says the rest."""
PICKING: Final = (
    gettext_noop("compute errors"),
    gettext_noop("202 that nobody asked for"),
    gettext_noop("failed downloads"),
    gettext_noop("nothing uploaded"),
    gettext_noop("left out"),
    gettext_noop("wrong outputs"),
    gettext_noop("compute errors, in turns"),
    gettext_noop("holding them back, then compute errors"),
    gettext_noop("holding them back, in turns"),
    gettext_noop("compute errors first, then waiting"),
    gettext_noop("compute errors of few"),
    gettext_noop("compute errors, exaggerating"),
)


_PLACEHOLDER: Final = re.compile(r"%\\\((\w+)\\\)s")


def translated(stored: str, templates: Iterable[str]) -> str:
    """``stored`` in the page's language, if it was made of one of these marked texts; else as it is.

    What was put into a placeholder is translated, too, where it is a text that is known: the whole of it, or its parts
    between commas; thousands are written as the page writes them.
    """
    for template in templates:
        if made := _pattern(template).fullmatch(stored):
            values = {name: _value(value) for name, value in made.groupdict().items()}
            return localised_within(gettext(template) % values if values else gettext(template))
    return stored


def _value(text: str) -> str:
    if not text:
        return ""
    whole = gettext(text)
    return whole if whole != text else ", ".join(gettext(part) if part else "" for part in text.split(", "))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER.sub(r"(?P<\1>.+?)", re.escape(template)), re.DOTALL)


def goal(name: str) -> str:
    """A goal's name, or what is left of it in a chart."""
    found = translated(name, (*GOALS, *_SHORT))
    return found if found != name else gettext(name)


def variant(label: str) -> str:
    """A variant's label: rule set, way, check and limits."""
    return ", ".join(gettext(part) if part in WAYS else part for part in label.split(", "))


def error(raised: ValueError) -> str:
    return translated(str(raised), _ERRORS)


def label(parameter: Parameter) -> str:
    return _filled(parameter.label, parameter)


def help_text(parameter: Parameter) -> str:
    """What is said of the parameter, with its range."""
    limits = {name: localised(f"{getattr(parameter, name):g}") for name in ("low", "high", "usual")}
    text = gettext("%(low)s to %(high)s; usually %(usual)s.") % limits
    return f"{_filled(parameter.help, parameter)} {text}".strip()


def _filled(text: str, parameter: Parameter) -> str:
    if not text:
        return ""
    return gettext(text) % {name: gettext(word) for name, word in parameter.words.items()}
