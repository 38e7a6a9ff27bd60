"""Why two records of computers cannot be merged, in sentences for their owner."""

from __future__ import annotations

from django.utils.translation import gettext

from accounting.engine.merge_rules import Lifetime, Refusal, Rule
from portal.templatetags.display import moment_text


def refusal_text(refusal: Refusal) -> str:
    """Return the refusal (accounting/engine/merge_rules.py) as a sentence."""
    values = {key: record.name for key, record in zip("ab", refusal.records, strict=False)}
    match refusal.rule:
        case Rule.SELF:
            return gettext("A computer cannot be merged with itself. Choose another one.")
        case Rule.UNKNOWN:
            return gettext("You have no such computer. Choose one from the list.")
        case Rule.OWNER:
            return gettext("The two computers have different owners.")
        case Rule.MERGED:
            return gettext("%(a)s has already been merged. Choose the computer that it is now part of.") % values
        case Rule.SYSTEM:
            return _system_text(refusal, values)
        case Rule.PROCESSOR:
            return _processor_text(refusal, values)
        case Rule.LIFETIMES:
            times = {
                f"{key}_time": lifetime_text(lifetime) for key, lifetime in zip("ab", refusal.lifetimes, strict=True)
            }
            text = gettext(
                "They were active at the same time, so they are two computers: %(a)s from %(a_time)s, "
                "%(b)s from %(b_time)s."
            )
            return text % (values | times)


def lifetime_text(lifetime: Lifetime) -> str:
    """Return the period in which a record was in use, in words."""
    return gettext("%(start)s to %(end)s") % {
        "start": moment_text(lifetime.start),
        "end": moment_text(lifetime.end),
    }


def _system_text(refusal: Refusal, values: dict[str, str]) -> str:
    if len(refusal.records) == 1:
        text = gettext("%(a)s has not reported its operating system, so it is unclear whether it is the same computer.")
        return text % values
    systems = {f"{key}_system": record.os_name for key, record in zip("ab", refusal.records, strict=True)}
    text = gettext("Their operating systems differ: %(a)s has %(a_system)s, %(b)s has %(b_system)s.")
    return text % (values | systems)


def _processor_text(refusal: Refusal, values: dict[str, str]) -> str:
    if len(refusal.records) == 1:
        text = gettext("%(a)s has not reported its processor, so it is unclear whether it is the same computer.")
        return text % values
    processors = {f"{key}_processor": record.processor for key, record in zip("ab", refusal.records, strict=True)}
    text = gettext("Their processors differ: %(a)s has %(a_processor)s, %(b)s has %(b_processor)s.")
    return text % (values | processors)
