"""Markers in charts of credit: changes of app or version settings that affect credit."""

from __future__ import annotations

import datetime as dt

from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext

from credit.changes import fields
from credit.changes.reset import OPERATION
from credit.models import App, AppVersion
from credit.statistics.markers import Event
from portal.audit.undo import OPERATION as OPERATION_KEY
from portal.audit.values import lines_of
from portal.models import Change


def credit_changes(app_id: int | None) -> QuerySet[Change]:
    """Return the changes that affect credit, of one app and its versions or of all apps, oldest first."""
    kinds = ContentType.objects.get_for_models(App, AppVersion)
    of_app = Q(content_type=kinds[App], changes__has_any_keys=sorted(fields.OF_APPS))
    of_version = Q(content_type=kinds[AppVersion]) & (
        Q(changes__has_any_keys=sorted(fields.OF_VERSIONS)) | Q(**{f"additional_data__{OPERATION_KEY}": OPERATION})
    )
    if app_id is not None:
        of_app &= Q(object_id=app_id)
        of_version &= Q(object_id__in=list(AppVersion.objects.filter(app=app_id).values_list("pk", flat=True)))
    changes: QuerySet[Change] = Change.objects.filter(of_app | of_version, action=Change.Action.UPDATE)
    return changes.order_by("timestamp", "pk").select_related("content_type", "actor")


def events(app_id: int | None, since: dt.datetime, until: dt.datetime) -> list[Event]:
    """Return the changes to mark in charts of credit, of one app or of all apps, oldest first. A few statements.

    Labels name no person and no reason, so volunteers may see them; links are for operators.
    """
    return [
        Event(change.timestamp, label(change), reverse("admin:portal_change_change", args=[change.pk]))
        for change in credit_changes(app_id).filter(timestamp__gte=since, timestamp__lte=until)
    ]


def label(change: Change) -> str:
    """Summarise a change in a line."""
    if (change.additional_data or {}).get(OPERATION_KEY) == OPERATION:
        what = gettext("statistics restored") if change.undoes_id else gettext("statistics reset")
    else:
        # Other fields saved at the same time are not for volunteers, and explain no step in a curve.
        lines = (line for line in lines_of(change) if line.name in fields.OF_APPS | fields.OF_VERSIONS)
        what = "; ".join(f"{line.label}: {line.before} → {line.after}" for line in lines)
    return f"{change.object_repr}: {what}"
