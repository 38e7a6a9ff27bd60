"""The volunteer's computers: the list, the page of one, and what its owner can do with it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounting.choosing.choices import ChoiceRefused
from accounting.computers import reads, several
from accounting.computers.forms import HostForm, TypesForm, WishForm, wish_forms
from accounting.computers.listing import FILTERS, Sort, Status
from accounting.computers.merge import Candidate, MergeRefused, candidates, merge, preview
from accounting.computers.several import PLACES, WISHES, Action
from accounting.computers.texts import ACTION_NAMES
from accounting.computers.wishes import exclude_types, save_wishes
from accounting.models import Project
from accounting.reconciliation.card import card
from accounting.rpc.recognise import split
from accounting.running_tasks.reads import read_host_tasks
from credit.statistics.exports import granted_to_host
from portal.computers.groups import MAX_GROUP_CHARS, set_groups
from portal.computers.host_changes import HostChangeRefused, rename_host, retire_host, set_venue, unretire_host
from portal.extras import site_apps
from portal.models import Host, User
from portal.people.access import get_own_host, signed_in
from portal.templatetags.display import count

# Parameters of a change of several computers; all others say which list it is.
_FORM_FIELDS: Final = ("csrfmiddlewaretoken", "action", "project", "name", "scope", "host")
CONTROLS_FROM: Final = 4
"""Fewer computers than this fit on a screen, so no search is needed."""


@require_safe
@login_required
def computers(request: HttpRequest) -> HttpResponse:
    """The list of the user's computers and their work."""
    hosts = reads.read_hosts(signed_in(request), timezone.now(), request.GET.dict())
    asked = request.headers.get("HX-Target", "")
    more = {"more-page": hosts.active, "more-retired_page": hosts.retired}.get(asked)
    if more is None:
        response = render(request, "accounting/computers.html", {"hosts": hosts, **_list_controls(hosts)})
    else:
        rows = {"lines": more, "param": asked.removeprefix("more-")} | _list_controls(hosts)
        response = render(request, "accounting/_computers_rows.html", rows)
    response.headers["Vary"] = "Cookie, HX-Target"
    return response


def _list_controls(hosts: reads.HostList) -> dict[str, object]:
    """Build the list's controls, and the address for sorting by each column."""
    list_filter = hosts.list_filter
    return {
        "query": urlencode(list_filter.query),
        "has_controls": hosts.known >= CONTROLS_FROM or bool(list_filter.filters),
        "statuses": [
            (Status.USED, _("all in use")),
            (Status.ACTIVE, _("active")),
            (Status.SILENT, _("silent")),
            (Status.TROUBLE, _("that need attention")),
            (Status.RETIRED, _("retired")),
        ],
        "sorts": {
            str(sort): {
                "url": "?" + urlencode(list_filter.sorted_by(sort)),
                "direction": list_filter.direction if sort is list_filter.sort else "",
            }
            for sort in Sort
        },
        "most_group_chars": MAX_GROUP_CHARS,
        "actions": ACTION_NAMES,
        "projects": list(Project.objects.filter(is_active=True).order_by("name").values_list("pk", "name")),
    }


@require_POST
@login_required
def computers_change(request: HttpRequest) -> HttpResponse:
    """Apply an action to the chosen computers of a list, or to the whole list, on whatever page."""
    user = signed_in(request)
    filters = {name: value for name, value in request.POST.dict().items() if name not in _FORM_FIELDS and value}
    try:
        action = Action(request.POST.get("action", ""))
        changed = several.apply(
            user,
            _chosen(request, user, filters),
            action,
            project_id=_number(request.POST["project"]) if request.POST.get("project") else None,
            group=request.POST.get("name", ""),
            now=timezone.now(),
        )
    except ValueError as refused:
        is_told = isinstance(refused, HostChangeRefused | ChoiceRefused)
        messages.error(request, str(refused) if is_told else _("Choose what to do."))
    else:
        _tell_changed(request, action, changed)
        if action is Action.JOIN:
            filters = {"group": request.POST.get("name", "").strip()}
    query = {name: value for name, value in filters.items() if name in FILTERS}
    return redirect(f"{reverse('computers')}?{urlencode(query)}")


def _chosen(request: HttpRequest, user: User, filters: dict[str, str]) -> list[int]:
    """Return the computers that the form is about. Raises HostChangeRefused if there are none."""
    if request.POST.get("scope") == "all":
        chosen = reads.read_chosen(user, timezone.now(), filters)
    else:
        chosen = [_number(text) for text in request.POST.getlist("host")[: settings.HOSTS_PER_ACCOUNT]]
    if not chosen:
        raise HostChangeRefused("host", _("Select computers first, or choose all that are in the list."))
    return chosen


def _tell_changed(request: HttpRequest, action: Action, changed: int) -> None:
    text = ngettext("%(count)s computer was changed.", "%(count)s computers were changed.", changed)
    text = text % {"count": count(changed)}
    if action in WISHES or action in PLACES:
        text += " " + _("Clients follow at their next sync.")
    messages.success(request, text)


