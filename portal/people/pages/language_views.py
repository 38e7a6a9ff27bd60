"""The switch between languages, on every page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from portal.languages.middleware import known_language
from portal.models import User


@require_POST
def switch_language(request: HttpRequest) -> HttpResponseBase:
    """Store the language in a cookie and, for somebody signed in, in the account; lead back to where they were.

    An unknown language changes nothing.
    """
    language = known_language(request.POST.get("language", ""))
    if language and isinstance(request.user, User):
        User.objects.filter(pk=request.user.pk).update(language=language)
    return set_language(request)
