"""Register signature images with the site."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.models import User


class SignatureImageConfig(extras.SiteApp):
    name = "extras.signature_image"
    verbose_name = _("Signature image")
    room = "account_manager"

    def links(self) -> Sequence[extras.Link]:
        places = (extras.LinkPlace.PUBLIC, extras.LinkPlace.MENU)
        return [extras.Link("signature_image", _("Signature image"), places)]

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.signature_image.models import SignatureImage

        rows = SignatureImage.objects.filter(user=user)
        yield extras.CopiedFile("signature_image.json", "what your signature image shows", {"signature_image": rows})
