"""Landmarks for the admin theme's frame, which has none."""

from __future__ import annotations

import itertools
import re
from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext

register = template.Library()

MAIN: Final = '<div id="main"'
_SCROLLS: Final = re.compile(r" data-simplebar(?=[ >])")


@register.filter
def with_landmarks(frame: SafeString) -> SafeString:
    """The theme's frame with its main part marked, and a unique name for each part that scrolls separately."""
    numbers = itertools.count(1)

    def named(_: re.Match[str]) -> str:
        name = gettext("Scrolling part %(number)s") % {"number": next(numbers)}
        return f' data-simplebar data-simplebar-aria-label="{escape(name)}"'

    return SafeString(_SCROLLS.sub(named, frame.replace(MAIN, f'{MAIN} role="main"', 1)))
