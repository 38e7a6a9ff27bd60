"""Requests of volunteers for more computers, and their join tokens."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from portal.admin.base import ReadOnlyAdmin, TokenAdmin
from portal.computers.limit_requests import decide
from portal.models import HostLimitRequest, JoinToken
from portal.people.access import signed_in
from portal.people.join_tokens import revoke_join_token
from portal.people.key_mails import send_words
from portal.people.security_events import BY_OPERATOR, Kind, record


@admin.register(HostLimitRequest)
class HostLimitRequestAdmin(ReadOnlyAdmin):
    """Requests for more computers within a day. Granting one sets the account's own limit; the person gets a mail."""

    list_display = ("asked_at", "user", "hosts_per_day", "reason", "decided_at", "is_granted", "decided_by")
    list_filter = (("decided_at", admin.EmptyFieldListFilter), "is_granted")
    list_select_related = ("user", "decided_by")
    search_fields = ("user__email",)
    show_full_result_count = False
    fields = ("user", "hosts_per_day", "reason", "asked_at", "decided_at", "is_granted", "decided_by")
    actions = ("grant", "decline")

    @admin.action(description=_("Grant the selected requests"), permissions=["decide"])
    def grant(self, request: HttpRequest, queryset: QuerySet[HostLimitRequest]) -> None:
        self._decide(request, queryset, grant=True)

    @admin.action(description=_("Decline the selected requests"), permissions=["decide"])
    def decline(self, request: HttpRequest, queryset: QuerySet[HostLimitRequest]) -> None:
        self._decide(request, queryset, grant=False)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("portal.change_hostlimitrequest")

    def _decide(self, request: HttpRequest, queryset: QuerySet[HostLimitRequest], *, grant: bool) -> None:
        decided = []
        for number in queryset.values_list("pk", flat=True):
            done = decide(number, signed_in(request), grant=grant, now=timezone.now())
            if done is not None:
                decided.append(done)
                _tell(done)
        text = ngettext("%(number)s request decided.", "%(number)s requests decided.", len(decided))
        self.message_user(request, text % {"number": len(decided)})


def _tell(decided: HostLimitRequest) -> None:
    """Record the decision for the person, and mail them; a mail that is not accepted is only logged."""
    if decided.is_granted:
        record(decided.user, Kind.RIGHTS_CHANGED, BY_OPERATOR, "new computers per day")
    words = {
        "name": decided.user.display_name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "is_granted": decided.is_granted,
        "hosts_per_day": decided.hosts_per_day,
    }
    send_words(decided.user, _("Your request for more computers"), "host_limit", words)


@admin.register(JoinToken)
class JoinTokenAdmin(TokenAdmin):
    """Join tokens; the site stores only their keyed hashes."""

    list_display = ("login", "user", "group", "max_hosts", "joined_hosts", "created_at", "expires_at", "revoked_at")
    search_fields = ("user__email", "login")
    fields = (*list_display, "last_used_at")
    revoke_one = staticmethod(revoke_join_token)
