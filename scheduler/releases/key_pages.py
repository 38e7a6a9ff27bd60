"""Admin pages of the code-signing key: past changes, and the steps of a change that need no private key.

Keys are created and used where the private key is, by the command change_code_signing_key. Here its list is downloaded,
and what it signed is uploaded.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe
from unfold.widgets import UnfoldAdminFileFieldWidget

from portal.admin import ReadOnlyAdmin
from portal.audit import two_persons
from portal.people.access import signed_in
from portal.people.fresh_login import needs_fresh_login
from scheduler.models import KeyChange
from scheduler.programs import code_signing, key_change
from scheduler.programs.key_change import KeyChangeError, Succession
from scheduler.releases import second_person

PERMISSION: Final = "scheduler.add_keychange"
MAX_ARCHIVE_NBYTES: Final = 8 << 20
MAX_ENTRIES: Final = 5000
MAX_ENTRY_NBYTES: Final = 8192
"""A signature by a key of 4,096 bits has some 1,100."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Exceptions of zipfile for damaged, encrypted, truncated or unknown archives, which have no common base class.
_UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


class SignedForm(forms.Form):
    """Upload what the machine with the key has written."""

    archive = forms.FileField(
        label=_("The folder written by the command, as a ZIP archive"), widget=UnfoldAdminFileFieldWidget
    )

    def clean_archive(self) -> Succession:
        try:
            return read_archive(self.cleaned_data["archive"])
        except (KeyChangeError, *_UNREADABLE) as error:
            raise forms.ValidationError(
                gettext("This cannot be used: %(reason)s")
                % {"reason": str(error) or gettext("a file in it is cut off")}
            ) from error


def read_archive(file: UploadedFile[bytes]) -> Succession:
    """Read what `key_change.write` wrote from a ZIP archive, whatever the folder's name.

    Raises zipfile's exceptions.
    """
    if (file.size or 0) > MAX_ARCHIVE_NBYTES:
        raise KeyChangeError(gettext("it has more than %(number)s bytes.") % {"number": MAX_ARCHIVE_NBYTES})
    texts: dict[str, str] = {}
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > MAX_ENTRIES:
            raise KeyChangeError(gettext("it has more than %(number)s files.") % {"number": MAX_ENTRIES})
        for entry in entries:
            name = PurePosixPath(entry.filename).name
            if entry.compress_type not in _METHODS:
                raise KeyChangeError(
                    gettext("%(name)s is not compressed the way ZIP programs usually do it.") % {"name": name[:80]}
                )
            with archive.open(entry) as content:
                raw = content.read(MAX_ENTRY_NBYTES + 1)
            if len(raw) > MAX_ENTRY_NBYTES:
                raise KeyChangeError(
                    gettext("%(name)s has more than %(number)s bytes.")
                    % {"name": name[:80], "number": MAX_ENTRY_NBYTES}
                )
            texts[name] = raw.decode("ascii")
    for name in (key_change.PUBLIC_NAME, key_change.SIGNATURE_NAME):
        if name not in texts:
            raise KeyChangeError(gettext("there is no file %(name)s in it.") % {"name": name})
    programs = {name.removesuffix(".sig"): text for name, text in texts.items() if name.endswith(".sig")}
    return Succession(texts[key_change.PUBLIC_NAME].strip(), texts[key_change.SIGNATURE_NAME], programs)


class KeyPages(ReadOnlyAdmin):
    """Changes of the code-signing key."""

    list_display = ("changed_at",)

    def get_urls(self) -> list[URLPattern]:
        def guarded(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
            view_with_rights: Callable[..., HttpResponse] = self.admin_site.admin_view(view)
            return view_with_rights

        return [
            path("new-key/", guarded(require_http_methods(["GET", "HEAD", "POST"])(self.new_key)), name="new_key"),
            path("new-key/list.txt", guarded(require_safe(self.wanted_list)), name="new_key_list"),
            *super().get_urls(),
        ]

    @needs_fresh_login()
    def new_key(self, request: HttpRequest) -> HttpResponse:
        """Show the steps; POST takes the new key."""
        _check(request)
        form = SignedForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            if two_persons.is_on():
                return self._ask_second(request, form.cleaned_data["archive"])
            try:
                count = self._take(request, form.cleaned_data["archive"])
            except KeyChangeError as error:
                form.add_error("archive", _unchanged(str(error)))
            except FileNotFoundError as error:
                form.add_error("archive", _unchanged(_no_key(error)))
            else:
                messages.success(
                    request,
                    gettext("The key was changed; programs signed with it: %(number)s. Adopt it now (step 4).")
                    % {"number": count},
                )
                return redirect("admin:new_key")
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("New code-signing key"),
            "form": form,
            "is_here": code_signing.has_private_key(),
        }
        return TemplateResponse(request, "scheduler/admin/new_key.html", context)

    def _ask_second(self, request: HttpRequest, new: Succession) -> HttpResponse:
        """Ask another operator to confirm the new key."""
        try:
            payload = second_person.payload_of_key(new)
            subject = f"new key {sha256(new.public_key.encode()).hexdigest()[:16]}"
            two_persons.ask(second_person.NEW_KEY, subject, payload, signed_in(request), timezone.now())
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.warning(request, two_persons.asked_text())
        return redirect("admin:new_key")

    @transaction.atomic
    def _take(self, request: HttpRequest, new: Succession) -> int:
        """Take the key, and record who did; return how many programs it signs."""
        now = timezone.now()
        count = key_change.take(new, now)
        # None if it was taken before.
        change = KeyChange.objects.filter(new_key=new.public_key, changed_at=now).first()
        if change is not None:
            self.log_addition(request, change, "Uploaded what the old and the new key had signed.")
        return count

    def wanted_list(self, request: HttpRequest) -> HttpResponse:
        """Download the list to sign."""
        _check(request)
        try:
            text = key_change.signing_list().text()
        except OSError as error:
            messages.error(request, _no_key(error))
            return redirect("admin:new_key")
        headers = {"Content-Disposition": 'attachment; filename="LIST"'}
        return HttpResponse(text, content_type="text/plain; charset=us-ascii", headers=headers)


def _no_key(error: OSError) -> str:
    return gettext("There is no public key to start with: %(reason)s.") % {"reason": error.strerror}


def _unchanged(reason: str) -> str:
    return gettext("Nothing was changed. %(reason)s") % {"reason": reason}


def _check(request: HttpRequest) -> None:
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
