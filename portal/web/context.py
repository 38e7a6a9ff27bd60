"""The template context of every page: the site and the signed-in user."""

from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from portal import __version__
from portal.people.pages.passkeys import why_unavailable
from portal.public_pages.about import has_about


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "site_origin": "{0.scheme}://{0.netloc}".format(urlsplit(settings.SITE_URL)),
        "community_url": settings.COMMUNITY_URL,
        "contact": settings.CONTACT,
        "contact_link": settings.CONTACT_LINK,
        "version": __version__,
        # Cached
        "has_about": SimpleLazyObject(has_about),
        "signup_open": settings.SIGNUP_OPEN,
        # Read from the database only if a template uses it.
        "passkeys_unavailable": SimpleLazyObject(lambda: why_unavailable(request)),
        "email_to_confirm": SimpleLazyObject(lambda: _email_to_confirm(request)),
    }


def _email_to_confirm(request: HttpRequest) -> str:
    """The signed-in person's address if it was never confirmed, else "": the reason for a reminder."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return ""
    confirmed = EmailAddress.objects.filter(user_id=user.pk, email=user.email, verified=True).exists()
    return "" if confirmed else user.email
