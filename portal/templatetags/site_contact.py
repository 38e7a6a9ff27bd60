"""How to reach the site's operators, for mails, which have no request and so no site context."""

from __future__ import annotations

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def site_contact() -> str:
    return str(settings.CONTACT)
