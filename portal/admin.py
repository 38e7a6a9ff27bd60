"""The operators' view of people, computers and client keys. Signing in goes through the site's own login."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from portal.audit import proposals, step_view, undo
from portal.audit.admin import AuditedAdmin
from portal.audit.steps import sections
from portal.audit.values import lines_of, row_words_of
from portal.dashboard import registry
from portal.dashboard import views as dashboard_views
from portal.languages.stored import in_english
from portal.maintenance.admin import MaintenanceRunAdmin
from portal.models import (
    Account,
    AccountBlock,
    ApiToken,
    Change,
    ClientKey,
    ConsentEvent,
    Host,
    MaintenanceRun,
    OperatingFigure,
    RequestedWork,
    SiteText,
    SupportAction,
    User,
)
from portal.operators import rights_texts
from portal.operators.admin_pages import AccountAdmin, SupportActionAdmin
from portal.operators.roles import ROLES
from portal.people import consents
from portal.people.accounts import revoke_client_key
from portal.people.api_tokens import revoke_token
from portal.people.recovery import revoke_access
from portal.people.security_events import Kind, Source, record
from portal.people.staff import allow_rights
from portal.requested_work import overview, queue
from portal.templatetags.display import significant

for model in (Group, EmailAddress, Authenticator, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


SECRETS = frozenset({"password", "client_password", "next_client_password", "token", "key_hash", "token_hash"})
BY_OPERATOR = Source(user_agent="an operator")
VOLUNTEERS_OWN = frozenset({("accounting", "userproject")})
"""Tables with rows of volunteers, whose changes by operators are kept, by app and model."""
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


class SecretLookups(ModelAdmin):
    """For other admins: conditions in a list's address find out nothing of what only the site knows.

    Django allows a condition on any column of the listed model, such as "?token__startswith=a". A search finds out no
    address either, for who does not see the list of people.
    """

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        fields: list[str] = list(super().get_search_fields(request))
        may_see = request.user.has_perm("portal.view_user")
        return fields if may_see else [name for name in fields if not name.endswith("email")]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        if lookup.partition("__")[0] in SECRETS:
            return False
        allowed: bool = super().lookup_allowed(lookup, value, request)
        return allowed


class ReadOnlyAdmin(SecretLookups):
    """Rows that only the site itself writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LowerCaseEmail:
    """A mixin for forms: the address is the login, in lower case."""

    cleaned_data: dict[str, Any]

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class PersonForm(LowerCaseEmail, UserChangeForm):
    """Change a person."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "user_permissions" in self.fields:
            self.fields["user_permissions"].queryset = rights_texts.useful_to(self.instance)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        chosen = {group.name for group in cleaned.get("groups") or ()}
        if not cleaned.get("is_staff", True) and chosen.intersection(role.name for role in ROLES if role.in_admin):
            self.add_error("groups", gettext("These roles work in the admin: tick “operator”, too."))
        return cleaned


class NewPasswordForm(AdminPasswordChangeForm):
    """Set or disable a person's password; it ends what the old one gave access to, as a reset by mail does.

    Sessions end with the password itself, but for that of an operator who sets their own.
    """

    @transaction.atomic
    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)
        record(user, Kind.PASSWORD_CHANGED, BY_OPERATOR)
        revoke_access(user, BY_OPERATOR)
        return user


class NewPersonForm(LowerCaseEmail, UserCreationForm):
    """Add a person."""


@admin.register(User)
class UserAdmin(SecretLookups, DjangoUserAdmin, ModelAdmin):
    """People. After a change of address BOINC clients cannot log in until the person has logged in on the web once."""

    form = PersonForm
    add_form = NewPersonForm
    change_password_form = NewPasswordForm
    ordering = ("email",)
    list_display = ("email", "name", "is_staff", "is_active", "created_at", "last_login")
    list_filter = ("is_staff", "is_superuser", "groups", "is_active", ("rights_held_at", admin.EmptyFieldListFilter))
    search_fields = ("email", "name")
    readonly_fields = ("created_at", "last_login", "terms_accepted_at", "deletion_asked_at", "rights_held_at")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("email", "password", "name")}),
        (None, {"fields": ("is_active",)}),
        (_("Limits"), {"fields": ("new_hosts_per_day",)}),
        (_("Rights"), {"fields": (*RIGHTS, "rights_held_at")}),
        (_("Dates"), {"fields": ("created_at", "last_login", "terms_accepted_at", "deletion_asked_at")}),
    )
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "usable_password", "password1", "password2")}),)

    actions = ("allow_rights",)

    @admin.action(
        description=_("Restore withheld rights: the operator reset the password themselves"), permissions=["allow"]
    )
    def allow_rights(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        held = list(queryset.exclude(rights_held_at=None))
        for user in held:
            allow_rights(user, BY_OPERATOR)
        text = ngettext(
            "%(number)s operator has their rights again.", "%(number)s operators have their rights again.", len(held)
        )
        self.message_user(request, text % {"number": len(held)})

    def has_allow_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """Only superusers change rights: otherwise whoever may change people could make themselves one."""
        fields = list(self.readonly_fields)
        if obj is not None and AccountBlock.objects.filter(user=obj).exists():
            # Support unblocks it; then the reason goes, too.
            fields.append("is_active")
        return fields if request.user.is_superuser else [*fields, *RIGHTS]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """An operator's password or address is worth their rights, so only superusers change operators."""
        if obj is not None and (obj.is_staff or obj.is_superuser) and not request.user.is_superuser:
            return False
        return super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Their history and their computers would be deleted too: close the account ("active" off) instead.
        return False

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and form.changed_data:
            names = [
                in_english(form.fields[name].label or name).lower() for name in form.changed_data if name in form.fields
            ]
            record(obj, Kind.RIGHTS_CHANGED, BY_OPERATOR, ", ".join(names))
        if change and "email" in form.changed_data:
            # The old address must not log in any more.
            EmailAddress.objects.filter(user=obj).delete()
            EmailAddress.objects.create(user=obj, email=obj.email, primary=True)


