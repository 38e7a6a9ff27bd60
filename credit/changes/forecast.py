"""The preview step before a change of an app or version, and a record of the preview that was seen."""

from __future__ import annotations

from typing import Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from credit.changes import events, fields, reset
from credit.models import App, AppVersion, CreditChange, Preview, VersionAverage
from credit.previews import texts
from credit.previews.request import TooManyPreviewsError, ask
from credit.previews.settings import UnknownSettingError
from portal.audit import steps
from portal.audit.proposals import Proposal
from portal.languages.sentences import sentence
from portal.models import Change, User

PERMISSION: Final = "credit.change_app"


def _why_no_preview(proposal: Proposal) -> str:
    if proposal.operation == reset.OPERATION:
        return _why_not_put_back(proposal) if proposal.subject is not None else ""
    if fields.PREVIEWED & proposal.changes.keys():
        return ""
    return gettext("it decides which jobs are done from now on, and past jobs cannot show that.")


def _why_not_put_back(proposal: Proposal) -> str:
    if AppVersion.objects.filter(pk=proposal.pk, app__version_average=VersionAverage.MEDIAN).exists():
        return gettext("versions’ averages are medians of computers’ averages here, and the earlier ones are not kept.")
    return ""


def _ask(person: User, proposal: Proposal) -> int:
    pairs = {name: pair for name, pair in proposal.changes.items() if name in fields.PREVIEWED}
    if proposal.model == App._meta.label:
        app = App.objects.get(pk=proposal.pk)
        changes: dict[str, Any] = {"app": pairs}
    else:
        app = App.objects.get(versions=proposal.pk)
        changes = {"versions": {str(proposal.pk): pairs}}
        if proposal.operation == reset.OPERATION:
            changes |= {"reset": [proposal.pk]} if proposal.subject is None else {"restore": [proposal.subject]}
    last = events.credit_changes(app.pk).last()
    changed_at = last.timestamp if last is not None else None
    try:
        return ask(person, app, changes, timezone.now(), changed_at=changed_at).pk
    except (TooManyPreviewsError, UnknownSettingError) as error:
        raise steps.RefusedPreviewError(gettext("No preview: %(reason)s") % {"reason": error}) from error


def _show(number: int) -> steps.Preview | None:
    preview = Preview.objects.filter(pk=number).first()
    if preview is None:
        return None
    words = (
        [gettext("The preview failed: %(reason)s") % {"reason": sentence(preview.failure)}] if preview.failure else []
    )
    result: dict[str, Any] | None = preview.result
    return steps.Preview(
        is_finished=preview.finished_at is not None,
        progress=preview.progress,
        words=[*words, *(texts.summary(result) if result else [])],
        warnings=texts.warnings(result) if result else [],
        url=reverse("admin:credit_preview", args=[preview.pk]),
    )


def _remember(change: Change, proposal: Proposal) -> None:
    preview = Preview.objects.filter(pk=proposal.preview).first() if proposal.preview else None
    CreditChange.objects.create(change=change, preview=preview)


def _of(names: frozenset[str]) -> steps.Forecast:
    return steps.Forecast(names, PERMISSION, _why_no_preview, _ask, _show, _remember)


OF_APPS: Final = _of(fields.OF_APPS)
OF_VERSIONS: Final = _of(fields.OF_VERSIONS)
