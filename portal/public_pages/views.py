"""Pages of the site's own texts, and the entrance to the demo account."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal.models import SiteText
from portal.public_pages import look_around
from portal.public_pages.about import note_about


@require_safe
def site_text(request: HttpRequest, key: str) -> HttpResponse:
    """Show the operators' text for the page; without one, what is true of every installation."""
    if key == SiteText.Page.ABOUT:
        note_about()
    text = SiteText.objects.filter(page=key).first()
    context = {
        "key": key,
        "title": SiteText.Page(key).label,
        "text": text.text if text is not None else "",
        "changed_at": text.changed_at if text is not None else None,
        "terms_of_use": settings.TERMS_OF_USE,
    }
    return render(request, "portal/site_text.html", context)


@require_POST
def enter(request: HttpRequest) -> HttpResponse:
    """Look around in the demo account, without changing anything."""
    if request.user.is_authenticated:
        return redirect("home")
    if look_around.demo_account() is None:
        raise Http404("there is no demo account")
    request.session[look_around.SESSION_KEY] = True
    return redirect("home")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Leave the demo account, for the front page or the sign-up page."""
    if look_around.SESSION_KEY in request.session:
        request.session.flush()
    return redirect("account_signup" if "join" in request.POST else "landing")
