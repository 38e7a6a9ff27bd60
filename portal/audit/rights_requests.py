"""Granting rights: a step for two persons. One person can take rights away, at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.contrib.auth.models import Group, Permission
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.audit.two_persons import Payload, StepKind, StepRefused
from portal.languages.messages import Message
from portal.models import User
from portal.people.change_mails import tell_of_rights
from portal.people.security_events import BY_OPERATOR, record
from portal.people.security_events import Kind as Event

KIND: Final = "rights"
_SWITCHES: Final = ("is_staff", "is_superuser", "is_active")


def rights_of(user: User) -> Payload:
    """A person's stored rights."""
    stored = User.objects.get(pk=user.pk)
    groups = stored.groups.values_list("pk", flat=True)
    permissions = stored.user_permissions.values_list("pk", flat=True)
    return _rights([stored.is_staff, stored.is_superuser, stored.is_active], groups, permissions)


def _rights(switches: Iterable[bool], groups: Iterable[int], permissions: Iterable[int]) -> Payload:
    return {**dict(zip(_SWITCHES, switches, strict=True)), "groups": sorted(groups), "permissions": sorted(permissions)}


def requested_rights(user: User, groups: Iterable[Group], permissions: Iterable[Permission]) -> Payload:
    """The rights that a form asks for; its switches are already in the row, which is not saved yet."""
    switches = [user.is_staff, user.is_superuser, user.is_active]
    return _rights(switches, [group.pk for group in groups], [permission.pk for permission in permissions])


def are_more(before: Payload, after: Payload) -> bool:
    """Whether somebody could do more than before."""
    counts = [after[name] and not before[name] for name in _SWITCHES]
    is_worth = any(after[name] for name in ("is_staff", "is_superuser", "groups", "permissions"))
    return is_worth and (any(counts) or any(set(after[name]) - set(before[name]) for name in ("groups", "permissions")))


def _carry_out(payload: Payload, asked_by: User) -> None:
    """Give the person these rights. Locks the person."""
    user = User.objects.select_for_update(no_key=True).filter(pk=payload["user"]).first()
    if user is None or rights_of(user) != payload["before"]:
        raise StepRefused(gettext("Their rights were changed meanwhile. Ask again."))
    after = payload["after"]
    for name in _SWITCHES:
        setattr(user, name, after[name])
    user.save(update_fields=list(_SWITCHES))
    user.groups.set(Group.objects.filter(pk__in=after["groups"]))
    user.user_permissions.set(Permission.objects.filter(pk__in=after["permissions"]))
    record(user, Event.RIGHTS_CHANGED, BY_OPERATOR, Message("event_rights_confirmed"))
    tell_of_rights(user, _("An operator asked for other rights, and another one confirmed them."), BY_OPERATOR)


def _lines(payload: Payload) -> list[tuple[str, str]]:
    return [
        (gettext("Rights now"), _words(payload["before"])),
        (gettext("Rights then"), _words(payload["after"])),
    ]


def _words(rights: Payload) -> str:
    names = {"is_staff": gettext("operator"), "is_superuser": gettext("superuser"), "is_active": gettext("active")}
    phrases = [words for name, words in names.items() if rights[name]]
    phrases += [str(group) for group in Group.objects.filter(pk__in=rights["groups"])]
    phrases += [str(permission) for permission in Permission.objects.filter(pk__in=rights["permissions"])]
    return ", ".join(phrases) or "–"


STEPS: Final = {KIND: StepKind(_("Rights of a person"), "", _carry_out, _lines)}
