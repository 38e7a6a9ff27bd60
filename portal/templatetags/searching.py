"""What a list in the admin is searched by."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.admin.utils import get_fields_from_path
from django.utils.translation import gettext

register = template.Library()


@register.filter
def searched_by(changes: Any) -> str:
    """The names of the columns, for the empty search field."""
    paths = [path.lstrip("^=@") for path in changes.search_fields]
    names = (str(get_fields_from_path(changes.model, path)[-1].verbose_name) for path in paths)
    return gettext("Search by: %(columns)s") % {"columns": ", ".join(names)}
