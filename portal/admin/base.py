"""Base classes of the admin's pages: no secrets in addresses, and rows that nobody edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db.models import CharField, Field, Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, TabularInline

from portal.people.name_field import NameField
from portal.people.security_events import BY_OPERATOR

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

NAMES = frozenset({"name", "given_name", "user_friendly_name"})
SECRETS = frozenset({"password", "client_password", "next_client_password", "token", "key_hash", "token_hash"})


def own_direction(name: str) -> SafeString:
    """Isolate the text direction of a name in a list from what surrounds it."""
    return format_html("<bdi>{}</bdi>", name)


def column(field: str, label: StrOrPromise, words: Callable[[Any], str]) -> Any:
    """A sortable column of a list, or a read-only field of a page, that shows a field as ``words`` writes it."""

    @admin.display(description=label, ordering=field)
    def cell(self: ModelAdmin, row: Model) -> str:
        return words(getattr(row, field))

    return cell


class SecretLookups(ModelAdmin):
    """An admin in which conditions in a list's address cannot find out what only the site knows.

    Django allows a condition on any column of the listed model, such as "?token__startswith=a". Nor can a search find
    out an e-mail address for somebody who may not see the list of people.
    """

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        fields: list[str] = list(super().get_search_fields(request))
        may_see = request.user.has_perm("portal.view_user")
        return fields if may_see else [name for name in fields if not name.endswith("email")]

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Check names as every other form does."""
        if db_field.name in NAMES and isinstance(db_field, CharField):
            kwargs["form_class"] = NameField
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        if lookup.partition("__")[0] in SECRETS:
            return False
        allowed: bool = super().lookup_allowed(lookup, value, request)
        return allowed


class LabelledRows(TabularInline):
    """A table of rows within a form; each field carries its column's heading for screen readers."""

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.widget.attrs.setdefault("aria-label", capfirst(db_field.verbose_name))
        return field


class ReadOnlyAdmin(SecretLookups):
    """Rows that only the site itself writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class TokenAdmin(ReadOnlyAdmin):
    """Tokens, of which only hashes are stored. Operators revoke them."""

    list_select_related = ("user",)
    show_full_result_count = False
    actions = ("revoke",)
    revoke_one: ClassVar[Callable[..., object]]

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        tokens = list(queryset.filter(revoked_at=None).select_related("user"))
        for token in tokens:
            self.revoke_one(token.user, token.pk, BY_OPERATOR)
        text = ngettext("%(number)s token revoked.", "%(number)s tokens revoked.", len(tokens))
        self.message_user(request, text % {"number": len(tokens)})

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"portal.{get_permission_codename('change', self.opts)}")
