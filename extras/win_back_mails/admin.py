"""Operators write mails to lapsed volunteers: saved, previewed, sent to themselves, and then sent."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.enums import ActionVariant

from extras.win_back_mails import campaigns
from extras.win_back_mails.models import MailCampaign
from portal.models import User
from portal.ops.mails import MailServerDown

WRITTEN = ("title", "text", "lapsed_days")
NUMBERS = ("state", "ndue", "nsent", "nfailed", "released_at", "stopped_at", "finished_at")


@admin.register(MailCampaign)
class CampaignAdmin(ModelAdmin):
    """A mail that is being sent can no longer be changed, nor deleted, so that nobody gets it twice."""

    list_display = ("title", "state", "lapsed_days", "nsent", "nfailed", "released_at", "finished_at")
    readonly_fields = (*NUMBERS, "preview")
    actions_submit_line = ("send_test", "begin", "stop")
    fieldsets = ((None, {"fields": WRITTEN}),)

    class Media:
        css = {"all": ("accounting/admin_previews.css",)}

    def get_fieldsets(self, request: HttpRequest, obj: MailCampaign | None = None) -> Any:
        if obj is None:
            return self.fieldsets
        return (*self.fieldsets, (_("Numbers"), {"fields": NUMBERS}), (_("Preview"), {"fields": ("preview",)}))

    def get_readonly_fields(self, request: HttpRequest, obj: MailCampaign | None = None) -> tuple[str, ...]:
        is_sent = obj is not None and obj.released_at is not None
        return (*self.readonly_fields, *WRITTEN) if is_sent else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: MailCampaign, form: Any, change: bool) -> None:
        """Save only what was written, and only into a draft: workers count in this row, and others start and stop it.

        Locks the row, as workers do.
        """
        if change:
            present = MailCampaign.objects.select_for_update(no_key=True).get(pk=obj.pk)
            is_draft = present.released_at is None
            for column in MailCampaign._meta.concrete_fields:
                if not (is_draft and column.name in WRITTEN):
                    setattr(obj, column.attname, getattr(present, column.attname))
            if form.changed_data and not is_draft:
                messages.error(
                    request, gettext("Not saved: this e-mail is already being sent and can no longer be changed.")
                )
        super().save_model(request, obj, form, change)

    @admin.display(description=_("state"))
    def state(self, row: MailCampaign) -> str:
        if row.finished_at is not None:
            return gettext("sent")
        if row.stopped_at is not None:
            return gettext("stopped")
        return gettext("being sent") if row.released_at is not None else gettext("draft")

    @admin.display(description=_("recipients"))
    def ndue(self, row: MailCampaign) -> int:
        return campaigns.due(row, timezone.now()).count()

    @admin.display(description="")
    def preview(self, row: MailCampaign) -> SafeString:
        message = campaigns.compose_for(row, User(pk=0, email="volunteer@example.org", name="Volunteer"))
        return format_html('<pre class="as-mailed">{}\n\n{}</pre>', message.subject, message.body)

    @action(description=_("Save and send to me"), permissions=["change"])
    def send_test(self, request: HttpRequest, obj: MailCampaign) -> None:
        # Workers do not wait for the row until the mail server has answered.
        transaction.on_commit(lambda: self._send_test(request, obj))

    def _send_test(self, request: HttpRequest, obj: MailCampaign) -> None:
        assert isinstance(request.user, User)  # the admin lets nobody else in
        try:
            campaigns.send_test(obj, request.user)
        except MailServerDown:
            self.message_user(request, gettext("The mail server did not accept it."), messages.ERROR)
        else:
            self.message_user(request, gettext("Sent to %(address)s.") % {"address": request.user.email})

    @action(description=_("Save and send to volunteers"), permissions=["begin"], variant=ActionVariant.PRIMARY)
    def begin(self, request: HttpRequest, obj: MailCampaign) -> None:
        try:
            campaigns.begin(obj, timezone.now())
        except campaigns.NotReleased:
            words = gettext("It is being sent, has already been sent, or was started more than a year ago.")
            self.message_user(request, words, messages.ERROR)
        else:
            self.message_user(request, gettext("The first e-mails will be sent within ten minutes."))

    @action(description=_("Stop sending"), permissions=["stop"])
    def stop(self, request: HttpRequest, obj: MailCampaign) -> None:
        campaigns.stop(obj, timezone.now())
        self.message_user(
            request, gettext("Stopped. E-mails already sent cannot be recalled. You can resume sending later.")
        )

    # Without a number, the question is repeated before the button takes effect.
    def has_begin_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_change_permission(request) and not _is_running(object_id) and not _is_finished(object_id)

    def has_stop_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_change_permission(request) and (object_id is None or _is_running(object_id))

    def response_add(
        self, request: HttpRequest, obj: MailCampaign, post_url_continue: str | None = None
    ) -> HttpResponse:
        messages.success(request, gettext("Saved. Check the preview below and send it to yourself first."))
        return redirect("admin:win_back_mails_mailcampaign_change", obj.pk)

    def response_change(self, request: HttpRequest, obj: MailCampaign) -> HttpResponse:
        return redirect("admin:win_back_mails_mailcampaign_change", obj.pk)


def _is_running(object_id: Any) -> bool:
    return MailCampaign.objects.filter(
        pk=object_id, released_at__isnull=False, stopped_at=None, finished_at=None
    ).exists()


def _is_finished(object_id: Any) -> bool:
    return MailCampaign.objects.filter(pk=object_id, finished_at__isnull=False).exists()