@admin.register(Host)
class HostAdmin(SecretLookups):
    """Computers: reported values are read only, the owner's choices can be changed."""

    list_display = ("shown_name", "owner", "os_name", "ncpus", "client_version", "last_contact_at", "retired_at")
    # With "Show counts" the page says how many computers each has.
    list_filter = ("os_name", "client_brand")
    list_select_related = ("owner",)
    search_fields = ("domain_name", "given_name", "owner__email")
    show_full_result_count = False
    fields = ("owner", "given_name", "venue", "retired_at")

    @admin.display(description=_("name"))
    def shown_name(self, host: Host) -> str:
        return host.name

    def get_fields(self, request: HttpRequest, obj: Host | None = None) -> list[str]:
        reported = [field.name for field in Host._meta.fields if field.name not in (*self.fields, "token", "id")]
        return [*self.fields, *[name for name in reported if name != "hardware_digest"]]

    def get_readonly_fields(self, request: HttpRequest, obj: Host | None = None) -> list[str]:
        return [name for name in self.get_fields(request, obj) if name not in ("given_name", "venue", "retired_at")]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Host | None = None) -> bool:
        # Its history would be deleted too: retire it instead.
        return False


@admin.register(ClientKey)
class ClientKeyAdmin(ReadOnlyAdmin):
    """Keys of BOINC clients; the site stores only their hashes."""

    list_display = ("hint", "user", "host", "origin", "created_at", "last_used_at", "revoked_at")
    list_filter = ("origin",)
    list_select_related = ("user", "host")
    search_fields = ("user__email", "hint")
    show_full_result_count = False
    fields = ("user", "host", "origin", "hint", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    @admin.action(description=_("Revoke the selected keys"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ClientKey]) -> None:
        keys = list(queryset.filter(revoked_at=None).select_related("user"))
        for key in keys:
            revoke_client_key(key.user, key.pk, BY_OPERATOR)
        count = len(keys)
        text = ngettext(
            "%(number)s key revoked. Its computer has to be attached again.",
            "%(number)s keys revoked. Their computers have to be attached again.",
            count,
        )
        self.message_user(request, text % {"number": count})

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("portal.change_clientkey")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Tokens of the REST API; the site stores only their hashes."""

    list_display = ("hint", "user", "name", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "hint")
    show_full_result_count = False
    fields = ("user", "name", "scopes", "hint", "created_at", "expires_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        tokens = list(queryset.filter(revoked_at=None).select_related("user"))
        for token in tokens:
            revoke_token(token.user, token.pk, BY_OPERATOR)
        text = ngettext("%(number)s token revoked.", "%(number)s tokens revoked.", len(tokens))
        self.message_user(request, text % {"number": len(tokens)})

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("portal.change_apitoken")


class StateFilter(admin.SimpleListFilter):
    """By the state of a piece of requested work."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, capfirst(str(words))) for state, words in overview.STATE_WORDS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RequestedWork]) -> QuerySet[RequestedWork]:
        rows = overview.STATES.get(self.value() or "")
        return queryset if rows is None else queryset.filter(rows)


class PlacedChangeList(ChangeList):
    """Knows the places of the rows that it shows; one statement for each kind of work on the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        now = timezone.now()
        subjects: dict[str, list[int]] = {}
        for row in self.result_list:
            subjects.setdefault(row.kind, []).append(row.subject)
        found = {kind: queue.standings(kind, numbers, now) for kind, numbers in subjects.items()}
        for row in self.result_list:
            standing = found[row.kind].get(row.subject)
            row.place = standing.place if standing is not None and standing.place else None


@admin.register(RequestedWork)
class RequestedWorkAdmin(ReadOnlyAdmin):
    """Runs of the emulator, uploads to it and copies of data: what waits, what is done, and what was given up."""

    list_display = ("kind", "subject", "user", "state", "place", "asked_at", "started_at", "finished_at", "ntries")
    list_filter = (StateFilter, "kind")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("-id",)
    fields = ("user", "kind", "subject", "state", "asked_at", "started_at", "finished_at", "ntries")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RequestedWork]:
        found: QuerySet[RequestedWork] = super().get_queryset(request)
        return found.annotate(state_name=overview.STATE)

    def get_changelist(self, request: HttpRequest, **more: Any) -> type[ChangeList]:
        return PlacedChangeList

    @admin.display(description=_("state"), ordering="state_name")
    def state(self, row: Any) -> str:
        return str(overview.STATE_WORDS[row.state_name])

    @admin.display(description=_("place in the queue"))
    def place(self, row: Any) -> int | None:
        place: int | None = row.place
        return place


@admin.register(OperatingFigure)
class OperatingFigureAdmin(ReadOnlyAdmin):
    """The figures as they were taken; the dashboard and its charts are better to read."""

    list_display = ("title", "series", "taken_at", "shown_value")
    fields = ("title", "name", "series", "taken_at", "shown_value")
    search_fields = ("=name",)
    ordering = ("-taken_at", "name", "label")
    show_full_result_count = False

    @admin.display(description=_("figure"), ordering="name")
    def title(self, row: OperatingFigure) -> str:
        figure = registry.figure(row.name)
        return str(figure.title) if figure is not None else row.name

    @admin.display(description=_("series"), ordering="label")
    def series(self, row: OperatingFigure) -> str:
        figure = registry.figure(row.name)
        return figure.label_text(row.label) if figure is not None else row.label

    @admin.display(description=_("value"), ordering="value")
    def shown_value(self, figure: OperatingFigure) -> str:
        return significant(figure.value)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("panels/", view(dashboard_views.panels), name="operating_figure_panels"),
            path("history/<str:name>/", view(dashboard_views.figure_history), name="operating_figure_history"),
        ]
        listed: list[URLPattern] = super().get_urls()
        return own + listed


admin.site.register(Account, AccountAdmin)
admin.site.register(MaintenanceRun, MaintenanceRunAdmin)
admin.site.register(SupportAction, SupportActionAdmin)


class ConsentKindFilter(admin.SimpleListFilter):
    """By what was agreed to, in words."""

    title = _("consent")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.key, str(kind.title)) for kind in consents.kinds.values()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ConsentEvent]) -> QuerySet[ConsentEvent]:
        value = self.value()
        return queryset.filter(kind=value) if value in consents.kinds else queryset


@admin.register(ConsentEvent)
class ConsentEventAdmin(ReadOnlyAdmin):
    """What volunteers agreed to and withdrew."""

    list_display = ("at", "user", "consent", "is_given", "wording", "language", "origin")
    list_filter = (ConsentKindFilter, "is_given", "origin")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    show_full_result_count = False
    fields = list_display

    @admin.display(description=_("consent"), ordering="kind")
    def consent(self, event: ConsentEvent) -> str:
        found = consents.kinds.get(event.kind)
        return str(found.title) if found is not None else event.kind


class SettingKindFilter(admin.SimpleListFilter):
    """By the kind of row; those that have changes."""

    title = _("kind of setting")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        found = Change.objects.order_by("content_type").distinct("content_type").select_related("content_type")
        return [(str(change.content_type_id), change.content_type.name.capitalize()) for change in found]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Change]) -> QuerySet[Change]:
        value = self.value() or ""
        return queryset.filter(content_type=int(value)) if value.isdecimal() else queryset


admin.site.unregister(Change)  # as django-auditlog shows it


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    """All changes of settings: who, when, what, why."""

    list_display = ("timestamp", "what", "summary", "person", "reason")
    list_display_links = ("timestamp",)
    list_filter = (SettingKindFilter, ("actor", admin.RelatedOnlyFieldListFilter), "timestamp")
    list_select_related = ("actor", "content_type")
    search_fields = ("object_repr", "reason")
    date_hierarchy = "timestamp"
    show_full_result_count = False

    @admin.display(description=_("changed"), ordering="object_repr")
    def what(self, change: Change) -> str:
        return f"{change.content_type.name}: {row_words_of(change)}"

    @admin.display(description=_("before → after"))
    def summary(self, change: Change) -> str:
        if change.action != Change.Action.UPDATE:
            return change.done
        return "; ".join(f"{line.label}: {line.before} → {line.after}" for line in lines_of(change))

    @admin.display(description=_("by"), ordering="actor")
    def person(self, change: Change) -> str:
        return str(change.actor) if change.actor is not None else gettext("a command")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("step/<str:key>/", view(step_view.step), name="portal_change_step"),
            path("<int:pk>/undo/", view(require_POST(self.undo_view)), name="portal_change_undo"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Change]:
        found: QuerySet[Change] = super().get_queryset(request)
        for app, model in VOLUNTEERS_OWN:
            if not request.user.has_perm(f"{app}.view_{model}"):
                found = found.exclude(content_type__app_label=app, content_type__model=model)
        return found

    def has_view_permission(self, request: HttpRequest, obj: Change | None = None) -> bool:
        """Of volunteers' own rows, who sees the rows; of settings, also who sees all changes."""
        kind = obj.content_type.natural_key() if obj is not None else None
        if kind in VOLUNTEERS_OWN:
            return bool(request.user.has_perm("{}.view_{}".format(*kind)))
        if super().has_view_permission(request, obj):
            return True
        return obj is not None and step_view.may_see(request, obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A change with its values, what it did, and "Undo"."""
        if not object_id.isdecimal():
            raise Http404("no such change")
        change = get_object_or_404(Change.objects.select_related("actor", "content_type", "undoes"), pk=object_id)
        if not self.has_view_permission(request, change):
            raise PermissionDenied
        row = undo.row_of(change)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Change of %(row)s") % {"row": row_words_of(change)},
            "change_row": change,
            "row_words": row_words_of(change),
            "lines": lines_of(change),
            "row_url": _row_url(change) if row is not None else "",
            "undone_by": change.undone_by.order_by("pk").last(),
            "again": undo.changed_again(change, row) if row is not None else [],
            "can_undo": row is not None
            and step_view.may_change(request, row)
            and undo.proposal_of(change, row) is not None,
            "sections": [found for section in sections if (found := section(change)) is not None],
        }
        return TemplateResponse(request, "portal/audit/change.html", context)

    def undo_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """To the step, with the values before."""
        change = get_object_or_404(Change, pk=pk)
        row = undo.row_of(change)
        if row is None:
            raise Http404("what was changed is gone")
        if not step_view.may_change(request, row):
            raise PermissionDenied
        proposal = undo.proposal_of(change, row)
        if proposal is None:
            self.message_user(
                request, gettext("There is nothing to undo: the earlier values are in force, or were not kept.")
            )
            return redirect("admin:portal_change_change", pk)
        return redirect("admin:portal_change_step", proposals.keep(request.session, proposal))


def _row_url(change: Change) -> str:
    kind = change.content_type
    try:
        return reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[change.object_pk])
    except NoReverseMatch:
        return ""


@admin.register(SiteText)
class SiteTextAdmin(AuditedAdmin):
    """What the pages /about/, /privacy/ and /terms/ say; without a row, what comes with the software."""

    list_display = ("page", "changed_at")
    fields = ("page", "text")
