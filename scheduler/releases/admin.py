"""Admin pages to prepare, sign, test, release, withdraw and roll back versions of apps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy, override
from unfold.admin import ModelAdmin

from credit.models import AppVersion
from portal.audit import proposals, two_persons
from portal.languages.sentences import sentence
from portal.people.access import signed_in
from portal.people.fresh_login import needs_fresh_login
from scheduler.engine.release_states import NotPossible, ReleaseAction
from scheduler.models import PlanClass, ReleaseDraft
from scheduler.programs import catalogue, code_signing
from scheduler.programs.release import ReleaseError
from scheduler.releases import drafts, rollout, second_person, steps
from scheduler.releases.audience import read_audience, version_of
from scheduler.releases.forms import FileForm, SignaturesForm, VersionForm, initial_of

ACTIONS: Final = {action.name.lower(): action for action in ReleaseAction}
SHOWN_DRAFTS: Final = 50


class ReleasePages(ModelAdmin):
    """Versions of apps and their drafts."""

    def get_urls(self) -> list[URLPattern]:
        pages: list[tuple[str, str, Callable[..., HttpResponse]]] = [
            ("versions/<int:pk>/<str:action>/", "version_action", self.version_action),
            ("<int:pk>/files/", "files", self.add_file),
            ("<int:pk>/files/<int:file_id>/remove/", "remove_file", self.remove_file),
            ("<int:pk>/manifest.json", "manifest", self.manifest),
            ("<int:pk>/signatures/", "signatures", self.take_signatures),
            ("<int:pk>/sign/", "sign", self.sign_here),
            ("<int:pk>/store/", "store", self.store),
            ("<int:pk>/discard/", "discard", self.discard),
        ]
        own = [
            path(address, self.admin_site.admin_view(view), name=f"scheduler_releasedraft_{name}")
            for address, name, view in pages
        ]
        urls: list[URLPattern] = own + super().get_urls()
        return urls

    def has_delete_permission(self, request: HttpRequest, obj: ReleaseDraft | None = None) -> bool:
        return False  # a draft is discarded, together with its files

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(steps.RELEASE)

    # --- pages ----------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """List the versions, who gets them, and what can be done."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        open_drafts: QuerySet[ReleaseDraft] = ReleaseDraft.objects.filter(app_version=None).select_related("creator")
        context = {
            "title": gettext("App versions"),
            "versions": rollout.read_versions(),
            "drafts": open_drafts[:SHOWN_DRAFTS],
            "may_add": self.has_add_permission(request),
            "may_release": self.has_release_permission(request),
        }
        return self._page(request, "releases.html", context)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Describe a new version."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = VersionForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            draft = ReleaseDraft.objects.create(creator=signed_in(request), fields=form.described())
            self.log_addition(request, draft, [{"added": {}}])
            return self._to_draft(draft.pk)
        return self._page(request, "release_new.html", {"title": gettext("New version"), "form": form})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show what a draft still lacks, and who would get it."""
        if not object_id.isdecimal() or len(object_id) > 18:
            raise Http404("no such page")
        draft = self._draft(request, int(object_id), "view")
        may_change = self.has_change_permission(request, draft) and draft.app_version_id is None
        form = VersionForm(request.POST or None, initial=initial_of(draft.fields))
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            if form.is_valid():
                # A file's permanent name contains the version, but its content is what is signed: signatures stay.
                ReleaseDraft.objects.filter(pk=draft.pk, app_version=None).update(fields=form.described())
                return self._to_draft(draft.pk)
        context = {
            "title": str(draft),
            "draft": draft,
            "form": form,
            "may_change": may_change,
            "may_release": self.has_release_permission(request),
            **(self._facts(request, draft) if draft.app_version_id is None else {}),
        }
        return self._page(request, "release_draft.html", context)

    def _facts(self, request: HttpRequest, draft: ReleaseDraft) -> dict[str, Any]:
        files = list(draft.files.all())
        plan_class = PlanClass.objects.filter(name=draft.fields.get("plan_class", "")).first()
        facts = catalogue.plan_class_facts(plan_class) if plan_class else None
        api_version, user = draft.fields.get("api_version", ""), signed_in(request)
        return {
            "files": files,
            "fault": drafts.fault(draft),
            "audience": read_audience(version_of(draft.fields), facts, api_version, user.pk, timezone.now()),
            "nunsigned": sum(not file.signature for file in files),
            "can_sign": code_signing.has_private_key(),
            "file_form": FileForm(auto_id="upload_%s"),
            "signatures_form": SignaturesForm(auto_id="signatures_%s"),
            "most_mib": drafts.MAX_FILE_NBYTES >> 20,
        }

    # --- steps ----------------------------------------------------------------------------------------------------

    def add_file(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Upload a program file."""
        draft = self._draft(request, pk, "change")
        form = FileForm(request.POST, request.FILES)
        if form.is_valid():
            given = form.cleaned_data
            file = given.pop("file")
            given["is_copied"] = given["is_copied"] or bool(given["open_name"])
            self._try(
                request,
                lambda: drafts.add_file(draft, file.name, file, **given),
                gettext("%(name)s is uploaded.") % {"name": file.name},
            )
        else:
            messages.error(request, gettext("Choose a file."))
        return self._to_draft(pk)

    def remove_file(self, request: HttpRequest, pk: int, file_id: int) -> HttpResponse:
        """Remove a program file."""
        draft = self._draft(request, pk, "change")
        self._try(request, lambda: drafts.remove_file(draft, file_id), gettext("The file was removed."))
        return self._to_draft(pk)

    def manifest(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Download the list of files to sign where the key is."""
        draft = self._draft(request, pk, "view")
        try:
            text = json.dumps(drafts.manifest(draft), indent=1)
        except ReleaseError as error:
            messages.error(request, str(error))
            return self._to_draft(pk)
        headers = {"Content-Disposition": f'attachment; filename="manifest_{pk}.json"'}
        return HttpResponse(text, content_type="application/json", headers=headers)

    def take_signatures(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Store signatures that were made elsewhere."""
        draft = self._draft(request, pk, "change")
        form = SignaturesForm(request.POST, request.FILES)
        if form.is_valid() and (form.cleaned_data["text"] or form.cleaned_data["file"]):
            self._try(
                request, lambda: drafts.take_signatures(draft, _signatures(form)), gettext("The signatures are valid.")
            )
        else:
            messages.error(request, gettext("Paste the signatures, or choose their file."))
        return self._to_draft(pk)

    @needs_fresh_login(keeps_form=True)
    def sign_here(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Sign with the server's key."""
        draft = self._draft(request, pk, "release")
        self._try(request, lambda: drafts.sign_here(draft), gettext("All files are signed with this server’s key."))
        return self._to_draft(pk)

    @needs_fresh_login(keeps_form=True)
    def store(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Store the version, and send it to testers or to all."""
        draft = self._draft(request, pk, "release")
        action = _action(request.POST.get("action", ""))
        with_volunteers = "with_volunteers" in request.POST

        if action == ReleaseAction.RELEASE and two_persons.is_on():
            self._ask_second(request, str(draft), second_person.payload_of_draft(draft))
            return self._to_draft(pk)

        def store() -> None:
            version = drafts.store(draft, action, signed_in(request), timezone.now(), with_volunteers=with_volunteers)
            self.log_change(request, draft, _in_english(version, action))

        if self._try(request, store, _done(str(draft), action)):
            return redirect("admin:scheduler_releasedraft_changelist")
        return self._to_draft(pk)

    @needs_fresh_login(keeps_form=True)
    def version_action(self, request: HttpRequest, pk: int, action: str) -> HttpResponse:
        """Test, release, withdraw or roll back a stored version; what may change credit goes through a confirmation
        step.
        """
        self._check_post(request)
        if not self.has_release_permission(request):
            raise PermissionDenied
        version = get_object_or_404(AppVersion.objects.select_related("app", "platform", "beta_test"), pk=pk)
        requested = None if action == steps.ROLL_BACK else _action(action)
        if requested == ReleaseAction.RELEASE and two_persons.is_on():
            self._ask_second(request, str(version), second_person.payload_of_version(version))
            return redirect("admin:scheduler_releasedraft_changelist")
        volunteers = requested == ReleaseAction.TEST and "with_volunteers" in request.POST
        try:
            proposal = steps.proposal(version, steps.WITH_VOLUNTEERS if volunteers else action, signed_in(request))
        except NotPossible as error:
            messages.error(request, sentence(error.message))
            return redirect("admin:scheduler_releasedraft_changelist")
        if proposal is not None and two_persons.is_guarded(version, proposal):
            messages.error(
                request,
                gettext(
                    "The version before it is withdrawn. Release that one to all first, which another operator "
                    "confirms; then roll this one back."
                ),
            )
            return redirect("admin:scheduler_releasedraft_changelist")
        if proposal is not None:
            return redirect("admin:portal_change_step", proposals.keep(request.session, proposal))
        assert requested is not None  # a roll-back withdraws
        message = _done(version, requested)

        @transaction.atomic
        def act() -> None:
            rollout.act(version, requested, signed_in(request), timezone.now(), with_volunteers=volunteers)
            self.log_change(request, version, _in_english(version, requested))

        self._try(request, act, message)
        return redirect("admin:scheduler_releasedraft_changelist")

    def discard(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Discard a draft."""
        drafts.discard(self._draft(request, pk, "change"))
        return redirect("admin:scheduler_releasedraft_changelist")

    # --- shared -----------------------------------------------------------------------------------------------------

    def _draft(self, request: HttpRequest, pk: int, right: str) -> ReleaseDraft:
        """Return the draft, for users who have the right; a change must be a POST."""
        if right != "view":
            self._check_post(request)
        may = {
            "view": self.has_view_or_change_permission,
            "change": self.has_change_permission,
            "release": self.has_release_permission,
        }[right]
        if not may(request):
            raise PermissionDenied
        return get_object_or_404(ReleaseDraft.objects.select_related("app_version"), pk=pk)

    def _ask_second(self, request: HttpRequest, subject: str, payload: two_persons.Payload) -> None:
        """Ask another operator to confirm a release to all."""
        try:
            two_persons.ask(second_person.RELEASE, subject, payload, signed_in(request), timezone.now())
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.warning(request, two_persons.asked_text())

    def _check_post(self, request: HttpRequest) -> None:
        if request.method != "POST":
            raise Http404("only for POST")

    def _try(self, request: HttpRequest, step: Callable[[], object], message: str = "") -> bool:
        try:
            step()
        except ReleaseError as error:
            messages.error(request, str(error))
            return False
        except NotPossible as error:
            messages.error(request, sentence(error.message))
            return False
        if message:
            messages.success(request, message)
        return True

    def _to_draft(self, pk: int) -> HttpResponse:
        return redirect(reverse("admin:scheduler_releasedraft_change", args=[pk]))

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        full_context = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, f"scheduler/admin/{template}", full_context)


def _action(name: str) -> ReleaseAction:
    if name not in ACTIONS:
        raise Http404("no such action")
    return ACTIONS[name]


_DONE: Final = {
    ReleaseAction.TEST: gettext_lazy("%(version)s is being tested: only testers’ computers get it."),
    ReleaseAction.RELEASE: gettext_lazy("%(version)s is released to all computers."),
    ReleaseAction.WITHDRAW: gettext_lazy(
        "%(version)s is withdrawn: computers no longer get it. Running jobs continue."
    ),
}


def _done(version: AppVersion | str, action: ReleaseAction) -> str:
    """Say what has been done with a version."""
    return str(_DONE[action]) % {"version": version}


def _in_english(version: AppVersion, action: ReleaseAction) -> str:
    """Say in English, for the log, what was done with a version."""
    with override("en"):
        return _done(version, action)


def _signatures(form: SignaturesForm) -> dict[str, str]:
    text, file = form.cleaned_data["text"], form.cleaned_data["file"]
    if not file:
        return drafts.parse_signatures(text)
    if file.size > drafts.MAX_SIGNATURES_NBYTES:
        raise ReleaseError(
            gettext("Signatures have at most %(number)s bytes.") % {"number": drafts.MAX_SIGNATURES_NBYTES}
        )
    read = file.read().decode("utf-8", "replace")
    if file.name.endswith(".sig"):
        return {file.name.removesuffix(".sig"): read}
    return drafts.parse_signatures(read)
