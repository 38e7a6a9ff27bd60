"""Names of roles and permissions for pages. The stored names, which Django would show, are English."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.models import User
from portal.operators.roles import ROLES, named

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_ACTIONS: Final[dict[str, StrOrPromise]] = {
    "add": _("%(table)s: add"),
    "change": _("%(table)s: change"),
    "delete": _("%(table)s: delete"),
    "view": _("%(table)s: view"),
}


def role_text(group: Group) -> str:
    """A role's name in the page's language."""
    return gettext(group.name) if any(role.name == group.name for role in ROLES) else group.name


def role_line(group: Group) -> str:
    """A role's name, and what it is for."""
    summary = next((role.summary for role in ROLES if role.name == group.name), "")
    return f"{role_text(group)}: {summary}" if summary else role_text(group)


def permission_text(permission: Permission) -> str:
    """A permission in words: the app, the table, and the action."""
    kind = permission.content_type
    model = kind.model_class()
    action, _separator, name = permission.codename.partition("_")
    if model is None or action not in _ACTIONS or name != kind.model:
        return gettext(permission.name)
    app = model._meta.app_config.verbose_name
    return f"{app}: " + _ACTIONS[action] % {"table": capfirst(str(model._meta.verbose_name_plural))}


def useful_to(person: User) -> QuerySet[Permission]:
    """The permissions that something checks, and those that the person has; Django makes four for each table."""
    of_pages = [kind.pk for kind in ContentType.objects.all() if kind.model_class() in admin.site._registry]
    asked_for = [permission for role in ROLES for permission in role.permissions]
    useful = reduce(or_, map(named, asked_for), Q(content_type__in=of_pages))
    if person.pk:
        useful |= Q(user=person)
    return Permission.objects.filter(useful).select_related("content_type").distinct()
