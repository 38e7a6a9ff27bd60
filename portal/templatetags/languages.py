"""The language of a page, for its templates."""

from __future__ import annotations

from django import template

from portal.languages import scripts, zones

register = template.Library()


@register.simple_tag
def script_texts() -> str:
    """The address of the script with the scripts' texts; include it before them."""
    return scripts.address()


@register.simple_tag
def visitor_zone() -> str:
    """The name of the time zone that times are shown in; UTC if the visitor's is unknown."""
    zone = zones.current_zone()
    return str(zone) if zone else "UTC"
