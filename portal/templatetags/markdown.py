"""Operators' texts in Markdown as HTML that is safe whatever they wrote."""

from __future__ import annotations

from typing import Final

from django import template
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

register = template.Library()

# HTML in the text is shown as typed, and links lead to web pages only. Pictures would tell their servers who reads the
# page.
_RENDERER: Final = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable("image")


@register.filter
def markdown(text: str) -> SafeString:
    """The text as HTML; everything except Markdown's own markup is escaped."""
    return SafeString(_RENDERER.render(text))
