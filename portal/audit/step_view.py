"""The step before a change: before and after, a preview where there is one, and the reason; then "Save"."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, ValidationError
from django.db import DatabaseError, IntegrityError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from portal.audit import proposals, undo
from portal.audit.carry_out import ChangedMeanwhile, NothingToDo, carry_out, differences
from portal.audit.proposals import Proposal
from portal.audit.steps import RefusedPreviewError, forecast_of, operation_named
from portal.audit.values import Line, lines, stored
from portal.models import MAX_REASON_LENGTH, Change
from portal.people.access import signed_in

__all__ = ["may_change", "may_see", "step"]


class ChangeReasonForm(forms.Form):
    """Asks for the reason and, before an undo overwrites a later change, for a confirmation."""

    reason = forms.CharField(
        max_length=MAX_REASON_LENGTH,
        help_text=_(
            "It is kept with the change. Say what you want to achieve, so that others can judge whether it worked."
        ),
        error_messages={"required": _("Give a reason: it is kept with the change.")},
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    anyway = forms.BooleanField(
        required=False,
        label=_("Restore the earlier values anyway"),
        error_messages={"required": _("Tick this if you want to overwrite the later change.")},
        widget=UnfoldBooleanWidget,
    )

    def __init__(self, *args: Any, is_changed_again: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if is_changed_again:
            self.fields["anyway"].required = True
        else:
            del self.fields["anyway"]


def may_change(request: HttpRequest, row: Model) -> bool:
    pages = admin.site._registry.get(type(row))
    return pages is not None and bool(pages.has_change_permission(request, row))


def _may_carry_out(request: HttpRequest, proposal: Proposal, row: Model) -> bool:
    operation = operation_named(proposal.operation)
    permission = operation.permission if operation is not None else ""
    return request.user.has_perm(permission) if permission else may_change(request, row)


def may_see(request: HttpRequest, change: Change) -> bool:
    """Anyone who sees a row sees its changes."""
    row = undo.row_of(change)
    return row is not None and _may_see_row(request, row)


def _may_see_row(request: HttpRequest, row: Model) -> bool:
    pages = admin.site._registry.get(type(row))
    return pages is not None and bool(pages.has_view_or_change_permission(request, row))


@require_http_methods(["GET", "HEAD", "POST"])
def step(request: HttpRequest, key: str) -> HttpResponse:
    """Show a proposed change; POST asks for a preview, cancels the change, or carries it out."""
    proposal = proposals.find(request.session, key)
    row = _row(proposal) if proposal is not None else None
    if proposal is None or row is None:
        messages.warning(
            request, gettext("This change is no longer pending: it was made or cancelled, or proposed long ago.")
        )
        return redirect("admin:index")
    if not _may_carry_out(request, proposal, row):
        raise PermissionDenied
    again = _changed_again(proposal, row)
    form = ChangeReasonForm(
        request.POST if request.POST.get("do") in ("save", "preview", "renew") else None,
        is_changed_again=bool(again),
    )
    if request.method == "POST":
        answer = _act(request, key, proposal, row, form)
        if answer is not None:
            return answer
    return _page(request, key, proposal, row, form, again)


def _act(request: HttpRequest, key: str, proposal: Proposal, row: Model, form: ChangeReasonForm) -> HttpResponse | None:
    """Do what the form asks; None: show the page again."""
    wish = request.POST.get("do", "")
    if wish == "cancel":
        proposals.forget(request.session, key)
        return redirect(_row_url(row) if _may_see_row(request, row) else "admin:index")
    if wish == "preview":
        return _ask(request, key, proposal, row)
    if wish == "renew":
        for name, pair in proposal.changes.items():
            pair[0] = stored(row, name)
        # The old preview was of other values.
        proposal.preview = None
        proposals.keep(request.session, proposal, key)
        return redirect("admin:portal_change_step", key)
    if wish == "save" and form.is_valid():
        return _save(request, key, proposal, form)
    return None


def _ask(request: HttpRequest, key: str, proposal: Proposal, row: Model) -> HttpResponse:
    forecast = forecast_of(type(row))
    if forecast is None or forecast.why_no_preview(proposal):
        raise PermissionDenied
    if not request.user.has_perm(forecast.permission):
        raise PermissionDenied
    try:
        proposal.preview = forecast.ask(signed_in(request), proposal)
    except RefusedPreviewError as refusal:
        messages.error(request, str(refusal))
    proposals.keep(request.session, proposal, key)
    return redirect("admin:portal_change_step", key)


def _save(request: HttpRequest, key: str, proposal: Proposal, form: ChangeReasonForm) -> HttpResponse | None:
    try:
        change = carry_out(proposal, signed_in(request), form.cleaned_data["reason"])
    except ChangedMeanwhile:
        form.add_error(None, gettext("Not saved: somebody changed this meanwhile. See below."))
    except NothingToDo:
        form.add_error(None, gettext("Not saved: it has these values already."))
    except ValidationError as error:
        for message in error.messages:
            form.add_error(None, gettext("Not saved: %(reason)s") % {"reason": message})
    except IntegrityError:
        form.add_error(None, gettext("Not saved: these values can’t be combined. Change them on the form."))
    except DatabaseError as error:
        form.add_error(None, gettext("Not saved: the database refused it (%(reason)s). Try again.") % {"reason": error})
    else:
        proposals.forget(request.session, key)
        messages.success(request, gettext("Saved. This is what changed. It can be undone here."))
        return (
            redirect("admin:portal_change_change", change.pk) if may_see(request, change) else redirect("admin:index")
        )
    return None


def _page(
    request: HttpRequest, key: str, proposal: Proposal, row: Model, form: ChangeReasonForm, again: list[Line]
) -> HttpResponse:
    model = type(row)
    operation = operation_named(proposal.operation)
    forecast = forecast_of(model)
    preview = forecast.show(proposal.preview) if forecast is not None and proposal.preview else None
    why_no_preview = forecast.why_no_preview(proposal) if forecast is not None else ""
    if forecast is not None and not request.user.has_perm(forecast.permission):
        why_no_preview = why_no_preview or gettext("you do not have permission to ask for one.")
    context = {
        **admin.site.each_context(request),
        "opts": model._meta,
        "title": operation.title(row, proposal) if operation is not None else _title(proposal, row),
        "key": key,
        "row": row,
        "lines": operation.lines(row, proposal) if operation is not None else lines(model, proposal.changes),
        "notes": operation.notes(row, proposal) if operation is not None else [],
        "meanwhile": differences(row, proposal),
        "again": again,
        "undoes": Change.objects.filter(pk=proposal.undoes).first() if proposal.undoes else None,
        "form": form,
        "preview": preview,
        "can_preview": forecast is not None and not why_no_preview,
        "why_no_preview": why_no_preview,
        "has_forecast": forecast is not None,
    }
    return TemplateResponse(request, "portal/audit/step.html", context)


def _title(proposal: Proposal, row: Model) -> str:
    return (gettext("Undo a change of %(row)s") if proposal.undoes else gettext("Change %(row)s")) % {"row": row}


def _changed_again(proposal: Proposal, row: Model) -> list[Line]:
    undone = Change.objects.filter(pk=proposal.undoes).first() if proposal.undoes else None
    return undo.changed_again(undone, row) if undone is not None else []


def _row(proposal: Proposal) -> Model | None:
    try:
        return proposal.model_class()._default_manager.get(pk=proposal.pk)
    except (LookupError, ObjectDoesNotExist):
        return None


def _row_url(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
