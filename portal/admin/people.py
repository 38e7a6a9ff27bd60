"""People, their computers, keys and tokens, and what happened to them."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from portal.admin.base import ReadOnlyAdmin, SecretLookups, TokenAdmin, column, own_direction
from portal.audit import rights_requests, two_persons
from portal.languages.messages import Message
from portal.models import Account, AccountBlock, ApiToken, ClientKey, ConsentEvent, Host, SupportAction, User
from portal.operators import rights_texts
from portal.operators.admin_pages import AccountAdmin, SupportActionAdmin
from portal.operators.roles import ROLES
from portal.people import consents
from portal.people.access import signed_in
from portal.people.accounts import revoke_client_key
from portal.people.api_tokens import revoke_token
from portal.people.change_mails import tell_of_change, tell_of_rights
from portal.people.fresh_login import FreshLogin, needs_fresh_login
from portal.people.recovery import revoke_access
from portal.people.security_events import BY_OPERATOR, Kind, record
from portal.people.staff import allow_rights

for model in (Group, EmailAddress, Authenticator):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")
_FIELD_CODES = {
    "email": "account_email",
    "password": "account_password",
    "name": "account_name",
    "is_active": "account_active",
    "new_hosts_per_day": "account_new_hosts",
    "is_staff": "account_staff",
    "is_superuser": "account_superuser",
    "groups": "account_groups",
    "user_permissions": "account_permissions",
}


class LowerCaseEmail:
    """A mixin for forms that lower-cases the address, which is the login."""

    cleaned_data: dict[str, Any]

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class RolesField(forms.ModelMultipleChoiceField):
    """Roles with what they are for."""

    def label_from_instance(self, obj: Group) -> str:
        return rights_texts.role_line(obj)


class PersonForm(LowerCaseEmail, UserChangeForm):
    """Change a person."""

    class Meta(UserChangeForm.Meta):
        labels = {"groups": _("Roles"), "user_permissions": _("Single permissions")}
        field_classes = {"groups": RolesField}
        widgets = {"groups": UnfoldAdminCheckboxSelectMultipleWidget}
        help_texts = {
            "is_superuser": _("May do everything, whatever the roles are."),
            "groups": _("What each role may do is described in docs/reference/roles.md."),
            "user_permissions": _("In addition to those of the roles. Rarely needed."),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "user_permissions" in self.fields:
            self.fields["user_permissions"].queryset = rights_texts.useful_to(self.instance)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        chosen = {group.name for group in cleaned.get("groups") or ()}
        if not cleaned.get("is_staff", True) and chosen.intersection(role.name for role in ROLES if role.in_admin):
            self.add_error("groups", gettext("These roles work in the admin: check “operator”, too."))
        return cleaned


class NewPasswordForm(AdminPasswordChangeForm):
    """Set or disable a person's password; this ends what the old one gave access to, as a reset by mail does.

    Sessions end with the password itself, except that of an operator who sets their own.
    """

    @transaction.atomic
    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)
        record(user, Kind.PASSWORD_CHANGED, BY_OPERATOR)
        revoke_access(user, BY_OPERATOR)
        tell_of_change(user, _("The password was set."), BY_OPERATOR)
        return user


class NewPersonForm(LowerCaseEmail, UserCreationForm):
    """Add a person."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        usable, again = self.fields["usable_password"], self.fields["password2"]
        usable.label = _("Log in with a password")
        usable.help_text = _("If disabled, the person can set one through “Forgotten your password?”.")
        again.label, again.help_text = _("The password again"), ""


