"""The page of a volunteer's preferences for this project: general ones, and separate ones for certain places."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from scheduler.engine.project_preferences import NOTHING_CHOSEN
from scheduler.project_preferences.forms import ProjectPreferencesForm
from scheduler.project_preferences.save import forget, read_saved, save

_PLACES: Final = {
    "": _("Everywhere"),
    "home": pgettext_lazy("place", "Home"),
    "work": pgettext_lazy("place", "Work"),
    "school": pgettext_lazy("place", "School"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def project_preferences(request: HttpRequest) -> HttpResponse:
    """Edit which tasks of this project the volunteer's computers get; clients follow with their next reply."""
    user = signed_in(request)
    venue = request.GET.get("place", "")
    if venue not in _PLACES:
        raise Http404
    saved = read_saved(user)
    shown = saved.get(venue) or saved.get("") or NOTHING_CHOSEN
    form = ProjectPreferencesForm(request.POST or None, shown=shown)
    if request.method == "POST" and ("forget" in request.POST or form.is_valid()):
        if "forget" in request.POST:
            forget(user, venue)
            messages.success(request, gettext("Removed."))
        else:
            save(user, venue, form.chosen)
            messages.success(request, gettext("Saved. Each computer follows when it next asks this project for tasks."))
        return redirect(_address(venue))
    context = {
        "form": form,
        "venue": venue,
        "has_own": venue in saved and (venue or saved[""] != NOTHING_CHOSEN),
        "places": [
            {"name": name, "url": _address(key), "is_current": key == venue, "has_own": bool(key) and key in saved}
            for key, name in _PLACES.items()
        ],
    }
    return render(request, "scheduler/project_preferences.html", context, status=422 if form.errors else 200)


def _address(venue: str) -> str:
    return reverse("project_preferences") + (f"?place={venue}" if venue else "")
