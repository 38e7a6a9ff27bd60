"""The rule for names, as an error of a form says it."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext, gettext_noop

from portal.languages.stored import translated

RULE: Final = gettext_noop(
    "at most %(number)s letters (A to Z, a to z), digits, _ . and -, starting with a letter or digit and without two "
    "dots in a row"
)


def name_rule(rule: str) -> str:
    """``rule``: of `scheduler.engine.limits.name_rule`."""
    return gettext("Use a name of %(rule)s.") % {"rule": translated(rule, (RULE,))}
