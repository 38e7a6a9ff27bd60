"""The published files, a page about them, and the page where volunteers choose whether they are included."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from credit.export import consent, files, writers
from credit.models import StatisticsExport
from portal.people.access import signed_in

_TYPES: Final = {".gz": "application/gzip", ".xml": "text/xml"}
CACHED_SECS: Final = 600


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """Explain what is published, and when it was made."""
    made = StatisticsExport.objects.filter(finished_at__isnull=False, failure="").first()
    return render(request, "credit/export/about.html", {"made": made, "names": writers.NAMES})


@require_safe
def file(request: HttpRequest, name: str) -> HttpResponseBase:
    """Send a file of the published set, with a strong ETag and without further compression.

    In production nginx sends it, and ranges of it, with the same ETag (deploy/nginx.conf).
    """
    published = files.find_published(name) if name in writers.NAMES else None
    if published is None:
        raise Http404("no such file")
    content_type = _TYPES[name[name.rindex(".") :]]
    headers = {
        "Content-Length": str(published.nbytes),
        "Last-Modified": http_date(published.modified_at),
        "ETag": published.etag,
        "Cache-Control": f"public, max-age={CACHED_SECS}, no-transform",
    }
    head = HttpResponse(content_type=content_type, headers=headers)
    answer = get_conditional_response(request, published.etag, published.modified_at, head)
    if answer is not head or request.method == "HEAD":
        return answer or head
    if settings.DOWNLOAD_ACCEL_PREFIX:
        sent = {
            "Cache-Control": headers["Cache-Control"],
            "X-Accel-Redirect": settings.DOWNLOAD_ACCEL_PREFIX + quote(published.path),
        }
        return HttpResponse(content_type=content_type, headers=sent)
    return FileResponse(published.open(), content_type=content_type, headers=headers)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def choose(request: HttpRequest) -> HttpResponse:
    """Choose what other sites may know."""
    user = signed_in(request)
    if request.method == "POST":
        consent.save(
            user,
            exports_statistics="exports_statistics" in request.POST,
            shows_hosts="shows_hosts" in request.POST,
            now=timezone.now(),
        )
        messages.success(request, gettext("Saved. This takes effect with the next export."))
        return redirect("statistics_consent")
    context = {"choice": consent.read(user), "statistics": consent.STATISTICS.shown, "hosts": consent.HOSTS.shown}
    return render(request, "credit/export/consent.html", context)
