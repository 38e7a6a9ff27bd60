"""The page of the visitor's signature image, and the picture that anybody with the link sees."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from extras.signature_image import links, texts
from extras.signature_image.forms import SignatureImageForm
from extras.signature_image.models import SignatureImage
from extras.signature_image.reads import read_facts
from portal.people.access import signed_in

CACHED_SECS: Final = 600
"""How long browsers and other sites may show a picture without asking again."""


def message(action: str) -> str:
    """Confirm the action, and say for how long others may not notice: their copies cannot be recalled."""
    minutes = CACHED_SECS // 60
    later = ngettext(
        "Pages that have shown the picture may show it for up to %(count)d minute more.",
        "Pages that have shown the picture may show it for up to %(count)d minutes more.",
        minutes,
    )
    return f"{action} {later % {'count': minutes}}"


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def signature_image(request: HttpRequest) -> HttpResponse:
    """Do I want one, what does it show, and where is it?"""
    user, now = signed_in(request), timezone.now()
    image = SignatureImage.objects.filter(user=user).first()
    if request.method == "POST" and "revoke" in request.POST:
        links.revoke(user)
        messages.success(request, message(_("Revoked. The link shows nothing any more.")))
        return redirect("signature_image")
    if request.method == "POST" and "renew" in request.POST:
        links.renew(user, now)
        messages.success(request, message(_("You have a new link. The old one shows nothing any more.")))
        return redirect("signature_image")
    form = SignatureImageForm(request.POST if request.method == "POST" else None, instance=image)
    if request.method == "POST" and form.is_valid():
        links.save(user, form.cleaned_data, now)
        messages.success(request, _("Saved. The picture is being redrawn."))
        return redirect("signature_image")
    context: dict[str, object] = {"form": form, "image": None, "cached_minutes": CACHED_SECS // 60}
    if image is not None:
        # The saved values, not the latest input
        image.refresh_from_db()
        facts = read_facts(image, now)
        context |= {"image": image, "address": links.address(image), "alternative": texts.alternative(facts)}
    return render(request, "signature_image/signature_image.html", context)


@require_safe
def picture(request: HttpRequest, token: str) -> HttpResponse:
    """The picture, for anyone who has the link."""
    image = links.find(token)
    if image is None:
        raise Http404
    image_bytes = links.picture_of(image, timezone.now())
    headers = {
        "Content-Type": "image/png",
        "ETag": image_bytes.etag,
        "Cache-Control": f"public, max-age={CACHED_SECS}",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Robots-Tag": "noindex",
    }
    answer = get_conditional_response(request, etag=image_bytes.etag)
    if isinstance(answer, HttpResponseNotModified):
        for name in ("Cache-Control", "Cross-Origin-Resource-Policy"):
            answer.headers[name] = headers[name]
        return answer
    return HttpResponse(image_bytes.content, headers=headers)
