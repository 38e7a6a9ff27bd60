"""Django's command, which also mails the owner of the account."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.utils.translation import gettext_lazy as _

from portal.models import User
from portal.people.change_mails import tell_of_change
from portal.people.security_events import BY_OPERATOR, Kind, record


class Command(changepassword.Command):
    """Set somebody's password."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        done: str | None = super().handle(*args, **options)
        user = User.objects.get_by_natural_key(options["username"])
        record(user, Kind.PASSWORD_CHANGED, BY_OPERATOR)
        tell_of_change(user, _("The password was set."), BY_OPERATOR)
        return done
