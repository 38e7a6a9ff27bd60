"""The words of an experiment's parameters, which are only marked for translation there."""

from __future__ import annotations

from django.utils.translation import gettext

from extras.laboratory.trials.parameters import Parameter
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.templatetags.display import localised


def label(parameter: Parameter) -> str:
    return _filled(parameter.label, parameter)


def help_text(parameter: Parameter) -> str:
    """Return the parameter's explanation, with its range."""
    limits = {name: localised(f"{getattr(parameter, name):g}") for name in ("low", "high", "usual")}
    text = gettext("%(low)s to %(high)s; usually %(usual)s.") % limits
    return f"{_filled(parameter.help, parameter)} {text}".strip()


def _filled(text: str, parameter: Parameter) -> str:
    if not text:
        return ""
    words = parameter.words.items()
    return gettext(text) % {
        name: sentence(word) if isinstance(word, Message) else gettext(word) for name, word in words
    }
