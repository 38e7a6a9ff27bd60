"""A volunteer's signature image: creation, changes, a new link, revocation; and the picture behind a link."""

from __future__ import annotations

import datetime as dt
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.conf import settings
from django.core.cache import cache
from django.db import transaction

from extras.signature_image.models import SignatureImage
from extras.signature_image.picture import draw
from extras.signature_image.reads import read_facts
from portal.languages.recipients import written_for
from portal.models import User

DRAWN_EVERY_SECS: Final = 3600
"""A picture is redrawn after this long, and at once when its owner changes it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """``etag``: of its content, with quotation marks."""

    content: bytes
    etag: str


def save(user: User, content: dict[str, Any], now: dt.datetime) -> SignatureImage:
    """Save what the image shows; the first time, with a link. One transaction; locks the user's row."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        image, _made = SignatureImage.objects.update_or_create(
            user=user, defaults={**content, "changed_at": now}, create_defaults={**content, "token": _token()}
        )
        return image


def renew(user: User, now: dt.datetime) -> None:
    """Create a new link; the old one shows nothing from now on. Without an image, does nothing."""
    SignatureImage.objects.filter(user=user).update(token=_token(), changed_at=now)


def revoke(user: User) -> None:
    """Revoke all links. Safe to repeat."""
    SignatureImage.objects.filter(user=user).delete()


def _token() -> str:
    return secrets.token_urlsafe(20)[:32]


def find(token: str) -> SignatureImage | None:
    """Return the image behind a link; None if it was revoked, and for accounts that are closed or blocked."""
    if "\0" in token or len(token) > 32:
        return None
    images = SignatureImage.objects.filter(token=token, user__is_active=True, user__deletion_asked_at=None)
    return images.select_related("user").first()


def picture_of(image: SignatureImage, now: dt.datetime) -> Picture:
    """Return the picture, drawn at most once an hour; otherwise it comes from the cache."""
    key = f"signature-image:{image.token}:{image.changed_at.timestamp()}"
    encoded = cache.get(key)
    if not isinstance(encoded, str):
        # In its owner's language: everybody sees the same picture, including caches on the way.
        with written_for(image.user):
            encoded = b64encode(draw(read_facts(image, now))).decode()
        cache.set(key, encoded, DRAWN_EVERY_SECS)
    content = b64decode(encoded)
    return Picture(content, f'"{sha256(content).hexdigest()[:32]}"')


def address(image: SignatureImage) -> str:
    """Return the link of the picture."""
    return f"{settings.SITE_URL.rstrip('/')}/signature/{image.token}.png"