@require_safe
@login_required
def host(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of one computer: its hardware, its state and the owner's wishes."""
    own_host = get_own_host(signed_in(request), pk)
    if own_host.merged_into_id is not None:
        return redirect("host", own_host.merged_into_id)
    return _host_page(request, own_host)


def _host_page(
    request: HttpRequest,
    own_host: Host,
    *,
    host_form: HostForm | None = None,
    wishes: list[WishForm] | None = None,
) -> HttpResponse:
    """Render the page of a computer, with the form that has errors, if any."""
    now = timezone.now()
    page = reads.read_host_page(signed_in(request), own_host, now)
    granted = granted_to_host(own_host) if "project" in settings.ROOMS else None
    context = {
        "page": page,
        "sections": [section for app in site_apps() for section in app.host_sections(own_host, now)],
        "host": own_host,
        "tasks": read_host_tasks(own_host, now),
        "host_form": host_form or HostForm.of(own_host),
        "wish_forms": wishes or wish_forms(page),
        "types_form": TypesForm(page),
        "wishes_are_wrong": bool(wishes),
        **card(
            page.settled,
            _("Granted and estimated credit, last %(number)s days") % {"number": reads.DAYS_SHOWN},
            of=own_host,
            granted=granted,
        ),
    }
    return render(request, "accounting/host.html", context)


def _in_use(request: HttpRequest, pk: int) -> Host:
    """Return the visitor's computer; for a merged record, the one that it was merged into."""
    user = signed_in(request)
    own_host = get_own_host(user, pk)
    return own_host if own_host.merged_into_id is None else get_own_host(user, own_host.merged_into_id)


@require_POST
@login_required
def host_settings(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a computer and set its venue."""
    own_host = _in_use(request, pk)
    form = HostForm(request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                rename_host(own_host, form.cleaned_data["name"])
                set_venue(own_host, form.cleaned_data["venue"])
                set_groups(own_host, form.cleaned_data["groups"])
        except HostChangeRefused as refusal:
            form.add_error(refusal.field, str(refusal))
        else:
            messages.success(request, _("Saved. This computer is now called %(name)s.") % {"name": own_host.name})
            return redirect("host", own_host.pk)
    return _host_page(request, own_host, host_form=form)


@require_POST
@login_required
def host_wishes(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a computer's settings for its projects."""
    own_host = _in_use(request, pk)
    page = reads.read_host_page(signed_in(request), own_host, timezone.now())
    forms = wish_forms(page, request.POST)
    types_form = TypesForm(page, request.POST)
    if not all([form.is_valid() for form in (types_form, *forms)]):
        return _host_page(request, own_host, wishes=forms)
    try:
        if types_form.is_useful:
            exclude_types(own_host, types_form.cleaned_data["excluded_types"])
        save_wishes(own_host, {form.line.project.pk: form.wish() for form in forms})
    except ChoiceRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("Saved. This takes effect at the next sync of %(name)s.") % {"name": own_host.name})
    return redirect("host", own_host.pk)


@require_POST
@login_required
def host_retire(request: HttpRequest, pk: int) -> HttpResponse:
    """Retire a computer."""
    own_host = _in_use(request, pk)
    retire_host(own_host, timezone.now())
    messages.success(request, _("%(name)s has been retired. Its history is kept.") % {"name": own_host.name})
    return redirect("computers")


@require_POST
@login_required
def host_unretire(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a retired computer back."""
    own_host = _in_use(request, pk)
    unretire_host(own_host)
    messages.success(request, _("%(name)s has been restored.") % {"name": own_host.name})
    return redirect("host", own_host.pk)


@require_POST
@login_required
def host_split(request: HttpRequest, pk: int) -> HttpResponse:
    """Give another client that reported as this computer its own record."""
    own_host = _in_use(request, pk)
    if split(own_host.owner_id, own_host.pk, request.POST.get("cpid", ""), timezone.now()):
        messages.success(request, _("Split off. The other computer gets its own page at its next sync."))
    else:
        messages.error(request, _("Nothing was changed. No other computer has reported as this one with that id."))
    return redirect("host", own_host.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def host_merge(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose another record of the same computer, see a preview, and merge the two."""
    user = signed_in(request)
    own_host = get_own_host(user, pk)
    chosen = request.POST.get("with") or request.GET.get("with")
    if chosen is None:
        if own_host.merged_into_id is not None:
            return redirect("host", own_host.merged_into_id)
        return render(request, "accounting/host_merge.html", {"host": own_host, **_sorted_out(own_host)})
    other = get_own_host(user, _number(chosen))
    try:
        if request.method == "POST":
            remaining = merge(user.pk, own_host.pk, other.pk)
            messages.success(request, _("Merged. %(name)s now has the history of both.") % {"name": remaining.name})
            return redirect("host", remaining.pk)
        context = {"host": own_host, "preview": preview(user.pk, own_host.pk, other.pk)}
    except MergeRefused as refused:
        context = {"host": own_host, "other": other, "refusal": str(refused)}
    return render(request, "accounting/host_merge.html", context)


def _sorted_out(own_host: Host) -> dict[str, list[Candidate]]:
    """Split the owner's other computers into those that can be merged with this one, and the rest."""
    others = candidates(own_host)
    return {
        "fitting": [other for other in others if other.refusal is None],
        "others": [other for other in others if other.refusal is not None],
    }


def _number(text: str) -> int:
    """Parse a record's id from an address; 0, which no record has, if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
