"""The averages that this site publishes as a central server."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from credit.engine.cross_project import Factor
from extras.central_factors.collect import AVERAGED_HERE
from extras.central_factors.models import FactorList
from extras.central_factors.wire import factors_document

CACHED_SECS = 600


@require_safe
def version_factors(request: HttpRequest) -> HttpResponse:
    """The mean factor over projects of each type of processor, and of each of its plan classes."""
    made = FactorList.objects.filter(url=AVERAGED_HERE).first() if settings.CENTRAL_PROJECTS else None
    if made is None or made.read_at is None:
        raise Http404("this site averages no factors")
    content = factors_document([Factor(**factor) for factor in made.factors], made.read_at.timestamp())
    headers = {"Cache-Control": f"public, max-age={CACHED_SECS}"}
    return HttpResponse(content, content_type="text/xml; charset=utf-8", headers=headers)
