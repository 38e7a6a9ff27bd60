"""A volunteer's certificates, and the public page on which anybody checks one."""

from __future__ import annotations

import datetime as dt
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounting.history.sums import read_first_day
from extras.certificates import facts, registry
from extras.certificates.codes import MAX_CODE_CHARS, read_code
from extras.certificates.forms import CertificateForm
from extras.certificates.models import Certificate
from extras.certificates.registry import MAX_CERTIFICATES, CheckResult, Verdict
from extras.certificates.texts import certificate_text
from portal.people.access import signed_in
from portal.people.pages.form_keys import FORM_KEY, read_form_key
from portal.wire import statements


@require_safe
@login_required
def certificates(request: HttpRequest) -> HttpResponse:
    """Which certificates did I make, and which of them are valid?"""
    certificates = [
        (certificate, certificate_text(certificate.statement))
        for certificate in Certificate.objects.filter(user=signed_in(request))
    ]
    return render(request, "certificates/list.html", {"certificates": certificates, "most": MAX_CERTIFICATES})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Choose what it shows, preview it, make it."""
    user, now = signed_in(request), timezone.now()
    today = now.astimezone(dt.UTC).date()
    first = read_first_day(user, today)
    if first is None:
        return render(request, "certificates/new.html", {"has_work": False})
    scopes = facts.read_scopes(user)
    data = request.POST if request.method == "POST" else request.GET if "first" in request.GET else None
    form = CertificateForm(data, scopes=scopes, today=today, first=first)
    context: dict[str, object] = {"form": form, "has_work": True, FORM_KEY: uuid4()}
    if form.is_valid():
        try:
            if request.method == "POST":
                return redirect(
                    "certificate", registry.issue(user, form.request, scopes, now, read_form_key(request.POST)).pk
                )
            context["shown"] = certificate_text(facts.draft(user, form.request, scopes, today))
        except registry.TooMany:
            form.add_error(
                None,
                _("You have %(number)s certificates, which is the limit. Revoke and delete one first.")
                % {"number": MAX_CERTIFICATES},
            )
        except facts.NoWork:
            form.add_error(None, _("Your computers did no such work on these days. Choose other days."))
    return render(request, "certificates/new.html", context)


@require_safe
@login_required
def certificate(request: HttpRequest, pk: int) -> HttpResponse:
    """One of my certificates: to print, to revoke."""
    own = _own(request, pk)
    context = {"certificate": own, "shown": certificate_text(own.statement)}
    return render(request, "certificates/own.html", context)


@require_POST
@login_required
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke it or, once it is revoked, delete it."""
    own = _own(request, pk)
    if "delete" in request.POST and own.revoked_at is not None:
        registry.delete(own)
        messages.success(request, _("Deleted. Its code no longer exists on this site."))
        return redirect("certificates")
    if "revoke" in request.POST:
        registry.revoke(own, timezone.now())
        messages.success(request, _("Revoked. Anyone who checks it is told so and can no longer see what it said."))
    return redirect("certificate", pk)


def _own(request: HttpRequest, pk: int) -> Certificate:
    return get_object_or_404(Certificate, pk=pk, user=signed_in(request))


@require_safe
def check_form(request: HttpRequest) -> HttpResponse:
    """Is the certificate that I was shown genuine? The form for its code."""
    text = request.GET.get("code", "")
    code = read_code(text)
    if code is not None:
        return redirect("check_certificate", code)
    context = {"is_wrong": bool(text.strip()), "typed": text[:MAX_CODE_CHARS]}
    return render(request, "certificates/check_form.html", context)


@require_safe
def check(request: HttpRequest, text: str) -> HttpResponse:
    """Is this certificate valid, and what does it say?"""
    code = read_code(text)
    checked = registry.check(code) if code is not None else CheckResult(Verdict.UNKNOWN)
    context: dict[str, object] = {"found": checked, "code": code}
    if checked.certificate is not None:
        context["shown"] = certificate_text(checked.certificate.statement)
    status = 404 if checked.verdict is Verdict.UNKNOWN else 200
    answer = render(request, "certificates/check.html", context, status=status)
    answer.headers["X-Robots-Tag"] = "noindex"
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


@require_safe
def statement(request: HttpRequest, text: str) -> HttpResponse:
    """The signed text, its signature and the public key, for checks by other programs."""
    code = read_code(text)
    checked = registry.check(code) if code is not None else CheckResult(Verdict.UNKNOWN)
    headers = {"X-Robots-Tag": "noindex", "Cache-Control": "private, no-store"}
    if checked.certificate is None:
        status = 404 if checked.verdict is Verdict.UNKNOWN else 410
        return JsonResponse({"verdict": checked.verdict}, status=status, headers=headers)
    content = {
        "verdict": checked.verdict,
        "signed": statements.canonical(checked.certificate.statement).decode(),
        "signature": checked.certificate.signature,
        "public_key": _public_key(),
    }
    return JsonResponse(content, headers=headers)


@require_safe
def public_key(request: HttpRequest) -> HttpResponse:
    """The key by which all certificates of this site are checked."""
    return HttpResponse(_public_key(), content_type="application/x-pem-file")


def _public_key() -> str:
    return statements.public_key_text(registry.signing_key())
