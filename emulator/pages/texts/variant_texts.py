"""The names of an experiment's variants. They are stored in English and shown in the visitor's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from emulator.engine.policies.names import PolicyName
from emulator.pages.texts import parameter_texts

NAMES: Final = {
    PolicyName.REC: gettext_noop("Recent estimated credit"),
    PolicyName.REC_LETTER: gettext_noop("Recent estimated credit to the letter"),
    PolicyName.LTD: gettext_noop("Long-term debt per processor type"),
    PolicyName.LTD_SINGLE: gettext_noop("Single long-term debt, CPU time only"),
    PolicyName.DEBT: gettext_noop("Debt with preemption"),
}
QUIRKS: Final = gettext_noop("As implemented in BOINC")
NO_RULE: Final = gettext_noop("Long-term debt without the eligibility rule")


def label_of(stored: str) -> str:
    """Return a variant's name in the active language, followed by the value of a sweep, if there is one."""
    names = (*NAMES.values(), QUIRKS, NO_RULE)
    name, _comma, value = stored.rpartition(", ")
    if stored not in names and name in names:
        return f"{gettext(name)}, {value}"
    return gettext(stored) if stored in names else stored


def parameters(stored: Mapping[str, Any]) -> list[str]:
    """Return the differences from the defaults, such as "Minimum buffer: 2 days"."""
    words = [parameter_texts.setting(name, value) for name, value in stored.items() if name != "eligibility_rule"]
    return words if stored.get("eligibility_rule", True) else [*words, gettext("no eligibility rule")]