@admin.register(User)
class UserAdmin(SecretLookups, DjangoUserAdmin, ModelAdmin):
    """People. After a change of address BOINC clients cannot log in until the person has logged in on the web once."""

    form = PersonForm
    add_form = NewPersonForm
    change_password_form = NewPasswordForm
    # Django's own template only says that more can be set afterwards.
    add_form_template = None
    ordering = ("email",)
    shown_name = column("name", _("display name"), own_direction)
    list_display = ("email", "shown_name", "is_staff", "is_active", "created_at", "last_login")
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
    fresh_login = FreshLogin()

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
        """Not where two persons are needed: whoever reads an operator's mail could confirm as them after a reset."""
        return bool(request.user.is_superuser) and not two_persons.is_on()

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """Only superusers change rights: otherwise whoever may change people could make themselves one."""
        fields = list(self.readonly_fields)
        if obj is not None and AccountBlock.objects.filter(user=obj).exists():
            # Support unblocks the account, which also removes the reason.
            fields.append("is_active")
        if obj is not None and is_others_login(request, obj):
            fields.append("email")
        return fields if request.user.is_superuser else [*fields, *RIGHTS]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """An operator's password or address is worth their rights, so only superusers change operators."""
        if obj is not None and (obj.is_staff or obj.is_superuser) and not request.user.is_superuser:
            return False
        return super().has_change_permission(request, obj)

    @needs_fresh_login(to_look=True)
    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().change_view(request, *args, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Their history and their computers would be deleted too: close the account ("active" off) instead.
        return False

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool) -> None:
        if change and two_persons.is_on():
            self._ask_second(request, obj, form)
        before = User.objects.get(pk=obj.pk) if change else None
        super().save_model(request, obj, form, change)
        if before is not None and form.changed_data:
            names = [_FIELD_CODES[name] for name in form.changed_data if name in _FIELD_CODES]
            detail = Message("event_changed_fields", fields=[Message(name) for name in names])
            record(obj, Kind.RIGHTS_CHANGED, BY_OPERATOR, detail)
            _tell_of_form(before, obj, form)
        if change and "email" in form.changed_data:
            # The old address must not log in any more.
            EmailAddress.objects.filter(user=obj).delete()
            EmailAddress.objects.create(user=obj, email=obj.email, primary=True)

    def _ask_second(self, request: HttpRequest, obj: User, form: forms.ModelForm[User]) -> None:
        """If the person could do more than before, leave their rights, and have another superuser confirm it."""
        given = form.cleaned_data
        groups, permissions = given.get("groups"), given.get("user_permissions")
        if groups is None or permissions is None:
            return
        before, after = rights_requests.rights_of(obj), rights_requests.requested_rights(obj, groups, permissions)
        if not rights_requests.are_more(before, after):
            return
        obj.is_staff, obj.is_superuser, obj.is_active = before["is_staff"], before["is_superuser"], before["is_active"]
        given["groups"] = Group.objects.filter(pk__in=before["groups"])
        given["user_permissions"] = Permission.objects.filter(pk__in=before["permissions"])
        form.changed_data = [name for name in form.changed_data if name not in (*RIGHTS, "is_active")]
        payload = {"user": obj.pk, "before": before, "after": after}
        try:
            two_persons.ask(rights_requests.KIND, f"person {obj.pk}", payload, signed_in(request), timezone.now())
        except two_persons.StepRefused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.warning(request, two_persons.asked_text())

    @needs_fresh_login(to_look=True)
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Where two persons decide, nobody sets another operator's password: they could then confirm as both."""
        other = self.get_object(request, id)
        if other is not None and is_others_login(request, other):
            raise PermissionDenied
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        return answer


def is_others_login(request: HttpRequest, other: User) -> bool:
    """Whether this is another operator's login, which is theirs alone because two persons are needed."""
    return two_persons.is_on() and (other.is_staff or other.is_superuser) and other != request.user


def _tell_of_form(before: User, user: User, form: forms.ModelForm[User]) -> None:
    """Mail the person about a changed address or changed rights."""
    if before.email != user.email:
        words = {"before": before.email, "after": user.email}
        what = format_lazy(_("The e-mail address was changed from {before} to {after}."), **words)
        tell_of_change(user, what, BY_OPERATOR, before.email)
    labels = [form.fields[name].label or name for name in ("is_active", *RIGHTS) if name in form.changed_data]
    if labels:
        fields = format_lazy(", ".join(["{}"] * len(labels)), *labels)
        tell_of_rights(user, format_lazy(_("These were changed: {fields}"), fields=fields), BY_OPERATOR)


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
        return own_direction(host.name)

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
class ApiTokenAdmin(TokenAdmin):
    """Tokens of the REST API; the site stores only their hashes."""

    list_display = ("hint", "user", "name", "created_at", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("user__email", "hint")
    fields = ("user", "name", "scopes", "hint", "created_at", "expires_at", "last_used_at", "revoked_at")
    revoke_one = staticmethod(revoke_token)


class ConsentKindFilter(admin.SimpleListFilter):
    """Filters by what was agreed to."""

    title = _("consent")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.key, str(kind.title)) for kind in consents.kinds().values()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ConsentEvent]) -> QuerySet[ConsentEvent]:
        value = self.value()
        return queryset.filter(kind=value) if value in consents.kinds() else queryset


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
        kind = consents.kinds().get(event.kind)
        return str(kind.title) if kind is not None else event.kind


admin.site.register(Account, AccountAdmin)
admin.site.register(SupportAction, SupportActionAdmin)
