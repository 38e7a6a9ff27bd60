"""Support's pages in the admin: find an account, give a reason for looking at it, see what support may see, and help.

A look lasts `LOOK_SECS`, in the operator's session. Without one, an account's page only asks for the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from portal.languages.messages import VERBATIM, Message, at_place
from portal.languages.sentences import unpacked
from portal.models import Account, AccountBlock, SupportAction, User
from portal.operators import support
from portal.people.access import signed_in
from portal.people.fresh_login import needs_fresh_login
from portal.people.security_events import source_of

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LOOK_SECS: Final = 1800
_SESSION: Final = "support_looks"


@dataclass(frozen=True, slots=True)
class Help:
    """An action of support: its permission, its code in the log, its words, the use case, and whether it applies to
    the account now.
    """

    permission: str
    code: str
    title: StrOrPromise
    text: StrOrPromise
    do: Callable[[User, User, str], bool]
    fits: Callable[[support.AccountOverview], bool]


HELP: Final[dict[str, Help]] = {
    "remove-factors": Help(
        "portal.remove_factors_account",
        "support_factor_removed",
        _("Remove the second factor"),
        _("For somebody who lost it: removes authenticator app, passkeys and recovery codes. They are told by mail."),
        support.remove_factors,
        lambda seen: seen.has_second_factor,
    ),
    "block": Help(
        "portal.block_account",
        "support_blocked",
        _("Block the account"),
        _("Nobody can sign in, and its computers are refused, until it is unblocked. Only operators see the reason."),
        support.block,
        lambda seen: seen.account.is_active,
    ),
    "unblock": Help(
        "portal.block_account",
        "support_unblocked",
        _("Unblock the account"),
        _("Everything works as before: password, client keys and tokens."),
        support.unblock,
        lambda seen: seen.block is not None,
    ),
    "copy-data": Help(
        "portal.copy_data_account",
        "support_data_copied",
        _("Request a copy of the data"),
        _("Only the person can download it, on their data page. They are told by mail."),
        support.copy_data,
        lambda seen: seen.account.is_active,
    ),
    "erase": Help(
        "portal.erase_account",
        "support_erased",
        _("Delete the account"),
        _("All of it is erased in two weeks, unless the person signs in before then. They are told by mail."),
        support.erase,
        lambda seen: seen.account.deletion_asked_at is None,
    ),
}


class ReasonForm(forms.Form):
    """Asks for the reason, for the log and, except for blocks, for the owner to read."""

    reason = forms.CharField(
        max_length=support.MAX_REASON_CHARS,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": _("Their mail of 3 May: no confirmation arrives")}),
        error_messages={"required": _("Give a reason: what was asked for, and where.")},
    )


class _ReadAdmin(ModelAdmin):
    """A list in which nothing can be added, changed or deleted."""

    show_full_result_count = False
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        # Conditions in the address must not reveal what is not shown either.
        return False


class SupportActionAdmin(_ReadAdmin):
    """Support's searches, looks and actions: who, when, and why."""

    list_display = ("action_time", "who", "what", "account_number")
    list_display_links = None
    list_select_related = ("user",)
    fields = list_display

    def get_queryset(self, request: HttpRequest) -> QuerySet[SupportAction]:
        rows: QuerySet[SupportAction] = super().get_queryset(request)
        return rows.filter(content_type__app_label="portal", content_type__model="account")

    @admin.display(description=_("who"))
    def who(self, row: Any) -> str:
        return gettext("%(person)s (number %(number)s)") % {"person": row.user, "number": row.user_id}

    @admin.display(description=_("what"))
    def what(self, row: Any) -> str:
        return unpacked(row.change_message)

    @admin.display(description=_("account number"))
    def account_number(self, row: Any) -> str:
        return row.object_id or ""


