"""How to reach those who run the site, for mails: these have no request, and so no context of the site."""

from __future__ import annotations

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def site_contact() -> str:
    return str(settings.CONTACT)
