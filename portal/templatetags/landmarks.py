"""Landmarks for the theme of the operators' room, whose frame has none."""

from __future__ import annotations

from typing import Final

from django import template
from django.utils.safestring import SafeString

register = template.Library()

CONTENT: Final = '<div id="content"'


@register.filter
def with_main(frame: SafeString) -> SafeString:
    """The theme's frame with its content marked as the page's main part."""
    return SafeString(frame.replace(CONTENT, f'{CONTENT} role="main"', 1))