class AccountAdmin(_ReadAdmin):
    """Accounts, as support sees them. The list stays empty until something is searched for."""

    list_display = ("email", "name", "state", "created_at")
    search_fields = ("email",)  # shows the box; `support.find` searches
    search_help_text = _(
        "The beginning of the address; or exactly a computer's name, number, host id or CPID; or the first six "
        "characters of a client key. Never ask anybody for the whole key. Your search is logged."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        accounts = Account.objects.none()
        if search_term:
            accounts = support.find(search_term)
            support.note_search(signed_in(request), search_term, accounts.count(), source_of(request))
        blocked = AccountBlock.objects.filter(user=OuterRef("pk"))
        return accounts.annotate(is_blocked=Exists(blocked)), False

    @admin.display(description=_("state"))
    def state(self, account: Any) -> str:
        return gettext("blocked") if account.is_blocked else gettext("open") if account.is_active else gettext("closed")

    def get_urls(self) -> list[URLPattern]:
        help_ = self.admin_site.admin_view(require_POST(self.help_view))
        name = "portal_account_help"
        return [path("<int:pk>/help/<slug:what>/", help_, name=name), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show an account; the first time, ask why."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        account = _account(object_id)
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            reason = form.cleaned_data["reason"]
            support.look(account, reason)
            self._log(request, account, Message("support_looked", reason=reason).packed())
            request.session[_SESSION] = {**_looks(request), str(account.pk): [reason, time.time()]}
            return redirect("admin:portal_account_change", account.pk)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": account.email,
            "form": form,
            "account": account,
        }
        if (reason := _reason_of_look(request, account)) is not None:
            seen = support.read_overview(account, timezone.now())
            helps = [
                (what, action, ReasonForm(auto_id=f"{what}-%s"))
                for what, action in HELP.items()
                if request.user.has_perm(action.permission) and action.fits(seen)
            ]
            context |= {"seen": seen, "helps": helps, "reason": reason}
        return TemplateResponse(request, "admin/portal/account/page.html", context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show who looked, and what was done; only during a look."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if _reason_of_look(request, _account(object_id)) is None:
            return redirect("admin:portal_account_change", object_id)
        response: TemplateResponse = super().history_view(request, object_id, extra_context)
        for entry in (response.context_data or {}).get("action_list", ()):
            entry.change_message = unpacked(entry.change_message)
        return response

    @needs_fresh_login(keeps_form=True)
    def help_view(self, request: HttpRequest, pk: int, what: str) -> HttpResponse:
        """Carry out one of `HELP`."""
        help_ = HELP.get(what)
        if help_ is None:
            raise Http404
        if not (self.has_view_permission(request) and request.user.has_perm(help_.permission)):
            raise PermissionDenied
        account = _account(str(pk))
        form = ReasonForm(request.POST)
        if _reason_of_look(request, account) is None:
            messages.error(request, gettext("First say why you are looking at this account."))
        elif not form.is_valid():
            messages.error(request, str(form.errors["reason"][0]))
        else:
            self._help(request, account, help_, form.cleaned_data["reason"])
        return redirect("admin:portal_account_change", account.pk)

    def _help(self, request: HttpRequest, account: Account, help_: Help, reason: str) -> None:
        try:
            is_told = help_.do(account, signed_in(request), reason)
        except support.Refused as refused:
            messages.error(request, gettext("Not done. %(reason)s") % {"reason": refused})
            return
        self._log(request, account, at_place(Message(help_.code), Message(VERBATIM, text=reason)).packed())
        messages.success(request, gettext("Done: %(what)s.") % {"what": help_.title})
        if not is_told:
            messages.warning(request, gettext("The mail to the person could not be sent. Contact them another way."))

    def _log(self, request: HttpRequest, account: Account, message: str) -> None:
        self.log_change(request, account, message)


def _account(object_id: str) -> Account:
    if not (object_id.isascii() and object_id.isdecimal() and len(object_id) < 19):
        raise Http404
    return get_object_or_404(Account, pk=object_id)


def _looks(request: HttpRequest) -> dict[str, list[Any]]:
    """The present looks of this session: reason and time by account."""
    looks: dict[str, list[Any]] = request.session.get(_SESSION, {})
    return {pk: look for pk, look in looks.items() if time.time() - look[1] < LOOK_SECS}


def _reason_of_look(request: HttpRequest, account: Account) -> str | None:
    look = _looks(request).get(str(account.pk))
    return str(look[0]) if look is not None else None
