"""What every template may know of the site."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "signup_open": settings.SIGNUP_OPEN,
    }
