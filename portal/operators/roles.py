"""Roles: named sets of permissions, stored in the database as Django's groups.

`ROLES` is their only definition (docs/reference/roles.md says the same). The site updates the groups after each
migration, so a change here needs nothing else. Superusers give people roles, in the admin, at "People".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from portal.extras import site_apps

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Role:
    """A role: the name of its group, what it is for, its permissions, and whether it works in the admin."""

    name: str
    summary: StrOrPromise
    kernel_permissions: tuple[str, ...]
    in_admin: bool = True

    @property
    def permissions(self) -> tuple[str, ...]:
        """Includes those on tables of extras, even of extras that are not in use."""
        return (*self.kernel_permissions, *(right for app in site_apps() for right in app.rights().get(self.name, ())))


def _rights(app: str, actions: str, models: str) -> tuple[str, ...]:
    """The permissions "app.action_model" for these actions on these models, both separated by blanks."""
    return tuple(f"{app}.{action}_{model}" for model in models.split() for action in actions.split())


# Data about the site as a whole, not about a volunteer, computer or job.
_FIGURES: Final = (
    *_rights("accounting", "view", "announcement project projectday projectkeyword projectstanding"),
    *_rights("accounting", "view", "projectaddress projecttrouble projectversion statisticsimport tasksource"),
    *_rights("credit", "view", "app appversion platform statisticsexport workunit"),
    *_rights("scheduler", "view", "appkeyword keychange planclass retryentry"),
    *_rights("portal", "view", "change operatingfigure signedentry sitetext"),
)

ROLES: Final = (
    Role(
        gettext_noop("Account manager operator"),
        _("Projects that computers may be attached to, news and mails, and problems with reports."),
        (
            *_rights("accounting", "view add change", "project announcement statisticsimport"),
            *_rights("accounting", "view add change delete", "projectaddress projectkeyword projectversion"),
            *_rights("accounting", "delete", "announcement"),
            *_rights("accounting", "view", "hostclient note projectday projectstanding projecttrouble settlement"),
            *_rights("accounting", "view", "tasksource"),
            *_rights("portal", "view", "change confirmationrequest host operatingfigure requestedwork signedentry"),
            *_rights("portal", "view add change delete", "sitetext"),
            *_rights("portal", "view add", "maintenancerun"),
            *_rights("portal", "view change", "hostlimitrequest"),
        ),
    ),
    Role(
        gettext_noop("Project administrator"),
        _("Apps, versions, jobs and credit of this site’s own project."),
        (
            *_rights("credit", "view add change", "app platform"),
            *_rights("credit", "view change", "appversion"),
            *_rights("credit", "view add change", "batch"),
            *_rights(
                "credit",
                "view",
                "confirmingpair hostappversion preview result statisticsexport workunit",
            ),
            *_rights("scheduler", "view add change delete", "appkeyword planclass submitter workblock"),
            *_rights("scheduler", "view change", "retryentry"),
            *_rights("scheduler", "view add change", "releasedraft"),
            *_rights("scheduler", "view add", "storedfile"),
            *_rights("scheduler", "view", "keychange trickle trickledown"),
            *_rights("scheduler", "release", "appversion"),
            *_rights("portal", "view", "change confirmationrequest consentevent operatingfigure signedentry"),
            *_rights("portal", "view add", "maintenancerun"),
        ),
    ),
    Role(
        gettext_noop("Job submitter"),
        _("Submits batches of jobs, and follows them. Sees no batches of others, and nothing of the admin."),
        ("credit.add_batch",),
        in_admin=False,
    ),
    Role(
        gettext_noop("Support"),
        _("Helps people with their accounts, without their history, tasks and choices."),
        (*_rights("portal", "view remove_factors block copy_data erase", "account"), "portal.view_supportaction"),
    ),
    Role(
        gettext_noop("Read only"),
        _("Settings and figures of the site; nothing about one person or computer."),
        _FIGURES,
    ),
)


def keep_groups(sender: Any, apps: Any, using: str, **_: Any) -> None:
    """After a migration, give each role's group exactly its permissions. Safe to repeat.

    Permissions that do not exist yet, while tables are in an older state, are added after the next migration.
    """
    try:
        groups = apps.get_model("auth", "Group").objects.using(using)
        permissions = apps.get_model("auth", "Permission").objects.using(using)
    except LookupError:
        return
    for role in ROLES:
        group, _made = groups.get_or_create(name=role.name)
        group.permissions.set(permissions.filter(reduce(or_, map(named, role.permissions))))


def named(permission: str) -> Q:
    """A query condition for the permission "app.codename"."""
    app, _, codename = permission.partition(".")
    return Q(content_type__app_label=app, codename=codename)
