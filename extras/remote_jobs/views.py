"""BOINC's addresses for programs that submit jobs, and a submitter's page of keys. Nothing here logs a key."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from credit.models import App
from extras.remote_jobs import keys, outputs
from extras.remote_jobs.keys import KeyRefused
from extras.remote_jobs.models import JobsKey
from extras.remote_jobs.operations.table import Answer, answer_files, answer_jobs, check_key
from extras.remote_jobs.wire.bodies import request_of
from extras.remote_jobs.wire.replies import error
from extras.remote_jobs.wire.xml_tree import MAX_NBYTES, XmlError
from portal.models import User
from portal.people.access import signed_in
from portal.people.api_tokens import MAX_TOKENS_PER_USER, TooManyTokens, revoke_token, valid_tokens
from portal.people.fresh_login import needs_fresh_login
from portal.people.pages.token_views import tell_of_token
from portal.people.security_events import source_of
from portal.sign_in import throttle
from scheduler.files.views import send
from scheduler.models import KeptOutput
from scheduler.submission import output_archive
from scheduler.submission.batches import may_submit
from scheduler.web_rpcs import documents

MAX_BODY_NBYTES: Final = 4 * MAX_NBYTES
"""A form has up to three characters for one of the request; the request itself is limited when it is parsed."""
STRANGERS_NBYTES: Final = 64 * 1024
"""Read before a key is looked for. All programs send it first."""
_ILL_FORMED: Final = (XmlError, MultiPartParserError, SuspiciousOperation)


@csrf_exempt
@require_POST
def submit_rpc(request: HttpRequest) -> HttpResponse:
    """submit_rpc_handler.php: batches and jobs."""
    try:
        raw = request_of(request.META.get("CONTENT_TYPE", ""), _Body(request).read_whole())
    except (*_ILL_FORMED, KeyRefused) as fault:
        return _reply(_refused(fault))
    return _reply(answer_jobs(raw, request.META["REMOTE_ADDR"], timezone.now()))


class _Body:
    """The body of a request: a long one only if its beginning contains a valid key. Raises XmlError and KeyRefused."""

    def __init__(self, request: HttpRequest) -> None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            raise XmlError("the body has no length")
        self._request, self._nbytes = request, int(length)
        self._beginning = request.read(min(self._nbytes, STRANGERS_NBYTES))
        if self._nbytes > STRANGERS_NBYTES:
            text = request_of(request.META.get("CONTENT_TYPE", ""), self._beginning)
            check_key(text, request.META["REMOTE_ADDR"])

    def read(self, nbytes: int, /) -> bytes:
        """Read the next bytes, of which there may be fewer; none at the end."""
        part, self._beginning = self._beginning[:nbytes], self._beginning[nbytes:]
        return part or self._request.read(nbytes)

    def read_whole(self) -> bytes:
        if self._nbytes > MAX_BODY_NBYTES:
            raise XmlError(f"{self._nbytes} bytes; the limit is {MAX_BODY_NBYTES}")
        return self._beginning + self._request.read(self._nbytes - len(self._beginning))


@csrf_exempt
@require_POST
def job_file(request: HttpRequest) -> HttpResponse:
    """job_file.php: input files. They are written to files as they arrive."""
    try:
        body: Any = _Body(request)  # the parser only reads from it
        if request.content_type == "multipart/form-data":
            form, files = MultiPartParser(request.META, body, [TemporaryFileUploadHandler(request)]).parse()
            raw = form.get("request", "").encode()
            uploaded = [file for _, listed in files.lists() for file in listed]
        else:
            raw, uploaded = request_of(request.META.get("CONTENT_TYPE", ""), body.read_whole()), []
    except (*_ILL_FORMED, KeyRefused) as fault:
        return _reply(_refused(fault))
    answer = answer_files(raw, uploaded, request.META["REMOTE_ADDR"], timezone.now())
    for file in uploaded:
        file.close()
    return _reply(answer)


def _refused(fault: Exception) -> Answer:
    return error(str(fault) if isinstance(fault, KeyRefused) else f"can't parse request message: {fault}")


def _reply(answer: Answer) -> HttpResponse:
    reply = documents.reply(*answer)
    return HttpResponse(reply.body, content_type="text/xml", headers={"Cache-Control": "no-store"})


@require_safe
def get_output(request: HttpRequest) -> HttpResponseBase:
    """get_output.php: one output file, or several as an archive."""

    def value(name: str) -> str:
        text = request.GET.get(name, "")
        return text if text.isprintable() else ""  # the database cannot be queried for a NUL

    address = request.META["REMOTE_ADDR"]
    try:
        throttle.admit_key(address)
        match value("cmd"):
            case "result_file":
                return _file(request, outputs.of_instance(value("result_name"), value("file_num"), value("auth_str")))
            case "workunit_file":
                key = value("auth_str")
                return _file(request, outputs.of_job(value("wu_name"), value("file_num"), key, address))
            case "batch_files":
                batch = outputs.all_of_batch(value("batch_id"), value("auth_str"))
                return _archive(f"batch_{batch.pk}", output_archive.of_batch(batch))
            case "workunit_files":
                outputs_of_job = outputs.all_of_job(value("wu_id"), value("auth_str"))
                return _archive(f"workunit_{value('wu_id')}", outputs_of_job)
            case _:
                raise outputs.OutputRefused("bad command")
    except throttle.Throttled as fault:
        return _refusal(f"too many wrong keys from your address: try again after {fault.until:%H:%M:%S} UTC", 429)
    except outputs.OutputRefused as fault:
        if isinstance(fault, outputs.WrongProof):
            throttle.count_wrong_key(address)
        return _refusal(str(fault), fault.status)


@csrf_exempt
def get_output2(_request: HttpRequest) -> HttpResponse:
    """get_output2.php: BOINC gives outputs of whole jobs there to anybody who knows their numbers."""
    return _refusal("get_output2.php is not served, as it asks for no key. Use get_output.php, which does.", 403)


def _refusal(message: str, status: int) -> HttpResponse:
    return HttpResponse(f"ERROR: {message}", status=status, content_type="text/plain; charset=utf-8")


def _file(request: HttpRequest, output: KeptOutput) -> HttpResponseBase:
    return send(request, output.path, outputs.physical_name(output), output.nbytes, output.md5)


def _archive(name: str, kept_outputs: output_archive.Outputs) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"', "Cache-Control": "private"}
    content = output_archive.stream(kept_outputs, outputs.physical_name)
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)


# --- the page of keys --------------------------------------------------------------------------------------


class KeyForm(forms.Form):
    """A new key."""

    name = forms.CharField(label=_("What is it for?"), max_length=100, help_text=_("For example “HTCondor, node 3”."))
    apps = forms.ModelMultipleChoiceField(
        App.objects.filter(is_deprecated=False),
        label=_("It may submit jobs of"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one app.")},
    )


def _submitter(request: HttpRequest) -> User:
    user = signed_in(request)
    if not may_submit(user):
        raise Http404("no such page")
    return user


@needs_fresh_login(keeps_form=True)
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def jobs_keys(request: HttpRequest) -> HttpResponse:
    """The keys of programs that submit jobs, and the form that creates one; a new key is shown only once."""
    user = _submitter(request)
    form = KeyForm(request.POST if request.method == "POST" else None)
    key = None
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            key = keys.issue(user, name=name, apps=form.cleaned_data["apps"], lifetime=None, source=source_of(request))
            tell_of_token(user, name, [])
            form = KeyForm()
        except TooManyTokens:
            form.add_error(
                None,
                gettext("You already have %(number)s keys and tokens. Revoke one that you do not need.")
                % {"number": MAX_TOKENS_PER_USER},
            )
    rows = JobsKey.objects.filter(token__in=valid_tokens().filter(user=user)).select_related("token")
    context = {"form": form, "key": key, "keys": rows.prefetch_related("apps").order_by("-pk")}
    status = 422 if form.errors else 200
    response = render(request, "remote_jobs/keys.html", context, status=status)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def revoke_jobs_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one key: programs that have it are refused from then on."""
    user = _submitter(request)
    if not JobsKey.objects.filter(token=pk, token__user=user).exists():
        raise Http404("no such key")
    revoke_token(user, pk, source_of(request))
    return redirect("jobs_keys")
